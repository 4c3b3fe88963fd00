"""Files that may be rewritten, and the indexes that the new files must have."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from skipindex.build.column_requests import Request, requested
from skipindex.conditions.sql.parser import parse
from skipindex.errors import LayoutError, PredicateError, TableError
from skipindex.expressions import Predicate, Reference, to_sql
from skipindex.expressions.extent import nodes
from skipindex.planner.plan import Verdict, plan_files
from skipindex.rewrite.selection.attributes import Attributes
from skipindex.rewrite.selection.target import EligibleFile
from skipindex.source import require_plain
from skipindex.source.parquet.footers import THREADS, footer_of, row_counts
from skipindex.table import TableState


def choose(
    table: TableState, where: str | Predicate | None, *, timezone: str | None = None
) -> list[int]:
    """The files of the partitions for which ``where`` is TRUE; None is all."""
    if where is None:
        return list(range(len(table)))
    tree = parse(where) if isinstance(where, str) else where
    names = [column.name for column in table.partitions]
    for part in nodes(tree):
        if isinstance(part, Reference) and not (
            len(part.parts) == 1 and table.resolve(part.parts[0]).is_partition
        ):
            raise PredicateError(
                f"cannot optimize WHERE {to_sql(tree)}: files are chosen by partition "
                f"columns, and {str(part)!r} is not one (accepted: {names})"
            )
    # Without indexes, because a partition is rewritten as a whole or not at all.
    bare = table.over(table.listing)
    plan = plan_files(tree, table=bare, timezone=timezone)
    for task in plan.tasks:
        if task.verdict is not Verdict.ALL:
            raise PredicateError(
                f"cannot optimize WHERE {plan.where}: it is not known whether it is "
                f"TRUE for {task.path!r} (expected comparisons of "
                f"partition columns with literals; there are: {names})"
            )
    row = {path: i for i, path in enumerate(table.paths)}
    return [row[path] for path in plan.paths]


def eligible_files(table: TableState, chosen: Sequence[int]) -> list[EligibleFile]:
    """These files with their rows, from their own footers where no index knows them."""
    for partition in table.partitions:
        if partition.name in table.schema.names:
            raise LayoutError(
                f"cannot rewrite {table.folder!r}: {partition.name!r} is a "
                "column of the files and a partition column"
            )
        if len(partition.names) > 1:
            raise LayoutError(
                f"cannot rewrite {table.folder!r}: its folders spell one "
                f"partition column as {list(partition.names)} (expected one spelling)"
            )

    unknown = [i for i in chosen if not table.n_rows.known[i]]
    read = row_counts(table.location, [table.paths[i] for i in unknown])
    n_rows = dict(zip(unknown, read, strict=True))
    counted = table.n_rows.or_else(0)
    return [
        EligibleFile(
            path := table.paths[i],
            table.source.partition_of(path),
            int(table.sizes[i]),
            n_rows[i] if i in n_rows else int(counted[i]),
        )
        for i in chosen
    ]


def check_rewritable(
    table: TableState, files: Sequence[EligibleFile]
) -> dict[str, list[str]]:
    """The columns, by the paths of files, that would lose their type if Spark wrote."""
    if not table.source.has_versions:  # a log may have come since it was opened
        everything = (file.path for file in table.location.list())
        require_plain(table.location, everything, insist=False)

    def check(file: EligibleFile) -> list[str]:
        _, schema, foreign = footer_of(table.location, file.path)
        if table.source.ids is None:
            _check_schema(table, file.path, schema)
        return foreign

    with ThreadPoolExecutor(THREADS) as pool:
        result = zip(files, pool.map(check, files), strict=True)
        return {file.path: foreign for file, foreign in result if foreign}


def _check_schema(table: TableState, path: str, schema: pa.Schema) -> None:
    """One schema is given to all rows: a column that it lacks would be lost."""
    wanted = {field.name: field.type for field in table.schema}
    names = {
        field.name
        for field in schema
        if field.name not in wanted
        or schema.names.count(field.name) > 1
        or not _holds_alike(wanted[field.name], field.type)
    }
    # Of a column that a file lacks, only a declared schema tells the default.
    if table.declared is None:
        names |= wanted.keys() - {*schema.names}
    if names:
        raise TableError(
            f"cannot rewrite {table.location.full(path)!r}: its columns "
            f"{sorted(names)} differ from those of {table.schema_path!r} (expected "
            "columns of the table, with its types; a column may be missing if the "
            "table is named as in a catalog, or opened with schema=)"
        )


def _holds_alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether two types are one, up to what may be NULL inside: Spark drops that."""
    if pa.types.is_null(one):
        return True
    if one.num_fields != other.num_fields or one.id != other.id or not one.num_fields:
        return bool(_as_number(one) == _as_number(other))
    fields = [(one.field(i), other.field(i)) for i in range(one.num_fields)]
    named = pa.types.is_struct(one)
    return all(
        (a.name == b.name or not named) and _holds_alike(a.type, b.type)
        for a, b in fields
    )


def _as_number(dtype: pa.DataType) -> pa.DataType:
    """Nanoseconds as the bigint that they are to Spark, which writes the rows."""
    is_nanos = pa.types.is_timestamp(dtype) and dtype.unit == "ns"
    return pa.int64() if is_nanos else dtype


def clustering_columns(
    table: TableState,
    names: Sequence[str],
    indexes: Request,
    attributes: Attributes | None = None,
) -> tuple[str, ...]:
    """The columns and attributes to cluster by, as the table spells them.

    ``indexes`` are those that the new files will have.
    """
    result: list[str] = []
    known = {column.name for column, _ in requested(table, indexes)}
    for name in names:
        if attributes and name in attributes:
            table.resolve(attributes[name].key)
            result.append(name)
            continue
        column = table.resolve(name)
        problem = ""
        if column.is_partition:
            problem = "it is a partition column, so a file holds one value of it"
        elif column.domain is None:
            problem = column.reason
        elif column.name not in known:
            problem = (
                "the new files would have no statistics of it, so none would be "
                f"skipped (name it in indexes, or build_indexes first; there are: "
                f"{sorted(known)})"
            )
        elif column.own_name in result:
            problem = "it is named twice"
        if problem:
            raise LayoutError(f"cannot cluster by column {name!r}: {problem}")
        result.append(column.own_name)
    return tuple(result)
