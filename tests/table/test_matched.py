"""A listing matched with a manifest as columns, beside a look-up for each path."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from skipindex.log.unchanged import match
from skipindex.storage.file_system.file_list import FileList
from skipindex.storage.file_system.location import FileInfo
from skipindex.table.column_indexes import is_every_row, take
from tests.log.pieces import manifest_of

PATHS = st.sampled_from(["a", "b", "k=1/a", "ü", "\udcff", "z"])
FILES = st.lists(
    st.builds(FileInfo, PATHS, st.integers(0, 1), st.integers(0, 1)),
    max_size=6,
    unique_by=lambda file: file.path,
)


@given(FILES, FILES)
@example(
    [FileInfo(path, 1, 1) for path in "abcz"], [FileInfo(path, 1, 1) for path in "acbz"]
)
@example([FileInfo("a", 1, 1)], [FileInfo("b", 1, 1)])
def test_a_row_is_that_of_the_same_path_size_and_time(
    listed: list[FileInfo], committed: list[FileInfo]
) -> None:
    # No path of such a file is ever committed.
    manifest = manifest_of([one for one in committed if "\udcff" not in one.path])
    files = FileList.of(listed)
    rows, is_known = match(manifest, files.names, files.marks)
    row_of = {path: row for row, path in enumerate(manifest.paths)}
    expected = [
        row_of[file.path] if file.path in row_of and file in committed else -1
        for file in listed
    ]
    assert rows.tolist() == expected
    assert is_known.tolist() == [file.path in row_of for file in listed]
    taken = take(pa.array(manifest.paths, pa.string()), rows).to_pylist()
    assert taken == [
        file.path if row >= 0 else None
        for file, row in zip(listed, expected, strict=True)
    ]


@given(st.permutations(range(4)), st.integers(0, 5))
@example([0, 2, 1, 3], 4)
def test_every_row_is_all_of_them_in_their_order(rows: list[int], n_rows: int) -> None:
    assert is_every_row(np.array(rows), n_rows) == (rows == list(range(n_rows)))
    values = pa.array(range(10, 14))
    assert take(values, np.array(rows)).to_pylist() == [10 + row for row in rows]
