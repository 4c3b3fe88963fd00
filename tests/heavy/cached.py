"""Plans with a cache on disk that is damaged, evicted, killed in, and of old tables."""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Final

import skipindex as sx
from skipindex.api import set_cache_dir
from skipindex.planner.stages.pack_cache import CacheSession
from tests.heavy.catalogue import Told, check_parts
from tests.tables import build, put_all

_N_ACTS: Final = 30
"""Of a case."""
_LIMITS: Final = (1, 20_000, 200_000, 1 << 30)
"""Bytes of the cache."""


class _Cached:
    """A table, its cache, and what befalls them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.draw = random.Random(seed)
        self.table, self.cache = folder / "t", folder / "cache"
        self.limit = _LIMITS[-1]
        self.rebuilt()

    def rebuilt(self) -> None:
        """Other rows at the same place, and other indexes."""
        shutil.rmtree(self.table, ignore_errors=True)
        self.table.mkdir()
        n, span = self.draw.randrange(1, 3000), self.draw.choice([5, 500, 10**6])
        files = [
            {
                "a": [self.draw.randrange(span) for _ in range(n)],
                "s": [f"v{self.draw.randrange(9)}" for _ in range(n)],
            }
            for _ in range(self.draw.randrange(1, 6))
        ]
        self.values = files[0]["a"]
        kinds = self.draw.choice(["exact", "bitmap", "bit_sliced", "bloom"])
        build(put_all(self.table, files), {"a": kinds, "s": "exact"})

    def limited(self) -> None:
        """Another number of bytes."""
        self.limit = self.draw.choice(_LIMITS)

    def changed(self) -> None:
        """A file with other bytes, fewer, more, or those of another one."""
        files = sorted(self.cache.iterdir()) if self.cache.is_dir() else []
        if not files:
            return
        path = self.draw.choice(files)
        raw = bytearray(path.read_bytes()) or bytearray(9)
        at, n = self.draw.randrange(len(raw)), self.draw.choice([1, 9, 5000])
        match self.draw.randrange(6):
            case 0:
                raw[at] ^= 1 << self.draw.randrange(8)
            case 1:
                del raw[at:]
            case 2:
                raw[at : at + n] = bytes(len(raw[at : at + n]))
            case 3:
                raw[at:at] = self.draw.randbytes(n)
            case 4:
                raw = bytearray(self.draw.choice(files).read_bytes())
            case _:
                moved = raw[at // 4096 * 4096 :][:4096]
                raw[: len(moved)] = moved
        path.write_bytes(raw)

    def deleted(self) -> None:
        """The folder, as by a user who needs space."""
        shutil.rmtree(self.cache, ignore_errors=True)

    def killed(self) -> None:
        """A process that plans, and is killed after a while."""
        child = os.fork()
        if not child:
            try:
                set_cache_dir(self.cache, n_bytes=self.limit)
                while True:
                    self.plan(self.condition())
                    self.deleted()
            finally:
                os._exit(0)
        time.sleep(self.draw.random() * 0.05)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    def condition(self) -> str:
        value = self.draw.choice([*self.values[:20], 3])
        forms = (f"a = {value}", f"a <= {value} AND s = 'v3'", f"a IN ({value}, 7)")
        return self.draw.choice(forms)

    def plan(self, where: str) -> tuple[object, ...]:
        """What a process that has nothing in memory plans."""
        with CacheSession() as session:
            plan = sx.open_table(self.table).plan(where, session=session)
            return plan.paths, plan.count_bounds, plan.notes

    def failure(self) -> str:
        """What is wrong with a plan, by the same plan without a cache; or nothing."""
        where = self.condition()
        set_cache_dir(self.cache, n_bytes=self.limit)
        found = self.plan(where)
        set_cache_dir(None)
        expected = self.plan(where)
        return "" if found == expected else f"{where}: {found}, and not {expected}"


_ACTS: Final[Sequence[Callable[[_Cached], None]]] = (
    *(_Cached.changed,) * 5,
    *(_Cached.killed,) * 2,
    *(_Cached.rebuilt, _Cached.limited, _Cached.deleted),
)


def cases(seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    """A random history of a cache, with plans after each act."""
    check_parts(parts)
    for case in count(first):
        with tempfile.TemporaryDirectory() as folder:
            cached = _Cached(Path(folder), seed * 1_000_003 + case)
            acts, failure, n = [], "", 0
            for _ in range(_N_ACTS):
                act = cached.draw.choice(_ACTS)
                acts.append(act.__name__)
                act(cached)
                for _ in range(3):
                    failure, n = failure or cached.failure(), n + 1
                if failure:
                    failure = f"{', '.join(acts)}; {failure}"
                    break
            yield Told(n, failure)
