"""Which kinds of index take which types: as ``docs/guides/existing-folder.md`` says."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.indexes import index_types

DAY = datetime(2024, 1, 1)
TAKEN: dict[str, tuple[pa.DataType, list[Any]]] = {
    "a boolean": (pa.bool_(), [True, False]),
    "an integer": (pa.int32(), [1, 2]),
    "a large integer": (pa.uint64(), [1, 2**64 - 1]),
    "a float": (pa.float32(), [0.5, 1.5]),
    "a double": (pa.float64(), [0.5, 1.5]),
    "a decimal": (pa.decimal128(38, 2), [Decimal("0.01"), Decimal("1.00")]),
    "a date": (pa.date32(), [DAY.date(), DAY.date()]),
    "an instant": (pa.timestamp("us", "UTC"), [DAY, DAY]),
    "a local time": (pa.timestamp("us"), [DAY, DAY]),
    "an interval": (pa.duration("us"), [1, 2]),
    "bytes": (pa.binary(), [b"a", b"b"]),
    "bytes of one length": (pa.binary(2), [b"aa", b"bb"]),
}
REFUSED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "an array": (pa.list_(pa.int32()), [[1], [2]]),
    "a map": (pa.map_(pa.int32(), pa.int32()), [[(1, 2)], []]),
    "a time of day": (pa.time64("us"), [1, 2]),
    "a half": (pa.float16(), [0.5, 1.5]),
}
OF_TEXTS = {"ngram_bloom", "token_bloom"}


@pytest.mark.parametrize("kind", ["minmax", *index_types()])
def test_a_kind_takes_the_types_that_the_page_names(tmp_path: Path, kind: str) -> None:
    texts = {"a text": (pa.string(), ["a b", "b c"])}
    columns = {**texts, **TAKEN, **REFUSED}
    rows = {name: pa.array(values, dtype) for name, (dtype, values) in columns.items()}
    pq.write_table(pa.table(rows), tmp_path / "0.parquet")
    sx.build_indexes(tmp_path, {"*": kind}, workers=1)
    table = sx.open_table(tmp_path)
    assert {one.name for one in table.columns if not one.reason} == {*texts, *TAKEN}
    built = {one.name for one in table.status().columns if one.indexes}
    of_kind = {*texts} if kind in OF_TEXTS else {*texts, *TAKEN}
    assert built == (set() if kind == "minmax" else of_kind)
