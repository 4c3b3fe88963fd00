"""A column that comes in pieces gives the very indexes of the whole column."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipindex.errors import UnsupportedTypeError
from skipindex.expressions.domain import domain_of
from skipindex.indexes import IndexSpec
from skipindex.indexes.encoding import chunks, entry_packing, pieces
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.encoding.pieces import ColumnPieces
from skipindex.indexes.filters import filter_type
from skipindex.indexes.interface import PiecewiseSpec
from skipindex.indexes.kinds.bitmap import Bitmap
from tests.indexes.columns import SPECS, arrays


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Iterator[None]:
    """Blocks of a few values, so that short columns have many of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_BLOCK", 8)
        patch.setattr(pieces, "_FEWEST", 1)
        patch.setattr(filter_type, "_FEW_HASHES", 5)
        yield


def encoded(array: pa.Array) -> EncodedColumn:
    return EncodedColumn("x", array, domain_of(array.type, "x"))


def cut(array: pa.Array, data: st.DataObject) -> list[EncodedColumn]:
    """The rows in pieces of random sizes, of which some have no row."""
    places = data.draw(st.lists(st.integers(0, len(array)), max_size=6))
    ends = [0, *sorted(places), len(array)]
    return [encoded(array.slice(a, b - a)) for a, b in pairwise(ends)]


def parts_of(spec: IndexSpec, column: EncodedColumn) -> list[bytes] | None:
    try:
        return spec.build(column)
    except UnsupportedTypeError:
        return None


@pytest.mark.parametrize("spec", SPECS, ids=repr)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_pieces_give_the_index_of_the_whole_column(
    spec: IndexSpec, data: st.DataObject
) -> None:
    array = data.draw(arrays(spec))
    together = ColumnPieces("x", domain_of(array.type, "x"))
    for piece in cut(array, data):
        together.add(piece)
    merged, whole = together.merged(), encoded(array)
    assert parts_of(spec, merged) == parts_of(spec, whole)
    assert merged.codes.tolist() == whole.codes.tolist()
    assert (merged.minimum, merged.maximum) == (whole.minimum, whole.maximum)
    assert merged.nan_count == whole.nan_count


@pytest.mark.parametrize(
    "spec", [s for s in SPECS if isinstance(s, PiecewiseSpec)], ids=repr
)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_hashes_of_pieces_give_the_filter_of_the_whole_column(
    spec: IndexSpec, data: st.DataObject
) -> None:
    array = data.draw(arrays(spec))
    assert isinstance(spec, PiecewiseSpec)
    gathering = spec.gathering(domain_of(array.type, "x"))
    if gathering is None:  # pybloom-live
        assert getattr(spec, "hashing", None)
        return
    for piece in cut(array, data):
        gathering.add(piece)
    assert gathering.build() == parts_of(spec, encoded(array))


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(
        st.none() | st.binary(max_size=3) | st.binary(max_size=40), max_size=300
    ),
    data=st.data(),
)
def test_texts_of_all_lengths_are_merged(
    texts: list[bytes | None], data: st.DataObject
) -> None:
    array = pa.array(texts, pa.binary())
    together = ColumnPieces("x", domain_of(array.type, "x"))
    for piece in cut(array, data):
        together.add(piece)
    merged, whole = together.merged(), encoded(array)
    assert merged.distinct.to_pylist() == whole.distinct.to_pylist()
    assert merged.codes.tolist() == whole.codes.tolist()


@settings(max_examples=40, deadline=None)
@given(
    values=st.lists(st.none() | st.integers(0, 400), min_size=70, max_size=900),
    block=st.integers(1, 200),
)
def test_entries_are_the_same_in_blocks_of_any_size(
    values: list[int | None], block: int
) -> None:
    column = encoded(pa.array([*values, *range(70)], pa.int64()))
    whole = Bitmap().build(column)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entry_packing, "_PART_BYTES", 64)
        cut_small = Bitmap().build(column)
        patch.setattr(entry_packing, "_BLOCK", block)
        assert Bitmap().build(column) == cut_small
    assert b"".join(cut_small) != b"".join(whole)


@settings(max_examples=40, deadline=None)
@given(lengths=st.lists(st.integers(0, 90), max_size=400), block=st.integers(60, 300))
def test_dictionaries_are_cut_alike_in_blocks_of_any_size(
    lengths: list[int], block: int
) -> None:
    texts = pa.array([bytes(n) for n in lengths], pa.large_binary())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "CHUNK_BYTES", 50)
        whole = chunks.text_ends(texts)
        patch.setattr(chunks, "_BLOCK", block)
        assert chunks.text_ends(texts) == whole
    assert whole[-1:] == [len(texts)][: len(texts)]
