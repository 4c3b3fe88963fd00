"""The policy by which builds merge packs: few of them, and each byte seldom copied."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.build.tiers import (
    CROWD,
    MAX_BYTES,
    MAX_FILES,
    crowded,
    is_small,
)
from skipindex.storage.blobs import PackInfo

N_TIERS = 6


class Simulated:
    """Packs as numbers of files and bytes."""

    def __init__(self) -> None:
        self.packs: list[tuple[PackInfo, int]] = []
        self.written = self.copied = 0
        self._names = count()

    def add(self, n_files: int, n_bytes: int) -> None:
        self.packs.append((PackInfo(str(next(self._names)), n_bytes, ()), n_files))
        self.written += n_bytes
        while found := self._crowded():
            self._merge(found)

    def _crowded(self) -> set[int]:
        packs, n_files = zip(*self.packs, strict=True)
        return crowded(packs, n_files, alike=[0] * len(packs))

    def _merge(self, found: set[int]) -> None:
        mine = [self.packs[i] for i in sorted(found)]
        before = len(self.packs)
        self.packs = [p for i, p in enumerate(self.packs) if i not in found]
        files = size = 0
        for pack, n_files in mine:
            files, size = files + n_files, size + pack.size
            self.copied += pack.size
            if files >= MAX_FILES or size >= MAX_BYTES:
                self._close(files, size)
                files = size = 0
        if files:
            self._close(files, size)
        assert len(self.packs) < before, "every merge makes packs fewer"

    def _close(self, files: int, size: int) -> None:
        self.packs.append((PackInfo(str(next(self._names)), size, ()), files))

    def small(self) -> int:
        return sum(is_small(n, p.size, MAX_FILES, MAX_BYTES) for p, n in self.packs)


@pytest.mark.parametrize("n_bytes", [1, 1 << 20, 40 << 20])
def test_packs_of_many_appends_are_few(n_bytes: int) -> None:
    simulated = Simulated()
    for _ in range(2_500):
        simulated.add(1, n_bytes)
        assert simulated.small() <= N_TIERS * (CROWD - 1)
    assert simulated.copied <= N_TIERS * simulated.written
    full = 2 * (2_500 / MAX_FILES + simulated.written / MAX_BYTES) + 2
    assert len(simulated.packs) - simulated.small() <= full


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(1, 64 << 20)), max_size=100))
def test_packs_of_all_sizes_are_few(sizes: list[tuple[int, int]]) -> None:
    simulated = Simulated()
    for n_files, n_bytes in sizes:
        simulated.add(n_files, n_bytes)
        assert simulated.small() <= N_TIERS * (CROWD - 1)
    assert simulated.copied <= 2 * N_TIERS * max(1, simulated.written)


def test_only_packs_of_the_same_indexes_are_merged() -> None:
    packs = [PackInfo(str(i), 100, ()) for i in range(2 * CROWD)]
    files = [1] * len(packs)
    kinds = [i % 2 for i in range(len(packs))]
    found = crowded(packs, files, kinds)
    assert found in ({*range(0, len(packs), 2)}, {*range(1, len(packs), 2)})
    assert not crowded(packs, files, list(range(len(packs))))
