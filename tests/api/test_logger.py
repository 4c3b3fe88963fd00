"""What the log of the name ``skipindex`` tells."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

import skipindex as sx
from skipindex.storage.file_system.names import commit_path
from tests.tables import put

LOG = "skipindex"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(tmp_path / "f.parquet", {"a": [1, 2, 3]})
    return tmp_path


def test_builds_commits_and_vacuums_are_told(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOG)
    table = sx.build_indexes(folder, {"a": "bitmap"}, workers=1).table
    table = table.drop_indexes()
    table.vacuum(dry_run=True)
    texts = [f"{r.levelname} {r.getMessage()}" for r in caplog.records]
    assert texts[0].startswith(f"INFO build of {folder}: indexed 1 files")
    assert texts[1] == f"INFO drop of indexes of {folder}: commit 1"
    assert texts[2].startswith(f"INFO vacuum of {folder}: would publish 0")
    assert len(texts) == 3
    assert not any("\n" in text for text in texts)


def test_the_history_names_each_commit_also_a_damaged_one(folder: Path) -> None:
    assert sx.open_table(folder).history() == []
    table = sx.build_indexes(folder, {"a": "bitmap"}, workers=1).table
    table = table.drop_indexes()
    found = table.history()
    assert [(one.version, one.operation, one.files) for one in found] == [
        (1, "drop", 1),
        (0, "build", 1),
    ]
    assert found[0].time >= found[1].time >= "2024-01-01T00:00:00Z"
    assert [one.note for one in found] == ["", ""]
    (folder / commit_path(1)).write_bytes(b"no commit")
    damaged, whole = table.history()
    assert (damaged.version, damaged.operation, damaged.files) == (1, "", None)
    assert "commit 1 cannot be read" in damaged.note
    assert whole == found[1]


def test_an_index_that_cannot_be_used_is_told_once(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sx.build_indexes(folder, {"a": "bitmap"}, workers=1)
    for pack in folder.rglob("*.puffin"):
        pack.unlink()
    caplog.clear()
    for _ in range(3):
        plan = sx.plan_files("a = 2", table=folder)
        assert plan.paths == ["f.parquet"]
        assert plan.notes
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert (
        caplog.records[0].getMessage().startswith(f"an index of {folder} is not used")
    )


def test_nothing_is_printed_where_no_log_is_set_up(folder: Path) -> None:
    code = f"""if True:
    import skipindex as sx
    table = sx.build_indexes(r"{folder}", {{"a": "bitmap"}}, workers=1).table
    import pathlib
    for pack in pathlib.Path(r"{folder}").rglob("*.puffin"):
        pack.unlink()
    sx.plan_files("a = 2", table=r"{folder}")
    """
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == done.stderr == ""
