"""Engines that answer whole queries, each over the files or over a plan's."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.planner.stages.pack_cache import DEFAULT_SESSION
from ssb.files import forget, size_of
from ssb.grid.cells import FLAT
from ssb.peers.adapters.lance_format import columns_with_few_values
from ssb.peers.interface import library, version_of
from ssb.queries import QUERIES, Query, columns_of, wide_sums
from ssb.timing import SWITCH

Answer = list[tuple[Any, ...]]
_EXTRA: Final = "the extra 'headlines'"


@dataclass(frozen=True, slots=True)
class Engine:
    """One way to ask the queries.

    Args:
        name: of it.
        version: of the library.
        ask: gives the rows of a query.
        forget: makes the next query a cold one.
        load_seconds: before the first query, beside writing the Parquet files.
        n_bytes: that it reads from, on disk.
        note: what these figures hold.
    """

    name: str
    version: str
    ask: Callable[[Query], Answer]
    forget: Callable[[], None]
    load_seconds: float
    n_bytes: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Files:
    """What all engines are asked over.

    Args:
        spark: a session, with skipping enabled.
        table: with its indexes.
        index_seconds: to build them.
        work: a folder that engines may write to.
    """

    spark: SparkSession
    table: sx.Table
    index_seconds: float
    work: Path

    @property
    def path(self) -> Path:
        """The folder of the table."""
        return Path(self.table.folder)

    @property
    def all(self) -> list[str]:
        """The data files."""
        return self.table.plan("TRUE").files

    @property
    def data_bytes(self) -> int:
        """The size of the data files."""
        return int(self.table.state.sizes.sum())

    def planned(self, query: Query) -> list[str]:
        """The files of a plan, or one that holds no match where it has none."""
        return self.table.plan(query.where).files or self.all[:1]

    def forget(self) -> None:
        """Let nothing of the files be in memory."""
        DEFAULT_SESSION.clear()
        forget(self.path)

    def engine(
        self, name: str, version: str, ask: Callable[[Query], Answer], *, plans: bool
    ) -> Engine:
        """An engine over these files, or with ``plans`` over those of plans."""
        return Engine(
            name=name,
            version=version,
            ask=ask,
            forget=self.forget,
            load_seconds=self.index_seconds if plans else 0.0,
            n_bytes=size_of(self.path) if plans else self.data_bytes,
            note="the files and their indexes" if plans else "the files",
        )

    def both(
        self, name: str, version: str, ask: Callable[[Sequence[str], Query], Answer]
    ) -> list[Engine]:
        """An engine that is given files: over all of them, and over those of plans."""
        every = self.all

        def over_all(query: Query) -> Answer:
            return ask(every, query)

        def over_plan(query: Query) -> Answer:
            return ask(self.planned(query), query)

        planned = f"{name} on the plan's files"
        return [
            self.engine(name, version, over_all, plans=False),
            self.engine(planned, version, over_plan, plans=True),
        ]


def with_spark(files: Files) -> list[Engine]:
    """Spark over the files, without and with skipping."""
    spark = files.spark

    def asked(*, skipping: bool) -> Callable[[Query], Answer]:
        def ask(query: Query) -> Answer:
            spark.conf.set(SWITCH, str(skipping).lower())
            return list(map(tuple, spark.sql(query.sql(FLAT)).collect()))

        return ask

    spark.read.parquet(str(files.path)).createOrReplaceTempView(FLAT)
    return [
        files.engine("Spark", spark.version, asked(skipping=False), plans=False),
        files.engine(
            "Spark under enable", spark.version, asked(skipping=True), plans=True
        ),
    ]


def with_duckdb(files: Files) -> list[Engine]:
    """DuckDB's own reader over the files, and over those of the plan."""
    connection = library("duckdb", _EXTRA).connect()

    def asked(names: Sequence[str], query: Query) -> Answer:
        connection.read_parquet(list(names)).create_view(FLAT, replace=True)
        found: Answer = connection.execute(query.sql(FLAT)).fetchall()
        return found

    return files.both("DuckDB", version_of("duckdb"), asked)


