"""Plans that are stopped at any check, and the plans that come after them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import skipindex as sx
from skipindex.indexes.kinds.bitmap import BitmapIndex
from skipindex.storage.deadline import (
    Deadline,
    PlanCancelledError,
    carried,
    check,
    checked,
    running_until,
    seconds_left,
)
from tests.tables import build, forget_open_packs, put_all

CONDITIONS = {
    "range": "a BETWEEN 3 AND 40",
    "and": "a < 30 AND s = 'v3'",
    "or": "s IN ('v1', 'v77') OR a IN (5, 6, 700)",
    "function": "upper(s) = 'V2' AND a % 7 = 3",
    "case": "CASE WHEN a = 3 THEN 1 WHEN a = 5 THEN 2 END = 2",
    "filter": "t = 'w5' AND a > 2",
    "unknown": "a = 5 AND rand() < 0.5",
}


class Counted(Deadline):
    """Is over at a check; counts those that were asked."""

    def __init__(self, over_at: int | None = None) -> None:
        super().__init__()
        self.n_checks = 0
        self.over_at = over_at

    def check(self) -> None:
        self.n_checks += 1
        if self.n_checks == self.over_at:
            self.cancel()
        super().check()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(3)
    files = [
        {
            "a": rng.integers(i, i + 40, 12).tolist(),
            "s": [f"v{n % 5 + i}" for n in range(12)],
            "t": [f"w{n * (i + 1)}" for n in range(12)],
        }
        for i in range(3)
    ]
    path = put_all(tmp_path_factory.mktemp("table"), files)
    build(path, {"a": "bitmap", "s": "bitmap", "t": "bloom"})
    return path


def told(table: Any, condition: str) -> dict[str, Any]:
    """The files and the counts of a plan that is made from the beginning."""
    plan = sx.plan_files(condition, table=table)
    counts = plan.row_counts
    bounds = counts.lower.tolist(), counts.upper.tolist()
    return {"kept": plan.paths, "counts": bounds, "notes": plan.notes}


EVERY = [11, pytest.param(1, marks=pytest.mark.slow)]


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("name", CONDITIONS)
def test_a_plan_that_is_stopped_at_any_check_leaves_nothing_behind(
    folder: Path, name: str, every: int
) -> None:
    """Neither in the table that it opens, nor in what plans share."""
    expected = told(folder, CONDITIONS[name])
    forget_open_packs()
    all_checks = Counted()
    with running_until(all_checks):
        assert told(folder, CONDITIONS[name]) == expected
    assert all_checks.n_checks > 20
    table = sx.open_table(folder)
    for n in range(1, all_checks.n_checks + 1, every):
        forget_open_packs()
        asked = folder if n % 2 else table
        stopped = Counted(over_at=n)
        with running_until(stopped):
            try:
                found = told(asked, CONDITIONS[name])
            except PlanCancelledError:
                assert stopped.n_checks == n  # it ends at once
            else:
                assert stopped.n_checks < n
                assert found == expected
        assert told(asked, CONDITIONS[name]) == expected, n


@pytest.mark.parametrize("name", CONDITIONS)
def test_counts_that_were_stopped_are_counted_later(folder: Path, name: str) -> None:
    expected = told(folder, CONDITIONS[name])
    n = 1
    while True:
        forget_open_packs()
        plan = sx.plan_files(CONDITIONS[name], table=folder)
        stopped = Counted(over_at=n)
        with running_until(stopped), contextlib.suppress(PlanCancelledError):
            _ = plan.row_counts, plan.notes
        counts = plan.row_counts
        assert (counts.lower.tolist(), counts.upper.tolist()) == expected["counts"]
        assert plan.notes == expected["notes"]
        if stopped.n_checks < n:
            break
        n += 1


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The files that were asked, of a table where the tenth one cancels the plan."""
    put_all(tmp_path, [{"a": [1, 5, 900]} for _ in range(200)])
    build(tmp_path, {"a": "bitmap"})
    asked: list[int] = []
    probe = BitmapIndex.probe

    def counting(self: BitmapIndex, atom: Any) -> Any:
        asked.append(len(asked))
        return probe(self, atom)

    monkeypatch.setattr(BitmapIndex, "probe", counting)
    yield asked
    assert asked


