"""The benchmark of first plans: what each process reads, at a small size."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import cold


@pytest.mark.slow
def test_a_filled_cache_saves_waits_and_bytes(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    looked = cold.small(tmp_path, 30)
    assert cold.small(tmp_path, 30) == looked, "it is written once"
    lines = list(cold.figures([looked], tmp_path / "work", 0.1, 1))
    assert {len(line) for line in lines} == {len(cold.HEAD)}
    assert [line[1:3] for line in lines] == [
        [place, state]
        for place in ("local", "store, 100 ms")
        for state in ("none", "empty", "filled")
    ]
    assert len({line[5] for line in lines}) == 1, "all plans are one"
    waits, read = (
        [int(line[i].replace(",", "")) for line in lines[3:]] for i in (3, 4)
    )
    assert waits[0] == waits[1] > waits[2] >= 3
    assert read[1] >= read[0] > 10 * read[2]


def test_a_key_of_large_files_is_found(tmp_path: Path) -> None:
    assert cold.large(tmp_path, 2, 3000).n_kept >= 1
