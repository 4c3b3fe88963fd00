"""A file whose look-up fails is not gone: only "there is none" is."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

import skipindex as sx
from skipindex.errors import SkipIndexError, StorageError, TableError
from skipindex.storage.file_system.location import Location
from tests.rewrite.arriving import overwrite_killed
from tests.rewrite.seen import rows_of
from tests.tables import build, put
from tests.traps.test_unreadable import as_another

GONE = [errno.ENOENT, errno.ENOTDIR, errno.ELOOP]
CODES = [getattr(errno, n) for n in ("EIO", "ESTALE", "EACCES", "ETIMEDOUT", "ENOMEM")]


def _names(codes: list[int]) -> list[str]:
    return [errno.errorcode[code] for code in codes]


def fail(patch: pytest.MonkeyPatch, call: str, where: str, code: int) -> None:
    """Let a call of the system fail for all paths with these letters."""
    original = getattr(os, call)

    def failing(path: Any, *args: Any, **named: Any) -> Any:
        if where in os.fspath(path):
            raise OSError(code, os.strerror(code), os.fspath(path))
        return original(path, *args, **named)

    patch.setattr(os, call, failing)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for day in (1, 2):
        put(tmp_path / "t" / f"day={day}" / "a.parquet", {"x": [day]})
    return tmp_path / "t"


@pytest.mark.parametrize("code", CODES, ids=_names(CODES))
@pytest.mark.parametrize(
    ("call", "where"),
    [("stat", "day=2/a.parquet"), ("stat", "day=2"), ("scandir", "day=2")],
)
def test_a_file_that_cannot_be_looked_at_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, code: int, call: str, where: str
) -> None:
    build(folder, {"x": "bitmap"})
    n_commits = len(list((folder / "_skipindex" / "log").iterdir()))
    fail(monkeypatch, call, where, code)
    with pytest.raises(TableError, match=os.strerror(code)) as told:
        sx.open_table(folder)
    assert "day=2" in str(told.value)
    with pytest.raises(SkipIndexError):
        build(folder, {"x": "bloom"})
    assert len(list((folder / "_skipindex" / "log").iterdir())) == n_commits


@pytest.mark.parametrize("code", GONE, ids=_names(GONE))
def test_a_file_that_is_gone_is_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    fail(monkeypatch, "stat", "day=2/a.parquet", code)
    assert sx.open_table(folder).paths == ["day=1/a.parquet"]


@pytest.mark.parametrize("code", CODES, ids=_names(CODES))
def test_what_cannot_be_looked_at_may_be_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    location = Location(str(folder))
    fail(monkeypatch, "lstat", "a.parquet", code)
    with pytest.raises(StorageError, match="cannot look at"):
        location.owns("day=2/a.parquet")
    assert not location.owns("day=2/b")


@pytest.mark.parametrize("mode", [0o600, 0o300, 0], ids=oct)
def test_rows_in_a_hidden_folder_that_is_closed_are_not_left_out(
    tmp_path: Path, folder: Path, mode: int
) -> None:
    overwrite_killed(folder)
    assert rows_of(folder, sx.open_table(folder).paths).total() == 6
    hidden = next(folder.glob("day=2/_skipindex-*"))
    for above in (tmp_path, *tmp_path.parents[:2]):
        above.chmod(0o755)
    hidden.chmod(mode)
    try:
        with as_another(folder), pytest.raises(TableError, match="rows of the table"):
            sx.open_table(folder)
    finally:
        hidden.chmod(0o755)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EPERM])
@pytest.mark.parametrize("name", [".private", "day=2/_skipindex-ab-0"])
def test_a_hidden_folder_that_nothing_names_may_be_closed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    build(folder, {"x": "bitmap"})
    (folder / name).mkdir()
    fail(monkeypatch, "scandir", name, code)
    assert len(sx.open_table(folder).paths) == 2
