"""Readers beside a vacuum, and what killed writers leave half-written."""

from __future__ import annotations

from pathlib import Path

import pytest

import skipindex as sx
from skipindex.api import open_table
from skipindex.rewrite.vacuum import vacuum
from skipindex.table import listing
from tests.rewrite.arrow_writer import NOW, optimized
from tests.rewrite.killing import meanwhile
from tests.tables import kept, put_all


def test_a_vacuum_between_the_listing_and_the_schema(tmp_path: Path) -> None:
    """The file that the schema comes from is gone: the table is listed anew."""
    put_all(tmp_path, [{"x": [i, 9 - i]} for i in range(4)])
    optimized(tmp_path, cluster_by=["x"], rows_per_file=2)
    with meanwhile(listing, "read_schema", lambda: vacuum(tmp_path, retention=NOW)):
        table = open_table(tmp_path)
    names = {path.name for path in tmp_path.glob("*.parquet")}
    assert set(table.paths) == names
    assert not names & {f"{i}.parquet" for i in range(4)}
    assert kept(table, "x = 0") != []


def test_a_schema_that_is_no_parquet_is_not_looked_for_again(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"nothing of the kind")
    with pytest.raises(sx.TableError, match="is no readable Parquet file"):
        open_table(tmp_path)
