"""Four times the columns cost about four times as much."""

from __future__ import annotations

import cProfile
from pathlib import Path
from typing import Any

import pytest

import skipindex as sx
from skipindex.source import column_reader
from tests.tables import put


def rows(n_columns: int) -> dict[str, Any]:
    """Two rows of numbers and of texts."""
    return {f"c{i}": [f"v{i}", "x"] if i % 2 else [i, 2] for i in range(n_columns)}


def calls(folder: Path, n_columns: int, request: Any) -> int:
    """How many functions a build calls."""
    put(folder / "0.parquet", rows(n_columns))
    profile = cProfile.Profile()
    profile.runcall(sx.build_indexes, folder, request, workers=1)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.few(1)
@pytest.mark.parametrize("request_", [{"c7": "bitmap"}, {"*": "bitmap"}], ids=str)
def test_a_build_is_linear_in_the_columns(tmp_path: Path, request_: Any) -> None:
    build = [calls(tmp_path / f"{n}", n, request_) for n in (8, 32, 128)]
    few, many = build[1] - build[0], build[2] - build[1]
    assert many < 5 * few, (few, many)


def test_columns_are_found_by_their_places(tmp_path: Path) -> None:
    """Also where two have one name."""
    both = [{"a": {"b": 1}, "c": 1}, {"a": {"b": 2}, "c": 2}]
    put(tmp_path / "0.parquet", {"s": both, "c": [3, 4]})
    location = sx.open_table(tmp_path).state.location
    with column_reader(location, "0.parquet") as file:
        places = {path: file.leaves(path.split(".")) for path in ("s.a.b", "s.c", "c")}
        assert places == {"s.a.b": [0], "s.c": [1], "c": [2]}
        assert file.leaves(["s"]) == []
