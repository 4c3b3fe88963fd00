"""Tables of our own: folders of Parquet that others and skipindex write.

What a table holds is known from what was written, not from its log.  Where the rows
are is read from the files that the table names: they must be exactly those rows.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import combinations, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

import skipindex as sx
from skipindex.build.builder import index_files
from skipindex.build.runners import LocalRunner
from skipindex.build.tiers import CROWD, index_keys
from skipindex.errors import CommitConflictError, SkipIndexError
from skipindex.log import Snapshot
from skipindex.log.compaction import FANOUT
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.rewrite.arrival import arrive
from skipindex.rewrite.expiry import expire
from skipindex.source.folder.batch import Batch
from skipindex.source.folder.new_files import SaveMode
from skipindex.storage.file_system.location import FileInfo
from skipindex.storage.file_system.names import LOG, MANIFESTS, PACKS
from skipindex.table import table_of
from tests.heavy.lives.delta import hive_text
from tests.heavy.lives.questions import condition
from tests.heavy.lives.rows import (
    KINDS,
    Column,
    Stored,
    name_of,
    norm,
    stored_of,
    write_parquet,
)
from tests.heavy.lives.world import PLACES, Moment, World
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.kill_and_damage import DAMAGES
from tests.rewrite.killing import Killed, another_at, answer_lost_at, killed_at
from tests.rewrite.maintaining import maintain, record, without_spark
from tests.rewrite.seen import listed
from tests.tables import flip

Rows = Counter[Any]
_MANY: Final = 20
"""Files, of which indexes are compared with those that are built at once."""
_MAX_RUNS: Final = 6
"""Of maintenance, behind which nothing is due."""
_SHOW: Final = frozenset({"append_batch", "overwrite", "vacuum", "maintain"})
"""Writers that show files under two names until they end."""


@dataclass
class Truth:
    """The rows that a table may have.

    Args:
        may: one of these; more than one if a writer was killed.
        coming: beside them, the rows of files that an append shows one by one.
    """

    may: list[Rows]
    coming: list[Rows] = field(default_factory=list)

    def change(self, gone: Rows, come: Rows) -> None:
        """Others take away rows that are visible, and add some."""
        self.may = [one - gone + come for one in self.may]

    def come(self, new: Sequence[Rows]) -> None:
        """An append has ended."""
        left = [one for one in self.coming if not any(one is each for each in new)]
        self.change(Counter(), sum(new, Counter()))
        self.coming = left

    def settle(self, found: Rows) -> None:
        """These rows were found, which must be lawful; from now on they are there."""
        n = len(self.coming)
        some = [more for k in range(n + 1) for more in combinations(self.coming, k)]
        lawful = [one + sum(more, Counter()) for one in self.may for more in some]
        if found not in lawful:
            near = min(lawful, key=lambda one: (one - found | found - one).total())
            lost, more = [*(near - found).items()], [*(found - near).items()]
            raise AssertionError(
                f"{found.total()} rows of {[one.total() for one in lawful]}, lost "
                f"{len(lost)}: {lost[:2]}, more {len(more)}: {more[:2]}"[:900]
            )
        self.may, self.coming = [found], []


class FolderWorld(World):
    """A folder, whose indexes may be elsewhere, and which only skipindex may write."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        super().__init__(folder, rng)
        folder.mkdir(parents=True)
        self.allowed = [
            *("was not written by skipindex", "cannot replace a listing"),
            "would have no statistics",
        ]
        self.sidecar = folder.parent / "beside" if rng.random() < 0.2 else None
        self.is_given = rng.random() < 0.5
        """Whether readers give the columns, which files may lack."""
        self.derived: tuple[Column, Column] | None = None
        """A partition column of days, and the dates in files that it is computed of."""
        for _ in range(rng.randrange(2, 5)):
            self._new_column(rng.choice([*KINDS]))
        if rng.random() < 0.4:
            self._new_struct()
        for kind in rng.choice(
            [[], [], ["string"], ["integer"], ["string", "integer"]]
        ):
            self._new_column(kind, is_partition=True)
        if rng.random() < 0.2:
            self._new_column("date")
            self._new_column("integer", is_partition=True)
            self.derived = (self.columns[-1], self.columns[-2])
        self.places: dict[str, dict[int, Any]] = {"": {}}
        """The values of partitions by their folder."""
        self.visible: list[str] = []
        """The files that others see, when the table was looked at."""
        self.is_whole = True
        """No writer was killed while it showed files under two names."""
        self.is_ours = False
        """Only skipindex has written since the table was declared exclusive."""
        self.is_closed = not self.sidecar and rng.random() < 0.3
        """No other tool writes it."""
        self.is_indexed = True
        """Its indexes may be refreshed or dropped, though it has none yet."""
        self.n_batches = 0
        self.truth = Truth([Counter()])
        for _ in range(rng.randrange(1, 5)):
            self.add_file()
        if rng.random() < 0.5:
            self.index()

    @property
    def own_acts(self) -> Sequence[Callable[[], None]]:
        others = () if self.is_closed else self.of_others
        return (*others, *self.of_skipindex, *self.faults)

    @property
    def of_others(self) -> Sequence[Callable[[], None]]:
        """What other writers do."""
        more = [self.add_column] if self.is_given else []
        more += [self.move_file] if self._partitions and not self.derived else []
        return (
            *(self.add_file, self.delete_file, self.overwrite_file),
            *(self.rename_file, self.touch_file, self.copy_file, *more),
        )

    @property
    def of_skipindex(self) -> Sequence[Callable[[], None]]:
        """What changes the table or its log, beside what every table has."""
        if self.sidecar:
            return self.index_exactly, self.expire, self.sweep
        return (
            *(self.index_exactly, self.append, self.append_batch, self.overwrite),
            *(self.optimize, self.expire, self.sweep),
            *(self.declare_exclusive, *([self.derive] if self.derived else [])),
        )

    @property
    def faults(self) -> Sequence[Callable[[], None]]:
        """What goes wrong."""
        return self.fail, self.meet, self.damage

    @property
    def weights(self) -> Mapping[str, int]:
        often = {"add_file": 3, "optimize": 4, "append": 2, "fail": 6, "meet": 5}
        more = {"vacuum": 2, "declare_exclusive": 4 if self.is_closed else 1}
        return {**super().weights, **often, **more}

    def open(self, trust: Any = "listing") -> sx.Table:
        own = [one for one in self.columns if not one.is_partition]
        schema = pa.schema([one.as_field(name_of) for one in own])
        kinds = {one.name: one.kind.arrow for one in self._partitions if one.kind}
        return sx.open_table(
            self.folder,
            schema=schema if self.is_given else None,
            partition_types=kinds,
            trust=trust,
            sidecar=self.sidecar,
        )

    def asked(self) -> Moment:
        """The table as it is listed, or as its log has it."""
        table = self._look()
        if self.is_ours and table.status().exclusive and self.rng.random() < 0.6:
            table = self.open("log")
        return self.moment(table, self.columns, [*self.files.values()])

    def unlike_reader(self) -> str:
        """Who lists the folder has the same rows, unless a writer was killed."""
        found = self._held(listed(self.folder))
        is_known = self.is_whole and len(self.truth.may) == 1 and not self.truth.coming
        return "other rows" if is_known and [found] != self.truth.may else ""

    # -- what it holds -----------------------------------------------------------------

    @property
    def _partitions(self) -> list[Column]:
        return [one for one in self.columns if one.is_partition]

    def _new_column(self, kind: str, *, is_partition: bool = False) -> None:
        name = self.free_name(self.columns)
        of = PLACES if is_partition and kind == "string" else KINDS[kind]
        new = Column(self.number(), name, name, of, is_partition=is_partition)
        self.columns.append(new)

    def _new_struct(self) -> None:
        name = self.free_name(self.columns)
        new = Column(self.number(), name, name, None)
        for kind, inner in zip(("long", "string"), "xy", strict=True):
            new.fields.append(Column(self.number(), inner, inner, KINDS[kind]))
        self.columns.append(new)

    def _place(self) -> str:
        """The folder of a partition."""
        values = {one.number: one.draw(self.rng, 1)[0] for one in self._partitions}
        if self.derived:
            day: date | None = self.rng.choice([None, *KINDS["date"].pool])
            values[self.derived[0].number] = day and day.day
        path = "".join(
            f"{one.name}={hive_text(values[one.number])}/" for one in self._partitions
        )
        self.places[path] = values
        return path

    def _drawn(self, place: str, *, is_full: bool = False) -> Stored:
        """The rows of a new file."""
        n = self.rng.choice([1, 3, 8, 20])
        own = [one for one in self.columns if not one.is_partition]
        own = [one for one in own if is_full or self.rng.random() < 0.9] or own[:1]
        rows = {one.number: one.draw(self.rng, n) for one in own}
        if self.derived:
            days, dates = self.derived
            day = self.places[place][days.number]
            some = [d for d in KINDS["date"].pool if d.day == day] or [None]
            rows[dates.number] = [self.rng.choice(some) for _ in range(n)]
        return Stored("", n, rows, self.places[place])

    def _put(self, path: Path, file: Stored) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        rng, rows = self.rng, file.rows
        write_parquet(rng, path, self.columns, rows, stored_of, lambda _: None)

    def _read(self, path: str) -> Stored:
        """A data file, as pyarrow reads it."""
        file = self.folder / path
        own = pq.ParquetFile(file).read()
        there = [one for one in self.columns if one.stored in own.column_names]
        rows = {
            one.number: [*map(one.numbered, own[one.stored].to_pylist())]
            for one in there
        }
        place = "".join(f"{part}/" for part in path.split("/")[:-1] if "=" in part)
        return Stored(str(file.resolve()), len(own), rows, self.places[place])

    def _held(self, paths: Iterable[str]) -> Rows:
        return sum((bag(self._read(path)) for path in paths), Counter())

    def _look(self) -> sx.Table:
        """The table as it is listed, which must have lawful rows and few files."""
        table = self.open()
        found = [self._read(path) for path in table.paths]
        self.truth.settle(sum(map(bag, found), Counter()))
        self.files = {one.path: one for one in found}
        self.visible = listed(self.folder)
        self._check_bounds(table.state.snapshot)
        return table

    def _check_bounds(self, snapshot: Snapshot) -> None:
        """Segments and packs are few: so many of each size, by powers of 8."""
        manifest = snapshot.manifest
        n_sizes = len(f"{len(manifest):o}")
        assert len(snapshot.segments) <= FANOUT * n_sizes, "segments"
        n_alike = len(set(map(index_keys, manifest.packs)))
        n_packs = len(manifest.packs)
        assert n_packs <= (CROWD - 1) * n_sizes * n_alike, f"{n_packs} packs"

    # -- acts of others ----------------------------------------------------------------

    def _new_name(self, place: str) -> str:
        return f"{place}{self.name()}.parquet"

    def _theirs(self, *, least: int = 1) -> Iterator[str]:
        """A file that another writer changes, if there are so many."""
        if self.is_whole and len(self.visible) >= least:
            self.is_ours = False
            yield self.rng.choice(self.visible)

    def add_file(self) -> None:
        """A file more."""
        self.is_ours = False
        place = self._place()
        new = self._drawn(place, is_full=not self.is_given)
        self._put(self.folder / self._new_name(place), new)
        self.truth.change(Counter(), bag(new))

    def delete_file(self) -> None:
        """A file goes; a folder without files is no table."""
        for path in self._theirs(least=2):
            self.truth.change(bag(self._read(path)), Counter())
            (self.folder / path).unlink()

    def overwrite_file(self) -> None:
        """A file has other rows, in its place or by a rename."""
        for path in self._theirs():
            old = self._read(path)
            place = next(k for k, v in self.places.items() if v is old.values)
            new = self._drawn(place, is_full=not self.is_given)
            to = self.folder / path
            if self.rng.random() < 0.5:
                self._put(to.with_name("_new"), new)
                to.with_name("_new").replace(to)
            else:
                self._put(to, new)
            self.truth.change(bag(old), bag(new))

    def rename_file(self) -> None:
        """A file has another name."""
        for path in self._theirs():
            to = self._new_name(path[: path.rfind("/") + 1])
            (self.folder / path).rename(self.folder / to)

    def touch_file(self) -> None:
        """A file has another time."""
        for path in self._theirs():
            then = (self.folder / path).stat().st_mtime_ns - 10_000_000_007
            os.utime(self.folder / path, ns=(then, then))

    def copy_file(self) -> None:
        """A file is there twice, with its time or another."""
        for path in self._theirs():
            copy = self.rng.choice([shutil.copy2, shutil.copyfile])
            to = self._new_name(path[: path.rfind("/") + 1])
            copy(self.folder / path, self.folder / to)
            self.truth.change(Counter(), bag(self._read(path)))

    def move_file(self) -> None:
        """A file is in another partition."""
        for path in self._theirs():
            to = self._place() + path.rpartition("/")[2]
            if (self.folder / to).exists():
                return
            gone = bag(self._read(path))
            (self.folder / to).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).rename(self.folder / to)
            self.truth.change(gone, bag(self._read(to)))

    def add_column(self) -> None:
        """A column more, which files lack."""
        if len(self.columns) < 8:
            self._new_column(self.rng.choice([*KINDS]))

    # -- acts of skipindex -------------------------------------------------------------

    def index(self) -> None:
        self.exact = frozenset()
        super().index()

    def index_exactly(self) -> None:
        """An exact index on each column."""
        own = [one for one in self.columns if one.kind and not one.is_partition]
        table = self.open().build_indexes({"*": "exact"}, workers=1).table
        self.dropped -= self._full(table.paths)
        self.exact = frozenset(one.number for one in own)

    def _new_files(self) -> list[tuple[str, Stored]]:
        places = [self._place() for _ in range(self.rng.randrange(1, 4))]
        return [(place, self._drawn(place, is_full=True)) for place in places]

    def _arrive(
        self, mode: SaveMode, new: Sequence[tuple[str, Stored]], batch: Any = None
    ) -> None:
        """New files, as Spark writes them."""
        location = self.open().state.location
        kind = "exact" if self.exact else "minmax"

        def write(staged: str) -> int:
            for i, (place, file) in enumerate(new):
                self._put(self.folder / staged / place / f"part-{i:05}-x.parquet", file)
            (self.folder / staged / "_SUCCESS").write_bytes(b"")
            return sum(file.n for _, file in new)

        def index(files: Sequence[FileInfo]) -> tuple[Manifest, TableProperties]:
            table = table_of(location, files)
            made = index_files(table, {"*": kind}, runner=LocalRunner(1))
            layout = None if mode is SaveMode.APPEND else {"cluster_by": []}
            return made, TableProperties(layout=layout)

        arrive(location, mode, write=write, index=index, batch=batch)

    def append(self) -> None:
        """Files are added, and become visible one after the other."""
        new = self._new_files()
        bags = [bag(file) for _, file in new]
        self.truth.coming += bags
        self._arrive(SaveMode.APPEND, new)
        self.truth.come(bags)

    def append_batch(self) -> None:
        """The files of a batch of a stream are added, all at once."""
        self.n_batches += 1
        new = self._new_files()
        come = sum((bag(file) for _, file in new), Counter())
        before = self.truth.may
        self.truth.may = [*before, *(one + come for one in before)]
        self._arrive(SaveMode.APPEND, new, Batch("a stream", self.n_batches))
        self.truth.may = [one + come for one in before]

    def overwrite(self) -> None:
        """All rows are others."""
        new = self._new_files()
        rows = sum((bag(file) for _, file in new), Counter())
        self.truth.may = [*self.truth.may, rows]
        self._arrive(SaveMode.OVERWRITE, new)
        self.truth.may = [rows]

    def _wish(self) -> dict[str, Any]:
        """Columns to cluster by, and a size of files."""
        own = [one for one in self.columns if one.kind and not one.is_partition]
        names = [one.name for one in self.rng.sample(own, self.rng.choice([0, 1, 2]))]
        return {"cluster_by": names, "rows_per_file": self.rng.choice([5, 10, 40])}

    def optimize(self) -> None:
        """Files are rewritten."""
        rng = self.rng
        mode = {"mode": rng.choice(["incremental", "full"])}
        more = {
            "cube_size": rng.choice([2000, 1 << 30]),
            "in_place": rng.random() < 0.8,
        }
        optimized(self.open(), **self._wish(), **mode, **more)

    def maintain(self) -> None:
        """What is due is done, and then nothing is."""
        if self.sidecar:
            super().maintain()
            return
        self.exact = frozenset()
        table = self.open()
        record(table, condition(self.rng, self.columns))
        wish = self._wish()
        by = wish.pop("cluster_by")
        if by and self.rng.random() < 0.5:
            table.declare_layout(sx.Clustering(by=by, **wish))
        policy = {one: self.rng.random() < 0.5 for one in ("in_place", "publish")}
        with without_spark():
            maintain(table, self.rng.choice([None, 5_000, 50_000]), **policy)
            runs = iter(lambda: maintain(table, **policy), [])
            taken = [*islice(runs, _MAX_RUNS)]
        assert len(taken) < _MAX_RUNS, taken

    def vacuum(self) -> None:
        """Rewritten files are published, and files that are not needed go."""
        self.open().vacuum(retention=timedelta(0), purge=self.rng.random() < 0.3)
        self.is_whole = True

    def sweep(self) -> None:
        """Behind two vacuums no byte of an index is wrong, and none left over."""
        self.open().refresh_indexes(workers=1, repair=True)
        self.vacuum()
        self.vacuum()
        table = self.open()
        # Commits that were damaged stay as they are.
        wrong = [one for one in table.verify().damaged if not one.startswith(LOG)]
        assert not wrong, wrong
        home = _home(table)
        packs = sum(one.stat().st_size for one in _files(home / PACKS))
        # Files that are alike have packs that are alike, which have one name.
        used = {one.name: one.size for one in table.state.snapshot.manifest.packs}
        assert packs == sum(used.values()), f"{packs} bytes of packs for {used}"
        named = {one.name for one in table.state.snapshot.segments}
        assert {one.name for one in _files(home / MANIFESTS)} == named, "segments"
        assert not [*self.folder.rglob("*.hidden")], "hidden files"
        assert sorted(table.paths) == sorted(listed(self.folder)), "visible files"

    def expire(self) -> None:
        """Old commits go."""
        table = self.open().declare_retention(self.rng.choice(["0h", "1h", None]))
        expire(table.state.location)

    def declare_exclusive(self) -> None:
        """Only skipindex will write."""
        self.open().refresh_indexes(workers=1)
        self.open().declare_exclusive()
        self.is_ours = True

    def derive(self) -> None:
        """skipindex is told what the days are of."""
        assert self.derived is not None
        days, dates = self.derived
        self.open().declare_derived({days.name: f"day({dates.name})"})

    # -- faults ------------------------------------------------------------------------

    def _ours(self) -> Callable[[], None]:
        """A writer of skipindex, of which those that show files often."""
        others = {one.__name__ for one in (*self.of_others, *self.faults, self.sweep)}
        some = [name for name in self.acts if name not in others]
        often = [name for name in some if name in _SHOW]
        return self.acts[self.rng.choice([*some, *often, *often])]

    def _step(self) -> int:
        return int(30 * self.rng.random() ** 3)

    def fail(self) -> None:
        """A writer is killed, or is told of an error when a change was made."""
        act, step, after = self._ours(), self._step(), self.rng.random() < 0.5
        self.is_ours = False
        self.is_whole &= act.__name__ not in _SHOW
        if self.rng.random() < 0.7:
            with suppress(Killed), killed_at(step, after=after):
                act()
        else:
            with suppress(OSError, SkipIndexError), answer_lost_at(step):
                act()
        self.exact = frozenset()

    def meet(self) -> None:
        """Another writer acts at some step of one of ours."""
        act = self._ours()
        while act.__name__ in {"overwrite", "append_batch"}:
            act = self._ours()
        name = act.__name__
        others = [*self.of_others] if name not in _SHOW and not self.is_closed else []
        if not self.sidecar:
            others += [self.append, self.optimize]
            others += [self.overwrite] if name != "append" else []
        other = self.rng.choice([*others, self.vacuum, self.index])
        self.is_ours = False
        with suppress(CommitConflictError), another_at(self._step(), other):
            act()
        self.exact = frozenset()

    def damage(self) -> None:
        """Files of the log or of indexes are damaged or lost; every row is visible."""
        if not self.is_whole:
            return
        home = _home(self.open())
        packs = _files(home / PACKS)
        if packs and self.rng.random() < 0.4:
            path = self.rng.choice(packs)
            flip(path, self.rng.randrange(path.stat().st_size))
        else:
            DAMAGES[self.rng.choice([*DAMAGES])](home)
        self.is_ours = False
        self.exact = frozenset()


