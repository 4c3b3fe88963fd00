"""The benchmark of commits measures what it says, and reads what it wrote."""

from __future__ import annotations

from pathlib import Path

from benchmarks.commits import files_of, is_right, measure, measure_tables
from skipindex.log.manifest import Manifest


def test_appends_are_small_and_read_rightly(tmp_path: Path) -> None:
    found = {one.what: one.figure for one in measure(tmp_path, 5000, 12)}
    assert found["reads that were wrong"] == 0
    assert found["last appends, bytes each"] / 1e3 < found["first build, bytes"] / 10
    assert found["segments after a vacuum"] < 2 * found["first build, bytes"]
    assert found["most segments"] == 9


def test_tables_that_are_opened_from_their_log_are_planned_rightly(
    tmp_path: Path,
) -> None:
    found = {one.what: one.figure for one in measure_tables(tmp_path, 500, 9)}
    assert found["plans that were wrong"] == 0
    assert found["newest commit, bytes"] < 4
    assert found["most segments"] == 9


def test_a_manifest_that_lost_a_row_or_a_slot_is_wrong() -> None:
    """The test of the test."""
    whole = Manifest.concat([files_of(0, 50), files_of(50, 1)])
    assert is_right(whole, 50, 1)
    assert not is_right(whole.only([i != 7 for i in range(51)]), 50, 1)
    slots = whole.files["slots"].take([1, 0, *range(2, 51)])
    at = whole.files.schema.get_field_index("slots")
    files = whole.files.set_column(at, whole.files.schema.field(at), slots)
    assert not is_right(Manifest(files, whole.stats, whole.packs), 50, 1)
