"""Verdicts beside the truth: a column type judged by one of four judges.

A sweep draws one type after the other without an end; ``make soundness`` gathers the
types of all judges in one page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import count
from typing import Final

from pyspark.sql import SparkSession

from ssb.session import local_session
from tests.heavy.catalogue import Told, check_parts, rounds
from tests.heavy.soundness.by_spark import sweep_with_spark
from tests.heavy.soundness.foreign import sweep_foreign
from tests.heavy.soundness.large import sweep_large
from tests.heavy.soundness.matrix import sweep
from tests.heavy.soundness.pools import OTHER_ZONES, Pool, pools
from tests.heavy.soundness.report import Checked

Judge = Callable[[Pool, int, int, Checked], None]
"""Judges a type, by a number of conditions and a seed, and adds what it has checked."""
_N: Final = 20
"""Conditions of a case, where Spark judges."""
_N_LARGE: Final = 5
"""The same on files of many rows."""


def judge_by_oracle(pool: Pool, each: int, seed: int, checked: Checked) -> None:
    """An evaluator that takes one row at a time is the judge."""
    result = checked.by_oracle
    sweep(pool, each=each, random_files=10, seed=seed, result=result)


def judge_by_spark(pool: Pool, n: int, seed: int, checked: Checked) -> None:
    """Spark is the judge."""
    result = checked.by_spark
    sweep_with_spark(_session(), pool, n=n, kinds=2, seed=seed, result=result)


def judge_foreign(pool: Pool, n: int, seed: int, checked: Checked) -> None:
    """Files of other writers, under settings of Spark."""
    sweep_foreign(
        _session(), pool,
        n=n, n_files=48, n_settings=2, seed=seed, result=checked.foreign,
    )  # fmt: skip


def _cases(
    judge: Judge, n: int, seed: int, first: int, parts: Sequence[str]
) -> Iterator[Told]:
    by_name = {pool.name: pool for pool in pools(*OTHER_ZONES)}
    for pool, one, only in rounds(by_name, seed, first, parts):
        checked = Checked()
        judge(pool, n, one, checked)
        yield Told(checked.n_verdicts, "\n".join(checked.failures), only)


def by_oracle(seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    """Types by the oracle."""
    return _cases(judge_by_oracle, 1, seed, first, parts)


def by_spark(seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    """Types by Spark."""
    return _cases(judge_by_spark, _N, seed, first, parts)


def of_foreign(seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    """Types in the files of others."""
    return _cases(judge_foreign, _N, seed, first, parts)


def of_large(seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    """Files of many rows, by numpy."""
    check_parts(parts)
    for one in count(seed + first):
        checked = Checked()
        sweep_large(n=_N_LARGE, seed=one, result=checked.by_numpy)
        yield Told(checked.n_verdicts, "\n".join(checked.failures))


@cache
def _session() -> SparkSession:
    conf = {"spark.sql.shuffle.partitions": "2"}
    return local_session("soundness", cores=2, memory="2g", conf=conf)
