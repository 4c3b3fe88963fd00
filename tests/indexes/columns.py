"""Columns of every domain, atoms over them, and the oracle that judges answers."""

from __future__ import annotations

import math
from datetime import date, timedelta
from decimal import Decimal
from typing import assert_never

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from pyroaring import BitMap

from skipindex.errors import UnsupportedTypeError
from skipindex.expressions.atoms import (
    Atom,
    IntegerSet,
    Matches,
    NoneOf,
    NotNullAtom,
    NullAtom,
    OneOf,
    Pattern,
    Range,
    Value,
    Values,
    Wildcard,
    successor,
)
from skipindex.expressions.domain import Domain, domain_of
from skipindex.indexes import IndexSpec, index_type
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.kinds.bit_sliced import BitSliced
from skipindex.indexes.kinds.bitmap import Bitmap
from skipindex.indexes.kinds.bloom import Bloom
from skipindex.indexes.kinds.exact import Exact
from skipindex.indexes.kinds.ngram_bloom import NGramBloom
from skipindex.indexes.kinds.range_bitmap import RangeBitmap
from skipindex.indexes.kinds.run_length import RunLength
from skipindex.indexes.kinds.token_bloom import TokenBloom
from tests import tables

POSITIONAL: list[IndexSpec] = [
    Bitmap(),
    RangeBitmap(),
    RangeBitmap(max_bitmaps=1),
    RangeBitmap(max_bitmaps=4),
    BitSliced(),
    BitSliced(base=2, encoding="equality"),
    BitSliced(base=10, encoding="equality"),
    BitSliced(base=10, encoding="range"),
    BitSliced(base=16, encoding="equality"),
    RunLength(),
    Exact(),
    BitSliced(max_slices=1),
    BitSliced(max_slices=3),
    BitSliced(base=2, encoding="equality", max_slices=4),
    BitSliced(base=10, encoding="equality", max_slices=12),
    BitSliced(base=3, encoding="range", max_slices=4),
]
EXACT = [
    spec
    for spec in POSITIONAL
    if getattr(spec, "max_bitmaps", None) not in {1, 4}
    and getattr(spec, "max_slices", None) is None
]
SPECS: list[IndexSpec] = [
    *POSITIONAL,
    Bloom(),
    NGramBloom(),
    NGramBloom(n=2, error_rate=0.3),
    NGramBloom(n=5),
    TokenBloom(),
    Bloom(hashing="pybloom"),
    NGramBloom(hashing="pybloom"),
    TokenBloom(hashing="pybloom"),
]


def spec_id(spec: IndexSpec) -> str:
    return repr(spec).replace(" ", "")


def is_exact(spec: IndexSpec, column: EncodedColumn) -> bool:
    """Whether the kind promises lower == upper on this column."""
    if isinstance(spec, RangeBitmap):
        return column.n_distinct <= (spec.max_bitmaps or 20)
    if isinstance(spec, BitSliced):
        return spec.max_slices is None
    return index_type(spec.kind).positional


def fits(spec: IndexSpec, dtype: pa.DataType) -> bool:
    """Whether the kind can be on a column of a type."""
    try:
        index_type(spec.kind).check(domain_of(dtype))
    except UnsupportedTypeError:
        return False
    return True


def encoded(values: list[object], dtype: pa.DataType) -> EncodedColumn:
    return column_of(pa.array(values, dtype))


def column_of(array: pa.Array) -> EncodedColumn:
    return EncodedColumn("c", array, domain_of(array.type))


def values_of(array: pa.Array) -> list[Value | None]:
    """The domain value of every row."""
    values: list[Value | None] = domain_of(array.type).encode(array).to_pylist()
    return values


def holds(atom: Atom, value: Value | None) -> bool:
    """Whether ``atom`` is TRUE for a row that has ``value``; UNKNOWN is not TRUE.

    As the oracle has it (``test_columns.py``), and fast enough for 100,000 rows.
    """
    if value is None:
        return isinstance(atom, NullAtom)
    match atom:
        case Range(low=low, high=high):
            return (low is None or low <= value) and (high is None or value < high)
        case OneOf(values=values):
            return value in values
        case NoneOf(values=values):
            return value not in values
        case NullAtom():
            return False
        case NotNullAtom():
            return True
        case Matches():
            return tables.holds(atom, value)
        case _:
            assert_never(atom)


def true_rows(atom: Atom, values: list[Value | None]) -> BitMap:
    return BitMap([i for i, value in enumerate(values) if holds(atom, value)])


_I64 = (-(2**63), -(2**63) + 1, -1, 0, 1, 2**31, 2**32, 2**63 - 1)
_FLOATS = [math.nan, -0.0, 0.0, math.inf, -math.inf, 5e-324, -5e-324, 1.5, -1e308]
_EPOCH = date(1970, 1, 1)


