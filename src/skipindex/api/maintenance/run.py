"""Taking the steps of maintenance in their order, within a budget."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Final

from skipindex.api.calls import log_action
from skipindex.api.maintenance.policy import STEPS, Budget, Policy
from skipindex.api.maintenance.report import MaintainReport, StepReport
from skipindex.api.maintenance.steps import Offer, Session, Subject
from skipindex.errors import (
    CommitConflictError,
    SkipIndexError,
    first_line,
)
from skipindex.rewrite.expiry import expire
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import FOLDER, is_data_file
from skipindex.table import TableState

_MOST: Final = 10
"""Tables without indexes that a line names."""


def maintain_all(
    states: Sequence[TableState],
    policy: Policy,
    budget: Budget,
    *,
    dry_run: bool,
    session: Session | None,
    workers: int | None,
) -> dict[str, MaintainReport]:
    """Maintain tables under one budget, each step on all of them; by folder."""
    began = time.perf_counter()
    subjects = [Subject(state, policy, session, workers) for state in states]
    before = dict.fromkeys(subjects, 0)
    steps: dict[Subject, list[StepReport]] = {one: [] for one in subjects}
    for name in (step for step in STEPS if step in policy.steps):
        for one in subjects:
            if (offer := one.offer(name, budget)) is None:
                continue
            before[one] = before[one] or one.reads
            why = offer.refused(budget)
            if dry_run or why:
                told = why or offer.why
                step = _report(one, offer, offer.n_bytes, 0.0, 0, told)
            else:
                step = _taken(one, offer, budget)
            steps[one].append(step)
    reports = {}
    for one in subjects:
        mine = steps[one]
        if not dry_run:
            mine += _expired(one)
        ran = [step for step in mine if step.done]
        reports[one.state.folder] = MaintainReport(
            one.state.folder,
            tuple(mine),
            one.record.n_queries,
            policy.days,
            before[one],
            one.reads if ran else before[one],
            sum(step.n_bytes for step in ran),
            time.perf_counter() - began,
            dry_run,
            tuple(one.notes),
        )
        if ran:
            log_action("maintenance", one.state.folder, reports[one.state.folder])
    return reports


def _taken(subject: Subject, offer: Offer, budget: Budget) -> StepReport:
    """Take a step; that another writer was first is no error."""
    began, before = time.perf_counter(), subject.reads
    try:
        n_bytes, told = offer.do(budget)
    except SkipIndexError as error:
        seconds = time.perf_counter() - began
        told = f"not done: {first_line(error)}"
        result = _report(subject, offer, 0, seconds, 0, told)
        return replace(result, failed=not isinstance(error, CommitConflictError))
    seconds = time.perf_counter() - began
    if not offer.is_divisible:  # else each part was spent
        budget.spend(n_bytes)
    gain = before - subject.reads
    return _report(subject, offer, n_bytes, seconds, gain, told, done=True)


def _report(
    subject: Subject,
    offer: Offer,
    n_bytes: int,
    seconds: float,
    gain: int,
    told: str,
    *,
    done: bool = False,
) -> StepReport:
    folder = subject.state.folder
    return StepReport(offer.step, folder, n_bytes, seconds, gain, done, told)


def _expired(subject: Subject) -> list[StepReport]:
    """Delete the history that the retention is over for; it makes no commit."""
    began = time.perf_counter()
    if "vacuum" not in subject.policy.steps:
        return []
    deleted = expire(subject.state.location, known=subject.state.snapshot)
    if not deleted:
        return []
    seconds = time.perf_counter() - began
    told = f"deleted {len(deleted)} files of old commits"
    return [StepReport("vacuum", subject.state.folder, 0, seconds, 0, True, told)]


def tables_below(root: Location) -> tuple[list[str], list[str]]:
    """The tables with indexes below a folder, and those without."""
    indexed, others = set[str](), set[str]()
    for file in root.list_own():
        *folders, name = file.path.split("/")
        if FOLDER in folders:
            indexed.add("/".join(folders[: folders.index(FOLDER)]))
        elif "_delta_log" in folders:
            others.add("/".join(folders[: folders.index("_delta_log")]))
        elif folders[-1:] == ["metadata"] and name.endswith(".metadata.json"):
            others.add("/".join(folders[:-1]))
        elif name.endswith(".parquet") and is_data_file(file.path):
            others.add("/".join(takewhile(lambda one: "=" not in one, folders)))
    known = indexed | others
    bare = {one for one in others - indexed if known.isdisjoint(_above(one))}
    tables, without = (
        [root.plain_path(path) for path in sorted(some)]
        for some in (indexed, bare - {""})
    )
    return tables, without


def passed_over(without: Sequence[str]) -> str:
    """A line of tables without indexes; empty if there are none."""
    more = f" and {len(without) - _MOST:,} more" if len(without) > _MOST else ""
    listed = ", ".join(without[:_MOST])
    return f"without indexes, and passed over: {listed}{more}" if without else ""


def _above(path: str) -> Iterator[str]:
    """The folders above a folder, but for the root."""
    while path := path.rpartition("/")[0]:
        yield path
