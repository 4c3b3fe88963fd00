"""Where indexes are, by file: the newest first, and no object for each file."""

from __future__ import annotations

import gc
from typing import cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skipindex.indexes import index_type
from skipindex.planner.stages.records import IndexLocation, Locations
from skipindex.storage.pack import Blob

KIND = index_type("bitmap")
BLOBS = [cast("Blob", object()) for _ in range(4)]

FILES = st.lists(st.integers(0, 9), unique=True)


@given(st.lists(FILES, max_size=4))
def test_they_are_as_lists_in_a_dictionary(added: list[list[int]]) -> None:
    found = Locations(11)
    expected: dict[int, list[IndexLocation]] = {}
    for number, (blob, files) in enumerate(zip(BLOBS, added, strict=False)):
        slots = [100 * number + file for file in files]
        found.add(KIND, blob, np.array(files, int), np.array(slots, int))
        for file, slot in zip(files, slots, strict=True):
            expected.setdefault(file, []).append((KIND, blob, slot))
    assert {file: list(found[file]) for file in found} == expected
    assert len(found) == len(expected)
    for file in range(11):
        assert list(found.get(file, ())) == expected.get(file, [])


def test_files_have_no_objects_that_are_looked_through_for_garbage() -> None:
    found = Locations(10_000)
    files = np.arange(10_000)
    gc.collect()
    before = len(gc.get_objects())
    found.add(KIND, BLOBS[0], files, files)
    assert len(gc.get_objects()) - before < 100
