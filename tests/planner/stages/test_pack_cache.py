"""What is kept of packs between plans: shared by threads, and never of another file."""

from __future__ import annotations

import gc
import os
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import skipindex as sx
from skipindex.api import set_cache_bytes
from skipindex.errors import PlanError
from skipindex.planner.stages.pack_cache import DEFAULT_SESSION, CacheSession, PackCache
from skipindex.storage.parts import ReadCount
from tests.tables import build, forget_open_packs, packs, put_all

CONDITION = "a BETWEEN 3 AND 40 AND s = 'v1'"
KINDS = ["minmax", "bit_sliced", "bitmap"]


@pytest.fixture
def table(tmp_path: Path) -> sx.Table:
    files = [
        {"a": [i, *range(50)], "s": [f"v{n % 4}" for n in range(i, i + 51)]}
        for i in range(8)
    ]
    forget_open_packs()
    return build(put_all(tmp_path, files), {"a": "bit_sliced", "s": "bitmap"})


def answer(table: sx.Table) -> tuple[object, ...]:
    plan = table.plan(CONDITION)
    return plan.paths, plan.count_bounds, plan.notes


def test_a_second_plan_reads_no_header_again(table: sx.Table) -> None:
    first, second = (table.plan(CONDITION).stages[-1].read for _ in range(2))
    assert second.bitmaps == first.bitmaps
    assert 0 < second.n_bytes < first.n_bytes


def test_threads_share_what_is_open_and_count_their_own_reads(table: sx.Table) -> None:
    expected = answer(table)
    read = table.plan(CONDITION).stages[-1].read

    def plan(_: int) -> bool:
        made = table.plan(CONDITION)
        return answer(table) == expected and made.stages[-1].read == read

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(plan, range(40)))


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


@pytest.fixture
def own_limit() -> Iterator[None]:
    """The limit of the process, put back at the end."""
    before = DEFAULT_SESSION.packs.parts.limit
    yield
    set_cache_bytes(before)


def reads(table: sx.Table) -> ReadCount:
    return table.plan(CONDITION, without="file_map").stages[-1].read


@pytest.mark.usefixtures("own_limit")
def test_a_warm_plan_reads_nothing_and_counts_the_same(table: sx.Table) -> None:
    expected = answer(table)
    set_cache_bytes(1 << 20)
    forget_open_packs()
    cold = reads(table)
    warm = reads(table)
    assert warm.cached_bytes == warm.n_bytes > 0
    record = table.plan(CONDITION, without="file_map").to_dict()["stages"][-1]
    assert record["cached_bytes"] == record["index_bytes"] == warm.n_bytes
    set_cache_bytes(0)
    assert DEFAULT_SESSION.packs.parts.n_bytes == 0
    read = reads(table)
    assert read.cached_bytes == 0
    assert read == replace(cold, cached_bytes=0), "each plan opens its indexes"
    assert answer(table) == expected


@pytest.mark.usefixtures("own_limit")
@pytest.mark.parametrize("limit", [0, 700, 3_000, 20_000])
def test_any_room_changes_no_answer(table: sx.Table, limit: int) -> None:
    expected = answer(table)
    set_cache_bytes(limit)
    for _ in range(3):
        assert answer(table) == expected
        assert DEFAULT_SESSION.packs.parts.n_bytes <= limit


@pytest.mark.usefixtures("own_limit")
def test_packs_stay_open_only_as_long_as_something_of_them_is_held(
    table: sx.Table,
) -> None:
    held = DEFAULT_SESSION.packs
    expected = answer(table)
    assert held.parts.n_bytes > 0
    assert len(held._packs) > 0
    forget_open_packs()
    assert (held.parts.n_bytes, len(held._packs)) == (0, 0)
    set_cache_bytes(0)
    assert answer(table) == expected
    gc.collect()
    assert (held.parts.n_bytes, len(held._packs)) == (0, 0)


@pytest.mark.parametrize("limit", [-1, 1.5, "256MB", None])
def test_no_number_of_bytes_is_refused(limit: Any) -> None:
    before = DEFAULT_SESSION.packs.parts.limit
    with pytest.raises(sx.PlanError, match=re.escape(repr(limit))):
        set_cache_bytes(limit)
    assert DEFAULT_SESSION.packs.parts.limit == before


