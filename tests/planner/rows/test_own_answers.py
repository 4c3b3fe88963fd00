"""A plan's rows are those that an engine itself finds in all files.

Over a small table like lineorder of the Star Schema Benchmark, with conditions that
mean the same to Spark, DuckDB and Polars.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import skipindex as sx
from tests.tables import put

duckdb = pytest.importorskip("duckdb")
pl = pytest.importorskip("polars")
pytest.importorskip("pandas")

N_ROWS = 6000
N_FILES = 20
REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
CITIES = [
    f"{nation:9.9}{i}" for nation in ("CHINA", "UNITED KI", "PERU") for i in range(5)
]
INTEGERS = {
    "lo_quantity": (1, 51),
    "lo_discount": (0, 11),
    "lo_revenue": (80_000, 10_000_000),
    "lo_orderdate": (19920101, 19981231),
}
INDEXES = {
    "lo_quantity": "bit_sliced",
    "lo_discount": "range_bitmap",
    "lo_revenue": "bit_sliced",
    "c_city": "bitmap",
    "c_region": "bloom",
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> sx.Table:
    """Files of which each has some cities, some years, and NULLs in each column."""
    folder = tmp_path_factory.mktemp("lineorder")
    rng = np.random.default_rng(48)
    for i in range(N_FILES):
        n = N_ROWS // N_FILES
        columns = {
            name: np.sort(rng.integers(low, high, N_ROWS))[i * n : (i + 1) * n]
            if name == "lo_orderdate"
            else rng.integers(low, high, n)
            for name, (low, high) in INTEGERS.items()
        }
        few = rng.choice(CITIES, 3)
        texts = {"c_city": rng.choice(few, n), "c_region": rng.choice(REGIONS, n)}
        nulls = rng.random((6, n)) < 0.03
        arrays = {
            name: pa.array(values, mask=nulls[k])
            for k, (name, values) in enumerate({**columns, **texts}.items())
        }
        arrays["id"] = pa.array(range(i * n, (i + 1) * n))
        put(folder / f"{i}.parquet", arrays)
    return sx.build_indexes(folder, INDEXES, workers=1).table


class Conditions:
    """Random conditions in SQL."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def __iter__(self) -> Iterator[str]:
        while True:
            yield self._tree(self._rng.randint(1, 5))

    def _tree(self, n_leaves: int) -> str:
        if n_leaves == 1:
            return self._leaf()
        left = self._rng.randint(1, n_leaves - 1)
        word = self._rng.choice([" AND ", " AND ", " OR "])
        both = word.join([self._tree(left), self._tree(n_leaves - left)])
        return f"{self._rng.choice(['', '', 'NOT '])}({both})"

    def _leaf(self) -> str:
        rng = self._rng
        name = rng.choice([*INTEGERS, "c_city", "c_region"])
        if rng.random() < 0.08:
            return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
        one = self._literal(name)
        negated = rng.choice(["", "", "NOT "])
        match rng.choice(["compare", "compare", "in", "between", "like"]):
            case "in":
                values = [self._literal(name) for _ in range(rng.randint(1, 4))]
                return f"{name} {negated}IN ({', '.join(values)})"
            case "between":
                return f"{name} {negated}BETWEEN {one} AND {self._literal(name)}"
            case "like" if name.startswith("c_"):
                text = one.strip("'")[: rng.randint(1, 6)]
                text = rng.choice([f"{text}%", f"%{text}%", f"%{text[-2:]}"])
                return f"{name} {negated}LIKE '{text}'"
            case _:
                return f"{name} {rng.choice(['=', '<>', '<', '<=', '>', '>='])} {one}"

    def _literal(self, name: str) -> str:
        if name in INTEGERS:
            low, high = INTEGERS[name]
            return str(self._rng.randint(low - 1, high))
        values = CITIES if name == "c_city" else REGIONS
        return f"'{self._rng.choice([*values, 'Z'])}'"


@pytest.mark.few(1)
@pytest.mark.parametrize(("seed", "n"), [(1, 6), (2, 500)])
def test_rows_are_those_of_the_engine_over_all_files(
    table: sx.Table, seed: int, n: int
) -> None:
    connection = duckdb.connect()
    every = f"{table.folder}/*.parquet"
    skipped = 0
    for where, _ in zip(Conditions(seed), range(n), strict=False):
        plan = table.plan(where)
        skipped += len(plan.skipped)
        own = connection.read_parquet(every).filter(where).order("id").fetchall()
        found = plan.to_duckdb(connection).order("id").fetchall()
        assert found == own, where
        lazy = pl.SQLContext(t=pl.scan_parquet(every))
        own_frame = lazy.execute(f"SELECT * FROM t WHERE {where} ORDER BY id")
        assert plan.to_polars().sort("id").collect().equals(own_frame.collect()), where
        ids = [row[-1] for row in own]
        assert sorted(plan.to_arrow().to_table()["id"].to_pylist()) == ids, where
        assert sorted(plan.to_pandas()["id"]) == ids, where
    assert skipped > n, "the plans leave out no files, so this tests nothing"
