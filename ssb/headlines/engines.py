"""Engines that answer whole queries over layouts, with and without plans of files."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.planner.plan import Plan
from skipindex.planner.stages.pack_cache import DEFAULT_SESSION
from ssb.files import forget
from ssb.grid.cells import FLAT
from ssb.headlines.studies import names
from ssb.peers.adapters.lance_format import columns_with_few_values
from ssb.peers.interface import library, version_of
from ssb.queries import QUERIES, Query, columns_of, wide_sums
from ssb.timing import SWITCH

Answer = list[tuple[Any, ...]]
ALL_FILES: Final = "all files"
RANGES: Final = "min/max"
INDEXED: Final = "all indexes"
OWN: Final = "a table of its own"
"""The layout of an engine that does not read the files."""
_EXTRA: Final = "the extra 'headlines'"


@dataclass(frozen=True, slots=True)
class Way:
    """One way to ask the queries.

    Args:
        engine: its name.
        version: of the library.
        layout: of the rows.
        indexes: that choose the files.
        ask: gives the rows of a query.
        forget: makes the next query a cold one.
        loaded: seconds and bytes of what the engine wrote before it was asked.
    """

    engine: str
    version: str
    layout: str
    indexes: str
    ask: Callable[[Query], Answer]
    forget: Callable[[], None]
    loaded: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Indexed:
    """The files of a layout in a folder with one set of indexes.

    Args:
        layout: its name.
        indexes: the name of the set.
        table: the folder.
    """

    layout: str
    indexes: str
    table: sx.Table

    @property
    def path(self) -> Path:
        """The folder."""
        return Path(self.table.folder)

    @property
    def all(self) -> list[str]:
        """The data files."""
        return self.table.plan("TRUE").files

    def forget(self) -> None:
        """Let nothing of the files be in memory."""
        DEFAULT_SESSION.clear()
        forget(self.path)


@dataclass(frozen=True, slots=True)
class Setting:
    """What all engines are asked over.

    Args:
        spark: a session, with skipping enabled.
        tables: each layout with min/max, and with all indexes.
        work: a folder that engines may write to.
    """

    spark: SparkSession
    tables: Sequence[Indexed]
    work: Path

    def ways(
        self,
        engine: str,
        version: str,
        ask: Callable[[Sequence[str], Query], Answer],
        ask_plan: Callable[[Plan, Query], Answer],
    ) -> list[Way]:
        """An engine that is given all files of a layout, or plans."""
        ways = []
        for one in self.tables:
            every = one.all

            def over_all(query: Query, every: Sequence[str] = every) -> Answer:
                return ask(every, query)

            def over_plan(query: Query, one: Indexed = one) -> Answer:
                return ask_plan(one.table.plan(query.where), query)

            if one.indexes == RANGES:
                whole = (engine, version, one.layout, ALL_FILES, over_all, one.forget)
                ways.append(Way(*whole))
            part = (engine, version, one.layout, one.indexes, over_plan, one.forget)
            ways.append(Way(*part))
        return ways


def with_spark(setting: Setting) -> list[Way]:
    """Spark by unchanged SQL, without and with skipping."""
    spark = setting.spark
    ways = []
    for i, one in enumerate(setting.tables):
        view = f"flat_{i}"
        spark.read.parquet(str(one.path)).createOrReplaceTempView(view)
        for on in (False, True) if one.indexes == RANGES else (True,):

            def ask(query: Query, view: str = view, on: bool = on) -> Answer:  # noqa: FBT001 (bound in a loop)
                spark.conf.set(SWITCH, str(on).lower())
                return list(map(tuple, spark.sql(query.sql(view)).collect()))

            indexes = one.indexes if on else ALL_FILES
            of = ("Spark", spark.version, one.layout, indexes)
            ways.append(Way(*of, ask, one.forget))
    return ways


def with_duckdb(setting: Setting) -> list[Way]:
    """DuckDB's own reader."""
    connection = library("duckdb", _EXTRA).connect()

    def asked(files: Sequence[str], query: Query) -> Answer:
        connection.read_parquet(list(files)).create_view(FLAT, replace=True)
        rows: Answer = connection.execute(query.sql(FLAT)).fetchall()
        return rows

    def of_plan(plan: Plan, query: Query) -> Answer:
        found = plan.to_duckdb(connection, columns=query.result_columns)
        found.create_view(FLAT, replace=True)
        rows: Answer = connection.execute(query.of_rows(FLAT)).fetchall()
        return rows

    return setting.ways("DuckDB", version_of("duckdb"), asked, of_plan)


