"""Random queries of Spark over Iceberg tables with a random history.

Spark writes the table, by copies and by deletes; each query runs with skipping and
without, and has to give the same rows of no more files.  It needs Spark 3.5 with the
runtime of Iceberg (``tests/spark/iceberg/runtime.py``).
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from itertools import count
from typing import Any, Final

from pyspark.sql import SparkSession

import skipindex as sx
from ssb.session import local_session
from tests.heavy.catalogue import Told, check_parts
from tests.spark.iceberg.runtime import metadata, settings
from tests.spark.versions import FAILED

_ACTS: Final = 12
_QUERIES: Final = 5
"""After each act."""
_COLUMNS: Final = "kgpsxd"
_WORDS: Final = r"'[^']*'|\b([kgpsxd]|n\d)\b"
_MODES: Final = ("copy-on-write", "merge-on-read")
_FIELDS: Final = ("{k}", "bucket(3, {k})", "{p}", "truncate(1, {s})", "months({d})")
_FORMS: Final = (
    "SELECT * FROM {t} WHERE {c}",
    "SELECT count(*), max({s}), min({d}) FROM {t} WHERE {c}",
    "SELECT {k}, count(*) FROM {t} WHERE {c} GROUP BY {k}",
    "SELECT * FROM {t} a JOIN {t} b USING ({k}, {p}) WHERE {k} IN ({keys})",
    "SELECT (SELECT count(*) FROM {t} WHERE {c}), (SELECT max({s}) FROM {t} WHERE {o})",
    "SELECT * FROM (SELECT * FROM {t} WHERE {c}) WHERE {o}",
    "SELECT * FROM {t} WHERE ({c}) AND upper({s}) = 'OSLO'",
    "SELECT * FROM {t} WHERE ({c} OR {x} IS NULL) AND {k} + 0 = {n}",
    "SELECT {s}, _file FROM {t} WHERE {s} LIKE '%b' AND {c}",
    "SELECT * FROM {t} WHERE {k} % 10 = 3 AND coalesce({p}, 'x') = 'x' AND {c}",
    "SELECT * FROM {t} WHERE {c} UNION ALL SELECT * FROM {t} WHERE {o}",
    "WITH w AS ({keys} AND rand(3) < 2) SELECT {k} FROM w a JOIN w b USING ({k})",
)
_KEYS: Final = "SELECT {k} FROM {t} WHERE ({c})"
_FORMER: Final = "SELECT * FROM {t} VERSION AS OF {v} WHERE {c}"
_FIRST: Final = date(2024, 1, 1)


def _condition(rng: random.Random, more: int, depth: int = 2) -> str:
    """A condition on some columns, of which so many were added later."""
    if depth and rng.random() < 0.5:
        parts = [_condition(rng, more, depth - 1) for _ in range(2)]
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
    """A table of the catalog ``ice``, what is done to it, and its queries."""

    def __init__(self, spark: SparkSession, seed: int) -> None:
        self.spark = spark
        self.rng = random.Random(seed)
        self.short = f"h{seed}"
        self.name = f"ice.db.{self.short}"
        self.names = {name: name for name in _COLUMNS}
        self.more = 0
        self.n_queries = self.n_skipped = self.n_names = 0
        self.is_indexed = False
        self.schemas: dict[int, tuple[dict[str, str], int]] = {}
        """The columns of each snapshot."""
        modes = {
            f"write.{way}.mode": self.rng.choice(_MODES)
            for way in ("delete", "update", "merge")
        }
        given = ", ".join(f"'{name}' = '{mode}'" for name, mode in modes.items())
        by = self.rng.choice(["", *(f"PARTITIONED BY ({one})" for one in _FIELDS)])
        spark.sql(f"DROP TABLE IF EXISTS {self.name} PURGE")
        spark.sql(
            f"CREATE TABLE {self.name} (k BIGINT, g INT, p STRING, s STRING, x DOUBLE, "
            f"d DATE) USING iceberg {by.format(**self.names)} TBLPROPERTIES ({given})"
        )
        self.by_name = by.endswith(("({k})", "({p})"))
        """Whether a field of partitions has the name of a column."""
        self.append()

    def drop(self) -> None:
        """Let the next one have the room."""
        self.spark.sql(f"DROP TABLE IF EXISTS {self.name} PURGE")

    def steps(self, n: int) -> Iterator[str]:
        """Do so many things; what was done, each time."""
        acts: list[Callable[[], None]] = [
            *[self.append] * 5,
            *[self.delete] * 2,
            *[self.update] * 2,
            *(self.merge, self.evolve, self.rename, self.swap, self.widen),
            *(self.drop_and_add, self.partition, self.roll_back, self.compact),
        ]
        safe = {self.append, self.index, self.delete, self.update, self.merge}
        self.index()
        for _ in range(n):
            act = self.rng.choice(acts)
            try:
                act()
            except FAILED as refused:  # Iceberg does not allow all of them everywhere
                if "iceberg" not in f"{refused}".lower() and act in safe:
                    raise
            if self.rng.random() < 0.6:
                self.index()
            self.schemas.setdefault(
                self._snapshots()[-1], (dict(self.names), self.more)
            )
            yield act.__name__

    def _sql(self, text: str, **more: Any) -> list[Any]:
        return self.spark.sql(text.format(t=self.name, **self.names, **more)).collect()

    def _snapshots(self) -> list[int]:
        found = self._sql(
            "SELECT snapshot_id FROM {t}.history ORDER BY made_current_at"
        )
        return [one[0] for one in found]

    def _values(self, n: int) -> str:
        """So many random rows, under the names and types of the table."""
        rng, low = self.rng, self.rng.randrange(60)

        def one(name: str) -> str:
            match name:
                case _ if rng.random() < 0.1:
                    return "NULL"
                case "k":
                    return str(low + rng.randrange(12))
                case "p" | "s":
                    texts = ["'x'", "'y/z'", "'w v'", "'1'", "''", "'a'", "'Oslo'"]
                    return rng.choice([*texts, "'ü'", "'ab'", "'no'"])
                case "x":
                    return rng.choice(["0.5D", "-0.0D", "1e300D", "-2.25D", "'NaN'"])
                case "d":
                    return f"date_add(DATE'2020-01-01', {rng.randrange(40)})"
            return str(rng.randrange(5))

        own = {new: name for name, new in self.names.items()}
        fields = self.spark.table(self.name).schema.fields
        rows = []
        for _ in range(n):
            cells = [
                f"CAST({one(own.get(f.name, 'n'))} AS {f.dataType.simpleString()}) AS "
                f"{f.name}"
                for f in fields
            ]
            rows.append(f"SELECT {', '.join(cells)}")
        return " UNION ALL ".join(rows)

    def append(self) -> None:
        """As many files as there are texts of SELECT."""
        rows = self._values(self.rng.randrange(1, 8))
        self._sql(f"INSERT INTO {{t}} {rows}")

    def index(self) -> None:
        table = sx.open_table(metadata(self.short))
        if self.is_indexed:
            table.refresh_indexes(workers=1)
        else:
            kinds = {self.names[n]: "exact" for n in self.rng.sample(_COLUMNS, 4)}
            table.build_indexes(kinds, workers=1)
        self.is_indexed = True

    def delete(self) -> None:
        self._sql("DELETE FROM {t} WHERE {c}", c=self._condition(1))

    def update(self) -> None:
        self._sql("UPDATE {t} SET {s} = 'no', {g} = 1 WHERE {c}", c=self._condition(1))

    def merge(self) -> None:
        rows = self._values(3)
        self._sql(
            f"MERGE INTO {{t}} USING (SELECT * FROM ({rows})) o "
            "ON {t}.{k} = o.{k} AND {t}.{p} = o.{p} AND {t}.{d} = o.{d} "
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
        )

    def evolve(self) -> None:
        if self.more < 2:
            self._sql(f"ALTER TABLE {{t}} ADD COLUMN n{self.more} INT")
            self.more += 1
            self.append()

    def rename(self) -> None:
        name = self.rng.choice(_COLUMNS)
        self.n_names += 1
        new = self.rng.choice([f"c{self.n_names}", name])
        if new not in self.names.values() and not self.by_name:
            self._sql(f"ALTER TABLE {{t}} RENAME COLUMN {self.names[name]} TO {new}")
            self.names[name] = new

    def swap(self) -> None:
        """Two columns of one type get each other's names."""
        if self.by_name:
            return
        one, other = self.names["p"], self.names["s"]
        for old, new in ((one, "t1"), (other, one), ("t1", other)):
            self._sql(f"ALTER TABLE {{t}} RENAME COLUMN {old} TO {new}")
        self.names |= {"p": other, "s": one}

    def widen(self) -> None:
        self._sql("ALTER TABLE {t} ALTER COLUMN {g} TYPE BIGINT")

    def drop_and_add(self) -> None:
        self._sql("ALTER TABLE {t} DROP COLUMN {x}")
        self._sql("ALTER TABLE {t} ADD COLUMN {x} DOUBLE")

    def partition(self) -> None:
        chosen = self.rng.choice(_FIELDS)
        self.by_name |= "(" not in chosen
        field = chosen.format(**self.names)
        way = self.rng.choice(["ADD", "ADD", "DROP"])
        self._sql(f"ALTER TABLE {{t}} {way} PARTITION FIELD {field}")
        self.append()

    def roll_back(self) -> None:
        target = self.rng.choice(self._snapshots())
        self._sql(f"CALL ice.system.set_current_snapshot('db.{self.short}', {target})")

    def compact(self) -> None:
        self._sql(
            f"CALL ice.system.rewrite_data_files(table => 'db.{self.short}', "
            "options => map('rewrite-all', 'true'))"
        )

    def _condition(
        self, depth: int = 2, names: dict[str, str] | None = None, more: int = -1
    ) -> str:
        names = self.names if names is None else names

        def renamed(match: re.Match[str]) -> str:
            return match[0] if match[1] is None else names.get(match[1], match[1])

        n_more = self.more if more < 0 else more
        return re.sub(_WORDS, renamed, _condition(self.rng, n_more, depth))

    def check(self) -> str:
        """What is wrong with a query; empty if nothing."""
        rng = self.rng
        if self.schemas and rng.random() < 0.2:
            version = rng.choice(list(self.schemas))
            names, more = self.schemas[version]
            text = _FORMER.format(
                t=self.name, v=version, c=self._condition(2, names, more)
            )
        else:
            text = rng.choice(_FORMS).replace("{keys}", _KEYS).format(
                t=self.name, c=self._condition(), o=self._condition(),
                n=rng.randrange(70), **self.names,
            )  # fmt: skip
        conf = self.spark.conf
        conf.set("spark.sql.adaptive.enabled", str(rng.random() < 0.3).lower())
        conf.set("spark.sql.ansi.enabled", str(rng.random() < 0.5).lower())
        for name in (
            "spark.sql.iceberg.planning.preserve-data-grouping",
            "spark.sql.sources.v2.bucketing.enabled",
        ):
            conf.set(name, str(rng.random() < 0.5).lower())
        self.n_queries += 1
        results = []
        for way in ("true", "false"):
            conf.set("skipindex.enabled", way)
            results.append(self._run(text))
        conf.set("skipindex.enabled", "true")
        (rows, n_read), (wanted, n_files) = results
        if rows != wanted:
            return f"{text}: {rows} instead of {wanted}"
        if n_read > n_files:
            return f"{text}: reads {n_read} of {n_files} files"
        self.n_skipped += n_files - n_read
        return ""

    def _run(self, text: str) -> tuple[Any, int]:
        """The rows of a query, or its error, and how many files its scans have read."""
        try:
            frame = self.spark.sql(text)
            rows: Any = Counter(map(str, frame.collect()))
        except FAILED as error:
            return type(error).__name__, 0
        leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
        n = 0
        for leaf in (leaves.apply(i) for i in range(leaves.size())):
            if leaf.getClass().getSimpleName() == "BatchScanExec":
                n += leaf.metrics().apply("numSplits").value()
        return rows, n


def session() -> SparkSession:
    """A session with the catalog ``ice``.

    Raises:
        SystemExit: there is no Iceberg for it.
    """
    if not settings():
        raise SystemExit(
            "iceberg-sql needs Spark 3.5 and SKIPINDEX_ICEBERG_JAR, the path of an "
            "iceberg-spark-runtime-3.5_2.12 jar"
        )
    more = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    spark = local_session(
        "iceberg-sql", cores=2, memory="2g", conf={**more, **settings()}
    )
    sx.enable(spark)
    return spark


def cases(seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    """A random history of an Iceberg table, queried by Spark."""
    check_parts(parts)
    spark = session()
    for case in count(first):
        history = History(spark, seed * 1_000_003 + case)
        done: list[str] = []
        failure = ""
        for act in history.steps(_ACTS):
            done.append(act)
            for _ in range(_QUERIES):
                failure = failure or history.check()
            if failure:
                failure = f"{', '.join(done)}; {failure}"
                break
        history.drop()
        print(f"case {case}: {history.n_skipped} files skipped", flush=True)
        yield Told(history.n_queries, failure)