def with_polars(files: Files) -> list[Engine]:
    """Polars' own reader over the files, and over those of the plan."""
    polars = library("polars", _EXTRA)

    def asked(names: Sequence[str], query: Query) -> Answer:
        context = polars.SQLContext({FLAT: polars.scan_parquet(list(names))})
        found: Answer = context.execute(wide_sums(query.sql(FLAT))).collect().rows()
        return found

    return files.both("Polars", version_of("polars"), asked)


def with_chdb(files: Files) -> list[Engine]:
    """ClickHouse in the process: over a table of its own, and over the files."""
    sessions = library("chdb.session", _EXTRA)
    folder = files.work / "chdb"
    shutil.rmtree(folder, ignore_errors=True)
    # One folder a process: a session on a second one is refused.
    session = sessions.Session(str(folder))
    source = f"file('{files.path}/*.parquet', Parquet)"

    def rows(text: str) -> Answer:
        quoted = "output_format_json_quote_64bit_integers = 0"
        answer = session.query(f"{text} SETTINGS {quoted}", "JSONCompact")
        return list(map(tuple, json.loads(str(answer))["data"]))

    def forgotten() -> None:
        for cache in ("MARK", "UNCOMPRESSED", "INDEX MARK", "INDEX UNCOMPRESSED"):
            session.query(f"SYSTEM DROP {cache} CACHE")
        forget(folder, files.path)

    version = version_of("chdb")
    began = time.perf_counter()
    session.query("CREATE DATABASE ssb ENGINE = Atomic")
    session.query(_merge_tree(files, rows(f"DESCRIBE {source}")))
    session.query(f"INSERT INTO ssb.flat SELECT * FROM {source}")  # noqa: S608 (own text)
    session.query("OPTIMIZE TABLE ssb.flat FINAL")
    loaded = time.perf_counter() - began
    size = rows(
        "SELECT sum(bytes_on_disk) FROM system.parts WHERE database = 'ssb' AND active"
    )
    return [
        Engine(
            name="chdb, MergeTree",
            version=version,
            ask=lambda q: rows(q.sql("ssb.flat")),
            forget=forgotten,
            load_seconds=loaded,
            n_bytes=int(size[0][0]),
            note="a table in the order of lo_orderdate and lo_orderkey, as its "
            "documentation has it, with skip indexes minmax and bloom_filter of "
            "the columns that the queries filter",
        ),
        Engine(
            name="chdb, Parquet",
            version=version,
            ask=lambda q: rows(q.sql(source)),
            forget=forgotten,
            load_seconds=0.0,
            n_bytes=files.data_bytes,
            note="the files",
        ),
    ]


def _merge_tree(files: Files, described: Answer) -> str:
    """The statement that makes the table, from the columns of the files."""
    types = {
        name: re.sub(r"^Nullable\((.*)\)$", r"\1", kind) for name, kind, *_ in described
    }
    paths = [Path(file) for file in files.all]
    for name, kind in types.items():
        # One column in memory at a time.
        if kind == "String" and columns_with_few_values(paths, [name]):
            types[name] = "LowCardinality(String)"
    fields = [f"{name} {kind}" for name, kind in types.items()]
    for name in columns_of(QUERIES):
        fields += [
            f"INDEX m_{name} {name} TYPE minmax GRANULARITY 1",
            f"INDEX b_{name} {name} TYPE bloom_filter GRANULARITY 1",
        ]
    return (
        f"CREATE TABLE ssb.flat ({', '.join(fields)}) ENGINE = MergeTree "
        "ORDER BY (lo_orderdate, lo_orderkey)"
    )


MAKERS: Final = {
    "Spark": with_spark,
    "DuckDB": with_duckdb,
    "chdb": with_chdb,
    "Polars": with_polars,
}
"""By the name of the engine, what makes its ways to ask."""