class LongFolderWorld(FolderWorld):
    """One that lives for months: its indexes are refreshed after nearly each change."""

    n_acts = 100

    @property
    def weights(self) -> Mapping[str, int]:
        files = {"add_file": 40, "overwrite_file": 5, "delete_file": 4}
        return {"refresh": 40, "index_exactly": 4, "sweep": 4, **files}

    def sweep(self) -> None:
        """Indexes also take few bytes more than those that are built at once."""
        super().sweep()
        if self.exact and not self.sidecar and len(self.open()) > _MANY:
            used = self.open().status().index_bytes
            with TemporaryDirectory() as folder:
                ours = shutil.ignore_patterns("_skipindex*")
                shutil.copytree(self.folder, Path(folder, "t"), ignore=ours)
                own, self.folder = self.folder, Path(folder, "t")
                fresh = self.open().build_indexes({"*": "exact"}, workers=1).table
                self.folder = own
            assert used <= 3 * fresh.status().index_bytes, "bytes"


def _home(table: sx.Table) -> Path:
    """The folder that has its indexes."""
    location = table.state.location
    return Path((location.sidecar or location).root)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def bag(file: Stored) -> Rows:
    """The rows of a file: what is not NULL, by the number of its column."""
    columns = file.rows | {k: [one] * file.n for k, one in file.values.items()}
    names = sorted(columns)
    return Counter(
        tuple((k, norm(v)) for k, v in zip(names, row, strict=True) if v is not None)
        for row in zip(*(columns[k] for k in names), strict=True)
    )