def with_polars(setting: Setting) -> list[Way]:
    """Polars' own reader."""
    polars = library("polars", _EXTRA)

    def asked(files: Sequence[str], query: Query) -> Answer:
        return answer(polars.scan_parquet(list(files)), query.sql(FLAT))

    def of_plan(plan: Plan, query: Query) -> Answer:
        return answer(plan.to_polars(columns=query.result_columns), query.of_rows(FLAT))

    def answer(frame: Any, text: str) -> Answer:
        context = polars.SQLContext({FLAT: frame})
        rows: Answer = context.execute(wide_sums(text)).collect().rows()
        return rows

    return setting.ways("Polars", version_of("polars"), asked, of_plan)


def with_chdb(setting: Setting) -> list[Way]:
    """ClickHouse in the process, over a table of its own.

    The table has the columns that the 13 queries name, in the order of lo_orderdate
    and lo_orderkey, as ClickHouse's documentation of the benchmark has it, and skip
    indexes of the columns that the queries filter.
    """
    sessions = library("chdb.session", _EXTRA)
    folder = setting.work / "chdb"
    shutil.rmtree(folder, ignore_errors=True)
    # One folder a process: a session on a second one is refused.
    session = sessions.Session(str(folder))
    first = setting.tables[0]
    source = f"file('{first.path}/*.parquet', Parquet)"

    def rows(text: str) -> Answer:
        quoted = "output_format_json_quote_64bit_integers = 0"
        answer = session.query(f"{text} SETTINGS {quoted}", "JSONCompact")
        return list(map(tuple, json.loads(str(answer))["data"]))

    def forgotten() -> None:
        for cache in ("MARK", "UNCOMPRESSED", "INDEX MARK", "INDEX UNCOMPRESSED"):
            session.query(f"SYSTEM DROP {cache} CACHE")
        forget(folder)

    began = time.perf_counter()
    columns = ", ".join(_stored())
    session.query("CREATE DATABASE ssb ENGINE = Atomic")
    session.query(_merge_tree(first.all, rows(f"DESCRIBE {source}")))
    session.query(f"INSERT INTO ssb.flat SELECT {columns} FROM {source}")  # noqa: S608 (own text)
    session.query("OPTIMIZE TABLE ssb.flat FINAL")
    seconds = time.perf_counter() - began
    size = rows(
        "SELECT sum(bytes_on_disk) FROM system.parts WHERE database = 'ssb' AND active"
    )
    return [
        Way(
            "ClickHouse (chdb)",
            version_of("chdb"),
            OWN,
            "minmax and bloom_filter",
            lambda query: rows(query.sql("ssb.flat")),
            forgotten,
            {"load s": round(seconds, 1), "MB": round(int(size[0][0]) / 1e6, 1)},
        )
    ]


def _stored() -> list[str]:
    return sorted({*names(), "lo_orderkey"})


def _merge_tree(files: Sequence[str], described: Answer) -> str:
    """The statement that makes the table, from the columns of the files."""
    types = {
        name: re.sub(r"^Nullable\((.*)\)$", r"\1", kind)
        for name, kind, *_ in described
        if name in _stored()
    }
    paths = [Path(file) for file in files]
    for name, kind in types.items():
        # One column in memory at a time.
        if kind == "String" and columns_with_few_values(paths, [name]):
            types[name] = "LowCardinality(String)"
    fields = [f"{name} {types[name]}" for name in _stored()]
    for name in columns_of(QUERIES):
        fields += [
            f"INDEX m_{name} {name} TYPE minmax GRANULARITY 1",
            f"INDEX b_{name} {name} TYPE bloom_filter GRANULARITY 1",
        ]
    return (
        f"CREATE TABLE ssb.flat ({', '.join(fields)}) ENGINE = MergeTree "
        "ORDER BY (lo_orderdate, lo_orderkey)"
    )


MAKERS: Final[Mapping[str, Callable[[Setting], Sequence[Way]]]] = {
    "Spark": with_spark,
    "DuckDB": with_duckdb,
    "Polars": with_polars,
    "ClickHouse": with_chdb,
}
"""By the name of the engine, what makes its ways to ask."""
