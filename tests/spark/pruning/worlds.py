"""The tables that the queries of `queries/*.txt` are about, made once a session.

Each table is a folder of its world, with a view of its name unless it says otherwise.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from tests.rewrite.arrow_writer import optimized
from tests.tables import build, put, put_all

BITMAP: Final = "bitmap"


@dataclass(frozen=True)
class World:
    """Some tables.

    Args:
        session: of its own, with the views, and with a database of its own.
        folder: of the tables.
    """

    session: SparkSession
    folder: Path

    def view(self, name: str, *paths: str, schema: str = "", **options: str) -> None:
        """A view of files, its folder if no path is given."""
        reader = self.session.read.options(**options)
        reader = reader.schema(schema) if schema else reader
        full = [str(self.folder / path) for path in paths or (name,)]
        reader.parquet(*full).createOrReplaceTempView(name)

    def table(
        self,
        name: str,
        files: Sequence[Mapping[str, Any]],
        indexes: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        """Files with indexes, and their view."""
        for i, columns in enumerate(files):
            put(self.folder / name / f"{i}.parquet", columns, **options)
        if indexes:
            build(self.folder / name, indexes)
        self.view(name)

    def catalog(self, name: str, columns: str, more: str = "") -> None:
        """A table of the catalog, whose files are there, or come later."""
        place = self.folder / name
        self.session.sql(
            f"CREATE TABLE {name} ({columns}) USING parquet {more} LOCATION '{place}'"
        )

    def do(self, *statements: str) -> None:
        """Statements, with ``{folder}`` for that of the world."""
        for text in statements:
            self.session.sql(text.replace("{folder}", str(self.folder)))


def _bitmaps(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, BITMAP)


# -- numbers -------------------------------------------------------------------------


def numbers(world: World) -> None:
    """Ten files of twenty consecutive numbers, and folders of such files."""

    def rows(file: int) -> dict[str, Any]:
        ids = range(20 * file, 20 * file + 20)
        return {
            "id": pa.array(ids, pa.int64()),
            "rest": pa.array([i % 7 for i in ids], pa.int32()),
            "name": [f"n{i}" for i in ids],
            "ten": pa.array([i // 10 for i in ids], pa.int32()),
        }

    kinds = {"id": "minmax", "rest": BITMAP, "name": "bloom", "ten": BITMAP}
    world.table("t", [rows(i) for i in range(10)], kinds)
    for name, folders in (
        ("p", [f"month=0{i % 2 + 1}" for i in range(6)]),
        ("a b%20c", ["k=x%2Fy"] * 3),
    ):
        for i, folder in enumerate(folders):
            put(world.folder / name / folder / f"part {i}#é.parquet", rows(i))
        build(world.folder / name, {"id": "minmax"})
    for i in range(5):
        put(
            world.folder / "by" / f"q={i}" / "0.parquet",
            {"id": range(10 * i, 10 * i + 10)},
        )
    build(world.folder / "by", _bitmaps("id"))
    put_all(world.folder / "plain", [rows(0), rows(1)])
    for i in range(3):
        put(world.folder / f"deep/year=1/month={i}/0.parquet", {"id": [10 * i]})
    build(world.folder / "deep/year=1", _bitmaps("id"))

    world.view("p")
    world.view("p_one", "p/month=01")
    world.view("p_based", "p/month=01", basePath=str(world.folder / "p"))
    world.view("p_files", *_files(world, "p"))
    world.view("p_folders", "p/*")
    world.view("p_recursive", "p", recursiveFileLookup="true")
    world.view("escaped", "a b%20c")
    world.view("by_one", "by/q=3")
    world.view("by_two", "by/q=1", "by/q=3")
    world.view("by_file", "by/q=3/0.parquet")
    world.view("by_files", "by/q=3/0.parquet", "by/q=1/0.parquet")
    world.view("by_others", "plain", "by/q=3", "by/q=2", recursiveFileLookup="true")
    world.view("months", *[f"deep/year=1/month={i}" for i in range(3)])
    world.view("plain")
    world.view("wider", "t", schema="id BIGINT, rest BIGINT, missing INT")
    world.view("other", "t", schema="id BIGINT, rest INT, missing INT")
    world.view("capitals", "t", schema="ID BIGINT, rest INT")
    world.view("some", "t/3.parquet", "t/5.parquet", "t/8.parquet")
    world.view("leaves_out", "t", ignoreMissingFiles="true")
    world.view("old_days", "t", datetimeRebaseMode="LEGACY")
    world.do(
        "CREATE TABLE kept USING parquet LOCATION '{folder}/t'",
        "CREATE TEMP VIEW named AS SELECT id AS number, upper(name) AS label FROM kept",
        # A catalog may give a folder's rows another value than the folder's name says.
        "CREATE TABLE moved (id BIGINT, rest INT, name STRING, month INT) "
        "USING parquet PARTITIONED BY (month) LOCATION '{folder}/p'",
        "ALTER TABLE moved ADD PARTITION (month=1) LOCATION '{folder}/p/month=02'",
        "ALTER TABLE moved ADD PARTITION (month=2) LOCATION '{folder}/p/month=01'",
    )


def _files(world: World, name: str) -> list[str]:
    found = sorted((world.folder / name).rglob("*.parquet"))
    return [str(path.relative_to(world.folder)) for path in found]


# -- star ----------------------------------------------------------------------------


def star(world: World) -> None:
    """Orders in twelve files, each with the customers of a twelfth of them."""
    draw = np.random.default_rng(5)
    orders = []
    for file in range(12):
        customers = draw.integers(file * 20, file * 20 + 20, 2000, np.int32)
        orders.append(
            {
                "customer": customers,
                "part": draw.integers(0, 60, 2000, np.int64) * 12 + file * 5 % 12,
                "label": [f"c{key}" for key in customers],
                "price": draw.random(2000),
            }
        )
    world.table("orders", orders, _bitmaps("customer", "part", "label"))
    keys = range(240)
    labels = [f"c{key}" for key in keys]
    cities = [f"city {key // 10}" for key in keys]
    world.table("customers", [{"key": keys, "label": labels, "city": cities}])
    brands = [key % 60 for key in range(720)]
    world.table("parts", [{"key": range(720), "brand": brands}])
    build(
        put_all(world.folder / "unindexed", [{"customer": [0, 239]}] * 4),
        {"*": "minmax"},
    )
    world.view("unindexed")


def keys(world: World) -> None:
    """A fact in twelve files, each with a key of its own, and sides of many sorts."""
    facts = [
        {
            "k": pa.array([i] * 9, pa.int32()),
            "day": pa.array([i] * 9, pa.int32()).cast(pa.date32()),
            "price": pa.array([Decimal(i)] * 9, pa.decimal128(9, 2)),
            "t": [f"{i}"] * 9,
            "v": ["x" * 999 + str(i)] * 9,
        }
        for i in range(12)
    ]
    world.table("fact", facts, _bitmaps("k", "day", "price", "t"))
    # Customers of nations of regions: the second region has the keys 6 to 11.
    world.table("customer", [{"k": range(12), "n": [0, 1] * 6}])
    world.table("nation", [{"n": [0, 1], "r": [0, 1]}])
    world.table("region", [{"r": [0, 1], "name": ["A", "B"]}])
    world.table("days", [_days(0, 1), _days(7, 8)])
    world.table("more", [_days(1, 8, 9)])
    world.view("spelled", "days", schema="K INT, NAME STRING")
    some: dict[str, Any] = {
        "day": pa.array([3, 5, None], pa.int32()).cast(pa.date32()),
        "price": pa.array([Decimal(5), Decimal(7), None], pa.decimal128(9, 2)),
        "p": pa.array([Decimal(5), Decimal(7), None], pa.decimal128(12, 1)),
        "name": ["a", "b", "a"],
    }
    world.table("typed", [some])
    put(world.folder / "parted/p=1/0.parquet", _days(3, 4))
    put(world.folder / "parted/p=2/0.parquet", _days(4, 5, 6, name="e"))
    world.view("parted")
    world.view("parted_one", "parted/p=2")
    world.view("parted_file", "parted/p=2/0.parquet")
    world.view(
        "parted_two", "parted/p=1", "parted/p=2", basePath=f"{world.folder}/parted"
    )
    world.view("parted_as", "parted", schema="k INT, p INT")
    # A file that Spark 2 has written: its days may be those of another calendar.
    times = pa.array([0, 10**15], pa.timestamp("us", "UTC"))
    rows = pa.table({**_days(0, 1), "t": times})
    world.table(
        "calendar",
        [rows.replace_schema_metadata({"org.apache.spark.version": "2.4.8"})],
    )
    # Its new files are not published yet.
    files = [_days(2 * i, 2 * i + 1, name=f"n{i}") for i in range(4)]
    world.table("rewritten", files, {"name": BITMAP, "k": "minmax"})
    optimized(world.folder / "rewritten", cluster_by=["k"], rows_per_file=3)
    world.view("rewritten")
    world.session.udf.register("is_even", lambda k: k % 2 == 0, "boolean")
    put(world.folder / "padded/0.parquet", _days(2, name="d"))
    put(world.folder / "padded/1.parquet", _days(3, name="e"))
    put_all(world.folder / "texts", [{"k": ["2", "3"], "name": ["d", "e"]}])
    put(world.folder / "grown/0.parquet", _days(4, 5, name="e"))
    put(world.folder / "grown/1.parquet", {"k": pa.array([8], pa.int32())})
    put(world.folder / "split/p=5/0.parquet", _days(6))
    put(world.folder / "elsewhere/p=9/0.parquet", _days(3, 4))
    world.catalog("padded", "k INT, name CHAR(3)")
    world.catalog("texts", "k CHAR(3), name STRING")
    world.catalog("grown", "k INT, name STRING DEFAULT 'd'")
    world.catalog("split", "k INT, name STRING, p INT", "PARTITIONED BY (p)")
    world.do(
        # A catalog may say that a folder's rows have another value than its name.
        "ALTER TABLE split ADD PARTITION (p=1) LOCATION '{folder}/elsewhere/p=9'",
        "ALTER TABLE split ADD PARTITION (p=5)",
    )


def _days(*ks: int, name: str = "d") -> dict[str, Any]:
    return {"k": pa.array(ks, pa.int32()), "name": [name] * len(ks)}


# -- results -------------------------------------------------------------------------


def results(world: World) -> None:
    """Five files of twenty consecutive numbers, of which indexes know all but one."""

    def rows(file: int) -> dict[str, Any]:
        ids = range(20 * file, 20 * file + 20)
        return {
            "id": pa.array(ids, pa.int64()),
            "ten": pa.array([i // 10 for i in ids], pa.int32()),
            "rest": pa.array([i % 3 or None for i in ids], pa.int32()),
            "name": [f"n{i % 4}" for i in ids],
            "plain": pa.array(ids, pa.int64()),
            "f": [i / 2 for i in ids],
        }

    kinds = _bitmaps("id", "ten", "rest", "name", "f")
    world.table("t", [rows(i) for i in range(5)], kinds)
    world.view("some", "t/1.parquet", "t/3.parquet")
    world.view("twice", "t/1.parquet", "t/1.parquet", "t/3.parquet")
    world.view("other", "t", schema="id BIGINT, rest INT, missing INT")
    world.view("leaves_out", "t", ignoreCorruptFiles="true")
    world.table("added", [rows(i) for i in range(5)], kinds)
    put(world.folder / "added/more.parquet", rows(2))
    put(world.folder / "added/4.parquet", rows(11))
    world.view("added")
    for i in range(4):
        put(world.folder / f"p/month=0{i % 2 + 1}/{i}.parquet", rows(i))
    build(world.folder / "p", _bitmaps("id"))
    world.view("p")
    world.do(
        "CREATE TABLE counted USING parquet LOCATION '{folder}/added'",
        "CREATE TABLE swapped (id BIGINT, month INT) USING parquet "
        "PARTITIONED BY (month) LOCATION '{folder}/p'",
    )
    for month, name in ((1, "02"), (2, "01"), (3, "01")):
        world.do(
            f"ALTER TABLE swapped ADD PARTITION (month={month}) "
            f"LOCATION '{{folder}}/p/month={name}'"
        )
    # Two views of a file each of one table, and of all before a third came.
    large = {"k": list(range(100)), "v": ["x" * 900 + str(i) for i in range(100)]}
    put_all(world.folder / "listed", [{"k": [1, 2, 3], "v": ["a"] * 3}, large])
    world.view("d1", "listed/0.parquet")
    world.view("d2", "listed/1.parquet")
    world.view("old", "listed")
    put(world.folder / "listed/2.parquet", {"k": [7] * 5, "v": ["n"] * 5})
    build(world.folder / "listed", _bitmaps("k"))
    world.view("new", "listed")


# -- rows and row groups -------------------------------------------------------------

TYPES: Final = (
    "id",
    "id % 10 AS k",
    "CAST(id % 7 AS tinyint) AS tiny",
    "CAST(id AS smallint) AS small",
    "IF(id % 3 = 0, NULL, CAST(id AS int)) AS whole",
    "CAST(id / 3 AS float) AS real",
    "IF(id % 5 = 0, double('NaN'), IF(id % 5 = 1, -0.0D, id / 7)) AS double",
    "CAST(id AS decimal(9, 2)) AS d9",
    "id % 2 = 0 AS even",
    "CAST(id AS decimal(18, 3)) AS d18",
    "-CAST(id AS decimal(38, 10)) AS d38",
    "IF(id % 4 = 1, NULL, concat('ä€', id)) AS name",
    "binary(concat('x', id)) AS bin",
    "date'2024-02-28' + CAST(id % 9 AS int) AS day",
    "'' AS empty",
    "timestamp'2024-03-31 00:59:59.123456' + make_interval(0, 0, 0, 0, id) AS ts",
    "timestamp_ntz'2024-03-31 02:30:00' + make_interval(0, 0, 0, 0, id) AS ntz",
    "CAST(NULL AS string) AS nothing",
    "array(id) AS list",
    "struct(id, 1 AS one) AS pair",
    "date'2024-01-01' + CAST(id % 2 AS int) AS p",
    "IF(id % 4 < 2, NULL, concat('é ', id % 2)) AS q",
)
CONVERTED: Final[Sequence[tuple[pa.Array, str]]] = (
    (pa.array([1, None, 3], pa.int32()), "id long, c long"),
    (pa.array([1, None, 3], pa.int32()), "id long, c smallint"),
    (pa.array([1, None, 3], pa.uint16()), ""),
    (pa.array([1.5, None], pa.float32()), "id long, c double"),
    (pa.array([b"a", None], pa.binary()), "id long, c string"),
    (pa.array(["a", None], pa.string()), "id long, c binary"),
    (pa.array([1, None], pa.timestamp("ms", "UTC")), ""),
    (pa.array([1, None], pa.timestamp("us", "UTC")), "id long, c timestamp_ntz"),
    (pa.array([1, None], pa.timestamp("us")), "id long, c timestamp"),
    (pa.array([-100_000, 3], pa.date32()), ""),
    (pa.array([-(10**16), 3], pa.timestamp("us", "UTC")), ""),
)
"""Columns that Spark reads as another type than the file's, and that schema."""


