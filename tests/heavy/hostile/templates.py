"""The tables that are spoiled, and what lies around them and must stay as it is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from skipindex.rewrite.vacuum import vacuum
from skipindex.source.folder.publish import Publisher
from tests.rewrite.arrow_writer import make_own, optimized
from tests.tables import build, put

NOW: Final = timedelta(0)
N_ROWS: Final = 4 * 12
TABLE: Final = "table"

_FOREIGN: Final = (
    "_notes.txt",
    "_mine/a.parquet",
    "_skipindex-backup/part-0.parquet",
    "_skipindex/notes.txt",
    "_skipindex/packs/thesis.tex",
    "_skipindex/log/readme.md",
    ".hidden/part-0.parquet",
)
"""Below the table, and not ours."""
_OUTSIDE: Final = (
    "victim.txt",
    "home/thesis.tex",
    "home/d/photo.jpg",
    "beside/part-0.parquet",
    "beside/_skipindex-abc-0/part-0.parquet",
    "beside/_skipindex/log/00000000000000000000.json",
)


class _Killed(BaseException):
    pass


def _plain(folder: Path) -> None:
    for i in range(4):
        x = [(7 * i + 5 * j) % 40 for j in range(12)]
        rows = {"x": x, "s": [f"v{n % 9}" for n in x], "i": [i] * 12}
        put(folder / f"day={i % 2}" / f"{i}.parquet", rows)
    build(folder, {"x": "bitmap", "s": ["bloom", "bit_sliced"], "i": "range_bitmap"})
    make_own(folder, {"cluster_by": ["x"], "rows_per_file": 10})


def _grown(folder: Path) -> None:
    """By appends, and a file that came and went: several segments, and dead rows."""
    for i in range(5):
        x = [(7 * i + 5 * j) % 40 for j in range(12)]
        rows = {"x": x, "s": [f"v{n % 9}" for n in x], "i": [i] * 12}
        put(folder / f"day={i % 2}" / f"{i}.parquet", rows)
        if i in {1, 4}:
            build(folder, {"x": "bitmap", "s": "bloom"} if i == 1 else None)
    (folder / "day=0" / "4.parquet").unlink()
    put(folder / "day=0" / "0.parquet", rows)
    build(folder)
    make_own(folder, {"cluster_by": ["x"], "rows_per_file": 10})


def _optimized(folder: Path) -> None:
    _plain(folder)
    optimized(folder, cluster_by=["x"], rows_per_file=10)


@contextmanager
def _dying_at(name: str) -> Iterator[None]:
    original = getattr(Publisher, name)

    def die(*_: Any) -> None:
        raise _Killed

    setattr(Publisher, name, die)
    try:
        yield
    except _Killed:
        pass
    finally:
        setattr(Publisher, name, original)


def _dead_at(name: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        _optimized(folder)
        with _dying_at(name):
            vacuum(folder, retention=NOW)

    return make


def _published(folder: Path) -> None:
    _optimized(folder)
    vacuum(folder, retention=NOW)


TEMPLATES: Final[dict[str, Callable[[Path], None]]] = {
    "plain": _plain,
    "grown": _grown,
    "optimized": _optimized,
    "published": _published,
    "killed before the copies are shown": _dead_at("_link_file"),
    "killed before the old files go": _dead_at("_delete_old"),
}


def make(name: str, place: Path) -> None:
    """A table, and files around it."""
    for path in _OUTSIDE:
        put_bytes(place / path)
    table = place / TABLE
    TEMPLATES[name](table)
    for path in _FOREIGN:
        put_bytes(table / path)
    for path in (table / "_skipindex").rglob("*"):
        os.utime(path, (1e9, 1e9))  # old enough to be swept


def put_bytes(path: Path) -> None:
    """A file of somebody else, and old."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{path.name} is not yours")
    os.utime(path, (1e9, 1e9))


Canary = dict[str, tuple[int, bytes]]


def canary(place: Path) -> Canary:
    """All that nobody may touch: what lies outside, and what is not ours inside."""
    outside = [p for p in place.rglob("*") if TABLE not in p.relative_to(place).parts]
    inside = [place / TABLE / path for path in _FOREIGN]
    return {
        str(path.relative_to(place)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in [*outside, *inside]
        if path.is_file()
    }


def copy(source: Path, target: Path) -> None:
    """A copy with the marks of the files."""
    shutil.copytree(source, target, symlinks=True)
