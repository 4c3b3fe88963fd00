"""A table's life: any order of writers, readers, kills and damage.

The judge is a plain model: the rows that people put into the visible files.  Every
row has a number of its own, so a row that is lost and one that is read twice are
both seen.  What writers of other tools do (append, overwrite, delete, rename) changes
the model; what we do (build, merge, optimize, vacuum) never does, and neither does a
kill at any step of ours or any damage below ``_skipindex``.
"""

from __future__ import annotations

import math
import random
import shutil
import tempfile
import uuid
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias
from unittest import mock

import pyarrow.parquet as pq
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

import skipindex as sx
from skipindex.build.memory import bytes_in
from skipindex.rewrite.arrival import SaveMode
from skipindex.rewrite.selection.target import Target
from skipindex.rewrite.vacuum import vacuum
from skipindex.rewrite.verify_table import verify
from skipindex.storage.file_system.location import location_of
from skipindex.storage.file_system.names import FOLDER, LOG
from skipindex.storage.file_system.sidecar import with_sidecar
from tests.rewrite.arriving import arrived
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.killing import Killed, killed_at
from tests.rewrite.seen import listed
from tests.tables import forget_open_packs, put

NOW = timedelta(0)
KINDS = ["minmax", "bitmap", "bit_sliced", "bloom", "range_bitmap"]
DAYS = (1, 2)
VALUES = 12

SEEDS = st.integers(0, 2**16)
STEPS = st.integers(0, 40)

Rows: TypeAlias = Counter[tuple[int, int, int]]


def _columns(rows: list[tuple[int, int]]) -> dict[str, list[int]]:
    return {"i": [i for i, _ in rows], "x": [x for _, x in rows]}


def _counted(day: int, rows: list[tuple[int, int]]) -> Rows:
    return Counter((i, x, day) for i, x in rows)


def _unless_publishing(step: Callable[..., None]) -> Callable[..., None]:
    """Do nothing while rewritten files may be published.

    This is no precondition of Hypothesis: how far a kill came may differ when a life is
    lived again, but what is drawn then must not.
    """

    @wraps(step)
    def taken(self: Life, **drawn: Any) -> None:
        if not self.publishing:
            step(self, **drawn)

    return taken


def _beside_the_data(step: Callable[..., None]) -> Callable[..., None]:
    """Do nothing with a sidecar, which is refused where data files are written."""

    @wraps(step)
    def taken(self: Life, **drawn: Any) -> None:
        if self.place.sidecar is None:
            step(self, **drawn)

    return taken


