"""Small tables to join: a chain of keys, a star, a tree; with and without indexes."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import skipindex as sx

YEARS: Final = range(1992, 1998)
"""The folders of the star's fact."""
_ROWS: Final = 240
_IDS: Final = 320
"""Three of four are there, so that most joins find rows."""
_KINDS: Final = ("bitmap", "bitmap", "bit_sliced", "exact", "bloom")
_DAY: Final = dt.date(2020, 1, 1)


@dataclass(frozen=True)
class Relation:
    """A table of the world.

    Args:
        name: of the view or the catalog table.
        path: its folder.
        folders: whether it has the partition column ``p``.
        told: what it is, for a report.
    """

    name: str
    path: Path
    folders: bool = False
    told: str = ""


@dataclass
class World:
    """The tables of some cases.

    Args:
        number: of the world.
        root: its folder.
        chain: four tables with ``id``, ``k``, ``g``, ``s``, ``d``, ``v`` and ``p``.
        bucketed: two of the same columns, bucketed by ``id``.
        others: the star, the tree and the stream's files, by name.
    """

    number: int
    root: Path
    chain: list[Relation] = field(default_factory=list)
    bucketed: list[Relation] = field(default_factory=list)
    others: dict[str, Relation] = field(default_factory=dict)

    def __str__(self) -> str:
        """Its tables."""
        every = [*self.chain, *self.bucketed, *self.others.values()]
        return "; ".join(f"{one.name}: {one.told}" for one in every)


