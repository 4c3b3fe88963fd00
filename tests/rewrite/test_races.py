"""Readers beside a vacuum, and what killed writers leave half-written."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import skipindex as sx
from skipindex.api import open_table
from skipindex.rewrite.vacuum import vacuum
from skipindex.table import listing
from tests.rewrite.arrow_writer import optimized
from tests.tables import build, kept, put, put_all

NOW = timedelta(0)


def test_a_vacuum_between_the_listing_and_the_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that the schema comes from is gone: the table is listed anew."""
    put_all(tmp_path, [{"x": [i, 9 - i]} for i in range(4)])
    optimized(tmp_path, cluster_by=["x"], rows_per_file=2)
    real, runs = listing.read_schema, []

    def slow(*arguments: Any) -> Any:
        if not runs:
            runs.append(vacuum(tmp_path, retention=NOW))
        return real(*arguments)

    monkeypatch.setattr(listing, "read_schema", slow)
    table = open_table(tmp_path)
    assert runs[0].published
    assert set(table.paths) == {path.name for path in tmp_path.glob("*.parquet")}
    assert kept(table, "x = 0") != []


def test_a_schema_that_is_no_parquet_is_not_looked_for_again(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"nothing of the kind")
    with pytest.raises(sx.TableError, match="is no readable Parquet file"):
        open_table(tmp_path)


def test_half_written_files_are_swept(tmp_path: Path) -> None:
    put(tmp_path / "day=1" / "a.parquet", {"x": [1]})
    build(tmp_path, {"x": "bitmap"})
    name = f".skipindex-{'0f' * 16}.tmp"
    ours = [
        tmp_path / folder / name
        for folder in ("", "day=1", "_skipindex/log", "_skipindex/packs")
    ]
    others = [tmp_path / ".0f.tmp", tmp_path / "day=1" / "a.tmp"]
    below = tmp_path / "other" / "_skipindex" / name
    for path in (*ours, *others, below):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
        os.utime(path, (1, 1))
    vacuum(tmp_path)
    assert not [path for path in ours if path.exists()]
    assert all(path.exists() for path in (*others, below))