def rows(world: World) -> None:
    """Files with all types, in folders of a date and a text; and small tables."""
    made: DataFrame = world.session.range(1200).selectExpr(*TYPES)
    write = made.repartition(4, "id").write.partitionBy("p", "q")
    write.parquet(str(world.folder / "t"))
    build(world.folder / "t", {"id": "exact", "k": "exact", "name": BITMAP})
    world.view("t")
    world.view("twice", "t", "t")
    world.view("two", *_files(world, "t")[:2])
    world.table("many", [{"k": [1] * 10_001 + [2] * 9}], {"k": "exact"})
    for i, (column, schema) in enumerate(CONVERTED):
        world.table(f"c{i}", [{"id": range(len(column)), "c": column}], {"id": "exact"})
        world.view(f"c{i}", schema=schema)
    lacks = [{"id": [0, 1], "c": [1, 2]}, {"id": [7, 8]}]
    world.table("lacks", lacks, {"id": "exact"})
    world.view("lacks", schema="id long, c long")
    world.view("capitals", "lacks", schema="ID long, C long")
    for name in ("p=1", "p=2"):
        put(world.folder / "twofold" / name / "0.parquet", {"id": [0, 1], "p": [7, 8]})
    build(world.folder / "twofold", {"id": "exact"})
    world.view("twofold")
    world.view("of_file", "twofold/p=1")
    world.view("of_ids", "twofold/p=1", schema="id long")
    dotted = {"id": [0, 1], "a": pa.array([{"b": 1}, {"b": 2}]), "a.b": [3, 4]}
    world.table("dotted", [dotted], {"id": "exact"})
    world.view("dotted_as", "dotted", schema="id long, `a.b` long")
    world.table("filled", [{"id": [7, 8]}], {"id": "exact"})
    world.table("padded", [{"id": [0, 1], "c": ["a", "b "]}], {"id": "exact"})
    world.do(
        "DROP VIEW filled",
        "DROP VIEW padded",
    )
    world.catalog("filled", "id LONG")
    world.do("ALTER TABLE filled ADD COLUMNS (c INT DEFAULT 5)")
    world.catalog("padded", "id LONG, c CHAR(3)")


