"""Traps: what is stored of a table cannot be read, or something else is in its place.

Whatever it is, a plan keeps the files and says why.  A build either succeeds or is an
error of ours that names the path.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import skipindex as sx
from skipindex.errors import SkipIndexError, StorageError
from skipindex.rewrite.vacuum import vacuum
from skipindex.source.folder.new_files import SaveMode
from skipindex.storage.file_system.descriptors import OPEN
from tests.rewrite.arriving import arrived
from tests.rewrite.killing import Killed
from tests.rewrite.seen import rows_of, seen_by_both
from tests.tables import build, forget_open_packs, put_all

ANOTHER = 65534
"""The user who may read as little as any other."""
N = 3


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _forbidden(path: Path) -> None:
    path.chmod(0)


def _a_file(path: Path) -> None:
    _remove(path)
    path.write_text("x")


def _a_circle(path: Path) -> None:
    _remove(path)
    path.symlink_to(path)


def _a_link_to_nothing(path: Path) -> None:
    _remove(path)
    path.symlink_to("nowhere")


def _a_folder(path: Path) -> None:
    _remove(path)
    path.mkdir()


def _a_pipe(path: Path) -> None:
    _remove(path)
    os.mkfifo(path)


PLACES = ["", "log", "manifests", "packs", "log/*", "manifests/*", "packs/*"]
OTHERS: list[Callable[[Path], None]] = [
    *(_forbidden, _a_file, _a_circle, _a_link_to_nothing, _a_folder, _a_pipe)
]


@pytest.fixture(scope="module")
def built() -> Iterator[Path]:
    """A table where another user may get to."""
    with tempfile.TemporaryDirectory() as work:
        Path(work).chmod(0o755)
        put_all(Path(work) / "t", [{"x": [i, i + 10]} for i in range(N)])
        build(Path(work) / "t", {"x": "bitmap"})
        yield Path(work) / "t"


@contextmanager
def as_another(folder: Path) -> Iterator[None]:
    """Be a user to whom permissions apply, and to whom the folder belongs."""
    if os.geteuid() != 0:
        yield
        return
    for path in [folder, *folder.rglob("*")]:
        with suppress(FileNotFoundError, NotImplementedError):
            os.chown(path, ANOTHER, ANOTHER, follow_symlinks=False)
    try:
        os.seteuid(ANOTHER)
    except OSError:
        pytest.skip("this process may not become another user")
    try:
        if not os.access(folder.parent, os.X_OK, effective_ids=True):
            pytest.skip("another user may not look into the temporary folder")
        yield
    finally:
        os.seteuid(0)


@pytest.mark.few(14)
@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("other", OTHERS)
def test_whatever_is_in_the_place_of_an_index(
    built: Path, where: str, other: Callable[[Path], None]
) -> None:
    folder = built.parent / "case"
    shutil.copytree(built, folder, copy_function=shutil.copy2)
    stored = folder / "_skipindex"
    places = [*stored.glob(where)] if where else [stored]
    for place in places if where == "packs/*" else places[:1]:  # a plan may need one
        other(place)
    forget_open_packs()
    try:
        with as_another(folder), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan = sx.plan_files("x = 1", table=folder)
            assert "1.parquet" in plan.paths
            assert plan.notes != []
            assert str(folder) in outcome_of_build(folder)
            assert "1.parquet" in sx.plan_files("x = 1", table=folder).paths
    finally:
        for path in (stored, *map(stored.joinpath, ("log", "manifests", "packs"))):
            with suppress(OSError):
                path.chmod(0o755)
        shutil.rmtree(folder)


def outcome_of_build(folder: Path) -> str:
    """The table that was built, or our error."""
    try:
        return repr(sx.build_indexes(folder, {"x": "bitmap"}, workers=1).table)
    except SkipIndexError as error:
        return str(error)


@pytest.mark.parametrize("part", ["log", "manifests", "packs"])
@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO, errno.EACCES])
def test_no_descriptor_for_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, number: int
) -> None:
    put_all(tmp_path, [{"x": [i, i + 10]} for i in range(N)])
    build(tmp_path, {"x": "bitmap"})
    OPEN.close_idle()
    forget_open_packs()
    monkeypatch.setattr(os, "open", refusing(f"/_skipindex/{part}/", number))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = sx.plan_files("x = 1 OR x = 12", table=tmp_path)
    assert {"1.parquet", "2.parquet"} <= set(plan.paths)
    assert os.strerror(number) in " ".join(plan.notes)


def refusing(part: str, number: int) -> Callable[..., int]:
    """``os.open``, which refuses the paths with this part."""
    real = os.open

    def refuse(path: Any, *rest: Any, **options: Any) -> int:
        if part in str(path):
            raise OSError(number, os.strerror(number), str(path))
        return real(path, *rest, **options)

    return refuse


def killed(*_: Any) -> None:
    raise Killed


@pytest.mark.few(3)
@pytest.mark.parametrize("part", ["log", "manifests"])
@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO, errno.EACCES])
def test_a_commit_that_cannot_be_read_now_is_not_passed_over(
    tmp_path: Path, part: str, number: int
) -> None:
    """Rows that are committed and not published yet are named there alone."""
    put_all(tmp_path / "day=1", [{"x": [i], "i": [i]} for i in range(N)])
    build(tmp_path, {"x": "bitmap"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skipindex.storage.file_system.location.Location.copy", killed)
        patch.setattr(
            "skipindex.source.folder.new_files.NewFiles.withdraw", lambda *_, **__: None
        )
        with pytest.raises(Killed):
            arrived(tmp_path, SaveMode.OVERWRITE)
    rows = rows_of(tmp_path, sx.open_table(tmp_path).paths)
    assert rows.total() == 6
    changes: list[Callable[[], Any]] = [
        lambda: vacuum(tmp_path, retention=timedelta(0)),
        lambda: vacuum(tmp_path, purge=True),
        lambda: build(tmp_path, {"i": "bitmap"}),
    ]
    for change in changes:
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            OPEN.close_idle()
            patch.setattr(os, "open", refusing(f"/_skipindex/{part}/", number))
            with pytest.raises(
                StorageError, match=r"nothing was changed|is unknown which"
            ):
                change()
    vacuum(tmp_path, retention=timedelta(0))
    assert seen_by_both(tmp_path) == (rows, rows)
