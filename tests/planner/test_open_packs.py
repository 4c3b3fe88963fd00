"""What is kept of packs between plans: shared by threads, and never of another file."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import skipindex as sx
from skipindex.planner import _packs
from skipindex.planner._packs import OPENED
from tests.tables import build, forget_open_packs, packs, put_all

CONDITION = "a BETWEEN 3 AND 40 AND s = 'v1'"


@pytest.fixture
def table(tmp_path: Path) -> sx.Table:
    files = [
        {"a": [i, *range(50)], "s": [f"v{n % 4}" for n in range(i, i + 51)]}
        for i in range(8)
    ]
    forget_open_packs()
    return build(put_all(tmp_path, files), {"a": "bit_sliced", "s": "bitmap"})


def answer(table: sx.Table) -> tuple[object, ...]:
    plan = table.plan_files(CONDITION)
    return plan.paths, plan.count_bounds, plan.notes


def test_a_second_plan_reads_no_header_again(table: sx.Table) -> None:
    first, second = (table.plan_files(CONDITION).stages[-1].read for _ in range(2))
    assert second.bitmaps == first.bitmaps
    assert 0 < second.n_bytes < first.n_bytes


def test_threads_share_what_is_open_and_count_their_own_reads(table: sx.Table) -> None:
    expected = answer(table)
    read = table.plan_files(CONDITION).stages[-1].read

    def plan(_: int) -> bool:
        made = table.plan_files(CONDITION)
        return answer(table) == expected and made.stages[-1].read == read

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(plan, range(40)))


def test_little_room_changes_no_answer(
    table: sx.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = answer(table)
    forget_open_packs()
    for name in ("MAX_PACKS", "MAX_INDEXES", "MAX_PACK_INDEXES"):
        monkeypatch.setattr(_packs, name, 2)
    assert [answer(table) for _ in range(3)] == [expected] * 3
    assert len(OPENED._indexes) <= 2
    assert len(OPENED._packs) <= 2
    assert len(OPENED._pack_indexes) <= 2


def test_a_pack_that_was_replaced_is_opened_anew(
    table: sx.Table, tmp_path: Path
) -> None:
    """By another one of the same name: its directory is not the one that is kept."""
    assert not answer(table)[2]
    names = packs(tmp_path)
    for mine, theirs in zip(names[1:], names, strict=False):
        mine.unlink()
        shutil.copy(theirs, mine)
    paths, _, notes = answer(table)
    assert paths == table.paths
    assert notes
