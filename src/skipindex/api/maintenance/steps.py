"""The steps of maintenance: whether each has something to do, and how it is done."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from skipindex.advice.advised_build import AdviceRequest, build_advised
from skipindex.api.calls import needs_spark, runner_of
from skipindex.api.maintenance.policy import Budget, Policy
from skipindex.build.builder import refresh
from skipindex.build.merge import merge
from skipindex.build.tiers import CROWD, MAX_BYTES, MAX_FILES, index_keys, small
from skipindex.build.wanted import has_any, wanted_of
from skipindex.errors import SkipIndexError, TableError, first_line
from skipindex.layout import Workload
from skipindex.log.properties import retention_of
from skipindex.planner.plan import plan_files
from skipindex.planner.recorded import RecordedQueries, drift
from skipindex.rewrite.optimize import OptimizeOptions, choose_groups, require_own
from skipindex.rewrite.vacuum import vacuum
from skipindex.source.folder.hidden_files import due
from skipindex.table import TableState
from skipindex.table.status import as_requested, unmet_request

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Session = Callable[[], "SparkSession"]
"""Starts a session of Spark, or gives the one there is."""

_RATES: Final = {"refresh": 40e6, "merge": 100e6, "cluster": 8e6, "advise": 20e6}
"""Bytes that a step is expected to read and write in a second."""
_CHANGED: Final = 0.25
"""The part of the queries with another shape at which a choice is made again, and of
the files at which a first layout pays."""
_BATCH: Final = 60.0
"""Seconds that a rewrite is expected to take, if the budget is of time."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A step that has something to do.

    Args:
        step: its name.
        n_bytes: the bytes that it would read and write.
        why: what there is to do.
        do: does it within a budget; the bytes that it took, and what it did.
        is_divisible: a part of it can be done.
        tried: what a sample promises, for a dry run.
    """

    step: str
    n_bytes: int
    why: str
    do: Callable[[Budget], tuple[int, str]]
    is_divisible: bool = False
    tried: Callable[[], str] | None = None

    @property
    def _rate(self) -> float:
        return _RATES.get(self.step, float("inf"))

    def refused(self, budget: Budget) -> str:
        """Why it is not done; empty if it is."""
        left = budget.bytes_left(self._rate)
        if left <= 0:
            return f"the budget is spent: {self.why}"
        if self.n_bytes > left and not self.is_divisible:
            return (
                f"it does not fit into what is left of the budget, {left / 1e6:.1f} "
                f"MB: {self.why}"
            )
        return ""


class Subject:
    """A table, with what was asked of it.

    Attributes:
        state: the table after the last step.
        policy: what may be done.
        record: the recorded queries.
        notes: what cannot be done, and why.
    """

    def __init__(
        self,
        state: TableState,
        policy: Policy,
        session: Session | None,
        workers: int | None,
    ) -> None:
        self.state, self.policy = as_requested(state), policy
        self._session, self._workers = session, workers
        self.notes = list(filter(None, [unmet_request(self.state)]))
        since = time.time() - policy.days * 86400
        self.record = RecordedQueries.of(state.location, policy.queries, since=since)
        self._reads: tuple[TableState, int, float] | None = None

    @property
    def reads(self) -> int:
        """The bytes that the recorded queries read now, all together."""
        return self._planned()[1]

    @property
    def _share(self) -> float:
        """The part of the files that a recorded query reads now, on average."""
        return self._planned()[2]

    def _planned(self) -> tuple[TableState, int, float]:
        state, n_bytes, n_files, n_planned = self.state, 0, 0, 0
        if self._reads is not None and self._reads[0] is state:
            return self._reads
        for where, n in self.record.weights.items():
            with suppress(SkipIndexError, OSError):  # of a column that is gone
                plan = plan_files(where, table=state, timezone=self.record.zone)
                rows = plan.evaluation.possible
                n_bytes += n * int(state.sizes[rows].sum())
                n_files += n * int(np.count_nonzero(rows))
                n_planned += n
        share = n_files / max(1, n_planned * len(state))
        self._reads = state, n_bytes, share
        return self._reads

    def offer(self, step: str, budget: Budget) -> Offer | None:
        """A step; None if it has nothing to do."""
        steps = {
            "refresh": self._refresh,
            "merge": self._merge,
            "cluster": self._cluster,
            "advise": self._advise,
            "vacuum": self._vacuum,
        }
        return steps[step](budget)

    def _refresh(self, _: Budget) -> Offer | None:
        state = self.state
        is_new, n_vanished = state.rows < 0, len(state.vanished)
        n_new = int(is_new.sum())
        if not has_any(state) or not (n_new or n_vanished):
            return None
        n_bytes = int(state.sizes[is_new].sum())

        def do(_: Budget) -> tuple[int, str]:
            report = refresh(self.state, runner=runner_of(None, self._workers))
            self.state = report.table
            return n_bytes + report.n_bytes, _head(str(report))

        why = f"{n_new} files have no index, {n_vanished} are deleted or changed"
        return Offer("refresh", n_bytes, why, do)

    def _merge(self, _: Budget) -> Offer | None:
        packs = self.state.snapshot.manifest.packs
        chosen = small(self.state.snapshot.manifest, MAX_FILES, MAX_BYTES)
        n_alike = len(chosen) - len({index_keys(packs[n]) for n in chosen})
        if n_alike + 1 < CROWD:  # packs with other indexes may stay apart
            return None
        n_bytes = 2 * sum(packs[n].size for n in chosen)

        def do(_: Budget) -> tuple[int, str]:
            self.state, notes = merge(self.state)
            left = len(self.state.snapshot.manifest.packs)
            told = f"merged {len(packs)} index files into {left}"
            return n_bytes, "; ".join([told, *notes])

        why = f"{len(chosen)} index files are small"
        return Offer("merge", n_bytes, why, do)

    def _cluster(self, budget: Budget) -> Offer | None:
        state = self.state
        layout, in_place = state.snapshot.properties.layout, self.policy.in_place
        if layout is None and not self._is_enough():
            return None
        room = int(min(budget.bytes_left(_RATES["cluster"]) / 2, state.n_bytes))
        # Under a budget a run improves old files until it ends; without one it rewrites
        # what is new, with what is light enough for that.
        limit = room if budget.is_limited else None
        asked = OptimizeOptions(budget=limit, in_place=in_place)
        try:
            require_own(state, in_place=in_place)
        except TableError as error:  # others write it: it is left as it is
            self.notes.append(f"cluster: {first_line(error)}")
            return None
        if layout is None:
            if not in_place or self._share * len(state) <= 1:
                return None
            why = "it has no layout"
            return self._clustering(asked, 2 * room, why, anew=True)
        former = _weights(layout.get("workload"))
        apart = drift(self.record.weights, former) if former else 0.0
        if apart >= _CHANGED and self._is_enough():
            why = f"{apart:.0%} of the queries are not those of the layout"
            return self._clustering(asked, 2 * room, why, anew=True)
        chosen = choose_groups(state, asked, wanted_of(state))
        if not chosen.groups:
            return None
        n_files = sum(len(group.files) for group in chosen.groups)
        why = f"{n_files} files are new, or overlap"
        return self._clustering(asked, 2 * chosen.n_bytes, why)

    def _now(self) -> str:
        n_files = len(self.state)
        return f"a recorded query reads {self._share * n_files:.1f} of {n_files} files"

    def _clustering(
        self,
        asked: OptimizeOptions,
        n_bytes: int,
        why: str,
        *,
        anew: bool = False,
    ) -> Offer | None:
        if self._session is None:
            told = f"{why}, and {self._now()}" if anew else why
            self.notes.append(
                f"cluster: it needs Spark (accepted: spark=spark): {told}"
            )
            return None
        start = self._session

        def tried() -> str:
            return f"{why}: {self._promised(self._chosen(start(), asked))[1]}"

        def do(budget: Budget) -> tuple[int, str]:
            with needs_spark():
                from skipindex.spark.writers.optimize import optimize  # noqa: PLC0415
            taken, told, began = 0, "nothing was rewritten", time.monotonic()
            options = self._chosen(start(), asked) if anew else asked
            if self.state.snapshot.properties.layout is None:
                pays, promised = self._promised(options)
                if not pays:
                    return 0, f"nothing was rewritten: {promised}"
            while True:
                seconds = time.monotonic() - began
                rate = taken / seconds if taken else _RATES["cluster"]
                left = budget.bytes_left(rate) / 2
                batch = left if budget.seconds is None else min(left, rate * _BATCH / 2)
                room = int(min(batch, self.state.n_bytes))
                if room <= 0:
                    break
                if budget.is_limited:
                    options = replace(options, budget=room)
                report = optimize(start(), self.state, options)
                self.state, options = report.table, replace(options, chosen=None)
                if not report.files_in:
                    break
                told = _head(str(report))
                taken += report.bytes_in + report.bytes_out
                budget.spend(report.bytes_in + report.bytes_out)
                if batch == left:
                    break
            return taken, told

        shown = tried if anew else None
        return Offer("cluster", n_bytes, why, do, is_divisible=True, tried=shown)

    def _chosen(self, spark: SparkSession, asked: OptimizeOptions) -> OptimizeOptions:
        """What is asked, with the layout that a sample suggests for the queries."""
        with needs_spark():
            from skipindex.spark.writers.optimize import with_choice  # noqa: PLC0415
        return with_choice(spark, self.state, self._workload(), asked)

    def _promised(self, options: OptimizeOptions) -> tuple[bool, str]:
        """Whether a chosen layout pays for a rewrite, and what a sample promises."""
        chosen = options.chosen or {}
        scores = dict(chosen["files_read_on_sample"])
        everything = scores.pop("all")
        share = min(scores.values()) / everything
        names = ", ".join(chosen["cluster_by"])
        told = f"clustered by {names} about {share:.0%} of them, on a sample"
        return share <= (1 - _CHANGED) * self._share, f"{self._now()}, {told}"

    def _is_enough(self) -> bool:
        return sum(self.record.weights.values()) >= self.policy.least_queries

    def _workload(self) -> Workload | None:
        record = self.record
        if not record.weights:
            return None
        weights = [float(n) for n in record.weights.values()]
        return Workload(record.weights, weights=weights, timezone=record.zone)

    def _advise(self, _: Budget) -> Offer | None:
        state = self.state
        if not has_any(state) or not self._is_enough():
            return None
        texts = self.record.texts()
        wish = (state.snapshot.properties.choice or {}).get("wish")
        former = _texts(wish.get("queries")) if isinstance(wish, dict) else []
        if (apart := drift(Counter(texts), Counter(former))) < _CHANGED:
            return None
        criteria = AdviceRequest(
            queries=texts,
            max_bytes_ratio=self.policy.max_bytes_ratio,
            timezone=self.record.zone,
        )

        def do(_: Budget) -> tuple[int, str]:
            runner = runner_of(None, self._workers)
            report = build_advised(self.state, None, criteria, runner=runner)
            self.state = report.table
            return state.n_bytes, _head(str(report))

        why = f"{apart:.0%} of the queries are not those of the choice of indexes"
        return Offer("advise", state.n_bytes, why, do)

    def _vacuum(self, _: Budget) -> Offer | None:
        snapshot = self.state.snapshot
        keep = retention_of(snapshot.properties).total_seconds()
        n_due, n_waste = due(snapshot, time.time() - keep)
        if not (n_due or n_waste):
            return None
        why = f"{n_due} rewritten files can be published, {n_waste} deletions are due"
        if not self.policy.publish:
            self.notes.append(
                f"vacuum: {why} (accepted: publish = true in the policy, if no reader "
                "lists the folder meanwhile)"
            )
            return None

        def do(_: Budget) -> tuple[int, str]:
            report = vacuum(self.state)
            self.state = self.state.refresh()
            return 0, _head(str(report))

        return Offer("vacuum", 0, why, do)


def _head(text: str) -> str:
    """The first line of a report."""
    return text.partition("\n")[0]


def _texts(value: object) -> list[str]:
    """The texts of a property, which a commit may hold in any form."""
    if not isinstance(value, list | tuple):
        return []
    return [text for text in value if isinstance(text, str)]


def _weights(value: object) -> dict[str, float]:
    """The queries of a layout's workload, which a commit may hold in any form."""
    with suppress(SkipIndexError, LookupError, TypeError, ValueError):
        if isinstance(value, dict):
            workload = Workload.from_json(value)
            return dict(zip(workload.queries, workload.weights, strict=True))
    return {}
