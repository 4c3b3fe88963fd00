from __future__ import annotations

from pathlib import Path

from benchmarks.spark import CONDITIONS, make_table
from skipindex.storage.file_system.names import is_data_file


def test_linked_files_are_planned_by_their_statistics(tmp_path: Path) -> None:
    table = make_table(tmp_path / "many", 20)
    kept = {what: table.plan(text).paths for what, text in CONDITIONS.items()}
    assert len(kept["skips nothing"]) == len(table) == 20
    assert kept["skips all but one"] == ["part-00019.parquet"]
    names = [path.name for path in (tmp_path / "many").iterdir()]
    assert sorted(filter(is_data_file, names)) == table.paths
