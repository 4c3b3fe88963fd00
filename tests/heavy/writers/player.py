"""One process of the sweep: writes as it is told, in threads of one session.

It reads a line of JSON a round, the table's path and a list of turns, and answers with
a line of JSON, what became of each.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark import InheritableThread, TaskContext
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from ssb.session import local_session

Turn = dict[str, Any]
"""What a writer does: ``kind``, ``tag``, ``n_rows``, ``fault``, ``seed``, and ``by``,
the partition columns of the table."""

FAULTS: Final = ("none", "raise", "exit", "slow", "always", "cancel")
"""Of tasks: some attempts fail, or kill their worker, or are slow; all attempts of
one partition fail; or the whole job is cancelled on the way."""

_PARTITIONS: Final = 3


def session(cores: int = 3) -> SparkSession:
    """A session whose tasks are tried four times, and speculated."""
    made = local_session(
        master=f"local[{cores},4]",
        memory="1g",
        conf={
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "spark.sql.shuffle.partitions": "2",
            "spark.speculation": "true",
            "spark.speculation.interval": "50ms",
            "spark.speculation.quantile": "0.5",
        },
    )
    made.sparkContext.setLogLevel("OFF")
    return made


def rows_of(spark: SparkSession, turn: Turn) -> DataFrame:
    """The rows that a writer brings, with what goes wrong on the way."""
    made = spark.range(0, turn["n_rows"], 1, _PARTITIONS).selectExpr(
        "id", f"{turn['tag']} AS tag", "id * 7919 % 101 AS a", "id % 2 AS k"
    )
    fault, seed = turn["fault"], turn["seed"]
    if fault in ("none", "cancel"):
        return made
    return made.mapInArrow(_faulty(fault, seed), made.schema)


def _faulty(
    fault: str, seed: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def spoil(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        part, attempt = context.partitionId(), context.attemptNumber()
        chance = random.Random(f"{seed} {part} {attempt}").random()
        for batch in batches:
            yield batch
            if fault == "always" and part == seed % _PARTITIONS:
                raise RuntimeError("this partition always fails")
            if attempt < 3 and chance < 0.4:  # the last try is a good one
                if fault == "raise":
                    raise RuntimeError("this attempt fails")
                if fault == "exit":
                    os._exit(1)
                if fault == "slow":
                    time.sleep(0.5)

    return spoil


def write(spark: SparkSession, path: str, turn: Turn) -> str:
    """Do what the turn says; ``ok``, or what was raised."""
    try:
        match turn["kind"]:
            case "create":
                ways = ({"by": ["id"]}, {"sort_within": ["id"]})
                way = ways[turn["seed"] % 2]
                sx.write_table(
                    rows_of(spark, turn),
                    path,
                    layout=sx.Clustering(rows_per_file=50, **way),
                    partition_by=turn["by"],
                    indexes={"*": "minmax"},
                )
            case "append":
                sx.append(rows_of(spark, turn), path)
            case "plain":
                writer = rows_of(spark, turn).write.mode("append")
                (writer.partitionBy(*turn["by"]) if turn["by"] else writer).parquet(
                    path
                )
            case "optimize":
                sx.open_table(path).optimize(
                    spark, mode=("incremental", "full")[turn["seed"] % 2]
                )
            case "join":
                sx.open_table(path).optimize(spark, layout=sx.Clustering(by=[]))
    except Exception as error:  # noqa: BLE001 (the judge knows which are allowed)
        return f"{type(error).__name__}: {error}".partition("\n")[0][:200]
    return "ok"


def play(spark: SparkSession, path: str, turns: list[Turn]) -> list[str]:
    """All turns at once, a thread each; what became of them."""
    outcomes = [""] * len(turns)
    context = spark.sparkContext

    def run(i: int, turn: Turn) -> None:
        context.setJobGroup(f"turn {turn['tag']}", turn["kind"], interruptOnCancel=True)
        outcomes[i] = write(spark, path, turn)

    threads = [
        InheritableThread(target=run, args=(i, turn)) for i, turn in enumerate(turns)
    ]
    for thread in threads:
        thread.start()
    cancelled = [turn for turn in turns if turn["fault"] == "cancel"]
    for turn in cancelled:
        time.sleep(random.Random(turn["seed"]).uniform(0.05, 1.5))
        context.cancelJobGroup(f"turn {turn['tag']}")
    for thread in threads:
        thread.join()
    return outcomes


def main() -> None:
    """Answer until the input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    spark = session(cores=2)
    answers.write("ready\n")
    for line in sys.stdin:
        path, turns = json.loads(line)
        answers.write(json.dumps(play(spark, path, turns)) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
