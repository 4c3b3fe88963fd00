"""A table that lives for months: a build after every append, under few descriptors.

Files are appended, now and then deleted, overwritten or renamed, and each time the
indexes are refreshed.  All the while every plan is compared with the values that the
files have; the number of packs, of segments of the manifest and of descriptors, and the
bytes stored stay bounded.
The limit of descriptors is 256.
"""

from __future__ import annotations

import random
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final

import skipindex as sx
from skipindex.build.tiers import CROWD
from skipindex.log.compaction import FANOUT
from skipindex.rewrite.vacuum import vacuum
from skipindex.storage.file_system.descriptors import MAX_OPEN
from skipindex.storage.file_system.names import MANIFESTS
from tests.heavy.catalogue import Told
from tests.tables import forget_open_packs, put

LIMIT: Final = 256
MAX_PACKS: Final = 6 * (CROWD - 1)
ROWS: Final = 40
ASKED: Final[Any] = {"x": ["bitmap", "bloom"], "s": "bit_sliced"}


@dataclass
class Life:
    """A table, and what its files hold.

    Args:
        folder: of the table.
        random: what is drawn from.
    """

    folder: Path
    random: random.Random
    files: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    n_written: int = 0
    most_packs: int = 0
    most_segments: int = 0
    most_descriptors: int = 0
    n_plans: int = 0

    def write(self, name: str) -> None:
        """Write a file, over another one perhaps."""
        self.n_written += 1
        values = {
            "x": [self.random.randrange(100_000) for _ in range(ROWS)],
            "s": [f"v{self.random.randrange(3000)}" for _ in range(ROWS)],
        }
        put(self.folder / name, values)
        self.files[name] = values

    def step(self, i: int) -> None:
        """A day: a file more, and sometimes another change."""
        self.write(f"{i:05}.parquet")
        name = self.random.choice(sorted(self.files))
        match self.random.randrange(12):
            case 0 if len(self.files) > 1:  # a folder without files is no table
                (self.folder / name).unlink()
                del self.files[name]
            case 1:
                self.write(name)
            case 2:
                (self.folder / name).rename(self.folder / f"r{i}.parquet")
                self.files[f"r{i}.parquet"] = self.files.pop(name)
        if i == 0:
            table = sx.build_indexes(self.folder, ASKED, workers=1).table
        elif i % 2:
            table = sx.build_indexes(self.folder, workers=1).table
        else:
            table = sx.open_table(self.folder).refresh_indexes(workers=1).table
        manifest = table.state.snapshot.manifest
        assert sorted(manifest.paths) == sorted(self.files)
        self.most_packs = max(self.most_packs, len(manifest.packs))
        assert self.most_packs <= MAX_PACKS
        n_segments = len(table.state.snapshot.segments)
        assert n_segments <= FANOUT * len(f"{len(manifest):o}")
        self.most_segments = max(self.most_segments, n_segments)

    def ask(self, table: sx.Table, x: int) -> None:
        """Two plans, exactly as the values say."""
        two = (
            (f"x = {x}", lambda a, _: a == x),
            (
                f"x > {x} AND s = 'v{x % 3000}'",
                lambda a, b: a > x and b == f"v{x % 3000}",
            ),
        )
        for text, matches in two:
            plan = table.plan(text)
            counts = {
                name: sum(map(matches, values["x"], values["s"]))
                for name, values in self.files.items()
            }
            assert plan.paths == sorted(name for name, n in counts.items() if n), text
            assert plan.count_bounds == (sum(counts.values()),) * 2, text
            assert not plan.notes, plan.notes
            self.n_plans += 1
        n = len(list(Path("/proc/self/fd").iterdir()))
        self.most_descriptors = max(self.most_descriptors, n)

    def check(self, *, purge_old: bool) -> None:
        """Ask for something that is there, and for something that may not be."""
        table = sx.open_table(self.folder)
        some = self.random.choice(sorted(self.files))
        self.ask(table, self.random.choice(self.files[some]["x"]))
        self.ask(table, self.random.randrange(100_000))
        if purge_old:
            vacuum(self.folder, retention=timedelta(0))


def index_bytes(table: sx.Table) -> int:
    """The size of the packs that are in use."""
    return table.status().index_bytes


def seconds_of(table: sx.Table, text: str) -> tuple[float, float]:
    """What a first plan and a second one take."""
    forget_open_packs()
    found = []
    for _ in range(2):
        began = time.perf_counter()
        table.plan(text)
        found.append(time.perf_counter() - began)
    return found[0], found[1]


def live(folder: Path, n_builds: int, seed: int) -> None:
    """Live in a folder for so many builds, and print what it was like."""
    life = Life(folder / "t", random.Random(seed))
    began = time.perf_counter()
    for i in range(n_builds):
        life.step(i)
        if i % 10 == 0:
            life.check(purge_old=i % 100 == 0)
    seconds = time.perf_counter() - began
    vacuum(life.folder, retention=timedelta(0))
    table = sx.open_table(life.folder)
    report = table.verify()
    assert report.ok, report
    packs = list((life.folder / "_skipindex" / "packs").iterdir())
    stored = sum(path.stat().st_size for path in packs)
    manifests = list((life.folder / MANIFESTS).iterdir())
    named = {segment.name for segment in table.state.snapshot.segments}
    assert {path.name for path in manifests} == named
    once = folder / "once"
    shutil.copytree(life.folder, once, ignore=shutil.ignore_patterns("_skipindex"))
    fresh = sx.build_indexes(once, ASKED, workers=1).table
    # Below half full of what is in use, a pack is written anew.
    assert stored == index_bytes(table) <= 3 * index_bytes(fresh)
    print(
        f"{n_builds} builds in {seconds:.0f} s, {life.n_plans} plans right; "
        f"{len(table)} files, {len(packs)} packs (never more than "
        f"{life.most_packs}), {stored:,} bytes of them (built at once: "
        f"{index_bytes(fresh):,}); {len(manifests)} segments (never more than "
        f"{life.most_segments}), {sum(p.stat().st_size for p in manifests):,} bytes; "
        f"at most {life.most_descriptors} descriptors of "
        f"{LIMIT}, {MAX_OPEN} of them ours"
    )
    for name, mine in (("as it lived", table), ("built at once", fresh)):
        first, second = seconds_of(mine, "x = 77 AND s = 'v5'")
        print(f"{name}: first plan {1e3 * first:.1f} ms, second {1e3 * second:.1f} ms")


def cases(seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    """A life of a hundred builds; a part is another number of them."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, hard))
    n_builds = int(parts[0]) if parts else 100
    for one in count(seed + first):
        problem = ""
        with tempfile.TemporaryDirectory() as work:
            try:
                live(Path(work), n_builds, one)
            except Exception as error:  # noqa: BLE001 (told, whatever it is)
                problem = f"{type(error).__name__}: {error}"
        yield Told(n_builds, problem, f"--part={n_builds} --only={one - seed}")
