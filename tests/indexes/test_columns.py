"""The quick judge of index answers says what the oracle says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skipindex.indexes.kinds.bitmap import Bitmap
from tests import tables
from tests.indexes.columns import arrays, atoms, holds, values_of
from tests.quick_run import examples


@examples(200)
@given(data=st.data())
def test_the_quick_judge_agrees_with_the_oracle(data: st.DataObject) -> None:
    array = data.draw(arrays(Bitmap()))
    atom = data.draw(atoms(array))
    for value in {None, *values_of(array)}:
        assert holds(atom, value) == tables.holds(atom, value), (atom, value)
