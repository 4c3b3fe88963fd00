"""Random rows, conditions and histories of tables, and the judge of their plans.

The judge is given all rows of a version, each with its file; DuckDB filters them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

import skipindex as sx

_FIRST: Final = date(2024, 1, 1)
_TEXTS: Final = ["", "a", "ab", "b%", "Oslo", "ü", None]


def rows(rng: random.Random, n: int, more: int) -> pa.Table:
    """Rows, with so many columns that were added later."""

    def some(draw: Callable[[], Any], nulls: float = 0.1) -> list[Any]:
        return [None if rng.random() < nulls else draw() for _ in range(n)]

    low = rng.randrange(60)
    columns = {
        "k": pa.array(some(lambda: low + rng.randrange(12)), pa.int64()),
        "g": pa.array(some(lambda: rng.randrange(3)), pa.int32()),
        "p": pa.array(some(lambda: rng.choice(["x", "y/z", "w v", "1"])), pa.string()),
        "s": pa.array(some(lambda: rng.choice(_TEXTS)), pa.string()),
        "x": pa.array(
            some(lambda: rng.choice([0.5, -0.0, 0.0, 1e300, float("inf"), -2.25])),
            pa.float64(),
        ),
        "d": pa.array(
            some(lambda: _FIRST + timedelta(days=rng.randrange(40))), pa.date32()
        ),
    }
    for i in range(more):
        columns[f"n{i}"] = pa.array(some(lambda: rng.randrange(5)), pa.int16())
    return pa.table(columns)


def condition(rng: random.Random, more: int, depth: int = 2) -> str:
    """A condition that Spark, DuckDB and skipindex mean alike."""
    if depth and rng.random() < 0.5:
        parts = [condition(rng, more, depth - 1) for _ in range(2)]
        text = f" {rng.choice(['AND', 'OR'])} ".join(f"({part})" for part in parts)
        return f"NOT ({text})" if rng.random() < 0.2 else text
    k, day = rng.randrange(75), _FIRST + timedelta(days=rng.randrange(45))
    choices = [
        f"k {rng.choice(['=', '<', '>=', '<>'])} {k}",
        f"k BETWEEN {k} AND {k + 5}",
        f"k IN ({k}, {k + 3}, {k + 40})",
        f"g = {rng.randrange(4)}",
        f"p = '{rng.choice(['x', 'y/z', 'w v', '1', '2'])}'",
        f"s = '{rng.choice(['', 'a', 'Oslo', 'ü', 'no'])}'",
        "s LIKE 'a%'",
        f"x < {rng.choice([0.0, 1.0, -1.5])}",
        "x = 0.5",
        f"d >= DATE '{day}'",
        f"{rng.choice('kgpsxd')} IS {rng.choice(['', 'NOT '])}NULL",
        *(f"n{i} = {rng.randrange(6)}" for i in range(more)),
        *(f"n{i} IS NULL" for i in range(more)),
    ]
    return rng.choice(choices)


class History:
    """A table, what is done to it, and the checks of what skipindex says."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.more = 0
        """So many columns were added."""
        self.is_indexed = False
        self.n_checks = 0

    @property
    def acts(self) -> Sequence[Callable[[], None]]:
        raise NotImplementedError

    def record(self) -> None:
        """What a judge must know of the table, after each act."""

    def check(self) -> str:
        """What is wrong with the newest version, or an older one; empty if nothing."""
        raise NotImplementedError

    def steps(self, n: int) -> Iterator[str]:
        """Do so many things; what was done, each time."""
        acts = self.acts
        for _ in range(n):
            act = self.rng.choice(acts)
            act()
            self.record()
            yield act.__name__

    def judged(
        self, table: sx.Table, folder: str, held: pa.Table, where: str, is_exact: bool
    ) -> str:
        """What is wrong with a plan; empty if nothing.

        ``held`` has all rows, also ``deleted`` ones, with their ``file``.  With exact
        indexes no other file is kept.
        """
        names = [n for n in held.column_names if n not in {"file", "deleted"}]
        stored = duckdb.sql(f"SELECT * FROM held WHERE {where}").to_arrow_table()
        truth = stored.filter(pa.compute.invert(stored["deleted"]))
        plan = table.plan(where)
        self.n_checks += 1
        kept = {str(Path(file).resolve()) for file in plan.files}
        if missed := set(truth["file"].to_pylist()) - kept:
            return f"skips {sorted(missed)}"
        if spare := kept - set(held["file"].to_pylist()):
            return f"reads {sorted(spare)}"
        known = {
            str(Path(folder, file.path).resolve())
            for file in table.files
            if file.n_rows is not None
        }
        spare = (known & kept) - set(stored["file"].to_pylist())
        if is_exact and spare:
            return f"keeps {sorted(spare)}"
        engines: dict[str, Callable[[], pa.Table]] = {
            "arrow": lambda: plan.to_arrow().to_table(),
            "duckdb": lambda: plan.to_duckdb(duckdb.connect()).to_arrow_table(),
            "polars": lambda: plan.to_polars().collect().to_arrow(),
        }
        name = self.rng.choice(list(engines))
        if counted(engines[name]().select(names)) != counted(truth.select(names)):
            return f"{name} has other rows"
        least, most = plan.count_bounds
        if len(truth) < least or (most is not None and most < len(truth)):
            return f"{plan.count_bounds} of {len(truth)} rows"
        return ""


def counted(table: pa.Table) -> Counter[tuple[str, ...]]:
    return Counter(tuple(map(repr, row.values())) for row in table.to_pylist())