def groups(world: World) -> None:
    """Files of ten row groups, of which no statistics rule out one for ``k``."""
    for file in range(3):
        ids = range(500 * file, 500 * file + 500)
        columns = {
            "id": pa.array(ids, pa.int64()),
            "k": pa.array([i * 7919 % 1009 for i in ids], pa.int64()),
            "text": [f"{i:040}" for i in ids],
            "list": [[i] for i in ids],
        }
        path = world.folder / f"t/p={file % 2}/{file}.parquet"
        put(path, columns, row_group_size=50)
    build(world.folder / "t", {"k": "exact", "id": "exact"})
    world.view("t")
    frame = world.session.range(500).selectExpr("id", "id * 7919 % 1009 AS k")
    writer = frame.write.bucketBy(4, "id").option("path", str(world.folder / "buckets"))
    writer.saveAsTable("buckets")
    build(world.folder / "buckets", {"k": "exact"})


# -- plans ---------------------------------------------------------------------------


def plans(world: World) -> None:
    """Tables with the same keys of like size, and a small one; and a tree."""
    files = [list(range(10 * i, 10 * i + 10)) for i in range(12)]
    filler = ["x" * 500 + str(i) for i in range(10)]
    one = [{"id": x, "g": [i % 5] * 10, "more": filler} for i, x in enumerate(files)]
    two = [
        {"oid": x, "st": [f"s{i}"] * 10, "more": filler} for i, x in enumerate(files)
    ]
    small = {"k": list(range(10)), "name": [f"n{i}" for i in range(10)]}
    world.table("one", one, _bitmaps("id", "g"))
    world.table("two", two, _bitmaps("oid", "st"))
    world.table("small", [small], _bitmaps("k", "name"))
    # Each node but the last has the next one as its child.
    edges = [
        {"id": [i + 1], "parent": [i], "x": ["x" * 2000 + str(i)]} for i in range(12)
    ]
    world.table("tree", edges, _bitmaps("parent"))
    for name in ("fact", "indexed"):
        for day in range(8):
            rows = {"k": [day * 10 + i for i in range(100)], "v": list(range(100))}
            put(world.folder / name / f"day={day}/0.parquet", rows)
        world.view(name)
    build(world.folder / "indexed", _bitmaps("k"))
    days = [list(range(4)), list(range(4, 8))]
    some = [{"day": x, "name": [f"d{day}" for day in x]} for x in days]
    world.table("days", some, _bitmaps("name", "day"))
    frame = world.session.range(200).selectExpr("id", "id % 10 AS g")
    writer = frame.write.bucketBy(4, "id").sortBy("id")
    writer.option("path", str(world.folder / "buckets")).saveAsTable("buckets")
    build(world.folder / "buckets", _bitmaps("id", "g"))
    # One folder has two listings: Spark has a broadcast of one, a shuffle of the other.
    filler = ["x" * 3000 + str(i) for i in range(10)]
    world.table("wide", [{"k": [i] * 10, "v": filler} for i in range(8)], _bitmaps("k"))
    put(world.folder / "side/0.parquet", {"k": [1], "n": ["c"]})
    world.view("before", "side")
    put(world.folder / "side/1.parquet", {"k": [3], "n": ["c"]})
    world.view("after", "side")


