"""What is packed in blocks, as it needs little memory so, is the same in any blocks."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.expressions.domain import domain_of
from skipindex.indexes.encoding import chunks, entry_packing
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.kinds.bitmap import Bitmap
from tests.quick_run import examples


@examples(40)
@given(
    values=st.lists(st.none() | st.integers(0, 400), min_size=70, max_size=900),
    block=st.integers(1, 200),
)
def test_entries_are_the_same_in_blocks_of_any_size(
    values: list[int | None], block: int
) -> None:
    array = pa.array([*values, *range(70)], pa.int64())
    column = EncodedColumn("x", array, domain_of(array.type, "x"))
    whole = Bitmap().build(column)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entry_packing, "_PART_BYTES", 64)
        cut_small = Bitmap().build(column)
        patch.setattr(entry_packing, "_BLOCK", block)
        assert Bitmap().build(column) == cut_small
    assert b"".join(cut_small) != b"".join(whole)


@examples(40)
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
