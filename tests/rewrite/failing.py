"""Each call of each writer to the file system, failing there once in each way.

::

    python -m tests.rewrite.failing            everything (minutes)
    python -m tests.rewrite.failing append     one writer

A writer that returns has done its work, and one that raises has done all of it or none.
No row is lost or doubled, then and after the next vacuum.  What goes wrong while a file
is read is an error too: it is no reason to take the file for damaged or gone.  So is a
read that gives fewer bytes than there are.
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from skipindex.errors import SkipIndexError
from skipindex.rewrite.vacuum import vacuum
from skipindex.storage.file_system import local, location
from skipindex.storage.file_system.local import LocalFiles
from tests.rewrite.kill_and_damage import WRITERS, copy, main, seen
from tests.rewrite.seen import NOW, Rows, listed, rows_of
from tests.tables import forget_open_packs

CALLS: Final[Sequence[tuple[Any, str]]] = (
    *((LocalFiles, name) for name in ("below", "folders", "names", "stat", "holds")),
    *((LocalFiles, name) for name in ("read", "view", "open_input")),
    *((LocalFiles, name) for name in ("write", "write_new", "move", "copy")),
    *((LocalFiles, name) for name in ("delete", "delete_tree")),
    *((local, name) for name in ("mode_of", "sync_file", "delete_aside")),
    (location, "make_folder"),
)
ERRORS: Final[Mapping[str, Callable[[], Exception]]] = {
    "EIO": lambda: OSError(errno.EIO, os.strerror(errno.EIO)),
    "ESTALE": lambda: OSError(errno.ESTALE, os.strerror(errno.ESTALE)),
    "EACCES": lambda: PermissionError(errno.EACCES, os.strerror(errno.EACCES)),
    "ENOSPC": lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "no number": lambda: OSError("HDFS connection failed"),
    "no memory": MemoryError,
    "no stack": lambda: RecursionError("maximum recursion depth exceeded"),
    "no footer": lambda: pa.ArrowInvalid("Parquet magic bytes not found in footer"),
    "a bug": lambda: RuntimeError("of a client of some store"),
}
BAD_SECTOR: Final = "bad sector"
KINDS: Final = (*ERRORS, BAD_SECTOR)
_MAX_CALLS: Final = 2000


@contextmanager
def bad_sector(at: int) -> Iterator[list[str]]:
    """Let the second half of a file be unreadable: the n-th that is read at all.

    Linux gives what stands before a bad sector, and its error for the next call.
    """
    paths: list[str] = []
    original = os.pread

    def pread(file: int, length: int, offset: int) -> bytes:
        path = str(Path(f"/proc/self/fd/{file}").readlink())
        if path not in paths:
            paths.append(path)
        if paths.index(path) == at:
            left = os.fstat(file).st_size // 2 - offset
            if left <= 0:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            length = min(length, left)
        return original(file, length, offset)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pread", pread)
        yield paths


@contextmanager
def failing(at: int, error: Callable[[], Exception], n: int = 2) -> Iterator[list[str]]:
    """Let ``n`` calls of the file system fail, from this one of its kind on.

    A writer that tries again once does not get around that.
    """
    calls: list[str] = []
    failed: list[str] = []

    def watched(owner: Any, name: str) -> Callable[..., Any]:
        original = getattr(owner, name)

        def call(*args: Any, **named: Any) -> Any:
            what = f"{name} {args[1] if len(args) > 1 else ''}"
            calls.append(what)
            first = len(calls) - 1 == at
            if first or (failed and failed[0] == what and len(failed) < n):
                failed.append(what)
                raise error()
            return original(*args, **named)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in CALLS:
            patch.setattr(owner, name, watched(owner, name))
        yield calls


def _failing(kind: str, at: int) -> AbstractContextManager[list[str]]:
    return bad_sector(at) if kind == BAD_SECTOR else failing(at, ERRORS[kind])


def sweep(
    name: str, work: Path, *, stride: int = 1, kinds: Sequence[str] = KINDS
) -> Iterator[tuple[str, str | None]]:
    """Every case of one writer: what it is, and what is wrong, if anything is."""
    writer = WRITERS[name]
    begun = work / "begun"
    begun.mkdir(parents=True)
    writer.prepare(begun)
    before = seen(begun)
    after = writer.then(before)
    for kind in kinds:
        for at in range(0, _MAX_CALLS, stride):
            folder = work / "case"
            copy(begun, folder)
            with warnings.catch_warnings(action="ignore"):
                forget_open_packs()
                with _failing(kind, at) as calls:
                    raised = _error_of(writer.write, folder)
                if len(calls) <= at:
                    break
                case = f"{name}, call {at} ({calls[at]}): {kind}"
                # A vacuum ends what a killed writer began, if that was committed.
                done = before if "vacuum" in name else after
                yield case, _wrong(folder, raised, [before, after], done)
        else:
            raise AssertionError(f"{name} does not end")


def _error_of(write: Callable[[Path], Any], folder: Path) -> Exception | None:
    try:
        write(folder)
    except Exception as error:  # noqa: BLE001 (the writer may refuse in any words)
        return error
    return None


def _wrong(
    folder: Path, raised: Exception | None, allowed: Sequence[Rows], done: Rows
) -> str | None:
    told = f"(it raised {raised!r})" if raised else "(it returned)"
    if isinstance(raised, (OSError, AssertionError, KeyError, AttributeError)) and not (
        isinstance(raised, SkipIndexError)
    ):
        return f"it raised {raised!r}"
    try:
        now = seen(folder)
        if now not in (allowed if raised else [done]):
            return f"{now.total()} rows of {[a.total() for a in allowed]} {told}"
        if not now and not listed(folder):
            return None
        vacuum(folder, retention=NOW)
        both = seen(folder), rows_of(folder, listed(folder))
        for what, rows in zip(("ours", "listed"), both, strict=True):
            if rows != now:
                return f"{what}: {rows.total()} rows after vacuum, not {now.total()}"
    except Exception as error:  # noqa: BLE001 (told, all of them)
        return f"{type(error).__name__}: {str(error)[:300]} {told}"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], sweep))
