"""Proposals of what partition columns were computed from, by rows of some files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from skipindex.advice.sample import Sample, SampledColumn, SampleSize, take_sample
from skipindex.conditions.functions.registry import UNSURE, from_plain
from skipindex.errors import PredicateError
from skipindex.expressions.names import quoted
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.planner.stages.derived_partitions import Derivation, derivation
from skipindex.table import ColumnInfo, Derived, TableState, parts_of_time

_SIZE: Final = SampleSize(16, 1_000_000)
_MAX_VALUES: Final = 1000
"""Most values of a file that are compared with its folder."""
_TIMES: Final = ("date", "timestamp", "timestamp_ntz")
_FORMATS: Final = (
    "yyyy-MM-dd HH:mm:ss",
    "yyyy-MM-dd'T'HH:mm:ss",
    "yyyy-MM-dd",
    "yyyy/MM/dd HH:mm:ss",
    "yyyy/MM/dd",
    "yyyyMMdd",
)
"""Formats that texts of times are tried by."""


def propose_derived(table: TableState, timezone: str) -> tuple[Derived, ...]:
    """See ``Table.propose_derived``."""
    if table.derived.columns or not table.partitions:
        return ()
    sources = [
        column
        for column in table.columns
        if column.domain is not None
        and not column.is_partition
        and column.domain.name in {*_TIMES, "string"}
    ]
    sample = take_sample(table, sources, _SIZE)
    result: list[Derived] = []
    for source in sources:
        column = sample.columns.get(source.name)
        if column is None:
            continue
        zone = timezone if column.domain.name == "timestamp" else None
        tried = (Derived(columns, zone) for columns in _candidates(table, source))
        true = (one for one in tried if _holds(table.declaring(one), sample, column))
        first = next(true, None)
        if first is not None:
            result.append(first)
    return tuple(result)


def _candidates(table: TableState, source: ColumnInfo) -> Iterator[dict[str, str]]:
    """What could be declared, the most telling first."""
    assert source.domain is not None
    name, names = source.own_name, [partition.name for partition in table.partitions]
    is_time = source.domain.name in _TIMES
    for layout in (None,) if is_time else _FORMATS:
        yield parts_of_time(name, layout, names, table.schema)
    day = "date({})" if is_time else "substring({}, 1, 10)"
    for partition in names:
        yield {partition: day.format(quoted(name))}


def _holds(table: TableState, sample: Sample, column: SampledColumn) -> bool:
    """Whether the folders of the sample have the values that the table declares."""
    try:
        declared = [derivation(table, *one) for one in table.derived.columns.items()]
    except PredicateError:
        return False
    folders = {tuple(one.values[at] for one in declared) for at in sample.files}
    return len(folders) > 1 and all(
        _is_of_folder(one, at, file)
        for one in declared
        for at, file in zip(sample.files, column.files, strict=True)
    )


def _is_of_folder(one: Derivation, at: int, file: EncodedColumn) -> bool:
    """Whether the function of the values of a file is the value of its folder."""
    folder, domain = one.values[at], one.bound_term.domain
    step = max(1, -(-file.n_distinct // _MAX_VALUES))
    for i in range(0, file.n_distinct, step):
        value = file.distinct[i]
        plain_value = int(value) if isinstance(value, np.integer) else value.as_py()
        try:
            plain = one.bound_term.value(plain_value)
        except UNSURE:
            return False
        if plain is None or domain is None or from_plain(domain, plain) != folder:
            return False
    return file.n_distinct > 0 and folder is not None