# -- times, folders, columns ---------------------------------------------------------

FIRST: Final = date(2021, 11, 28)
DAYS: Final = [FIRST + timedelta(67 * i) for i in range(12)]
"""From 2021-11-28 to 2023-12-06; the tenth is 2023-07-24, the sixth 2022-10-29."""
FORMAT: Final = "yyyy-MM-dd HH:mm:ss"
_PARTS: Final = {"year": "year", "month": "month", "day": "dayofmonth"}
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"


def with_null() -> list[date | None]:
    """The days, and none."""
    return [*DAYS, None]


def folders(world: World) -> None:
    """A file a day, at noon and at midnight, in folders made of the time, as UTC.

    Without statistics nothing but the folders can tell.
    """
    world.session.conf.set("spark.sql.session.timeZone", "UTC")

    def write(path: str, columns: Mapping[str, Any]) -> None:
        put(world.folder / path / "0.parquet", columns, write_statistics=False)

    parts = {name: f"{function}(ctime)" for name, function in _PARTS.items()}
    for name, two in (("events", "{:d}"), ("padded", "{:02d}")):
        for i, day in enumerate(DAYS):
            moments = [datetime.combine(day, time(hour)) for hour in (0, 12)]
            columns = {
                "id": [2 * i, 2 * i + 1],
                "ctime": pa.array(moments, pa.timestamp("us", "UTC")),
                "text": [f"{moment:%Y-%m-%d %H:%M:%S}" for moment in moments],
            }
            place = f"{name}/year={day.year}/month={two}/day={two}"
            write(place.format(day.month, day.day), columns)
        sx.open_table(world.folder / name).declare_derived(parts, timezone="UTC")
        world.view(name)
    for one in with_null():
        folder = [_NULL] * 3 if one is None else f"{one}".split("-")
        some = [None] if one is None else [f"{one} 00:00:00", f"{one} 12:00:00"]
        write(
            "texts/year={}/month={}/day={}".format(*folder),
            {"dt": pa.array(some, pa.string())},
        )
    sx.open_table(world.folder / "texts").declare_derived(
        field="dt", format=FORMAT, timezone="UTC"
    )
    world.view("texts")
    for year in range(2020, 2024):
        write(
            f"years/year={year}", {"text": [f"{year}-12-12 10:00:00", f"{year}-01-31"]}
        )
    sx.open_table(world.folder / "years").declare_derived(
        {"year": "substring(text, 1, 4)"}
    )
    world.view("years")
    # Partitions of a catalog, and one of NULL; with no index.
    declared = ", ".join(
        f"'skipindex.derived.{key}' = '{value}'"
        for key, value in {**parts, "timezone": "UTC"}.items()
    )
    for kind in ("string", "int"):
        name, many = f"by_{kind}", "PARTITIONED BY (year, month, day)"
        parts_of = f"id INT, ctime TIMESTAMP, year {kind}, month {kind}, day {kind}"
        world.catalog(name, parts_of, f"{many} TBLPROPERTIES ({declared})")
        for i, one in enumerate(with_null()):
            of = [one.year, one.month, one.day] if one else [_NULL] * 3
            at = (
                [datetime.combine(one, time(hour)) for hour in (0, 12)]
                if one
                else [None]
            )
            rows = {
                "id": pa.array(range(2 * i, 2 * i + len(at)), pa.int32()),
                "ctime": pa.array(at, pa.timestamp("us", "UTC")),
            }
            write("{}/year={}/month={}/day={}".format(name, *of), rows)
        world.do(f"MSCK REPAIR TABLE {name}")
    world.do(
        "CREATE TEMP VIEW late AS SELECT * FROM by_string WHERE ctime >= '2023-12-01'"
    )


