"""The rows of a plan in Arrow, DuckDB, Polars and pandas."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from skipindex.conditions.bound_predicate import BoundPredicate
from skipindex.errors import EngineError, PlanError
from skipindex.expressions.arrays import Ints
from skipindex.planner.file_tasks import residual_of, selections
from skipindex.planner.rows import Rows
from skipindex.planner.rows.condition import (
    FILES_INSTEAD,
    condition_of,
    distinct_in,
)
from skipindex.planner.rows.dataset import Files, chosen_of, of_log
from skipindex.planner.rows.native import (
    Dialect,
    NotNativeError,
    native_condition,
    native_paths,
    require_equal,
)
from skipindex.planner.rows.selected import (
    Bytes,
    blocks_of,
    is_faster_than_arrow,
    rows_at,
)
from skipindex.planner.stages.cost import MOST_BLOCKS, n_blocks
from skipindex.planner.stages.evaluation import Evaluation
from skipindex.planner.stages.limit import RowLimit
from skipindex.source.source import LogSource
from skipindex.table import ColumnInfo, TableState

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

_TRIED: Final = 8
"""The first files, which may be above that fraction of their blocks together."""
_MOST_BYTES: Final = 1 << 28
"""Bytes of pages that are read into memory; more rows are read by a scan."""
_INTEGERS: Final = (8, 16, 32, 64)
_NULLABLE: Final = {
    pa.bool_(): "boolean",
    **{getattr(pa, f"int{bits}")(): f"Int{bits}" for bits in _INTEGERS},
    **{getattr(pa, f"uint{bits}")(): f"UInt{bits}" for bits in _INTEGERS},
}
"""The types of pandas that hold NULL; by default it makes floats, which round."""


def _is_faster_than_engines(size: Bytes, *, of_all: bool) -> bool:
    """Whether reading pages is faster than a scan by DuckDB or Polars."""
    # They decode columns beside those of the condition only where a row matches.  Of
    # all columns a query may use only some.
    groups = size.groups / 2 if of_all else size.groups
    return 4 * size.pages <= size.condition + groups


class _Rules(Protocol):
    @property
    def timezone(self) -> str | None: ...
    @property
    def case_sensitive(self) -> bool: ...


class Readable(Protocol):
    """The parts of a plan that its rows depend on."""

    @property
    def table(self) -> TableState: ...
    @property
    def tree(self) -> BoundPredicate: ...
    @property
    def evaluation(self) -> Evaluation: ...
    @property
    def columns(self) -> Sequence[ColumnInfo]: ...
    @property
    def kept(self) -> np.ndarray: ...
    @property
    def row_limit(self) -> RowLimit: ...
    @property
    def session(self) -> _Rules: ...


def to_arrow(plan: Readable, columns: Sequence[str] | None, rows: Rows) -> ds.Dataset:
    """See ``Plan.to_arrow``."""
    source = _Source(plan, columns, rows)
    if source.limit is not None:
        limit = source.limit
        raise PlanError(
            f"a dataset cannot be limited to the first {limit} rows (accepted: a plan "
            f"without limit, or {FILES_INSTEAD}, and head({limit}) of the dataset)"
        )
    table = source.few_rows(is_faster_than_arrow)
    if table is None:
        dataset = source.dataset()
        if columns is None:
            return dataset
        table = dataset.to_table(columns=source.schema.names)
    return ds.dataset(table)


def to_duckdb(
    plan: Readable,
    connection: DuckDBPyConnection | None,
    columns: Sequence[str] | None,
    rows: Rows,
) -> DuckDBPyRelation:
    """See ``Plan.to_duckdb``."""
    duckdb = _package("duckdb")
    own = duckdb.default_connection() if connection is None else connection
    source = _Source(plan, columns, rows)
    few = source.few_rows(partial(_is_faster_than_engines, of_all=columns is None))
    relation: DuckDBPyRelation
    if few is not None:
        relation = own.from_arrow(few)
    else:
        dialect = Dialect(
            duckdb.ColumnExpression,
            # Whatever collation is set when the query runs.
            lambda name: duckdb.SQLExpression(f"{_quoted(name)} COLLATE C"),
            duckdb.ConstantExpression,
            lambda value: value.isnotnull(),
            lambda value, given: value.isin(*map(duckdb.ConstantExpression, given)),
        )
        names = source.schema.names
        chosen = [duckdb.ColumnExpression(name) for name in names]
        try:
            paths, condition = source.native(dialect)
            relation = own.read_parquet(paths, hive_partitioning=False)
            if condition is not None:
                relation = relation.filter(condition)
            if relation.columns != names:  # each step binds all files again
                relation = relation.select(*chosen)
            require_equal(relation.columns, names)
            require_equal(relation.types, _types_in_duckdb(source.schema))
        except (NotNativeError, duckdb.Error):
            dataset: Any = source.dataset()
            if rows != "files" and not _keeps_filters(own):
                dataset = dataset.to_table(columns=names)
            relation = own.from_arrow(dataset).select(*chosen)
    return relation if source.limit is None else relation.limit(source.limit)


def to_polars(
    plan: Readable, columns: Sequence[str] | None, rows: Rows
) -> pl.LazyFrame:
    """See ``Plan.to_polars``."""
    polars = _package("polars")
    source = _Source(plan, columns, rows)
    few = source.few_rows(partial(_is_faster_than_engines, of_all=columns is None))
    frame: pl.LazyFrame
    if few is not None:
        frame = polars.from_arrow(few).lazy()
    else:
        dialect = Dialect(
            polars.col,
            polars.col,
            polars.lit,
            lambda value: value.is_not_null(),
            lambda value, given: value.is_in(given),
        )
        try:
            paths, condition = source.native(dialect)
            frame = polars.scan_parquet(paths, glob=False, hive_partitioning=False)
            if condition is not None:
                frame = frame.filter(condition)
            frame = frame.select(source.schema.names)
            usual = polars.from_arrow(source.schema.empty_table()).schema
            require_equal(frame.collect_schema(), usual)
        except (NotNativeError, polars.exceptions.PolarsError):
            # A filter of Polars that Arrow evaluates would lose NaN.
            frame = polars.scan_pyarrow_dataset(
                source.dataset(), allow_pyarrow_filter=False
            ).select(source.schema.names)
    return frame if source.limit is None else frame.head(source.limit)


def to_pandas(
    plan: Readable, columns: Sequence[str] | None, rows: Rows
) -> pd.DataFrame:
    """See ``Plan.to_pandas``."""
    pandas = _package("pandas")
    source = _Source(plan, columns, rows)
    table = source.few_rows(is_faster_than_arrow)
    if table is not None:
        table = table.slice(0, source.limit)
    elif source.limit is None:
        table = source.dataset().to_table(columns=source.schema.names)
    else:
        table = source.dataset().head(source.limit, columns=source.schema.names)

    def nullable(dtype: pa.DataType) -> Any:
        name = _NULLABLE.get(dtype)
        return name and pandas.api.types.pandas_dtype(name)

    series = {
        name: column.to_pandas(
            types_mapper=nullable if column.null_count else None,
            integer_object_nulls=True,  # in lists and structs
        )
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    frame: pd.DataFrame = pandas.DataFrame(series, index=range(table.num_rows))
    return frame


class _Source:
    """The rows of a plan, or of its files, in the ways that they can be read."""

    def __init__(
        self, plan: Readable, columns: Sequence[str] | None, rows: Rows
    ) -> None:
        if rows not in {"matching", "files"}:
            raise PlanError(f"no rows={rows!r} (accepted: 'matching', 'files')")
        if rows == "matching" and plan.row_limit.order_by:
            raise PlanError(
                "rows have no order without Spark (accepted: plan.read(spark), or "
                f"{FILES_INSTEAD}, to filter and to sort there)"
            )
        self._plan, self._rows, self._table = plan, rows, plan.table
        self._files: list[int] = np.flatnonzero(plan.kept).tolist()
        self.limit = None if rows == "files" else plan.row_limit.limit
        """How many rows are wanted at most."""
        paths = self._table.paths_at(np.array(self._files, np.int64))
        self._log = self._table.source.reader(paths)
        if self._log is None:
            self._reader = self._reader_of(self._files)
            whole = self._reader.schema
        else:
            whole = pa.schema([field.remove_metadata() for field in self._log.schema])
        self.schema = chosen_of(whole, columns)
        """The columns."""
        self._whole = whole

    def few_rows(self, is_worth: Callable[[Bytes], bool]) -> pa.Table | None:
        """The matching rows in memory; None if a scan of the files is faster."""
        table, plan = self._table, self._plan
        if self._rows == "files" or self._log is not None or not self._files:
            return None
        n_rows = table.n_rows.or_else(-1)[self._files].tolist()
        location = table.location
        if not (location.is_local or location.is_store) or min(n_rows) < 0:
            return None
        if plan.evaluation.many[self._files].mean() > MOST_BLOCKS:
            return None
        left = MOST_BLOCKS * sum(map(n_blocks, n_rows))
        wanted: dict[int, Ints] = {}
        is_exact = True
        chosen = selections(plan.evaluation, np.array(self._files))
        tried = MOST_BLOCKS * sum(map(n_blocks, n_rows[:_TRIED]))
        for i, (file, n, selection) in enumerate(
            zip(self._files, n_rows, chosen, strict=True), 1
        ):
            rows = np.arange(n) if selection.rows is None else selection.rows
            n_read = blocks_of(rows)
            left, tried = left - n_read, tried - n_read
            # The first files tell of all, where reading their rows takes longer.
            if left < 0 or (i == _TRIED and tried < 0):
                return None
            is_exact &= selection.exact
            if len(rows):
                wanted[file] = rows
        condition = {column.path[0] for column in plan.columns}
        read = self.schema
        if not is_exact:
            names = {*read.names, *condition}
            read = pa.schema([field for field in self._whole if field.name in names])
        if not wanted:
            return self.schema.empty_table()
        reader = self._reader_of(list(wanted))
        result = rows_at(
            reader,
            wanted,
            read,
            condition,
            lambda size: size.pages <= _MOST_BYTES and is_worth(size),
        )
        if result is None or is_exact:
            return result
        matching = result.filter(condition_of(plan.tree, table, distinct_in(result)))
        return matching.select(self.schema.names)

    def native(self, dialect: Dialect) -> tuple[list[str], Any]:
        """The paths of the files for an engine's own reader, and the condition there.

        The condition is None if all rows match.

        Raises:
            NotNativeError: an engine may return other rows, or other types.
            PlanError: Arrow may do so too, or a file changed.
        """
        if self._log is not None:
            raise NotNativeError
        condition, names = None, {*self.schema.names}
        if self._rows == "matching" and not self._is_certain:
            tree = residual_of(self._plan.evaluation, self._files)
            condition, asked = native_condition(tree, self._table, self._files, dialect)
            names |= asked
        read = pa.schema([field for field in self._whole if field.name in names])
        paths = native_paths(self._table, self._files, self._reader, read)
        return paths, condition

    def dataset(self) -> ds.Dataset:
        """The rows with all columns as a dataset, which reads the files later."""
        if self._log is not None:
            return self._of_log(self._log)
        whole = self._reader.dataset()
        if self._rows == "files" or self._is_certain:
            return whole
        tree = residual_of(self._plan.evaluation, self._files)
        return whole.filter(condition_of(tree, self._table, distinct_in(whole)))

    @property
    def _is_certain(self) -> bool:
        """Whether all rows of the files match."""
        return all(self._plan.evaluation.certain[self._files])

    def _reader_of(self, files: Sequence[int]) -> Files:
        session = self._plan.session
        return Files(
            self._table,
            files,
            timezone=session.timezone,
            case_sensitive=session.case_sensitive,
        )

    def _of_log(self, log: LogSource) -> ds.Dataset:
        """The rows in memory, as the log of another format reads them."""
        tables = partial(of_log, log, self._table, self._files, self._whole)

        def distinct(expression: pc.Expression) -> pa.Array:
            every = (self._whole.empty_table(), *tables())
            parts = [distinct_in(one)(expression) for one in every]
            return pc.unique(pa.chunked_array(parts))

        if self._rows == "files":
            result = list(tables())
        else:
            condition = condition_of(self._plan.tree, self._table, distinct)
            result = [one.filter(condition) for one in tables()]
        whole = pa.concat_tables(result) if result else self._whole.empty_table()
        return ds.dataset(whole)


@lru_cache
def _types_in_duckdb(schema: pa.Schema) -> Any:
    """The types that DuckDB makes of those of Arrow."""
    return _package("duckdb").connect().from_arrow(schema.empty_table()).types


def _quoted(name: str) -> str:
    """A name in SQL of DuckDB."""
    return '"' + name.replace('"', '""') + '"'


def _keeps_filters(connection: DuckDBPyConnection) -> bool:
    """Whether DuckDB evaluates the filter of a dataset together with its own."""
    two = ds.dataset(pa.table({"n": [1, 2]})).filter(pc.field("n") > 1)
    return connection.from_arrow(two).filter("n < 5").fetchall() == [(2,)]


def _package(name: str) -> Any:
    """A package that only its own method needs; ``EngineError`` if it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise EngineError(
            f"{name} is needed, and is not installed (type: pip install {name})"
        ) from error