def test_a_plan_over_many_files_asks_no_file_after_it_was_cancelled(
    slow: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan() -> list[str]:
        return sx.plan_files("a = 7", table=tmp_path, kinds=["bitmap"]).paths

    assert plan() == []
    assert len(slow) == 200
    slow.clear()
    deadline = Deadline()
    opened = BitmapIndex.probe

    def cancelling(self: BitmapIndex, atom: Any) -> Any:
        if len(slow) == 9:
            deadline.cancel()
        return opened(self, atom)

    monkeypatch.setattr(BitmapIndex, "probe", cancelling)
    with running_until(deadline), pytest.raises(PlanCancelledError, match="cancelled"):
        plan()
    assert len(slow) == 10
    slow.clear()
    assert plan() == []
    assert len(slow) == 200


def test_a_function_of_many_values_stops_within_a_file(tmp_path: Path) -> None:
    """Of 5,000 values in one file few are tested after the plan was cancelled."""
    put_all(tmp_path, [{"s": [f"v{n}" for n in range(5000)]}])
    build(tmp_path, {"s": "bitmap"})
    whole = Counted()
    with running_until(whole):
        sx.plan_files("reverse(s) = '17v'", table=tmp_path, kinds=["bitmap"])
    assert whole.n_checks > 5000 // 64
    half = Counted(over_at=whole.n_checks - 40)
    with running_until(half), pytest.raises(PlanCancelledError):
        sx.plan_files("reverse(s) = '17v'", table=tmp_path, kinds=["bitmap"])


def test_a_stopped_read_is_no_damage(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a kind raises is noted and worked around; a stopped plan is not."""

    def stopped(*_: Any, **__: Any) -> NoReturn:
        raise PlanCancelledError("within a read")

    forget_open_packs()
    monkeypatch.setattr(BitmapIndex, "probe", stopped)
    with pytest.raises(PlanCancelledError):
        sx.plan_files("a % 7 = 3", table=folder, kinds=["bitmap"])
    assert not issubclass(PlanCancelledError, Exception)


def test_the_time_that_is_left_is_that_of_the_first_deadline() -> None:
    assert seconds_left() is None
    with running_until(Deadline(seconds=100)), running_until(Deadline(seconds=1000)):
        assert 0 < (seconds_left() or 0) <= 100
        with running_until(Deadline()):
            assert (seconds_left() or 0) <= 100
        with running_until(Deadline(seconds=0)):
            assert seconds_left() == 0.0


def test_threads_of_a_pool_stop_with_the_plan() -> None:
    deadline = Deadline()
    begun = threading.Barrier(3)
    cancelled = threading.Event()

    def work(_: int) -> str:
        if not cancelled.is_set():
            begun.wait()
        cancelled.wait()
        check()
        return "done"

    with ThreadPoolExecutor(2) as pool:
        with running_until(deadline):
            futures = [pool.submit(carried(work), i) for i in range(20)]
        begun.wait()
        deadline.cancel()
        cancelled.set()
        assert all(isinstance(f.exception(), PlanCancelledError) for f in futures)
        assert pool.submit(work, 0).result() == "done"  # no thread remembers it


def test_every_deadline_around_the_work_counts() -> None:
    outer, inner = Deadline(), Deadline()
    with running_until(outer):
        with running_until(inner):
            check()
            outer.cancel()
            with pytest.raises(PlanCancelledError):
                check()
        with pytest.raises(PlanCancelledError):
            list(checked([1]))
    check()
    assert list(checked([1, 2])) == [1, 2]
    assert not inner.is_over


def test_what_is_over_stays_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [50.0]
    monkeypatch.setattr("skipindex.storage.deadline.time.monotonic", lambda: now[0])
    deadline = Deadline(seconds=3)
    assert deadline.seconds_left == 3
    now[0] = 52.9
    deadline.check()
    now[0] = 53.0
    with pytest.raises(PlanCancelledError, match="longer than it may"):
        deadline.check()
    now[0] = 0.0
    assert deadline.is_over
    assert deadline.seconds_left == 0


def test_two_plans_of_two_threads_do_not_stop_each_other(folder: Path) -> None:
    expected = told(folder, CONDITIONS["or"])

    def plan(n: int) -> object:
        with running_until(Counted(over_at=30 if n % 2 else None)):
            try:
                return told(folder, CONDITIONS["or"])
            except PlanCancelledError:
                return "stopped"

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(plan, range(12)))
    assert found == [expected, "stopped"] * 6
