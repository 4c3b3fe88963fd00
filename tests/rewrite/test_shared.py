"""Who may read a table may read what says which of its files count."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

import skipindex as sx
from skipindex.rewrite.vacuum import vacuum
from skipindex.storage.file_system.location import Location
from skipindex.storage.publications import (
    PUBLISHING,
    outcome_path,
    record_path,
    write_outcome,
    write_record,
)
from tests.rewrite.arrow_writer import optimized, rows_of
from tests.tables import build, put
from tests.traps.test_unreadable import as_another

ID = "ab" * 16


@contextmanager
def masked(mask: int) -> Iterator[None]:
    old = os.umask(mask)
    try:
        yield
    finally:
        os.umask(old)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o077, 0o027, 0o022, 0])
@pytest.mark.parametrize("mode", [0o755, 0o750, 0o700, 0o775], ids=oct)
def test_records_are_as_open_as_the_table(tmp_path: Path, mode: int, mask: int) -> None:
    location = Location(str(tmp_path))
    tmp_path.chmod(mode)
    with masked(mask):
        write_record(location, ID, [])
        write_outcome(location, ID, [])
    assert mode_of(tmp_path / PUBLISHING) & mode == mode
    assert not mode_of(tmp_path / PUBLISHING) & ~mode
    for path in (record_path(ID), outcome_path(ID)):
        assert mode_of(tmp_path / path) & 0o666 == mode & 0o666
        assert not mode_of(tmp_path / path) & 0o111


def test_a_folder_that_is_closed_is_opened_by_the_next_writer(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / PUBLISHING).mkdir(0o700)
    write_outcome(Location(str(tmp_path)), ID, [])
    assert mode_of(tmp_path / PUBLISHING) == 0o755


def test_another_user_opens_a_table_that_was_vacuumed_in_private(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "t"
    for day in (1, 2):
        for name in "ab":
            put(folder / f"day={day}" / f"{name}.parquet", {"x": [1, 2], "i": [3, 4]})
    build(folder, {"x": "bitmap"})
    optimized(folder, cluster_by=["x"], rows_per_file=100)
    for path in (*tmp_path.parents[:2], tmp_path, folder):
        path.chmod(0o755)
    with masked(0o077):
        vacuum(folder, retention=timedelta(0))
    for path in folder.rglob("day=*/**/*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    for path in folder.glob("day=*"):
        path.chmod(0o755)
    if os.geteuid() != 0:
        pytest.skip("only root may become another user")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "chown", lambda *_, **__: None)  # it is another one's table
        with as_another(folder), pytest.warns(UserWarning, match="cannot be read"):
            assert rows_of(folder, sx.open_table(folder).paths).total() == 8
