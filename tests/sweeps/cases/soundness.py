"""Verdicts beside the truth, of one column type a case."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final

from pyspark.sql import SparkSession

from ssb.session import local_session
from tests.soundness.by_spark import SparkResult, sweep_with_spark
from tests.soundness.foreign import ForeignResult, sweep_foreign
from tests.soundness.large import sweep_large
from tests.soundness.matrix import Result, sweep
from tests.soundness.pools import OTHER_ZONES, pools
from tests.sweeps.catalogue import Told, rounds

_ALONE: Final = "--spark 0 --foreign 0 --large 0"


def by_oracle(seed: int, first: int) -> Iterator[Told]:
    """An evaluator that takes one row at a time is the judge."""
    for pool, one in rounds(pools(*OTHER_ZONES), seed, first):
        result = Result()
        sweep(pool, each=1, random_files=10, seed=one, result=result)
        failure = "\n".join(result.failures)
        again = _command(one, f"--types {pool.name!r} {_ALONE}")
        yield Told(result.total.verdicts, failure, again)


def by_spark(seed: int, first: int) -> Iterator[Told]:
    """Spark is the judge."""
    spark = _session()
    n = 20
    for pool, one in rounds(pools(*OTHER_ZONES), seed, first):
        result = SparkResult()
        sweep_with_spark(spark, pool, n=n, kinds=2, seed=one, result=result)
        again = _command(one, f"--types {pool.name!r} {_ALONE} --spark {n}")
        yield Told(result.verdicts, "\n".join(result.failures), again)


def of_foreign(seed: int, first: int) -> Iterator[Told]:
    """Files of other writers, under settings of Spark."""
    spark = _session()
    n = 20
    for pool, one in rounds(pools(*OTHER_ZONES), seed, first):
        result = ForeignResult()
        sweep_foreign(
            spark, pool, n=n, n_files=48, n_settings=2, seed=one, result=result
        )
        again = _command(one, f"--types {pool.name!r} {_ALONE} --foreign {n}")
        yield Told(result.total.verdicts, "\n".join(result.failures), again)


def of_large(seed: int, first: int) -> Iterator[Told]:
    """Files of many rows, by numpy."""
    n = 5
    for one in count(seed + first):
        result = Result()
        sweep_large(n=n, seed=one, result=result)
        again = _command(one, f"--types none {_ALONE} --large {n}")
        yield Told(result.total.verdicts, "\n".join(result.failures), again)


def _command(seed: int, options: str) -> str:
    return f"python -m tests.soundness --seed {seed} {options}"


def _session() -> SparkSession:
    conf = {"spark.sql.shuffle.partitions": "2"}
    return local_session("soundness", cores=2, memory="2g", conf=conf)