class Maker:
    """Makes the tables of one world."""

    def __init__(self, number: int, seed: int, root: Path, spark: SparkSession) -> None:
        """Take what it is drawn from."""
        self.rng = Random(f"{seed} world {number}")
        self.world = World(number, root)
        self.spark = spark

    def make(self) -> World:
        """All tables, and their names on the session."""
        for i in range(4):
            self._chain(f"t{i}")
        for i in range(2):
            self._bucketed(f"b{i}")
        self._star()
        self._tree()
        rows = self._rows(60, 1)
        self._write("arrivals", [rows[i::4] for i in range(4)])
        self.world.others["arrivals"] = self._name("arrivals", {}, odds=0)
        return self.world

    def _chain(self, name: str) -> None:
        """A table of keys; a small one now and then, or one with folders."""
        rng = self.rng
        n_rows = rng.choice([_ROWS, _ROWS, _ROWS, 30])
        n_files = rng.choice([1, 3] if n_rows < _ROWS else [8, 12, 20])
        folders = rng.random() < 0.35
        rows = self._rows(n_rows, n_files)
        order = rng.choice(["id", "k", "g", ""])
        if order:
            rows.sort(key=lambda row: (row[order] is None, row[order] or 0))
        size = -(-n_rows // n_files)
        files = [rows[i : i + size] for i in range(0, n_rows, size)]
        self._write(name, files, folders=folders)
        relation = self._name(
            name, dict.fromkeys(("id", "k", "g", "s", "d")), odds=0.6,
            told=f"{n_rows} rows by {order or 'chance'}", folders=folders,
        )  # fmt: skip
        self.world.chain.append(relation)

    def _rows(self, n: int, per: int) -> list[dict[str, Any]]:
        rng = self.rng
        ids = rng.sample(range(_IDS), n)
        return [
            {
                "id": one,
                "k": None if rng.random() < 0.05 else rng.randrange(_IDS),
                "g": None if rng.random() < 0.05 else (one // per) % 10,
                "s": None if rng.random() < 0.05 else f"s{one % 90}",
                "d": _DAY + dt.timedelta(one),
                "v": rng.randrange(100),
                "pad": rng.randbytes(200).hex(),
            }
            for one in ids
        ]

    def _write(
        self, name: str, files: Sequence[Sequence[Any]], *, folders: bool = False
    ) -> None:
        schema = pa.schema(
            [("id", pa.int64()), ("k", pa.int64()), ("g", pa.int32()),
             ("s", pa.string()), ("d", pa.date32()), ("v", pa.int32()),
             ("pad", pa.string())]
        )  # fmt: skip
        for i, rows in enumerate(files):
            folder = self.world.root / name / (f"p={i % 4}" if folders else "")
            folder.mkdir(parents=True, exist_ok=True)
            table = pa.Table.from_pylist(list(rows), schema)
            pq.write_table(table, folder / f"f{i:02}.parquet")

    def _name(
        self, name: str, columns: Mapping[str, str | None], *, odds: float,
        told: str = "", folders: bool = False,
    ) -> Relation:  # fmt: skip
        """Build indexes of some columns, and make the table known."""
        path = self.world.root / name
        indexes = self._indexes(path, columns, odds)
        frame = self.spark.read.parquet(str(path))
        in_catalog = self.rng.random() < 0.25 and not folders
        if in_catalog:
            columns_of = ", ".join(f"`{n}` {t}" for n, t in frame.dtypes)
            self.spark.sql(f"DROP TABLE IF EXISTS {name}")
            self.spark.sql(
                f"CREATE TABLE {name} ({columns_of}) USING parquet LOCATION '{path}'"
            )
        else:
            frame.createOrReplaceTempView(name)
        place = "catalog" if in_catalog else "path"
        parted = ", folders" if folders else ""
        told = f"{told} {place}{parted}, indexes {indexes}".strip()
        return Relation(name, path, folders, told)

    def _indexes(
        self, path: Path, columns: Mapping[str, str | None], odds: float
    ) -> dict[str, str]:
        """Indexes of some columns, or of none."""
        if self.rng.random() < 0.15:
            return {}
        wanted = {
            name: kind or self.rng.choice(_KINDS)
            for name, kind in columns.items()
            if self.rng.random() < odds
        }
        for name in ("s", "city", "brand", "month"):  # texts
            if wanted.get(name) == "bit_sliced":
                wanted[name] = "bitmap"
        if wanted:
            sx.build_indexes(path, {"*": "minmax", **wanted}, workers=1)
        return wanted

    def _bucketed(self, name: str) -> None:
        """A table of the catalog that is bucketed."""
        rows = self._rows(_ROWS, 6)
        source = f"{name}_source"
        self._write(source, [rows])
        frame = self.spark.read.parquet(str(self.world.root / source))
        self.spark.sql(f"DROP TABLE IF EXISTS {name}")
        writer = frame.repartition(3, "g").write.bucketBy(4, "id").sortBy("id")
        path = self.world.root / name
        writer.option("path", str(path)).mode("overwrite").saveAsTable(name)
        indexes = self._indexes(path, dict.fromkeys(("id", "k", "g", "s")), 0.7)
        told = f"bucketed, indexes {indexes}"
        self.world.bucketed.append(Relation(name, path, told=told))

    def _star(self) -> None:
        """A fact in folders of years, and its dimensions."""
        rng = self.rng
        root = self.world.root
        for year in YEARS:
            for i in range(2):
                some = range(rng.randrange(40), 60)
                fact = {
                    "customer": pa.array([rng.choice(some) for _ in range(60)]),
                    "part": pa.array(
                        [rng.randrange(i * 40, i * 40 + 40) for _ in range(60)],
                        pa.int32(),
                    ),
                    "day": [year * 100 + rng.randrange(1, 13) for _ in range(60)],
                    "rev": [rng.randrange(1000) for _ in range(60)],
                    "pad": [rng.randbytes(200).hex() for _ in range(60)],
                }
                folder = root / "fact" / f"year={year}"
                folder.mkdir(parents=True, exist_ok=True)
                pq.write_table(pa.table(fact), folder / f"f{i}.parquet")
        n = 60
        tables = {
            "customers": {
                "key": list(range(n)),
                "city": [f"city {i // 3}" for i in range(n)],
                "g": [i % 10 for i in range(n)],
            },
            "parts": {
                "key": list(range(80)),
                "brand": [f"brand {i // 4}" for i in range(80)],
                "g": [i % 10 for i in range(80)],
            },
            "days": {
                "key": [y * 100 + m for y in YEARS for m in range(1, 13)],
                "month": [f"month {m}" for _ in YEARS for m in range(1, 13)],
                "year": pa.array([y for y in YEARS for _ in range(12)], pa.int32()),
            },
        }
        for name, columns in tables.items():
            (root / name).mkdir()
            table = pa.table(columns)
            half = len(table) // 2
            for i, part in enumerate((table.slice(0, half), table.slice(half))):
                pq.write_table(part, root / name / f"f{i}.parquet")
            self.world.others[name] = self._name(
                name, dict.fromkeys(table.column_names), odds=0.5
            )
        fact_columns = dict.fromkeys(("customer", "part", "day"))
        self.world.others["fact"] = self._name(
            "fact", fact_columns, odds=0.8, folders=True
        )

    def _tree(self) -> None:
        """Children and their parents, as a hierarchy table has them."""
        rng = self.rng
        n, per = 60, rng.choice([1, 5])
        long = rng.random() < 0.5  # one line of descent, else a tree
        parents = [i - 1 if long else (i - 1) // 2 for i in range(n)]
        folder = self.world.root / "tree"
        folder.mkdir()
        for i in range(0, n, per):
            ids = list(range(i, min(i + per, n)))
            rows = {
                "id": pa.array(ids, pa.int64()),
                "parent": pa.array([parents[one] for one in ids], pa.int64()),
                "w": pa.array([one % 7 for one in ids], pa.int32()),
                "pad": [rng.randbytes(2000).hex() for _ in ids],
            }
            pq.write_table(pa.table(rows), folder / f"f{i:02}.parquet")
        columns = {"parent": "bitmap", "id": "bitmap", "w": None}
        self.world.others["tree"] = self._name("tree", columns, odds=0.8)


def forget(world: World, spark: SparkSession) -> None:
    """Drop the tables of the catalog, and remove the files."""
    for one in [*world.chain, *world.bucketed, *world.others.values()]:
        spark.catalog.dropTempView(one.name)
        spark.sql(f"DROP TABLE IF EXISTS {one.name}")
    shutil.rmtree(world.root, ignore_errors=True)
