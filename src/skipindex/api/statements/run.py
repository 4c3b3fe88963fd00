"""Running SQL statements by the Python calls that do the same."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from skipindex.api.clustering import Clustering
from skipindex.api.functions import is_in_catalog, open_table, table_of_catalog
from skipindex.api.statements.reader import (
    CreateIndex,
    Describe,
    Distribute,
    DropIndex,
    Explain,
    Layout,
    NamedIndex,
    OnTable,
    Optimize,
    RefreshIndexes,
    ShowIndexes,
    Statement,
    StatementError,
    Target,
    Vacuum,
    read_statement,
)
from skipindex.api.table import Table
from skipindex.build.builder import BuildReport
from skipindex.errors import LayoutError, PredicateError, SkipIndexError
from skipindex.indexes import spec_to_json
from skipindex.storage.file_system.location import location_of
from skipindex.storage.file_system.sidecar import SIDECAR, with_sidecar
from skipindex.table.status import IndexInfo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from skipindex.spark.pruning.statements import Arguments

Row: TypeAlias = Mapping[str, Any]
"""A row of a result, by the names of its columns."""


class Statements:
    """What ``spark.pruning.statements`` asks of the texts of a session."""

    def read(
        self, text: str, arguments: Arguments, spark: SparkSession
    ) -> dict[str, Any]:
        """The columns of a statement's result, or what is wrong with its text."""
        try:
            statement = read_statement(text, arguments.literals())
        except StatementError as error:
            return {
                "near": error.near,
                "hint": f": expected {error.expected}",
                "line": error.line,
                "position": error.position,
            }
        except PredicateError:
            return {}  # Spark tells what is not closed
        return {
            "columns": statement.columns,
            "may_be_of_others": _may_be_of_others(statement, spark),
        }

    def run(self, text: str, arguments: Arguments, spark: SparkSession) -> list[Row]:
        """The rows of a statement's result.

        Raises:
            SkipIndexError: it cannot be carried out.
        """
        statement = read_statement(text, arguments.literals())
        if isinstance(statement, Explain):
            return _explained(statement.query, arguments, spark)
        if isinstance(statement, NamedIndex):
            verb = statement.verb
            raise SkipIndexError(
                f"indexes of Parquet tables have no names, found {statement.name} "
                f"(accepted: {verb} INDEX ON t (column) USING kind)"
            )
        rows = list(_on_table(statement, _opened(statement.table, spark), spark))
        if isinstance(statement, Optimize | Vacuum):
            _forget_files(statement.table, spark)
        return rows


def _may_be_of_others(statement: Statement, spark: SparkSession) -> bool:
    """Whether it is one of others too, and the table is no plain Parquet table."""
    if not isinstance(statement, Optimize | Vacuum | NamedIndex):
        return False
    # The files are listed when the statement runs, which may be long after.
    name = statement.table.name
    try:
        if not statement.table.is_path:
            return not is_in_catalog(spark, name)
        place = location_of(name)
        return bool(place.names("_delta_log")) or not place.exists()
    except SkipIndexError:
        return True


def _opened(target: Target, spark: SparkSession) -> Table:
    """The table of a statement, as it is now."""
    sidecar = spark.conf.get(SIDECAR, None) or None
    if target.is_path:
        place = location_of(target.name)
        return open_table(with_sidecar(place, sidecar, insist=False))
    return table_of_catalog(spark, target.name, sidecar, insist=False)


def _forget_files(target: Target, spark: SparkSession) -> None:
    """Let the session list the files again if it remembers them."""
    if target.is_path:
        spark.catalog.refreshByPath(target.name)
    else:
        spark.catalog.refreshTable(target.name)


def _on_table(statement: OnTable, table: Table, spark: SparkSession) -> Iterable[Row]:
    match statement:
        case Optimize():
            return [_optimized(statement, table, spark)]
        case CreateIndex():
            return [_built(_create(statement, table, spark))]
        case RefreshIndexes():
            return [_built(table.refresh_indexes(spark=spark))]
        case ShowIndexes():
            return map(_index, table.indexes)
        case DropIndex(names=names, kind=kind):
            left = table.drop_indexes(
                columns=list(names) or None, kinds=None if kind is None else [kind]
            )
            kept = {(one.column, one.kind) for one in left.indexes}
            gone = (i for i in table.indexes if (i.column, i.kind) not in kept)
            return map(_index, gone)
        case Vacuum(retention=retention, dry_run=dry_run):
            report = table.vacuum(retention=retention, dry_run=dry_run)
            return [
                {
                    "published": report.published,
                    "deleted": len(report.deleted),
                    "bytes": report.n_bytes,
                    "paths": report.deleted,
                    "waiting": report.waiting,
                }
            ]
        case Distribute(layout=layout):
            table.declare_layout(_clustering(layout, table))
            return [
                {
                    "distributed_by": layout.by,
                    "curve": layout.curve,
                    "locally_ordered_by": layout.sort_within,
                }
            ]
        case Describe():
            return _described(table)


