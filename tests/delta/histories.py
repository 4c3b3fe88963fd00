"""Random histories of a Delta table, and what each version of it holds.

The writers are those of ``deltalake``.  The judge reads the files that its log names
one by one, and DuckDB filters the rows.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

import skipindex as sx
from skipindex.errors import TableError
from tests.delta.logs import commit, delete_rows, deleted_in, live_files, protocol
from tests.rewrite.arrow_writer import optimized

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


def shown(held: pa.Table) -> Counter[Any]:
    """The rows that are not deleted."""
    left = held.filter(pa.compute.invert(held["deleted"]))
    return counted(left.drop_columns(["file", "deleted"]))


class History:
    """A table, what is done to it, and the checks of what skipindex says."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.path = str(folder)
        self.more = 0
        self.is_indexed = False
        self.n_checks = 0
        by = self.rng.choice([[], ["g"], ["p"], ["p", "g"]])
        self.indexes = dict.fromkeys(set("kgpsxd").difference(by), "exact")
        write_deltalake(self.path, rows(self.rng, 30, 0), partition_by=by)
        self.has_vectors = False

    @property
    def delta(self) -> DeltaTable:
        return DeltaTable(self.path)

    def steps(self, n: int) -> Iterator[str]:
        """Do so many things; what was done, each time."""
        acts = [
            *[self.append] * 4,
            *[self.index] * 3,
            *(self.delete, self.update, self.merge, self.overwrite, self.compact),
            *(self.restore, self.vacuum, self.evolve, self.sort, self.delete_by_vector),
            *[self.optimize] * 2,
        ]
        for _ in range(n):
            act = self.rng.choice(acts)
            act()
            yield act.__name__

    def append(self) -> None:
        new = rows(self.rng, self.rng.randrange(1, 25), self.more)
        write_deltalake(self.path, new, mode="append")

    def evolve(self) -> None:
        """A column more, of which older files hold NULL."""
        self.more = min(self.more + 1, 2)
        new = rows(self.rng, 8, self.more)
        write_deltalake(self.path, new, mode="append", schema_mode="merge")

    def overwrite(self) -> None:
        low = self.rng.randrange(70)
        new = rows(self.rng, 10, self.more)
        new = new.set_column(0, "k", pa.array([low] * len(new), pa.int64()))
        write_deltalake(self.path, new, mode="overwrite", predicate=f"k = {low}")

    def delete(self) -> None:
        self.delta.delete(f"k = {self.rng.randrange(70)}")

    def delete_by_vector(self) -> None:
        """Rows of one file go, which stay in it."""
        if not self.has_vectors:
            commit(self.path, protocol("deletionVectors"))
            self.has_vectors = True
        held = self._held(self.delta.version())
        if held is None or not len(held):
            return
        file = self.rng.choice(held["file"].to_pylist())
        own = held.filter(pa.compute.equal(held["file"], file))["deleted"].to_pylist()
        share = self.rng.choice([0.1, 0.5, 1.0])
        gone = [
            i for i, is_gone in enumerate(own) if is_gone or self.rng.random() < share
        ]
        name = next(
            path
            for path in live_files(self.path)
            if str(Path(self.path, unquote(path)).resolve()) == file
        )
        if gone:
            delete_rows(self.path, gone, name)

    def update(self) -> None:
        self.delta.update(
            updates={"s": "'new'"}, predicate=f"k < {self.rng.randrange(20)}"
        )

    def merge(self) -> None:
        new = rows(self.rng, 6, self.more)
        new = (
            new.filter(pa.compute.is_valid(new["k"]))
            .group_by("k")
            .aggregate([(name, "min") for name in new.column_names if name != "k"])
        )
        new = new.rename_columns(
            [name.removesuffix("_min") for name in new.column_names]
        )
        (
            self.delta.merge(new, "t.k = n.k", source_alias="n", target_alias="t")
            .when_matched_update({"d": "n.d"})
            .when_not_matched_insert_all()
            .execute()
        )

    def compact(self) -> None:
        self.delta.optimize.compact()

    def sort(self) -> None:
        self.delta.optimize.z_order(["k", "d"])

    def optimize(self) -> None:
        """Files of skipindex, by a commit of Delta."""
        if not self.is_indexed:
            return
        before = self._held(self.delta.version())
        optimized(
            sx.open_table(self.path),
            cluster_by=["k", "d"],
            rows_per_file=self.rng.choice([10, 40]),
            mode=self.rng.choice(["incremental", "full"]),
            in_place=False,
        )
        after = self._held(self.delta.version())
        assert before is not None
        assert after is not None
        assert shown(before) == shown(after)

    def restore(self) -> None:
        version = self.rng.randrange(self.delta.version() + 1)
        try:
            self.delta.restore(version)
        except DeltaError:
            return  # a vacuum has deleted its files
        self.more = sum(f.name.startswith("n") for f in self.delta.schema().fields)

    def vacuum(self) -> None:
        self.delta.vacuum(0, dry_run=False, enforce_retention_duration=False)

    def index(self) -> None:
        table = sx.open_table(self.path)
        if self.is_indexed:
            table.refresh_indexes(workers=1)
        else:
            table.build_indexes(self.indexes, workers=1)
        self.is_indexed = True

    def check(self) -> str:
        """What is wrong with the newest version, or an older one; empty if nothing."""
        version = self.delta.version()
        if self.rng.random() < 0.3:
            version = self.rng.randrange(version + 1)
        held = self._held(version)
        if held is None:
            return self._refused(version)
        with_newest = version == self.delta.version() and self.rng.random() < 0.5
        table = sx.open_table(self.path, version=None if with_newest else version)
        names = [n for n in held.column_names if n not in {"file", "deleted"}]
        where = condition(self.rng, sum(name.startswith("n") for name in names))
        stored = duckdb.sql(f"SELECT * FROM held WHERE {where}").to_arrow_table()
        truth = stored.filter(pa.compute.invert(stored["deleted"]))
        plan = table.plan(where)
        here = f"version {version}: {where}"
        self.n_checks += 1
        files = set(truth["file"].to_pylist())
        kept = {str(Path(file).resolve()) for file in plan.files}
        if missed := files - kept:
            return f"{here}: skips {sorted(missed)}"
        every = set(held["file"].to_pylist())
        if not kept <= every:
            return f"{here}: reads {sorted(kept - every)}"
        known = {file.path for file in table.files if file.n_rows is not None}
        exact = [Path(self.path, path).resolve() for path in known]
        spare = {str(path) for path in exact} & (kept - set(stored["file"].to_pylist()))
        if spare and "n0" not in where and "n1" not in where:
            return f"{here}: keeps {sorted(spare)}"
        wanted = counted(truth.select(names))
        engines: dict[str, Callable[[], pa.Table]] = {
            "arrow": lambda: plan.to_arrow().to_table(),
            "duckdb": lambda: plan.to_duckdb(duckdb.connect()).to_arrow_table(),
            "polars": lambda: plan.to_polars().collect().to_arrow(),
        }
        name = self.rng.choice(list(engines))
        got = engines[name]()
        if counted(got.select(names)) != wanted:
            return f"{here}: {name} has other rows"
        least, most = plan.count_bounds
        if len(truth) < least or (most is not None and most < len(truth)):
            return f"{here}: {plan.count_bounds} of {len(truth)} rows"
        return ""

    def _refused(self, version: int) -> str:
        """A version whose files have gone must be refused."""
        try:
            sx.open_table(self.path, version=version)
        except TableError as error:
            return "" if "is gone" in str(error) else str(error)
        return f"version {version} is opened, and files of it have gone"

    def _held(self, version: int) -> pa.Table | None:
        """The rows of a version with their file; None if files of it have gone."""
        table = DeltaTable(self.path, version=version)
        schema = pa.schema(table.schema().to_arrow())
        schema = pa.schema([(f.name, _plain(f.type)) for f in schema])
        by = table.metadata().partition_columns
        parts = []
        added = pa.table(table.get_add_actions(flatten=False)).to_pylist()
        by_path = {one["path"]: one.get("partition", {}) for one in added}
        gone = deleted_in(table)
        for path, values in by_path.items():
            file = Path(self.path, unquote(path))
            if not file.exists():
                return None
            own = pq.ParquetFile(file).read()
            columns = {}
            for field in schema:
                if field.name in by:
                    value = [values[field.name]] * len(own)
                    columns[field.name] = pa.array(value, field.type)
                elif field.name in own.column_names:
                    columns[field.name] = own[field.name].cast(field.type)
                else:
                    columns[field.name] = pa.nulls(len(own), field.type)
            columns["file"] = pa.array([str(file.resolve())] * len(own))
            mine = gone.get(unquote(path), frozenset())
            columns["deleted"] = pa.array([i in mine for i in range(len(own))])
            parts.append(pa.table(columns))
        whole = schema.append(pa.field("file", pa.string()))
        whole = whole.append(pa.field("deleted", pa.bool_()))
        return pa.concat_tables(parts) if parts else whole.empty_table()


def _plain(dtype: pa.DataType) -> pa.DataType:
    return pa.string() if str(dtype) in {"large_string", "string_view"} else dtype


def counted(table: pa.Table) -> Counter[tuple[str, ...]]:
    return Counter(tuple(map(repr, row.values())) for row in table.to_pylist())
