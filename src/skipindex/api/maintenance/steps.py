"""The steps of maintenance: what each would cost and gain, and how it is done."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import numpy as np

from skipindex.advice.advised_build import (
    AdviceRequest,
    advise_under_cap,
    build_advised,
)
from skipindex.api.calls import needs_spark, runner_of
from skipindex.api.maintenance.policy import Budget, Policy
from skipindex.api.maintenance.report import MAX_RUNS_BYTES, MOST_SHAPES, Run, runs_of
from skipindex.build.builder import refresh
from skipindex.build.merge import merge
from skipindex.build.tiers import CROWD, MAX_BYTES, MAX_FILES, index_keys, small
from skipindex.build.wanted import has_any, wanted_of
from skipindex.errors import SkipIndexError, first_line
from skipindex.layout import Workload
from skipindex.log.properties import retention_of
from skipindex.planner.plan import plan_files
from skipindex.planner.sql.recorded import RecordedQueries, drift, shapes_of
from skipindex.rewrite.optimize import OptimizeOptions, choose_groups, require_own
from skipindex.rewrite.vacuum import vacuum
from skipindex.storage.file_system.names import RUNS
from skipindex.table import TableState
from skipindex.table.queries import Journal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Session = Callable[[], "SparkSession"]
"""Starts a session of Spark, or gives the one there is."""

_RATES: Final = {"refresh": 40e6, "merge": 100e6, "cluster": 8e6, "advise": 20e6}
"""Bytes of a second, until such a step has run on the table."""
_SHARES: Final = {"cluster": 0.5, "advise": 0.3}
"""What a step is expected to spare of what queries read, until it has run."""
_MEASURED: Final = 5
"""Newest runs that a price or a gain is measured on."""
_REQUEST: Final = 64 << 10
"""Bytes that take as long to read as the request for a pack."""
_BATCH: Final = 60.0
"""Seconds that a rewrite is expected to take, if the budget is of time."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A step that could be taken.

    Args:
        subject: the table.
        step: its name.
        n_bytes: the bytes that it would read and write.
        gain: the bytes that the recorded queries would not read.
        why: what there is to do.
        do: does it within a budget; the bytes that it took, and what it did.
        is_divisible: a part of it can be done.
    """

    subject: Subject
    step: str
    n_bytes: int
    gain: int
    why: str
    do: Callable[[Budget], tuple[int, str]]
    is_divisible: bool = False

    @property
    def seconds(self) -> float:
        """What it would take, by what such steps took on this table."""
        return self.n_bytes / self.subject.rate(self.step)

    @property
    def worth(self) -> float:
        """The gain by the price."""
        return self.gain / max(1, self.n_bytes)

    def refused(self, budget: Budget) -> str:
        """Why it is not done; empty if it is."""
        least = self.subject.policy.pays * self.n_bytes
        if self.gain < least and self.subject.record.weights:
            return f"it does not pay: {self.why}"
        left = budget.bytes_left(self.subject.rate(self.step))
        if left <= 0:
            return f"the budget is spent: {self.why}"
        if self.n_bytes > left and not self.is_divisible:
            return (
                f"it does not fit into what is left of the budget, {left / 1e6:.1f} "
                f"MB: {self.why}"
            )
        return ""


@dataclass(frozen=True, slots=True)
class Reads:
    """What the recorded queries read of a table.

    Args:
        n_bytes: of all queries together.
        counts: by file, the queries that read it.
    """

    n_bytes: int
    counts: np.ndarray


class Subject:
    """A table, with what was asked of it and what earlier steps took.

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
        self.state, self.policy = state, policy
        self._session, self._workers = session, workers
        self.notes: list[str] = []
        since = time.time() - policy.days * 86400
        place = state.location
        self.record = RecordedQueries.of(place, policy.queries, since=since)
        self._runs = runs_of(place)
        self._journal = Journal(place, RUNS, MAX_RUNS_BYTES)
        self._reads: tuple[TableState, Reads] | None = None

    def rate(self, step: str) -> float:
        """The bytes that such a step takes in a second on this table."""
        mine = self._measured(step)
        seconds = sum(run.seconds for run in mine)
        known = sum(run.n_bytes for run in mine)
        return known / seconds if seconds > 0 and known else _RATES.get(step, 1e8)

    def _measured(self, step: str) -> list[Run]:
        return [run for run in self._runs if run.step == step][-_MEASURED:]

    def _share(self, step: str) -> float:
        """The part of what queries read that such a step has spared on this table."""
        mine = [run for run in self._measured(step) if run.expected]
        if not mine:
            return _SHARES[step]
        spared = sum(run.before - run.after for run in mine)
        ratio = spared / sum(run.expected for run in mine)
        return _SHARES[step] * min(2.0, max(0.1, ratio))

    @property
    def reads(self) -> Reads:
        """What the recorded queries read now."""
        if self._reads is None or self._reads[0] is not self.state:
            self._reads = self.state, self._planned()
        return self._reads[1]

    def _planned(self) -> Reads:
        state, n_bytes = self.state, 0
        counts = np.zeros(len(state), np.int64)
        for where, n in self.record.weights.items():
            with suppress(SkipIndexError):  # of a column that no longer exists
                plan = plan_files(where, table=state, timezone=self.record.zone)
                possible = plan.evaluation.possible
                n_bytes += n * int(state.sizes[possible].sum())
                counts[possible] += n
        return Reads(n_bytes, counts)

    @cached_property
    def drift(self) -> float:
        """The part of the queries that has new shapes since indexes were chosen."""
        known = [run.shapes for run in self._runs if run.shapes]
        choice = self.state.snapshot.properties.choice or {}
        wish = choice.get("wish")
        texts = wish.get("queries") if isinstance(wish, dict) else None
        former = known[-1] if known else _marks(shapes_of(_texts(texts)))
        return drift(_marks(self.record.shapes), former)

    def offers(self, budget: Budget) -> Iterator[Offer]:
        """The steps that have something to do."""
        steps = {
            "refresh": self._refresh,
            "merge": self._merge,
            "cluster": self._cluster,
            "advise": self._advise,
            "vacuum": self._vacuum,
        }
        for name in self.policy.steps:
            try:
                offer = steps[name](budget)
            except SkipIndexError as error:
                self.notes.append(f"{name}: {first_line(error)}")
            else:
                if offer is not None:
                    yield offer

    def keep(self, offer: Offer, n_bytes: int, seconds: float, before: int) -> None:
        """Record a step that was taken, for the prices of later ones."""
        shapes = _marks(self.record.shapes) if offer.step == "advise" else {}
        after, now = self.reads.n_bytes, round(time.time(), 3)
        run = Run(now, offer.step, n_bytes, seconds, before, after, offer.gain, shapes)
        with suppress(SkipIndexError, OSError):
            self._journal.write([asdict(run)])

    def _refresh(self, _: Budget) -> Offer | None:
        state = self.state
        is_new, n_vanished = state.rows < 0, len(state.vanished)
        n_new = int(is_new.sum())
        if not has_any(state) or not (n_new or n_vanished):
            return None
        n_bytes = int(state.sizes[is_new].sum())
        read = state.sizes * self.reads.counts
        n_queries = sum(self.record.weights.values())
        indexed = n_queries * int(state.sizes[~is_new].sum())
        kept = int(read[~is_new].sum()) / indexed if indexed else 0.0
        gain = int(read[is_new].sum() * (1 - kept)) if n_queries else n_bytes

        def do(_: Budget) -> tuple[int, str]:
            report = refresh(self.state, runner=runner_of(None, self._workers))
            self.state = report.table
            return n_bytes + report.n_bytes, _head(str(report))

        why = f"{n_new} files have no index, {n_vanished} are deleted or changed"
        return Offer(self, "refresh", n_bytes, max(gain, n_bytes), why, do)

    def _merge(self, _: Budget) -> Offer | None:
        packs = self.state.snapshot.manifest.packs
        chosen = small(self.state.snapshot.manifest, MAX_FILES, MAX_BYTES)
        n_alike = len(chosen) - len({index_keys(packs[n]) for n in chosen})
        if n_alike + 1 < CROWD:  # packs with other indexes may stay apart
            return None
        n_bytes = 2 * sum(packs[n].size for n in chosen)
        n_queries = max(1, sum(self.record.weights.values()))

        def do(_: Budget) -> tuple[int, str]:
            self.state, notes = merge(self.state)
            left = len(self.state.snapshot.manifest.packs)
            told = f"merged {len(packs)} index files into {left}"
            return n_bytes, "; ".join([told, *notes])

        gain = n_queries * n_alike * _REQUEST
        why = f"{len(chosen)} index files are small"
        return Offer(self, "merge", n_bytes, gain, why, do)

    def _cluster(self, budget: Budget) -> Offer | None:
        state = self.state
        layout = state.snapshot.properties.layout
        if layout is None:
            return None
        room = int(min(budget.bytes_left(self.rate("cluster")) / 2, state.n_bytes))
        # Under a budget a run improves old files until it ends; without one it rewrites
        # what is new, with what is light enough for that.
        limit = room if budget.is_limited else None
        asked = OptimizeOptions(budget=limit, queries=self._workload())
        require_own(state, in_place=False)
        known = layout.get("workload")
        former = _texts(known.get("queries")) if isinstance(known, dict) else []
        apart = drift(self.record.shapes, shapes_of(former)) if former else 0.0
        if apart >= self.policy.drift and self._is_enough():
            gain = self.reads.n_bytes * apart * self._share("cluster")
            why = f"{apart:.0%} of the queries are not those of the layout"
            n_bytes = 2 * min(room, state.n_bytes)
            return self._clustering(asked, n_bytes, int(gain), why, anew=True)
        chosen = choose_groups(state, asked, wanted_of(state))
        if not chosen.groups:
            return None
        paths = {file.path for group in chosen.groups for file in group.files}
        mine = np.array([path in paths for path in state.paths], np.bool_)
        read = int((state.sizes * self.reads.counts)[mine].sum())
        n_bytes = 2 * chosen.n_bytes
        gain = read * self._share("cluster") if self.record.weights else n_bytes
        why = f"{len(paths)} files are new, or overlap"
        return self._clustering(asked, n_bytes, int(gain), why)

    def _clustering(
        self,
        asked: OptimizeOptions,
        n_bytes: int,
        gain: int,
        why: str,
        *,
        anew: bool = False,
    ) -> Offer | None:
        if self._session is None:
            self.notes.append(f"cluster: it needs Spark (accepted: spark=spark): {why}")
            return None
        start = self._session

        def do(budget: Budget) -> tuple[int, str]:
            with needs_spark():
                from skipindex.spark.writers.optimize import optimize  # noqa: PLC0415
            taken, told, began = 0, "nothing was rewritten", time.monotonic()
            options, workload = asked, asked.queries if anew else None
            while True:
                seconds = time.monotonic() - began
                rate = taken / seconds if taken else self.rate("cluster")
                left = budget.bytes_left(rate) / 2
                batch = left if budget.seconds is None else min(left, rate * _BATCH / 2)
                room = int(min(batch, self.state.n_bytes))
                if room <= 0:
                    break
                if budget.is_limited:
                    options = replace(options, budget=room)
                report = optimize(start(), self.state, options, workload=workload)
                self.state, workload = report.table, None
                if not report.files_in:
                    break
                told = _head(str(report))
                taken += report.bytes_in + report.bytes_out
                budget.spend(report.bytes_in + report.bytes_out)
                if batch == left:
                    break
            return taken, told

        return Offer(self, "cluster", n_bytes, gain, why, do, is_divisible=True)

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
        if self.drift < self.policy.drift:
            return None
        n_bytes = state.n_bytes
        gain = int(self.reads.n_bytes * self.drift * self._share("advise"))
        return Offer(
            self,
            "advise",
            n_bytes,
            gain,
            f"{self.drift:.0%} of the queries are not those of the choice of indexes",
            self._do_advise,
        )

    def _do_advise(self, _: Budget) -> tuple[int, str]:
        state = self.state
        criteria = AdviceRequest(
            queries=self.record.texts(),
            max_bytes_ratio=self.policy.max_bytes_ratio,
            timezone=self.record.zone,
        )
        advice = advise_under_cap(state, criteria)
        known = [one for one in advice.queries if one.files_now is not None]
        now = sum(one.files_now or 0 for one in known)
        then = sum(one.files_then for one in known)
        spared = self.reads.n_bytes * (1 - then / now) if now else 0.0
        sampled = state.n_bytes * advice.n_files // max(1, len(state))
        if spared < self.policy.pays * state.n_bytes:
            return sampled, f"the indexes stay: {_head(advice.to_text())}"
        report = build_advised(
            state,
            None,
            criteria,
            runner=runner_of(None, self._workers),
            advice=advice,
        )
        self.state = report.table
        return sampled + state.n_bytes, _head(advice.to_text())

    def _vacuum(self, _: Budget) -> Offer | None:
        snapshot = self.state.snapshot
        rewrites, keep = snapshot.rewrites, retention_of(snapshot.properties)
        begin = time.time() - keep.total_seconds()
        due = [one for one in rewrites.replacements if one.since <= begin]
        old = [one.since for one in rewrites.shown]
        old += [one.since for one in rewrites.trash]
        n_due, n_waste = sum(len(one.new) for one in due), sum(t <= begin for t in old)
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

        return Offer(self, "vacuum", 0, 0, why, do)


def _marks(shapes: Mapping[str, int]) -> dict[str, int]:
    """The most frequent shapes by short marks, so that a record of runs has no text."""
    most = Counter(shapes).most_common(MOST_SHAPES)
    return {blake2b(s.encode(), digest_size=8).hexdigest(): n for s, n in most}


def _head(text: str) -> str:
    """The first line of a report."""
    return text.partition("\n")[0]


def _texts(value: object) -> list[str]:
    """The texts of a property, which a commit may hold in any form."""
    if not isinstance(value, list | tuple):
        return []
    return [text for text in value if isinstance(text, str)]
