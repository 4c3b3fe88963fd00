"""Lives of a table with ``maintain`` among the writers, killed now and then."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow.parquet as pq

import skipindex as sx
from skipindex.api.maintenance import steps
from skipindex.api.maintenance.policy import Budget, BudgetLike, Policy
from skipindex.api.maintenance.run import maintain_all
from skipindex.build.runners import LocalRunner
from skipindex.rewrite.optimize import optimize_files
from skipindex.spark.writers import optimize as spark_optimize
from skipindex.table import queries
from skipindex.table.queries import Recording
from tests.heavy.catalogue import Told, check_parts
from tests.rewrite.arrow_writer import arrow_writer
from tests.rewrite.killing import Killed, killed_at
from tests.tables import build, put

if TYPE_CHECKING:
    from pyiceberg.table import Table as Iceberg

POLICY = {"least_queries": 5, "max_bytes_ratio": 100.0}
_ACTS = 25
"""Of a life."""


@contextmanager
def without_spark() -> Iterator[None]:
    """Rows are rewritten by pyarrow, and few packs are many."""

    def optimize(_: Any, state: Any, asked: Any, **__: Any) -> Any:
        writer = arrow_writer(sx.Table(state))
        return optimize_files(state, asked, writer=writer, runner=LocalRunner(1))

    with (
        mock.patch.object(spark_optimize, "optimize", optimize),
        mock.patch.object(steps, "CROWD", 2),
    ):
        yield


def maintain(table: Path | Iceberg, budget: BudgetLike = None) -> list[str]:
    """One run, which may cluster; the steps that it took."""
    state = sx.open_table(table).state
    (report,) = maintain_all(
        [(state.folder, lambda: state)],
        Policy.of(POLICY),
        Budget.of(budget),
        dry_run=False,
        session=lambda: None,
        workers=1,
    )
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
        put(folder / f"part-0000{i}-{32 * str(i)}-0.parquet", rows(20, 20 * i))
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


def life(folder: Path, seed: int) -> Iterator[str]:
    """Plain writers add and delete files, and some runs are killed.

    After each act, what is wrong; empty if nothing is.
    """
    rng = random.Random(seed)
    begin(folder)
    wanted, n_files = ids(folder), 5
    acts = ["add", "add", "delete", "maintain", "kill", "vacuum"]
    for act in [*(rng.choice(acts) for _ in range(_ACTS)), "maintain"]:
        match act:
            case "add":
                more = rows(rng.randint(1, 20), 1000 * n_files)
                put(folder / f"{n_files}.parquet", more)
                wanted.update(more["id"])
                n_files += 1
            case "delete":
                # Only files that no run has rewritten: others' deletes of rewritten
                # rows are judged in tests/rewrite.
                listed = set(sx.open_table(folder).paths)
                plain = [p for p in folder.glob("[0-9]*.parquet") if p.name in listed]
                if plain:
                    gone = rng.choice(sorted(plain))
                    wanted.subtract(pq.ParquetFile(gone).read()["id"].to_pylist())
                    gone.unlink()
            case "maintain":
                maintain(folder, rng.choice([None, 5_000, 50_000]))
            case "vacuum":
                sx.open_table(folder).vacuum()
            case "kill":
                step, after = rng.randrange(60), rng.random() < 0.5
                with suppress(Killed), killed_at(step, after=after):
                    maintain(folder, rng.choice([None, 50_000]))
        wanted = +wanted
        held = ids(folder)
        yield "" if held == wanted else f"{act}: lost or doubled {held - wanted}"


def cases(seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    """A random life, without Spark."""
    check_parts(parts)
    for case in count(first):
        with TemporaryDirectory() as folder, without_spark():
            told = [*life(Path(folder, "t"), seed * 1_000_003 + case)]
        yield Told(len(told), "; ".join(filter(None, told)))
