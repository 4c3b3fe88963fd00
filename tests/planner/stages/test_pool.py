"""Rows looked at by worker processes: as one process would, or by that one process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import loky
import numpy as np
import pytest

import skipindex as sx
from skipindex.indexes import IndexType, index_types, registry
from skipindex.indexes.kinds.bitmap import Bitmap, BitmapIndex
from skipindex.indexes.positional import PositionalKind
from skipindex.planner.stages import pool as pool_module
from skipindex.planner.stages.pack_cache import DEFAULT_SESSION
from tests.tables import build, edit_blobs, forget_open_packs, packs, put_all

KINDS = ("minmax", "bitmap", "bit_sliced")
CONDITIONS: Mapping[str, Any] = {
    "and": "a BETWEEN 3 AND 40 AND s = 'v1'",
    "or": "a = 17 AND (s = 'v2' OR k > 150)",
    "not": "NOT (a > 30 OR s IN ('v1', 'v3')) AND k IS NOT NULL",
    "alone": "k = 33",
    "computed": "length(s) = 3 AND a < 10",
    "unknown": "a = 5 AND rand() < 0.5",
    "integers": sx.col("k").isin(np.arange(0, 2000, 7)) & (sx.col("a") < 9),
}


@pytest.fixture(scope="module", autouse=True)
def _workers() -> Iterator[None]:
    yield
    loky.get_reusable_executor().shutdown(wait=True)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "POOL_SECONDS", 0.0)


@pytest.fixture
def table(tmp_path: Path) -> sx.Table:
    rng = np.random.default_rng(1)
    files = [
        {
            "a": [0, 99, *rng.integers(0, 99, 60).tolist()],
            "s": [f"v{n % 5 * (n % 7)}" for n in range(i, i + 62)],
            "k": [None, *rng.integers(0, 200, 61).tolist()],
        }
        for i in range(30)
    ]
    put_all(tmp_path, files)
    return build(tmp_path, {"a": "bit_sliced", "s": "bitmap", "k": "bit_sliced"})


def told(table: sx.Table, predicate: Any, workers: int) -> dict[str, Any]:
    """All that a plan says, but how long it took and what was in memory."""
    forget_open_packs()
    plan = table.plan(predicate, kinds=KINDS, workers=workers)
    record = plan.to_dict()
    record["counts"] = plan.row_counts.lower.tolist(), plan.row_counts.upper.tolist()
    for stage in record["stages"]:
        for name in ("seconds", "cached_bytes", "index_bytes"):
            del stage[name]
    return record


def forbidden(*_: Any, **__: Any) -> NoReturn:
    raise OSError("no more processes")


@pytest.mark.parametrize("name", CONDITIONS)
def test_workers_find_what_one_process_finds(table: sx.Table, name: str) -> None:
    alone = told(table, CONDITIONS[name], workers=1)
    together = told(table, CONDITIONS[name], workers=2)
    assert together == alone
    assert not alone["notes"]
    assert alone["stages"][-1]["bitmaps"] > 0


def test_what_workers_read_is_counted(table: sx.Table) -> None:
    forget_open_packs()
    plan = table.plan(CONDITIONS["and"], kinds=KINDS, workers=2)
    assert plan.stages[-1].read.n_bytes > 0
    assert not DEFAULT_SESSION.packs._indexes, "this process opened none"


def test_damage_is_noted_and_the_files_are_kept(
    table: sx.Table, tmp_path: Path
) -> None:
    def scramble(blob: bytearray) -> None:
        for at in range(20, len(blob) // 2, 700):
            blob[at] ^= 0xFF

    edit_blobs(tmp_path, scramble)
    table = sx.open_table(tmp_path)
    alone, together = (told(table, CONDITIONS["and"], workers=n) for n in (1, 2))
    assert together == alone
    assert alone["notes"]


def test_a_pack_that_is_gone_is_noted_once(table: sx.Table, tmp_path: Path) -> None:
    packs(tmp_path)[0].unlink()
    alone, together = (told(table, CONDITIONS["and"], workers=n) for n in (1, 2))
    assert together == alone
    assert any("pack" in note for note in alone["notes"])


def test_a_worker_that_dies_costs_time_alone(
    table: sx.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = told(table, CONDITIONS["and"], workers=1)
    monkeypatch.setattr(pool_module, "look", lambda _: os._exit(3))
    together = told(table, CONDITIONS["and"], workers=2)
    (note,) = together.pop("notes")
    assert "1 times: one process looked at the rows of all files" in note
    assert not alone.pop("notes")
    assert together == alone
    monkeypatch.undo()
    monkeypatch.setattr(pool_module, "POOL_SECONDS", 0.0)
    assert not told(table, CONDITIONS["and"], workers=2)["notes"], "a new pool"


def test_without_workers_one_process_does_it(
    table: sx.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loky, "get_reusable_executor", forbidden)
    alone = told(table, CONDITIONS["or"], workers=1)
    assert not alone.pop("notes"), "it asked for no pool"
    together = told(table, CONDITIONS["or"], workers=2)
    (note,) = together.pop("notes")
    assert "no more processes" in note
    assert together == alone


def test_few_files_start_no_workers(
    table: sx.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loky, "get_reusable_executor", forbidden)
    monkeypatch.setattr(pool_module, "POOL_SECONDS", 3.0)
    assert not told(table, CONDITIONS["and"], workers=2)["notes"]


class OwnKind(PositionalKind):
    """A kind that this process alone knows by that name."""

    __slots__ = ()


def test_a_kind_of_this_process_alone_stays_here(
    table: sx.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = told(table, CONDITIONS["and"], workers=1)
    own = OwnKind(name="bitmap", version=1, spec=Bitmap, index=BitmapIndex)
    mine: Mapping[str, IndexType] = MappingProxyType({**index_types(), "bitmap": own})
    monkeypatch.setattr(registry, "index_types", lambda: mine)
    together = told(table, CONDITIONS["and"], workers=2)
    (note,) = together.pop("notes")
    assert "UnknownIndexError" in note
    assert not alone.pop("notes")
    assert together == alone


@pytest.mark.parametrize("workers", [0, -1])
def test_no_workers_are_refused(table: sx.Table, workers: int) -> None:
    with pytest.raises(sx.PlanError, match="workers"):
        table.plan("a = 1", workers=workers)
