"""What a query costs Spark: jobs, exchanges and files, plain beside enabled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from tests.spark.pruning.scans import nodes

SWITCH: Final = "skipindex.enabled"
_BROADCAST_JOINS: Final = ("BroadcastHashJoinExec", "BroadcastNestedLoopJoinExec")
_REPEATS: Final = 3
"""Runs of a query before its costs are said to be too high."""


@dataclass(frozen=True)
class Cost:
    """What a query cost.

    Args:
        jobs: that Spark began for it, those of planning among them.
        exchanges: shuffles and broadcasts in the plan that ran, without reused ones.
        files: that its scans read, by Spark's own metric.
        broadcasts: those of the exchanges that are broadcasts, each with a job.
        reused: exchanges that stand for an equal one.
        is_cut: the plan that ran has lost a part that no row needs, which may have run:
            its exchanges and files are not counted.
        built: the side that each broadcast join broadcasts, in the plan's order; None
            if it was another one in another run.
        with_keys: scans that leave out files by what they are joined with.
        chosen: as ``built``, of the adaptive plans as Spark began with them, those of
            cached frames too: one that ended early has no partition, and needs no job.
        whole: the jobs of these, if no part is lost: one for each exchange and result.
    """

    jobs: int
    exchanges: int
    files: int
    broadcasts: int = 0
    reused: int = 0
    is_cut: bool = False
    built: tuple[str, ...] | None = ()
    with_keys: int = 0
    chosen: tuple[str, ...] | None = ()
    whole: int = 0

    def least(self, other: Cost) -> Cost:
        """The lower of each of the two figures."""
        return Cost(
            min(self.jobs, other.jobs),
            min(self.exchanges, other.exchanges),
            min(self.files, other.files),
            max(self.broadcasts, other.broadcasts),
            max(self.reused, other.reused),
            self.is_cut and other.is_cut,
            self.built if self.built == other.built else None,
            max(self.with_keys, other.with_keys),
            self.chosen if self.chosen == other.chosen else None,
            max(self.whole, other.whole),
        )

    def most(self, other: Cost) -> Cost:
        """The higher of each of the two figures."""
        return Cost(
            max(self.jobs, other.jobs),
            max(self.exchanges, other.exchanges),
            max(self.files, other.files),
            min(self.broadcasts, other.broadcasts),
            min(self.reused, other.reused),
            self.is_cut or other.is_cut,
            self.built if self.built == other.built else None,
            min(self.with_keys, other.with_keys),
            self.chosen if self.chosen == other.chosen else None,
            max(self.whole, other.whole),
        )


def excess(enabled: Cost, plain: Cost) -> str:
    """What a query costs too much with skipping; empty if nothing.

    It may begin one job more for each side that is broadcast because it is small now,
    and is not shuffled.  It has no exchange more, and reads no file more, where these
    can be told: not where another side is broadcast, as it is known to be smaller.
    Spark's plan is another one then: it may lose the order of buckets, and have another
    shuffle, or end late where plain Spark has ended early, by a broadcast of no rows.
    So it may have the jobs of this plan, and no others.
    """
    told = []
    more = max(0, enabled.broadcasts - plain.broadcasts)
    is_other = enabled.chosen is not None and enabled.chosen != plain.chosen
    if enabled.jobs > max(plain.jobs + more, enabled.whole * is_other):
        told.append(f"{enabled.jobs} jobs for {plain.jobs}")
    is_same = enabled.built is not None and enabled.built == plain.built
    is_alike = not plain.is_cut and not more and is_same
    if is_alike and enabled.exchanges > plain.exchanges:
        told.append(f"{enabled.exchanges} exchanges for {plain.exchanges}")
    if is_alike and enabled.files > plain.files:
        told.append(f"{enabled.files} files for {plain.files}")
    return ", ".join(told)


def n_jobs(spark: SparkSession) -> int:
    """The jobs that the application has begun, stages of adaptive plans among them.

    It is the number that the next job gets.  No listener has to be waited for, and the
    jobs of other threads count, such as those of broadcasts, which leave a job group.
    """
    found: int = spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs()
    return found


def jobs_since(spark: SparkSession, before: int) -> int:
    """The jobs with tasks since ``n_jobs`` was this many.

    A job over no file has none, and costs nothing.  One that was cancelled before it
    began is not known.
    """
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    known = {}
    for number in range(before, n_jobs(spark)):
        with suppress(Py4JJavaError):
            known[number] = context.statusStore().job(number).numTasks()
    return sum(n_tasks > 0 for n_tasks in known.values())


def cost_of_run(df: DataFrame, jobs: int) -> Cost:
    """The cost of a query that ran once.

    Args:
        df: the query.
        jobs: that it began.
    """
    exchanges = broadcasts = reused = files = with_keys = whole = 0
    is_cut = False
    built: list[str] = []
    chosen: list[str] = []
    known: set[int] = set()
    jvm = df.sparkSession._jvm
    assert jvm is not None
    identity = jvm.java.lang.System.identityHashCode
    for node in nodes(df):
        kind = node.getClass().getSimpleName()
        if kind.endswith("ExchangeExec") and kind != "ReusedExchangeExec":
            exchanges += 1
            broadcasts += kind == "BroadcastExchangeExec"
        elif kind == "ReusedExchangeExec":
            reused += 1
        elif kind == "FileSourceScanExec":
            files += node.metrics().apply("numFiles").value()
            location = node.relation().location()
            if location.getClass().getSimpleName() == "SkippingFileIndex":
                with_keys += location.hasKeys()
        elif kind == "LocalTableScanExec":
            is_cut |= node.rows().isEmpty()
        elif kind == "EmptyRelationExec":
            is_cut = True
        elif kind in _BROADCAST_JOINS:
            built.append(node.buildSide().toString())
        elif kind == "AdaptiveSparkPlanExec":
            began = list(_tree(node.initialPlan()))
            names = [one.getClass().getSimpleName() for one in began]
            whole += 1 + sum(name.endswith("ExchangeExec") for name in names)
            for one in _with_cached(began):
                place = identity(one)
                is_join = one.getClass().getSimpleName() in _BROADCAST_JOINS
                if is_join and place not in known:  # a cached plan is met again
                    known.add(place)
                    chosen.append(one.buildSide().toString())
    return Cost(
        jobs,
        exchanges,
        files,
        broadcasts,
        reused,
        is_cut,
        tuple(built),
        with_keys,
        tuple(chosen),
        whole,
    )


def _with_cached(began: Sequence[Any]) -> Iterator[Any]:
    """The nodes of a plan, and of those of the frames that it has cached."""
    for node in began:
        yield node
        if node.getClass().getSimpleName() == "InMemoryTableScanExec":
            plan = node.relation().cachedPlan()
            if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
                plan = plan.initialPlan()
            yield from _with_cached([*_tree(plan)])


def _tree(node: Any) -> Iterator[Any]:
    """A node of a plan, and all below it."""
    yield node
    for i in range(node.children().size()):
        yield from _tree(node.children().apply(i))


def cost(spark: SparkSession, query: Callable[[], DataFrame]) -> tuple[list[str], Cost]:
    """The rows of a query, as sorted text, and what it costs from its text to them.

    Args:
        spark: the session.
        query: defines the query anew.
    """
    before = n_jobs(spark)
    df = query()
    rows = sorted(repr(tuple(row)) for row in df.collect())
    return rows, cost_of_run(df, jobs_since(spark, before))


def check_costs(
    spark: SparkSession, query: Callable[[], DataFrame]
) -> tuple[Cost, Cost]:
    """Check that skipping gives the same rows, and that nothing costs too much.

    What adaptive plans run depends on which stage ends first, so that a cost is too
    high only if it is so again.

    Args:
        spark: an enabled session.
        query: defines the query anew.

    Returns:
        The costs with skipping, and without.
    """
    found: dict[bool, Cost] = {}
    for _ in range(_REPEATS):
        answers = {}
        for on in (False, True):
            spark.conf.set(SWITCH, str(on).lower())
            answers[on], seen = cost(spark, query)
            former = found.get(on, seen)
            found[on] = former.least(seen) if on else former.most(seen)
        assert answers[True] == answers[False]
        if not excess(found[True], found[False]):
            break
    spark.conf.unset(SWITCH)
    assert excess(found[True], found[False]) == ""
    return found[True], found[False]