class Life(RuleBasedStateMachine):
    """One table, from its first file on."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="skipindex-life-"))
        self.sidecar = Path(tempfile.mkdtemp(prefix="skipindex-sidecar-"))
        self.place = location_of(self.folder)
        self.next_row = 0
        self.truth: Rows = Counter()
        self.others: list[Rows] = []
        """What the truth may become by damage: without rows of writers who died."""
        self.publishing = False
        # A life that is lived again has files of the same names in the same order.
        drawn = random.Random(0)
        made = (uuid.UUID(int=drawn.getrandbits(128)) for _ in count())
        self.names = mock.patch("uuid.uuid4", made.__next__)
        self.names.start()
        warnings.simplefilter("ignore")  # damage is told; here it is meant

    def teardown(self) -> None:
        """Leave nothing."""
        self.names.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.sidecar, ignore_errors=True)

    # What other tools do.

    @initialize(seed=SEEDS)
    def found(self, seed: int) -> None:
        """The first files of both folders; some tables have their indexes elsewhere."""
        if seed % 4 == 1:
            self.place = with_sidecar(self.place, self.sidecar)
        for day in DAYS:
            self._put(day, random.Random(seed + day))

    @rule(day=st.sampled_from(DAYS), seed=SEEDS)
    def append(self, day: int, seed: int) -> None:
        """A new file with new rows."""
        self._put(day, random.Random(seed))

    @rule(seed=SEEDS)
    @_unless_publishing
    def overwrite(self, seed: int) -> None:
        """Other rows in the place of a visible file's, under its name."""
        path = self._any_visible(seed)
        self._take(self._rows_of(path))
        (self.folder / path).unlink()
        self._put(int(path[4]), random.Random(seed), name=path)

    @rule(seed=SEEDS)
    @_unless_publishing
    def delete(self, seed: int) -> None:
        """A visible file goes, unless it is the last one."""
        if len(listed(self.folder)) > 1:
            path = self._any_visible(seed)
            self._take(self._rows_of(path))
            (self.folder / path).unlink()

    @rule(seed=SEEDS)
    @_unless_publishing
    def rename(self, seed: int) -> None:
        """A visible file gets another name in its folder."""
        path = self.folder / self._any_visible(seed)
        path.rename(path.with_name(f"renamed-{self.next_row}-{seed}.parquet"))
        self.next_row += 1

    # What we do, and where it is killed.

    @rule(kind=st.sampled_from(KINDS), column=st.sampled_from(["x", "i"]))
    def build(self, kind: str, column: str) -> None:
        """An index on every file."""
        self._act("build", lambda: self._build(kind, column), None, after=False)

    @rule()
    def merge(self) -> None:
        """Packs are merged."""
        self._act(
            "merge",
            lambda: sx.open_table(self.place).compact_indexes(),
            None,
            after=False,
        )

    @rule(
        by=st.sampled_from(["x", "i"]),
        full=st.booleans(),
        size=st.integers(5, 40),
        ratio=st.sampled_from([0.0, 1.0, 5.0, math.inf]),
        cube_size=st.sampled_from([2000, 10**9]),
        budget=st.sampled_from([None, 0, 1500, "3kB", 6000]),
    )
    @_beside_the_data
    def optimize(
        self,
        by: str,
        full: bool,
        size: int,
        ratio: float,
        cube_size: int,
        budget: int | str | None,
    ) -> None:
        """The files are clustered anew, all that fit into a budget if there is one."""
        options: dict[str, Any] = {
            "full": full,
            "ratio": ratio,
            "cube_size": cube_size,
        }
        if not full:
            options["budget"] = budget
        self._act("optimize", lambda: self._optimize(by, size, **options), None)

    @rule(repair=st.sampled_from([None, True, False]))
    def refresh(self, repair: bool | None) -> None:
        """The indexes that the table has, of what is new or damaged."""
        sx.open_table(self.place).refresh_indexes(workers=1, repair=repair)

    @rule()
    def verify(self) -> None:
        """Whatever is damaged is named and never raised."""
        assert str(verify(self.place))

    @rule(
        day=st.sampled_from(DAYS),
        seed=SEEDS,
        by=st.sampled_from([None, "x", "i"]),
    )
    @_beside_the_data
    def arrive(self, day: int, seed: int, by: str | None) -> None:
        """Rows are appended by us, along the curve of a column perhaps."""
        rows = self._new_rows(random.Random(seed))
        along = Target((by,), "hilbert", rows_per_file=15) if by else None
        self._arrive(day, rows, SaveMode.APPEND, along=along)
        self._add(day, rows)

    @rule(day=st.sampled_from(DAYS), seed=SEEDS)
    @_unless_publishing
    @_beside_the_data
    def replace(self, day: int, seed: int) -> None:
        """All rows are overwritten by us."""
        rows = self._new_rows(random.Random(seed))
        self._arrive(day, rows, SaveMode.OVERWRITE)
        self.truth, self.others = Counter(), []
        self._add(day, rows)

    @rule(step=STEPS, after=st.booleans(), day=st.sampled_from(DAYS), seed=SEEDS)
    @_beside_the_data
    def killed_arrive(self, step: int, after: bool, day: int, seed: int) -> None:
        """An append dies: its file is visible and stays, or is none."""
        rows = self._new_rows(random.Random(seed))
        more = _counted(day, rows)
        with suppress(Killed), killed_at(step, after=after):
            self._arrive(day, rows, SaveMode.APPEND)
            step = -1
        if step < 0 or self._read(sx.open_table(self.place).paths) == (
            self.truth + more
        ):
            self._add(day, rows)

    @rule(step=STEPS, after=st.booleans(), day=st.sampled_from(DAYS), seed=SEEDS)
    @_unless_publishing
    @_beside_the_data
    def killed_replace(self, step: int, after: bool, day: int, seed: int) -> None:
        """An overwrite dies: the table is the old one or the new one."""
        rows = self._new_rows(random.Random(seed))
        with suppress(Killed), killed_at(step, after=after):
            self._arrive(day, rows, SaveMode.OVERWRITE)
            step = -1
        new = _counted(day, rows)
        if step < 0:
            self.truth, self.others = new, []
        elif self._read(sx.open_table(self.place).paths) == new:
            self.truth, self.others = new, [self.truth, *self.others]
            self.publishing = True

    @rule(purge=st.booleans())
    def vacuum(self, purge: bool) -> None:
        """Rewritten files are published; afterwards both readers agree."""
        vacuum(self.place, retention=NOW, purge=purge)
        self._look()
        self.others = []
        self.publishing = False
        assert self._read(listed(self.folder)) == self.truth, "who lists the folder"

    @rule(step=STEPS, after=st.booleans(), kind=st.sampled_from(KINDS))
    def killed_build(self, step: int, after: bool, kind: str) -> None:
        """A build dies."""
        self._act("build", lambda: self._build(kind, "x"), step, after=after)

    @rule(step=STEPS, after=st.booleans())
    def killed_merge(self, step: int, after: bool) -> None:
        """A merge dies."""
        self._act(
            "merge",
            lambda: sx.open_table(self.place).compact_indexes(),
            step,
            after=after,
        )

    @rule(step=STEPS, after=st.booleans(), by=st.sampled_from(["x", "i"]))
    @_beside_the_data
    def killed_optimize(self, step: int, after: bool, by: str) -> None:
        """An optimize dies."""
        self._act("optimize", lambda: self._optimize(by, 15), step, after=after)

    @rule(step=STEPS, after=st.booleans(), purge=st.booleans())
    def killed_vacuum(self, step: int, after: bool, purge: bool) -> None:
        """A vacuum dies, perhaps while it publishes."""
        if self._act(
            "vacuum",
            lambda: vacuum(self.place, retention=NOW, purge=purge),
            step,
            after=after,
        ):
            self.publishing = True

    # What happens to disks.

    @rule(seed=SEEDS, how=st.sampled_from(["flip", "cut", "remove", "empty"]))
    def damage(self, seed: int, how: str) -> None:
        """A file below ``_skipindex`` is damaged or lost."""
        files = sorted(p for p in (self._own / FOLDER).rglob("*") if p.is_file())
        if self.publishing:  # a killed vacuum and a damaged log may show rows twice
            files = [path for path in files if path.parent != self._own / LOG]
        if files:
            self._damage(random.Random(seed).choice(files), seed, how)

    @rule(seed=SEEDS, how=st.sampled_from(["flip", "cut", "remove", "empty"]))
    @_unless_publishing
    def damage_newest_commit(self, seed: int, how: str) -> None:
        """The newest commit is damaged or lost."""
        commits = sorted((self._own / LOG).glob("*.json"))
        if commits:
            self._damage(commits[-1], seed, how)

    @rule()
    @_unless_publishing
    def lose_the_log(self) -> None:
        """All of ``_skipindex`` goes."""
        shutil.rmtree(self._own / FOLDER, ignore_errors=True)

    # What readers see.

    @rule(low=st.integers(0, VALUES), n=st.integers(0, 3), day=st.sampled_from(DAYS))
    def plan(self, low: int, n: int, day: int) -> None:
        """A plan reads every matching row once, and states no wrong count."""
        forget_open_packs()
        questions: list[tuple[str, Callable[[int, int], bool]]] = [
            (f"x BETWEEN {low} AND {low + n}", lambda x, _: low <= x <= low + n),
            (f"x = {low} AND day = {day}", lambda x, d: x == low and d == day),
            (f"NOT (x < {low}) OR day = {day}", lambda x, d: x >= low or d == day),
        ]
        for text, holds in questions:
            plan = sx.plan_files(text, table=self.place)
            wanted = Counter(
                {row: c for row, c in self.truth.items() if holds(row[1], row[2])}
            )
            read = self._read(plan.paths)
            found = {row: c for row, c in read.items() if holds(row[1], row[2])}
            assert found == wanted, text
            fewest, most = plan.count_bounds
            assert fewest <= wanted.total(), text
            assert most is None or wanted.total() <= most, text

    @invariant()
    def every_row_is_read_once(self) -> None:
        """By who opens the table through us."""
        if self.truth:
            self._look()
        if not self.publishing:
            assert self._read(listed(self.folder)) == self.truth, "by a plain lister"
        if self.place.sidecar is not None:
            assert not list(self.folder.rglob("*skipindex*")), "in the table's folder"

    @property
    def _own(self) -> Path:
        """The folder that has ``_skipindex``."""
        return Path((self.place.sidecar or self.place).root)

    def _act(
        self,
        name: str,
        change: Callable[[], Any],
        step: int | None,
        *,
        after: bool = False,
    ) -> bool:
        """Do it, or die on the way; whether it died."""
        if step is None:
            change()
            return False
        with suppress(Killed), killed_at(step, after=after):
            change()
            return False
        return True

    def _build(self, kind: str, column: str) -> None:
        sx.build_indexes(self.place, {column: kind}, workers=1)

    def _optimize(
        self, by: str, size: int, *, full: bool = False, **options: Any
    ) -> None:
        report = optimized(
            self.folder,
            cluster_by=[by],
            rows_per_file=size,
            mode="full" if full else "incremental",
            **{"cube_size": 2000, **options},
        )
        most = bytes_in(options.get("budget"))
        assert most is None or report.bytes_in <= most

    def _put(self, day: int, source: random.Random, *, name: str = "") -> None:
        rows = self._new_rows(source)
        path = name or f"day={day}/{self.next_row}.parquet"
        put(self.folder / path, _columns(rows))
        self._add(day, rows)

    def _new_rows(self, source: random.Random) -> list[tuple[int, int]]:
        n = source.randint(1, 12)
        rows = [(self.next_row + i, source.randrange(VALUES)) for i in range(n)]
        self.next_row += n
        return rows

    def _arrive(
        self,
        day: int,
        rows: list[tuple[int, int]],
        mode: SaveMode,
        *,
        along: Target | None = None,
    ) -> None:
        arrived(self.folder, mode, rows={day: _columns(rows)}, along=along)

    def _add(self, day: int, rows: list[tuple[int, int]]) -> None:
        more = _counted(day, rows)
        self.truth = self.truth + more
        self.others = [other + more for other in self.others]

    def _take(self, rows: Rows) -> None:
        self.truth = self.truth - rows
        self.others = [other - rows for other in self.others]

    def _look(self) -> None:
        """What is read is the truth, or becomes it, and never changes back."""
        read = self._read(sx.open_table(self.place).paths)
        if read != self.truth:
            assert read in self.others
            self.others = [other for other in self.others if other != read]
            self.truth = read

    def _any_visible(self, seed: int) -> str:
        return random.Random(seed).choice(listed(self.folder))

    def _rows_of(self, path: str) -> Rows:
        found = pq.ParquetFile(self.folder / path).read(["i", "x"]).to_pydict()
        day = int(path[4])
        return Counter((i, x, day) for i, x in zip(found["i"], found["x"], strict=True))

    def _read(self, paths: list[str]) -> Rows:
        rows: Rows = Counter()
        for path in paths:
            rows += self._rows_of(path)
        return rows

    def _damage(self, path: Path, seed: int, how: str) -> None:
        data = path.read_bytes()
        if how == "remove":
            path.unlink()
        elif how == "empty":
            path.write_bytes(b"")
        elif how == "cut":
            path.write_bytes(data[: seed % (len(data) + 1)])
        elif data:
            place = seed % len(data)
            flipped = bytes([data[place] ^ (1 << seed % 8)])
            path.write_bytes(data[:place] + flipped + data[place + 1 :])
