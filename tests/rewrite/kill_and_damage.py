"""Each step of each writer, killed there, and then each loss of what lies in the log.

::

    python -m tests.rewrite.kill_and_damage            everything (minutes)
    python -m tests.rewrite.kill_and_damage vacuum     one writer

A writer dies, before or after one of its changes of the file system, and then
``_skipindex`` is damaged or lost, or the table is copied, or nothing more happens.
Whoever reads through skipindex sees every row once, at once and after whatever comes
next.  After the next vacuum so does who lists the folder.  Where commits are lost of a
vacuum or an overwrite that was killed, rows may count twice, or some that were
overwritten; none is lost.

Where nothing is damaged, more is promised: the rows that are read at once are read ever
after, who lists the folder misses none before, and two vacuums leave nothing behind.

A new writer is one more entry of ``WRITERS``.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest import mock

from skipindex.api import open_table
from skipindex.errors import TableError
from skipindex.rewrite.vacuum import vacuum
from skipindex.source.folder.batch import Batch
from skipindex.source.folder.new_files import SaveMode
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import LOG, MANIFESTS, PACKS
from tests.rewrite.arriving import arrived, fill, overwrite_killed
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.killing import Killed, killed_at
from tests.rewrite.seen import NOW, Rows, check_swept, listed, rows_of
from tests.tables import build, flip

_MAX_STEPS: Final = 300
BATCH: Final = Batch("a stream", 7)


@dataclass(frozen=True)
class Writer:
    """A writer to be killed.

    Args:
        prepare: makes a table in a folder, in the state that the writer begins with.
        write: what is killed.
        then: the rows that the table may have instead, from those before.
        by_file: rows become visible file by file, so a killed writer may leave some.
        hides: who lists the folder sees no row of the writer before its commit.
        shows: files are visible under two names before a commit says which counts.
    """

    prepare: Callable[[Path], None]
    write: Callable[[Path], Any]
    then: Callable[[Rows], Rows] = lambda before: before
    by_file: bool = False
    hides: bool = False
    shows: bool = False

    def whole(self, before: Rows) -> list[Rows]:
        """The rows of a writer who has done nothing, and of one who has done all."""
        return [before, self.then(before)]

    def after_a_kill(self, before: Rows) -> list[Rows]:
        """The rows that the table may have after the writer was killed."""
        by_file = [before + _new_of(day) for day in (2, 3)] if self.by_file else []
        return [*self.whole(before), *by_file]


Damage = Callable[[Path], None]


def _filled(folder: Path) -> None:
    fill(folder, 2)


def _indexed(folder: Path) -> None:
    _filled(folder)
    build(folder, {"x": "bitmap"})


def _of_the_log(folder: Path) -> None:
    """A table that is opened without a listing; some of its files are rewritten."""
    _indexed(folder)
    open_table(folder).declare_exclusive()
    optimized(folder, cluster_by=["x"], where="day = 1", rows_per_file=10)


def _optimized(folder: Path) -> None:
    _indexed(folder)
    optimized(folder, cluster_by=["x"], rows_per_file=20, cube_size=2000)


def _twice(folder: Path) -> None:
    """One partition was rewritten twice, and a file has come since."""
    _optimized(folder)
    optimized(folder, cluster_by=["i"], indexes={"i": []}, where="day = 1")
    fill(folder, 1, first=2)


def _published(folder: Path) -> None:
    _optimized(folder)
    vacuum(folder, retention=NOW)
    fill(folder, 1, first=2)
    optimized(folder, cluster_by=["x"], rows_per_file=20, cube_size=2000)


def _built_twice(folder: Path) -> None:
    _indexed(folder)
    fill(folder, 1, first=2)
    build(folder, {"x": "bitmap"})


def _vacuum(folder: Path) -> Any:
    return vacuum(folder, retention=NOW)


def _killed_overwrite(folder: Path) -> None:
    """Rows that are committed, and about to get their visible names."""
    _indexed(folder)
    overwrite_killed(folder)


def _killed_batch(folder: Path) -> None:
    """The rows of a batch that are committed, and about to get their visible names."""
    _optimized(folder)
    overwrite_killed(folder, mode=SaveMode.APPEND, batch=BATCH)


def _append_batch(folder: Path) -> None:
    arrived(folder, SaveMode.APPEND, batch=BATCH)


def _with_filled(_: Rows) -> Rows:
    with tempfile.TemporaryDirectory() as work:
        _filled(Path(work))
        return rows_of(Path(work), listed(Path(work)))


def _with_new(before: Rows) -> Rows:
    return before + _new_alone(before)


def _without_new(before: Rows) -> Rows:
    """What is there if the commit of a batch is lost."""
    return before - _new_alone(before)


def _new_alone(_: Rows) -> Rows:
    """What ``arrived`` writes."""
    return _new_of(2) + _new_of(3)


def _new_of(day: int) -> Rows:
    """What it writes into the file of one day."""
    return Counter(repr(([f"day={day}"], [("i", day), ("x", x)])) for x in (1, 2, 3))


WRITERS: Final[dict[str, Writer]] = {
    "build": Writer(_filled, lambda folder: build(folder, {"x": "bitmap"})),
    "build again": Writer(_optimized, lambda folder: build(folder, {"i": "bitmap"})),
    "merge": Writer(_built_twice, lambda folder: open_table(folder).compact_indexes()),
    "optimize": Writer(
        _indexed, lambda folder: optimized(folder, cluster_by=["x"], rows_per_file=20)
    ),
    "optimize again": Writer(
        _twice,
        lambda folder: optimized(
            folder, cluster_by=["x"], rows_per_file=40, mode="full"
        ),
    ),
    "append": Writer(
        _optimized, partial(arrived, mode=SaveMode.APPEND), _with_new, by_file=True
    ),
    "append to files": Writer(
        _filled, partial(arrived, mode=SaveMode.APPEND), _with_new, by_file=True
    ),
    "append to a log": Writer(
        _of_the_log, partial(arrived, mode=SaveMode.APPEND), _with_new, by_file=True
    ),
    "optimize a log": Writer(
        _of_the_log, lambda folder: optimized(folder, cluster_by=["i"], mode="full")
    ),
    "vacuum of a log": Writer(_of_the_log, _vacuum, shows=True),
    "append a batch": Writer(
        _optimized, _append_batch, _with_new, hides=True, shows=True
    ),
    "append a batch to a log": Writer(
        _of_the_log, _append_batch, _with_new, hides=True, shows=True
    ),
    "append it again": Writer(_killed_batch, _append_batch, _without_new, shows=True),
    "vacuum of a batch": Writer(_killed_batch, _vacuum, _without_new, shows=True),
    "create": Writer(
        lambda folder: folder.mkdir(exist_ok=True),
        partial(arrived, mode=SaveMode.CREATE),
        _with_new,
        by_file=True,
    ),
    "overwrite": Writer(
        _twice,
        partial(arrived, mode=SaveMode.OVERWRITE),
        _new_alone,
        hides=True,
        shows=True,
    ),
    "overwrite files": Writer(
        _filled,
        partial(arrived, mode=SaveMode.OVERWRITE),
        _new_alone,
        hides=True,
        shows=True,
    ),
    "vacuum": Writer(_optimized, _vacuum, shows=True),
    "vacuum of an overwrite": Writer(
        _killed_overwrite, _vacuum, _with_filled, shows=True
    ),
    "purge": Writer(_twice, partial(vacuum, retention=NOW, purge=True), shows=True),
    "vacuum of two": Writer(_twice, _vacuum, shows=True),
    "vacuum again": Writer(_published, _vacuum, shows=True),
}


def _commits(folder: Path) -> list[Path]:
    log = folder / LOG
    return sorted(log.glob("*.json")) if log.is_dir() else []


def _commits_are(spoil: Callable[[Path], object], n: int) -> Damage:
    """Spoil the newest commits."""

    def damage(folder: Path) -> None:
        for path in _commits(folder)[-n:]:
            spoil(path)

    return damage


def _flip(path: Path) -> None:
    flip(path, path.stat().st_size // 2)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def _spoil_segment(at: int, spoil: Callable[[Path], None]) -> Damage:
    """Spoil one segment that the newest commit names."""

    def damage(folder: Path) -> None:
        for path in _commits(folder)[-1:]:
            segments = json.loads(path.read_text())["commit"]["segments"]
            if segments:
                spoil(folder / MANIFESTS / segments[at]["name"])

    return damage


def _lose(name: str) -> Damage:
    def damage(folder: Path) -> None:
        shutil.rmtree(folder / name, ignore_errors=True)

    return damage


def _all_garbage(folder: Path) -> None:
    for path in (folder / "_skipindex").rglob("*"):
        if path.is_file():
            path.write_bytes(b"\xff" * 100)


def _copied(folder: Path) -> None:
    """As ``cp -r``, a sync or a restore does: other times."""
    original = folder.rename(folder.with_name("original"))
    shutil.copytree(original, folder, copy_function=shutil.copyfile)
    shutil.rmtree(original)


DAMAGES: Final[dict[str, Damage]] = {
    "nothing": lambda folder: None,
    "copied": _copied,
    "all lost": _lose("_skipindex"),
    "all garbage": _all_garbage,
    "log lost": _lose(LOG),
    "manifests lost": _lose(MANIFESTS),
    "first segment lost": _spoil_segment(0, Path.unlink),
    "last segment flipped": _spoil_segment(-1, lambda path: flip(path, 300)),
    "packs lost": _lose(PACKS),
    "newest lost": _commits_are(Path.unlink, 1),
    "newest two lost": _commits_are(Path.unlink, 2),
    "newest flipped": _commits_are(_flip, 1),
    "newest two flipped": _commits_are(_flip, 2),
    "all flipped": _commits_are(_flip, 1000),
    "newest cut": _commits_are(_cut, 1),
}


WHOLE: Final = frozenset({"nothing", "copied"})
"""Those that damage nothing."""
OF_COMMITS: Final = frozenset(
    name for name in DAMAGES if name.startswith(("all ", "log ", "newest "))
)
"""Those that lose commits."""


@dataclass(frozen=True)
class Allowed:
    """The rows that a table may have; or none of those is lost, if not ``exact``."""

    rows: Sequence[Rows]
    exact: bool = True

    def __contains__(self, now: Rows) -> bool:
        if self.exact:
            return now in self.rows
        known = {row for rows in self.rows for row in rows}
        return now.keys() <= known and any(not rows - now for rows in self.rows)

    def still(self, now: Rows, before: Rows) -> bool:
        """Whether a later look may see these rows."""
        return now == before if self.exact else now in self


def states(
    name: str,
    work: Path,
    *,
    after: bool,
    is_wanted: Callable[[int], Any] = lambda step: True,
) -> Iterator[tuple[int, Path, Rows]]:
    """Tables whose writer was killed, by step, and the rows from before.

    Args:
        name: of the writer.
        work: a folder for the tables.
        after: kill it after the change of a step, and not before.
        is_wanted: by step, of which one in some must be; the others are not made.
    """
    writer = WRITERS[name]
    begun = work / "begun"
    begun.mkdir(parents=True)
    writer.prepare(begun)
    before = seen(begun)
    for step in filter(is_wanted, range(_MAX_STEPS)):
        folder = work / "killed"
        copy(begun, folder)
        try:
            with killed_at(step, after=after):
                writer.write(folder)
        except Killed:
            yield step, folder, before
        else:
            return
    raise AssertionError(f"{name} does not end")


def copy(folder: Path, target: Path) -> None:
    """Copy a folder with its links and marks."""
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run(["cp", "-a", str(folder), str(target)], check=True)


def seen(folder: Path) -> Rows:
    """The rows that our reader reads; none where there is no table, or not yet."""
    try:
        return rows_of(folder, open_table(folder).paths)
    except TableError as error:
        if "no Parquet files" not in str(error):
            raise
        return Counter()


def check(folder: Path, allowed: Allowed) -> None:
    """Every row once: now, after a build, after a vacuum, and after all again."""
    if not seen(folder):
        assert Counter() in allowed, "at once"
        check_at_once(folder, Allowed([Counter()]))
        arrived(folder, SaveMode.CREATE)
        assert seen(folder) in allowed, "after another try"

    def ours() -> Rows:
        table = open_table(folder)
        rows = rows_of(folder, table.paths)
        plan = table.plan("x >= 0")
        low, high = plan.count_bounds
        n_rows = sum(rows.values())
        assert low <= n_rows, (low, n_rows)
        assert high is None or high >= n_rows, (high, n_rows)
        return rows

    now = ours()
    assert now in allowed, "at once"
    build(folder, {"x": "bitmap"})
    assert allowed.still(ours(), now), "after a build"
    for round_ in ("vacuum", "another vacuum"):
        vacuum(folder, retention=NOW)
        after = ours()
        assert allowed.still(after, now), round_
        now = after
        assert rows_of(folder, listed(folder)) == now, f"listed, after {round_}"
    optimized(folder, cluster_by=["x"], rows_per_file=30, mode="full")
    assert ours() == now, "after optimize"
    assert rows_of(folder, listed(folder)) == now, "listed, after optimize"
    vacuum(folder, retention=NOW)
    assert ours() == rows_of(folder, listed(folder)) == now, "at the end"


def check_at_once(folder: Path, allowed: Allowed) -> None:
    """The same in short: a vacuum comes first, before anybody has built."""
    vacuum(folder, retention=NOW)
    now = seen(folder)
    assert now in allowed, "after vacuum"
    assert rows_of(folder, listed(folder)) == now, "listed, after vacuum"


def check_whole(writer: Writer, folder: Path, before: Rows) -> Rows:
    """A table that is not damaged; the rows that everybody reads from now on."""
    ours, theirs = seen(folder), rows_of(folder, listed(folder))
    assert ours in writer.after_a_kill(before), "at once"
    if writer.by_file:
        assert theirs == ours, "who lists the folder"
    elif writer.then(before) == before:
        assert not before - theirs, "who lists the folder misses no row"
        assert writer.shows or theirs == before, "nor sees any twice"
    elif writer.hides and ours == before:
        assert theirs == before, "nothing is seen before the commit"
    if ours:  # the log names all files of an append or none
        check_log(folder, writer.whole(before) if writer.by_file else [ours])
    return ours


def check_log(folder: Path, allowed: Sequence[Rows]) -> None:
    """A table that is opened from its log, if it can be, has these rows."""
    if not open_table(folder).state.snapshot.is_exclusive:
        return
    with mock.patch.object(Location, "list", side_effect=AssertionError):
        rows = rows_of(folder, open_table(folder, trust="log").paths)
    assert rows in allowed, "by the log"


def sweep(
    name: str, work: Path, *, stride: int = 1, start: int = 0
) -> Iterator[tuple[str, str | None]]:
    """Every case of one writer: what it is, and what is wrong, if anything is."""
    writer = WRITERS[name]

    def chosen(after: bool, step: int) -> list[str]:
        first = start + (after * _MAX_STEPS + step) * len(DAMAGES) + 1
        return [what for i, what in enumerate(DAMAGES, first) if i % stride == 0]

    for after in (False, True):
        is_wanted = partial(chosen, after)
        for step, killed, before in states(
            name, work / str(after), after=after, is_wanted=is_wanted
        ):
            rows = writer.after_a_kill(before)
            for what in chosen(after, step):
                for checked in (check, check_at_once):
                    folder = work / "case"
                    copy(killed, folder)
                    DAMAGES[what](folder)
                    exact = not (writer.shows and what in OF_COMMITS)
                    allowed = Allowed(rows, exact)
                    case = f"{name}, {'after' if after else 'before'} step {step}: "
                    case += f"{what}, {checked.__name__}"
                    with warnings.catch_warnings(action="ignore"):
                        try:
                            if what in WHOLE:
                                now = check_whole(writer, folder, before)
                                allowed = Allowed([now] if now else rows)
                            checked(folder, allowed)
                            if what in WHOLE and seen(folder):
                                check_swept(folder)
                                check_log(folder, [now])
                        except Exception as error:  # noqa: BLE001 (told, all of them)
                            yield case, f"{type(error).__name__}: {str(error)[:300]}"
                        else:
                            yield case, None


Sweep = Callable[[str, Path], Iterator[tuple[str, str | None]]]


def main(names: Sequence[str], run: Sweep = sweep) -> int:
    """Run a sweep of these writers, or of all."""
    n_wrong = 0
    for name in names or WRITERS:
        with tempfile.TemporaryDirectory() as work:
            n = 0
            for case, problem in run(name, Path(work)):
                n += 1
                if problem:
                    n_wrong += 1
                    print(f"{case}: {problem}", flush=True)
        print(f"{name}: {n} cases", flush=True)
    print(f"{n_wrong} wrong")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