def _decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    top = 10**digits - 1
    unscaled = st.one_of(st.integers(-9, 9), st.sampled_from([-top, top]))
    return unscaled.map(lambda n: Decimal(f"{n}E-{scale}"))


_ELEMENTS: dict[pa.DataType, st.SearchStrategy[object]] = {
    pa.int8(): st.integers(-128, 127),
    pa.int16(): st.integers(-3, 3) | st.sampled_from([-(2**15), 2**15 - 1]),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.uint32(): st.integers(0, 5) | st.just(2**32 - 1),
    pa.int64(): st.sampled_from(_I64) | st.integers(-20, 20),
    pa.bool_(): st.booleans(),
    pa.date32(): st.integers(-9, 20_000).map(lambda n: _EPOCH + timedelta(days=n)),
    pa.timestamp("us", "UTC"): st.integers(-5, 5) | st.sampled_from(_I64),
    pa.timestamp("us"): st.integers(-(10**15), 10**15),
    pa.timestamp("ms"): st.integers(-(10**12), 10**12),
    pa.decimal128(9, 2): _decimals(9, 2),
    pa.decimal128(18, 0): _decimals(18, 0),
    pa.decimal128(38, 3): _decimals(38, 3),
    pa.float64(): st.sampled_from(_FLOATS) | st.floats(-3, 3),
    pa.float32(): st.sampled_from([math.nan, -0.0, 0.0, math.inf, 0.1, -2.5]),
    pa.string(): st.text("ab\0\u00e9\U0001f33c", max_size=4)
    | st.text("ab -/\u00e9", max_size=20)
    | st.text(max_size=80),
    pa.binary(): st.binary(max_size=3) | st.sampled_from([b"\xff" * 70, b"\0" * 9]),
}


@st.composite
def arrays(draw: st.DrawFn, spec: IndexSpec | None = None) -> pa.Array:
    """A small column of some type: NULLs, repeats and extremes, or nothing at all.

    The type is one that ``spec`` can be on.
    """
    dtypes = [dtype for dtype in _ELEMENTS if spec is None or fits(spec, dtype)]
    dtype = draw(st.sampled_from(dtypes))
    element = _ELEMENTS[dtype]
    if draw(st.booleans()):
        element = st.sampled_from(draw(st.lists(element, min_size=1, max_size=4)))
    nullable = st.none() | element if draw(st.booleans()) else element
    return pa.array(draw(st.lists(nullable, max_size=40)), dtype)


def _literals(values: list[Value | None], domain: Domain) -> st.SearchStrategy[Value]:
    """Values of the column, their neighbours, and values far from all of them."""
    own = [value for value in values if value is not None]
    if domain.is_bytes:
        near = [v + b"\0" for v in own] + [v[:-1] for v in own] + [b"", b"\xff" * 80]
        return st.sampled_from(own + near) | st.binary(max_size=3)
    near = [v + d for v in own for d in (-1, 1)] + [-(2**63), 2**63 - 1, -(10**30), 0]
    return st.sampled_from(own + near) | st.integers(-(10**20), 10**20)


@st.composite
def patterns(draw: st.DrawFn, array: pa.Array) -> Pattern:
    """Wildcards, and bits of the values and of others; no literals side by side."""
    texts = [text for text in array.to_pylist() if text] or ["a b"]
    pieces: list[bytes | Wildcard] = []
    for _ in range(draw(st.integers(1, 5))):
        if (pieces and isinstance(pieces[-1], bytes)) or draw(st.booleans()):
            pieces.append(draw(st.sampled_from(list(Wildcard))))
            continue
        text = draw(st.sampled_from(texts))
        start = draw(st.integers(0, len(text) - 1))
        bit = text[start : start + draw(st.integers(1, 9))]
        pieces.append((bit + draw(st.sampled_from(["", "", "", "z", " "]))).encode())
    return tuple(pieces)


@st.composite
def atoms(draw: st.DrawFn, array: pa.Array) -> Atom:
    """A question about ``array`` of any of the six shapes."""
    literal = _literals(values_of(array), domain_of(array.type))
    shapes = "RRROOONNVW" + "LLLLL" * pa.types.is_string(array.type)
    match draw(st.sampled_from(shapes)):
        case "L":
            return Matches("c", draw(patterns(array)), draw(st.booleans()))
        case "R":
            low, high = draw(st.none() | literal), draw(st.none() | literal)
            if high is not None and draw(st.booleans()):
                high = successor(high)
            return Range("c", low, high)
        case "V":
            return NullAtom("c")
        case "W":
            return NotNullAtom("c")
        case shape:
            values = draw(st.lists(literal, min_size=1, max_size=25))
            several: Values = tuple(sorted(set(values)))
            if all(isinstance(v, int) and abs(v) < 2**63 for v in several) and draw(
                st.booleans()
            ):
                several = IntegerSet(np.array(several, np.int64))
            return OneOf("c", several) if shape == "O" else NoneOf("c", several)
