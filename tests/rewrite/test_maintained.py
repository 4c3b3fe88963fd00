"""Lives with ``maintain`` among the writers: it is killed, and another runs at once."""

from __future__ import annotations

import itertools
import random
import shutil
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.api.maintenance import steps
from skipindex.api.maintenance.policy import Budget, Policy
from skipindex.api.maintenance.run import maintain_all
from skipindex.build.runners import LocalRunner
from skipindex.rewrite.optimize import optimize_files
from skipindex.spark.writers import optimize as spark_optimize
from skipindex.table import queries
from skipindex.table.queries import Recording
from tests.rewrite.arrow_writer import arrow_writer
from tests.rewrite.killing import Killed, killed_at
from tests.tables import build, put

POLICY = {"least_queries": 5, "pays": 0.0, "max_bytes_ratio": 100.0}


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are rewritten by pyarrow, and few packs are many."""

    def optimize(_: Any, state: Any, asked: Any, **__: Any) -> Any:
        writer = arrow_writer(sx.Table(state))
        return optimize_files(state, asked, writer=writer, runner=LocalRunner(1))

    monkeypatch.setattr(spark_optimize, "optimize", optimize)
    monkeypatch.setattr(steps, "CROWD", 2)


def maintain(folder: Path) -> list[str]:
    """One run, which may cluster; the steps that it took."""
    reports = maintain_all(
        [sx.open_table(folder).state],
        Policy.of(POLICY),
        Budget.of(None),
        dry_run=False,
        session=lambda: None,
        workers=1,
    )
    (report,) = reports.values()
    return [step.step for step in report.steps if step.done]


def rows(n: int, first: int) -> dict[str, list[int]]:
    ids = range(first, first + n)
    return {
        "a": [i * 7919 % 101 for i in ids],
        "b": [i * 104729 % 97 for i in ids],
        "id": list(ids),
    }


def begin(folder: Path) -> None:
    """A table with a layout, queries, files without an index, and small packs."""
    for i in range(3):
        put(folder / f"{i}.parquet", rows(20, 20 * i))
    table = build(folder, {"a": "bitmap"})
    table = table.declare_layout(sx.Clustering(by=["a", "b"], rows_per_file=20))
    put(folder / "3.parquet", rows(20, 60))
    table.refresh_indexes(workers=1)
    put(folder / "4.parquet", rows(20, 80))
    for i in range(10):
        Recording("table").add(
            table.state.location,
            f"b BETWEEN {i} AND {i + 3}",
            zone=None,
            files=5,
            read=5,
            n_bytes=9,
            seconds=0.1,
        )
    queries.flush()


def ids(folder: Path) -> Counter[int]:
    """The rows that a reader of commits has."""
    table = sx.open_table(folder)
    found: Counter[int] = Counter()
    for path in table.paths:
        found.update(pq.ParquetFile(folder / path).read(["id"])["id"].to_pylist())
    plan = table.plan("b = 3")
    kept = {i for i in found if i * 104729 % 97 == 3}
    assert set(plan.to_arrow().to_table()["id"].to_pylist()) == kept
    return found


@pytest.mark.parametrize("every", [20, pytest.param(1, marks=pytest.mark.slow)])
def test_a_run_that_is_killed_loses_no_row_and_the_next_one_ends(
    tmp_path: Path, every: int
) -> None:
    begin(tmp_path / "t")
    wanted = ids(tmp_path / "t")
    copy, is_dead, step = tmp_path / "copy", True, 0
    while is_dead:
        for after in (False, True):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(tmp_path / "t", copy)
            is_dead = False
            with killed_at(step, after=after):
                try:
                    maintain(copy)
                except Killed:
                    is_dead = True
            assert ids(copy) == wanted, (step, after)
            runs = iter(lambda: maintain(copy), [])
            taken = list(itertools.islice(runs, 6))
            assert len(taken) < 6, (step, after, taken)
            assert ids(copy) == wanted, (step, after)
            assert sx.open_table(copy).status().fresh
        step += every
    assert step > 20, "it is killed at its changes"


def test_two_runs_at_once_lose_no_row(tmp_path: Path) -> None:
    for i in range(3):
        folder = tmp_path / str(i)
        begin(folder)
        wanted = ids(folder)
        errors: list[BaseException] = []

        def run(folder: Path = folder, errors: Any = errors) -> None:
            try:
                maintain(folder)
            except BaseException as error:  # noqa: BLE001
                errors.append(error)

        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert ids(folder) == wanted
        maintain(folder)
        assert sx.open_table(folder).status().fresh
        assert ids(folder) == wanted


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 20))]
)
def test_random_lives(tmp_path: Path, seed: int) -> None:
    """Plain writers add and delete files, and some runs are killed."""
    rng = random.Random(seed)
    begin(tmp_path)
    wanted, n_files = ids(tmp_path), 5
    for _ in range(25):
        match rng.choice(["add", "add", "delete", "maintain", "kill", "vacuum"]):
            case "add":
                more = rows(rng.randint(1, 20), 1000 * n_files)
                put(tmp_path / f"{n_files}.parquet", more)
                wanted.update(more["id"])
                n_files += 1
            case "delete":
                # Only files that no run has rewritten: others' deletes of rewritten
                # rows are judged in tests/rewrite.
                listed = set(sx.open_table(tmp_path).paths)
                plain = [p for p in tmp_path.glob("[0-9]*.parquet") if p.name in listed]
                if plain:
                    gone = rng.choice(sorted(plain))
                    wanted.subtract(pq.ParquetFile(gone).read()["id"].to_pylist())
                    gone.unlink()
            case "maintain":
                maintain(tmp_path)
            case "vacuum":
                sx.open_table(tmp_path).vacuum()
            case "kill":
                step, after = rng.randrange(60), rng.random() < 0.5
                with suppress(Killed), killed_at(step, after=after):
                    maintain(tmp_path)
        wanted = +wanted
        assert ids(tmp_path) == wanted
    maintain(tmp_path)
    assert ids(tmp_path) == wanted
