"""The rows of a plan by DuckDB's and Polars' own readers of Parquet.

They decode faster than Arrow.  They are used only for files that they certainly read as
Spark does: local files with equal columns of simple types, which are those of the
table, and conditions that mean the same in every engine.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skipindex.conditions.bound_predicate import (
    BoundPredicate,
    Computed,
    Leaf,
    fold,
)
from skipindex.expressions import atoms
from skipindex.expressions.domain import NAN, Domain, float_key
from skipindex.planner.rows.dataset import Files
from skipindex.planner.rows.values import (
    compared_type,
    ends_of,
    is_between,
    joined,
    number_of,
    scalar_of,
)
from skipindex.table import ColumnInfo, TableState

_COMPARED: Final = frozenset(
    {
        *("int", "bool", "date", "timestamp", "timestamp_ntz"),
        *("decimal", "big_decimal", "float", "string"),
    }
)
"""Domains whose values all engines compare in one way."""
_INFINITE: Final = float_key(float("-inf")), float_key(float("inf")) + 1
"""The numbers that are not NaN."""
_MOST_VALUES: Final = 1000
"""Values of an IN; engines bind longer lists slowly."""
_PATTERN: Final = frozenset("*?[]{}\\\\")
"""Characters of paths that DuckDB may take for patterns."""


class NotNativeError(Exception):
    """An engine's own reader may return other rows, or other types."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an engine builds expressions.

    Args:
        column: of a name.
        text: of the name of a column of texts, which are compared by their bytes.
        value: of a value of Python.
        is_valid: whether an expression is not NULL.
        is_in: whether an expression equals one of some values of Python.
    """

    column: Callable[[str], Any]
    text: Callable[[str], Any]
    value: Callable[[Any], Any]
    is_valid: Callable[[Any], Any]
    is_in: Callable[[Any, Sequence[Any]], Any]


def native_paths(
    table: TableState, files: Sequence[int], reader: Files, schema: pa.Schema
) -> list[str]:
    """The paths of files that engines read as Spark does.

    Raises:
        NotNativeError: an engine may read a file otherwise than Spark.
        PlanError: Arrow may do so too, or a file changed.
    """
    paths = [*map(table.location.full, table.paths_at(np.array(files, np.int64)))]
    hidden = {name for partition in table.partitions for name in partition.names}
    simple = all(map(_is_simple, schema.types)) and hidden.isdisjoint(schema.names)
    if not (simple and paths and table.location.is_local):
        raise NotNativeError
    if any(_PATTERN & set(path) for path in paths):
        raise NotNativeError
    for column in table.columns:
        if column.own_name in schema.names and pa.types.is_floating(
            schema.field(column.own_name).type
        ):
            _require_numbers(table, files, column)
    stored = reader.each(reader.stored)
    if any(one.has_int96 for one in stored):  # Arrow reads it as other times
        raise NotNativeError
    first, *others = (one.schema for one in stored)
    if not all(other is first or first.equals(other) for other in others):
        raise NotNativeError
    for field in schema:
        if first.get_field_index(field.name) < 0:
            raise NotNativeError
        if _plain(first.field(field.name).type) != _plain(field.type):
            raise NotNativeError
    return paths


def native_condition(
    tree: BoundPredicate, table: TableState, files: Sequence[int], dialect: Dialect
) -> tuple[Any, set[str]]:
    """The condition on the rows of ``files`` in an engine, and its columns.

    Raises:
        NotNativeError: it may mean something else there.
    """
    names: set[str] = set()

    def of_leaf(leaf: Leaf | Computed) -> Any:
        info = table.stored(leaf.column)
        atom = leaf.question if isinstance(leaf, Computed) else leaf.atom
        is_column = len(info.path) == 1 and not info.is_partition
        if isinstance(leaf, Computed) or info.domain is None or not is_column:
            raise NotNativeError
        names.add(info.own_name)
        is_text = info.domain.name == "string"
        column = (dialect.text if is_text else dialect.column)(info.own_name)
        match atom:
            case atoms.NullAtom():
                return ~dialect.is_valid(column)
            case atoms.NotNullAtom():
                return dialect.is_valid(column)
        domain, dtype = info.domain, table.type_of(info)
        ends = ends_of(domain, dtype)
        if domain.name not in _COMPARED:
            raise NotNativeError
        if not is_text and compared_type(domain, dtype) != dtype:
            raise NotNativeError
        if domain.name == "float":
            _require_numbers(table, files, info)
            ends = _INFINITE

        def has(value: Any) -> bool:
            return ends is None or is_between(value, *ends)

        def python(value: Any) -> Any:
            return _python(value, domain, dtype)

        def among(values: Any) -> Any:
            # A filter of Parquet that is asked for 0.0 may leave -0.0 out.
            is_zero = domain.name == "float" and 0 in values
            if is_zero or len(values) > _MOST_VALUES:
                raise NotNativeError
            numbers = (number_of(value, domain) for value in values)
            here = [python(value) for value in numbers if has(value)]
            if here:
                return dialect.is_in(column, here)
            return ~dialect.is_valid(column) & dialect.is_valid(column)

        match atom:
            case atoms.OneOf(values=values):
                return among(values)
            case atoms.NoneOf(values=values):
                return dialect.is_valid(column) & ~among(values)
            case atoms.Range(low=low, high=high) if domain.name == "bool":
                return among(
                    [value for value in (0, 1) if is_between(value, low, high)]
                )
            case atoms.Range(low=low, high=high):
                low, high = (
                    None if end is None else number_of(end, domain)
                    for end in (low, high)
                )
                if ends is not None and not (
                    is_between(ends[0], None, high) and is_between(low, None, ends[1])
                ):
                    return among(())
                parts = [dialect.is_valid(column)]
                if low is not None and has(low):
                    parts.append(column >= dialect.value(python(low)))
                if high is not None and has(high):
                    parts.append(column < dialect.value(python(high)))
                return reduce(operator.and_, parts)
        raise NotNativeError

    def refused(_: object) -> Any:
        raise NotNativeError

    condition = fold(
        tree,
        leaf=of_leaf,
        all_of=lambda parts: joined(list(parts), every=True),
        any_of=lambda parts: joined(list(parts), every=False),
        constant=refused,
        unknown=refused,
    )
    return condition, names


def _python(value: Any, domain: Domain, dtype: pa.DataType) -> Any:
    """A value of Python that engines take for that of a column."""
    try:
        if isinstance(value, bytes):
            return value.decode()
        return scalar_of(value, domain, dtype).as_py()
    except (ValueError, OverflowError) as error:
        raise NotNativeError from error


def _require_numbers(
    table: TableState, files: Sequence[int], column: ColumnInfo
) -> None:
    """Raise ``NotNativeError`` if a float column may have NaN."""
    # Engines pass over row groups by bounds that leave NaN out.
    stats = table.stats(column)
    if not (stats.bounded[files].all() and (stats.high[files] < NAN).all()):
        raise NotNativeError


def require_equal(own: object, usual: object) -> None:
    """Raise ``NotNativeError`` if a reader's own columns or settings are unusual."""
    if own != usual:
        raise NotNativeError


def _is_simple(dtype: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_integer(dtype)
        or types.is_boolean(dtype)
        or types.is_float32(dtype)
        or types.is_float64(dtype)
        or types.is_date32(dtype)
        or types.is_decimal128(dtype)
        or (dtype.id == pa.timestamp("us").id and dtype.unit == "us")
        or _plain(dtype) in {pa.string(), pa.binary()}
    )


def _plain(dtype: pa.DataType) -> pa.DataType:
    """Texts and bytes in their usual type, and other types as they are."""
    if dtype in {pa.large_string(), pa.string_view()}:
        return pa.string()
    return pa.binary() if dtype in {pa.large_binary(), pa.binary_view()} else dtype