def test_a_session_holds_what_its_plans_read_and_no_other(table: sx.Table) -> None:
    expected = answer(table)
    forget_open_packs()
    with CacheSession(cache_bytes=1 << 20) as session:
        plan = sx.plan_files(CONDITION, table=table, session=session)
        assert (plan.paths, plan.count_bounds) == expected[:2]
        held = session.packs.parts.n_bytes
        assert held > 0
        assert DEFAULT_SESSION.packs.parts.n_bytes == 0
        again = sx.plan_files(
            CONDITION, table=table, session=session, without="file_map"
        )
        assert again.count_bounds == expected[1]
        assert again.explain(file=table.paths[0])
        assert DEFAULT_SESSION.packs.parts.n_bytes == 0, "not by explain either"
        session.resize(held // 2)
        assert session.packs.parts.n_bytes <= held // 2
    assert session.packs.parts.n_bytes == 0
    plan = sx.plan_files(CONDITION, table=table, session=session)
    assert (plan.paths, plan.count_bounds) == expected[:2], "it only holds nothing"
    assert session.packs.parts.n_bytes == 0


@pytest.mark.parametrize("n_bytes", [-1, 1.5, "256MB"])
def test_a_session_of_no_number_of_bytes_is_refused(n_bytes: Any) -> None:
    with pytest.raises(PlanError, match=re.escape(repr(n_bytes))):
        CacheSession(n_bytes)
    with pytest.raises(PlanError, match=re.escape(repr(n_bytes))):
        CacheSession().resize(n_bytes)


def test_the_environment_sets_the_limit(
    table: sx.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKIPINDEX_CACHE_BYTES", "1234")
    assert PackCache().parts.limit == 1234
    for text in ("much", "-5", "1e6", ""):
        monkeypatch.setenv("SKIPINDEX_CACHE_BYTES", text)
        monkeypatch.setattr(DEFAULT_SESSION.packs, "_parts", None)
        with pytest.raises(sx.PlanError, match="SKIPINDEX_CACHE_BYTES"):
            table.plan(CONDITION)


@pytest.mark.parametrize(
    ("memory", "limit"),
    [(1 << 30, 256 << 20), (8 << 30, 512 << 20), (1 << 40, 1 << 30)],
)
def test_the_machine_sets_the_limit(
    monkeypatch: pytest.MonkeyPatch, memory: int, limit: int
) -> None:
    monkeypatch.delenv("SKIPINDEX_CACHE_BYTES", raising=False)
    known = {"SC_PHYS_PAGES": memory >> 12, "SC_PAGE_SIZE": 1 << 12}
    monkeypatch.setattr(os, "sysconf", known.__getitem__)
    assert PackCache().parts.limit == limit


def test_a_machine_that_does_not_tell_its_memory_has_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SKIPINDEX_CACHE_BYTES", raising=False)
    monkeypatch.delattr(os, "sysconf")
    assert PackCache().parts.limit == 256 << 20


def test_what_is_kept_is_what_was_written(table: sx.Table) -> None:
    """No question changes a bitmap that others share."""
    questions = (
        "a >= 3",
        "a < 17 OR a > 40",
        "a IN (1, 5, 6, 30)",
        "a = 31",
        "a IS NULL OR s IS NOT NULL",
        "NOT (a BETWEEN 7 AND 9) AND s <> 'v2'",
    )

    def counts() -> list[tuple[int, int | None]]:
        return [table.plan(q, kinds=KINDS).count_bounds for q in questions]

    forget_open_packs()
    first = counts()
    assert [counts() for _ in range(2)] == [first] * 2
    forget_open_packs()
    assert counts() == first


def test_a_damaged_pack_leaves_the_others_open(tmp_path: Path) -> None:
    """One that nobody repairs costs no later plan what is kept of the others."""
    files = [{"a": [i, 50 + i], "s": ["x", "y"]} for i in range(8)]
    table = build(put_all(tmp_path, files), {"a": "bit_sliced", "s": "bitmap"})
    condition = "a BETWEEN 3 AND 50 AND s = 'y'"
    whole = table.plan(condition, kinds=KINDS)
    damaged, *others = packs(tmp_path)
    assert others
    raw = bytearray(damaged.read_bytes())
    for at in range(20, len(raw) // 2, 7):
        raw[at] ^= 0xFF
    damaged.write_bytes(bytes(raw))
    forget_open_packs()
    first, second = (table.plan(condition, kinds=KINDS) for _ in range(2))
    assert first.notes == second.notes
    assert first.notes
    assert set(whole.paths) < set(first.paths) == set(second.paths)
    assert len(DEFAULT_SESSION.packs._packs) == len(others)
    read = second.stages[-1].read
    assert read.cached_bytes == read.n_bytes > 0