def columns(world: World) -> None:
    """Files that lack columns with a default, also rewritten; and hours of a zone."""
    struct = pa.struct([("x", pa.int32())])
    kind = pa.schema([("i", pa.int32()), ("j", pa.int32()), ("s", struct)])
    new = ({"i": 2, "j": 5, "s": {"x": 5}}, {"i": 3, "j": None, "s": None})
    files = [pa.table({"i": pa.array([i], pa.int32())}) for i in (0, 1)]
    files += [pa.Table.from_pylist([row], kind) for row in new]
    put_all(world.folder / "grown", files)
    sx.enable(world.session)
    for name in ("grown", "rewritten"):
        world.catalog(name, "i INT")
        world.do(
            f"ALTER TABLE {name} ADD COLUMN j INT DEFAULT 7",
            f"ALTER TABLE {name} ADD COLUMN "
            "s STRUCT<x: INT> DEFAULT named_struct('x', 7)",
        )
        if name == "grown":
            world.do("CREATE INDEX ON grown (i, j, s.x) USING bitmap")
            shutil.copytree(world.folder / name, world.folder / "rewritten")
    world.do("OPTIMIZE rewritten RANGE BY (i) LOCALLY ORDERED BY (j)")
    world.view("by_path", "rewritten", schema="i INT, j INT")
    sx.disable(world.session)
    first = datetime(2024, 10, 26, 9, tzinfo=UTC)
    moment = pa.timestamp("us", "UTC")
    hours = [{"t": pa.array([first + timedelta(hours=n)], moment)} for n in range(48)]
    world.table("hours", hours, _bitmaps("t"))
    orders = [{"customer": [2 * i, 2 * i + 1]} for i in range(4)]
    world.table("orders", orders, _bitmaps("customer"))
    put(world.folder / "customers/0.parquet", {"k": [5, 6, 7], "city": ["Rome"] * 3})
    put(world.folder / "customers/1.parquet", {"k": range(5)})
    world.catalog("customers", "k BIGINT, city STRING DEFAULT 'Oslo'")


WORLDS: Final[Mapping[str, Callable[[World], None]]] = {
    made.__name__: made
    for made in (numbers, star, keys, results, rows, groups, plans, folders, columns)
}
