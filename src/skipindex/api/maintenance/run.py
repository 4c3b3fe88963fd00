"""Taking the steps of maintenance in the order of their worth, within a budget."""

from __future__ import annotations

import time
from collections.abc import Sequence

from skipindex.api.calls import log_action
from skipindex.api.maintenance.policy import Budget, Policy
from skipindex.api.maintenance.report import MaintainReport, StepReport
from skipindex.api.maintenance.steps import Offer, Session, Subject
from skipindex.errors import SkipIndexError, TableError, first_line
from skipindex.rewrite.expiry import expire
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import FOLDER
from skipindex.table import TableState


def maintain_all(
    states: Sequence[TableState],
    policy: Policy,
    budget: Budget,
    *,
    dry_run: bool,
    session: Session | None,
    workers: int | None,
) -> dict[str, MaintainReport]:
    """Maintain tables under one budget, which goes where it gains most; by folder."""
    began = time.perf_counter()
    subjects = [Subject(state, policy, session, workers) for state in states]
    offers = [offer for one in subjects for offer in one.offers(budget)]
    before = {one: one.reads.n_bytes if offers else 0 for one in subjects}
    drift = {one: one.drift if one.record.n_queries else 0.0 for one in subjects}
    steps: list[StepReport] = []
    for offer in sorted(offers, key=lambda one: -one.worth):
        why = offer.refused(budget)
        if dry_run or why:
            told = why or offer.why
            steps.append(_report(offer, offer.n_bytes, offer.seconds, offer.gain, told))
        else:
            steps.append(_taken(offer, budget))
    reports = {}
    for one in subjects:
        mine = [step for step in steps if step.table == one.state.folder]
        if not dry_run:
            mine += _expired(one)
        ran = [step for step in mine if step.done]
        reports[one.state.folder] = MaintainReport(
            one.state.folder,
            tuple(mine),
            one.record.n_queries,
            policy.days,
            before[one],
            one.reads.n_bytes if ran else before[one],
            sum(step.n_bytes for step in ran),
            time.perf_counter() - began,
            dry_run,
            drift[one],
            tuple(one.notes),
        )
        if ran:
            log_action("maintenance", one.state.folder, reports[one.state.folder])
    return reports


def _taken(offer: Offer, budget: Budget) -> StepReport:
    """Take a step; that another writer was first is no error."""
    subject, began = offer.subject, time.perf_counter()
    before = subject.reads.n_bytes
    try:
        n_bytes, told = offer.do(budget)
    except SkipIndexError as error:
        seconds = time.perf_counter() - began
        return _report(offer, 0, seconds, 0, f"not done: {first_line(error)}")
    seconds = time.perf_counter() - began
    if not offer.is_divisible:  # else each part was spent
        budget.spend(n_bytes)
    subject.keep(offer, n_bytes, seconds, before)
    gain = before - subject.reads.n_bytes
    return _report(offer, n_bytes, seconds, gain, told, done=True)


def _report(
    offer: Offer,
    n_bytes: int,
    seconds: float,
    gain: int,
    told: str,
    *,
    done: bool = False,
) -> StepReport:
    folder = offer.subject.state.folder
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


def tables_below(root: Location) -> list[str]:
    """The folders of the tables with indexes below a folder that is none itself.

    Raises:
        TableError: there are none.
    """
    result = [
        folder.path.removesuffix(FOLDER).rstrip("/")
        for folder in root.list_folders()
        if folder.path.endswith(f"/{FOLDER}")
    ]
    if not result:
        raise TableError(
            f"no table with indexes is below {root.full('')!r} (accepted: a table, or "
            "a folder of tables that have indexes)"
        )
    return [root.plain_path(path) for path in sorted(result)]
