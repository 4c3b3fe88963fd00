"""The rows of a plan in Arrow, DuckDB, Polars and pandas."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from skipindex.errors import EngineError, PlanError
from skipindex.planner.bound_predicate import BoundPredicate
from skipindex.planner.rows import Rows
from skipindex.planner.rows.condition import FILES_INSTEAD, condition_of
from skipindex.planner.rows.dataset import dataset_of
from skipindex.planner.stages.limit import RowLimit
from skipindex.table import TableState
from skipindex.table.opening.source import OtherLog

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

_INTEGERS: Final = (8, 16, 32, 64)
_NULLABLE: Final = {
    pa.bool_(): "boolean",
    **{getattr(pa, f"int{bits}")(): f"Int{bits}" for bits in _INTEGERS},
    **{getattr(pa, f"uint{bits}")(): f"UInt{bits}" for bits in _INTEGERS},
}
"""The types of pandas that hold NULL; by default it makes floats, which round."""


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
    def kept(self) -> np.ndarray: ...
    @property
    def row_limit(self) -> RowLimit: ...
    @property
    def session(self) -> _Rules: ...


def to_arrow(plan: Readable, rows: Rows) -> ds.Dataset:
    """See ``Plan.to_arrow``."""
    result, limit = _rows_of(plan, rows)
    if limit is not None:
        raise PlanError(
            f"a dataset cannot be limited to the first {limit} rows (accepted: a plan "
            f"without limit, or {FILES_INSTEAD}, and head({limit}) of the dataset)"
        )
    return result


def to_duckdb(
    plan: Readable, connection: DuckDBPyConnection | None, rows: Rows
) -> DuckDBPyRelation:
    """See ``Plan.to_duckdb``."""
    duckdb = _package("duckdb")
    result, limit = _rows_of(plan, rows)
    own = duckdb.default_connection() if connection is None else connection
    source = result if rows == "files" or _keeps_filters(own) else result.to_table()
    relation: DuckDBPyRelation = own.from_arrow(source)
    return relation if limit is None else relation.limit(limit)


def to_polars(plan: Readable, rows: Rows) -> pl.LazyFrame:
    """See ``Plan.to_polars``."""
    polars = _package("polars")
    result, limit = _rows_of(plan, rows)
    # A filter of Polars that Arrow evaluates would lose NaN.
    frame: pl.LazyFrame = polars.scan_pyarrow_dataset(
        result, allow_pyarrow_filter=False
    )
    return frame if limit is None else frame.head(limit)


def to_pandas(
    plan: Readable, columns: Sequence[str] | None, rows: Rows
) -> pd.DataFrame:
    """See ``Plan.to_pandas``."""
    pandas = _package("pandas")
    if isinstance(columns, str):
        raise PlanError(f"columns={columns!r} is not a list (accepted: [{columns!r}])")
    result, limit = _rows_of(plan, rows)
    for name in columns or ():
        if name not in result.schema.names:
            known = ", ".join(result.schema.names)
            raise PlanError(f"no column {name!r} in the rows (columns: {known})")
    wanted = None if columns is None else list(columns)
    if limit is None:
        table = result.to_table(columns=wanted)
    else:
        table = result.head(limit, columns=wanted)

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


def _rows_of(plan: Readable, rows: Rows) -> tuple[ds.Dataset, int | None]:
    """The rows as a dataset, and how many of them are wanted at most."""
    if rows not in {"matching", "files"}:
        raise PlanError(f"no rows={rows!r} (accepted: 'matching', 'files')")
    if rows == "matching" and plan.row_limit.order_by:
        raise PlanError(
            "rows have no order without Spark (accepted: plan.read(spark), or "
            f"{FILES_INSTEAD}, to filter and to sort there)"
        )
    table = plan.table
    files: Sequence[int] = np.flatnonzero(plan.kept).tolist()
    paths = [table.listing[i].path for i in files]
    limit = None if rows == "files" else plan.row_limit.limit
    if (other := table.other_log) is not None and other.unlike_plain(paths):
        return _of_log(plan, other, paths, rows), limit
    whole = dataset_of(
        table,
        files,
        timezone=plan.session.timezone,
        case_sensitive=plan.session.case_sensitive,
    )
    if rows == "files":
        return whole, limit

    def distinct(expression: pc.Expression) -> pa.Array:
        values = whole.to_table(columns={"value": expression})["value"]
        return pc.unique(values)

    return whole.filter(condition_of(plan.tree, table, distinct)), limit


def _of_log(
    plan: Readable, log: OtherLog, paths: Sequence[str], rows: Rows
) -> ds.Dataset:
    """The rows in memory, which another format reads from these files by its log."""
    schema = pa.schema([field.remove_metadata() for field in log.schema])

    def tables() -> Iterator[pa.Table]:
        for one in log.rows(plan.table.location, paths):
            yield one.select(schema.names).cast(schema)

    def distinct(expression: pc.Expression) -> pa.Array:
        chosen = [
            ds.dataset(one).to_table(columns={"value": expression})["value"]
            for one in (schema.empty_table(), *tables())
        ]
        chunks = [chunk for one in chosen for chunk in one.chunks]
        return pc.unique(pa.chunked_array(chunks, chosen[0].type))

    if rows == "files":
        result = list(tables())
    else:
        condition = condition_of(plan.tree, plan.table, distinct)
        result = [one.filter(condition) for one in tables()]
    return ds.dataset(pa.concat_tables(result) if result else schema.empty_table())


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
