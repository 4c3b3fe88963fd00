"""Codes of values, and values of codes."""

from __future__ import annotations

import random
from bisect import bisect_left
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.expressions.atoms import Value, values_of
from skipindex.expressions.domain import domain_of
from skipindex.indexes.encoding.chunks import INTS_PER_CHUNK
from skipindex.indexes.encoding.coding import Coding, rank_coding, value_coding
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.encoding.dictionary import Codebook, open_codebook
from skipindex.indexes.encoding.header import Cursor, read_head
from skipindex.storage.parts import MemoryParts
from tests.quick_run import examples

chooser = random.Random(0)


def reopened(column: EncodedColumn, coding: Coding) -> tuple[Codebook, MemoryParts]:
    parts = MemoryParts([coding.header(column, version=1), *coding.chunks])
    cursor = Cursor(parts[0])
    head = read_head(cursor, kind="x", domain=column.domain, n_rows=column.n_rows)
    book = open_codebook(head, cursor, parts)
    cursor.end()
    parts.count.parts = 0
    return book, parts


def _column(array: pa.Array) -> EncodedColumn:
    return EncodedColumn("c", array, domain_of(array.type))


def check(book: Codebook, distinct: list[Value], literals: list[Value]) -> None:
    """``book`` against binary search in the plain list."""
    assert book.n_codes == len(distinct)
    for value in literals:
        at = bisect_left(distinct, value)
        is_there = at < len(distinct) and distinct[at] == value
        assert book.find(value) == (at if is_there else None)
        assert book.locate(value, None) == (at, len(distinct))
        assert book.locate(None, value) == (0, at)
    low, high = min(literals), max(literals)
    assert book.locate(low, high) == (
        bisect_left(distinct, low),
        bisect_left(distinct, high),
    )
    for asked in (literals, literals[:8], [*literals, *distinct], distinct[::3]):
        wanted = set(asked)
        several = sorted(wanted)
        found = [i for i, value in enumerate(distinct) if value in wanted]
        assert list(book.find_all(tuple(several))) == found
        if all(isinstance(v, bytes) or -(2**63) <= v < 2**63 for v in several):
            assert list(book.find_all(values_of(several))) == found
    assert book.values(0, len(distinct)) == distinct
    start, stop = sorted(chooser.choices(range(len(distinct) + 1), k=2))
    assert book.values(start, stop) == distinct[start:stop]


INTS = {
    "consecutive": range(-3, 5000),
    "even steps": range(0, 60_000, 12),
    "near": [i * 3 + chooser.randrange(3) for i in range(5000)],
    "far": sorted({chooser.randrange(-(2**63), 2**63) for _ in range(3000)}),
    "extremes": [-(2**63), -1, 0, 2**63 - 1],
    "one": [42],
    "a full chunk": range(INTS_PER_CHUNK),
    "a full chunk and one": range(0, 7 * INTS_PER_CHUNK + 1, 7),
}


@pytest.mark.parametrize("name", INTS)
def test_ints(name: str) -> None:
    distinct = list(INTS[name])
    column = _column(pa.array(chooser.sample(distinct, len(distinct))))
    book, _ = reopened(column, rank_coding(column))
    near = [v + d for v in chooser.choices(distinct, k=30) for d in (-1, 0, 1)]
    ends = [distinct[0], distinct[-1], distinct[0] - 1, distinct[-1] + 1, 10**30]
    check(book, distinct, [*near, *ends, -(10**30), 0])
    check(book, distinct, ends[:3])


TEXTS: dict[str, list[Any]] = {
    "names": sorted({f"Customer#{chooser.randrange(10**9):09d}" for _ in range(5000)}),
    "hex": sorted({f"{chooser.getrandbits(128):032x}" for _ in range(3000)}),
    "short": ["", "\0", "\0\0", "a", "a\0", "ab", "b"],
    "one": ["only"],
    "one empty": [""],
    "long": sorted("x" * n + str(n) for n in range(100, 400, 3)),
    "longer than a chunk": ["a" * 40_000, "a" * 40_000 + "b", "b" * 20_000],
    "greatest bytes": [b"\xff" * n for n in range(60, 70)],
    "any bytes": sorted({chooser.randbytes(chooser.randrange(9)) for _ in range(9000)}),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str) -> None:
    values = TEXTS[name]
    column = _column(pa.array(values))
    book, _ = reopened(column, rank_coding(column))
    distinct = [v if isinstance(v, bytes) else v.encode() for v in values]
    literals = chooser.choices(distinct, k=30)
    literals += [v[:-1] for v in literals] + [v + b"\0" for v in literals]
    check(book, distinct, [*literals, b"", b"\xff" * 100, distinct[0], distinct[-1]])


@pytest.mark.parametrize("values", [[0, 9, 3], [-(2**63), -(2**63) + 5], [2**63 - 1]])
def test_value_mode_needs_no_dictionary(values: list[int]) -> None:
    column = _column(pa.array(values))
    low, high = min(values), max(values)
    book, _ = reopened(column, value_coding(column, high - low + 1))
    check(book, list(range(low, high + 1)), [low - 1, *values, high + 1, 0, 10**30])


@pytest.mark.parametrize("dtype", [pa.int64(), pa.binary()])
def test_an_empty_dictionary(dtype: pa.DataType) -> None:
    column = _column(pa.array([None, None], dtype))
    book, _ = reopened(column, rank_coding(column))
    literal: Value = b"x" if column.domain.is_bytes else 5
    assert book.find(literal) is None
    assert book.find_all([literal] * 20) == []
    assert book.locate(literal, None) == book.locate(None, literal) == (0, 0)
    assert book.values(0, 0) == []


@examples(100)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.integers())
def test_any_ints(values: list[int], literal: int) -> None:
    column = _column(pa.array(values, pa.int64()))
    book, _ = reopened(column, rank_coding(column))
    check(book, sorted(set(values)), [literal, *values])


def test_a_look_up_reads_one_chunk_and_one_outside_none() -> None:
    for array in (
        pa.array(rng_ints()),
        pa.array([f"{i:020d}" for i in range(0, 90_000, 3)]),
    ):
        column = _column(array)
        coding = rank_coding(column)
        assert len(coding.chunks) > 10
        values = column.distinct.to_pylist() if column.domain.is_bytes else None
        middle = values[9000] if values else int(column.distinct[9000])
        book, parts = reopened(column, coding)
        assert book.find(middle) == 9000
        assert parts.count.parts == 1
        assert book.locate(middle, None)[0] == 9000
        assert parts.count.parts == 2
        outside = [b"", b"\xff"] if values else [-1, 10**12]
        for value in outside:
            book.find(value)
            book.locate(value, None)
            book.locate(None, value)
        assert parts.count.parts == 2


def rng_ints() -> np.ndarray:
    return np.unique(np.random.default_rng(0).integers(0, 10**9, 60_000))


def test_dictionaries_are_small() -> None:
    """Near the entropy of the gaps, and far below 8 bytes, or the text, a value."""
    column = _column(pa.array(rng_ints()))
    assert sum(map(len, rank_coding(column).chunks)) < 2.6 * column.n_distinct
    names = _column(pa.array([f"Customer#{i:09d}" for i in range(0, 10**6, 17)]))
    assert sum(map(len, rank_coding(names).chunks)) < 4 * names.n_distinct