def _clustering(layout: Layout, table: Table) -> Clustering:
    return Clustering(
        by=_own_names(layout.by, table),
        curve=layout.curve,
        sort_within=_own_names(layout.sort_within, table),
    )


def _own_names(names: Iterable[str] | None, table: Table) -> list[str] | None:
    """The columns as layouts name them, which know no fields of structs."""
    if names is None:
        return None
    result: list[str] = []
    for name in names:
        path: Sequence[str] = (name,)  # of an attribute that the layout has
        with suppress(PredicateError):
            path = table.state.find(name).path
        if len(path) > 1:
            raise LayoutError(
                f"cannot lay rows out by {name!r}: it is a field of a struct "
                "(accepted: columns of the table)"
            )
        result.extend(path)
    return result


def _optimized(statement: Optimize, table: Table, spark: SparkSession) -> Row:
    report = table.optimize(
        spark,
        layout=_clustering(statement.layout, table),
        predicate=statement.where,
        mode=statement.mode,
        in_place=True,
        publish=statement.publish,
    )
    return {
        "files_removed": report.files_in,
        "files_added": report.files_out,
        "bytes_removed": report.bytes_in,
        "bytes_added": report.bytes_out,
        "rows": report.n_rows,
        "files_left": report.files_left,
        "notes": report.notes,
    }


def _create(
    statement: CreateIndex, table: Table, spark: SparkSession
) -> BuildReport[Table]:
    names, kind = statement.names, statement.kind
    if kind is None:
        return table.build_indexes(columns=list(names) or None, spark=spark)
    return table.build_indexes(dict.fromkeys(names or ("*",), kind), spark=spark)


def _built(report: BuildReport[Table]) -> Row:
    return {
        "files_indexed": report.files,
        "files_unchanged": report.unchanged,
        "files_unread": report.unread,
        "bytes": report.n_bytes,
        "notes": tuple(filter(None, (*report.notes, report.hint))),
    }


def _index(info: IndexInfo) -> Row:
    spec = {} if info.spec is None else spec_to_json(info.spec)
    given = {name: value for name, value in spec.items() if name != "kind"}
    return {
        "column": info.column,
        "kind": info.kind,
        "parameters": ", ".join(f"{name}={value}" for name, value in given.items()),
        "files": info.files,
        "bytes": info.n_bytes,
    }


def _described(table: Table) -> Iterator[Row]:
    status = table.status()
    said: dict[str, object] = {
        "table": status.table,
        "commit": status.version,
        "files": status.files,
        "bytes": status.n_bytes,
        "indexed files": status.indexed_files,
        "bytes of indexes": status.index_bytes,
        "layout": status.layout and json.dumps(status.layout),
        "files change only through skipindex": status.exclusive,
        "seconds of retention": status.retention_seconds,
    }
    said |= {f"derived {name}": of for name, of in status.derived.items()}
    said |= {f"overlap of {name}": of for name, of in status.overlap.items()}
    for column in status.columns:
        kinds = ", ".join(column.indexes) or ("minmax" if column.statistics else "")
        said[f"column {column.name}"] = kinds or column.why
    said |= {f"without all indexes: {why}": n for why, n in status.gaps.items()}
    for name, value in said.items():
        if value is not None:
            yield {"name": name, "value": str(value)}
    for note in status.notes:
        yield {"name": "note", "value": note}


def _explained(query: str, arguments: Arguments, spark: SparkSession) -> list[Row]:
    """What each scan of a query would read, and why."""
    from skipindex.spark.pruning import session  # noqa: PLC0415 - Spark is there

    texts = [
        f"{one}\n{one.plan.explain()}" if one.plan else str(one)
        for one in session.plans_of(spark, query, arguments)
    ]
    return [{"plan": text} for text in texts or ["no scan of a known table"]]
