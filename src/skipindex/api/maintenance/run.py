"""Taking the steps of maintenance in their order, within a budget."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from skipindex.api.calls import log_action
from skipindex.api.maintenance.policy import STEPS, Budget, Policy
from skipindex.api.maintenance.report import MaintainReport, StepReport
from skipindex.api.maintenance.steps import Session, Subject
from skipindex.errors import (
    CommitConflictError,
    SkipIndexError,
    StorageError,
    first_line,
)
from skipindex.rewrite.expiry import expire
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import FOLDER, is_data_file
from skipindex.table import TableState

_MOST: Final = 10
"""Tables without indexes that a line names."""


@dataclass(slots=True)
class _Run:
    """One table in a run, with the steps that were tried on it."""

    table: str
    subject: Subject | None = None
    steps: list[StepReport] = field(default_factory=list)
    before: int = 0

    @contextmanager
    def trying(self, step: str) -> Iterator[None]:
        """Notes the error of a step, which stops no other step."""
        began = time.perf_counter()
        try:
            yield
        except (SkipIndexError, OSError) as error:
            seconds = time.perf_counter() - began
            told = f"not done: {first_line(error)}"
            # The next run does what another writer was faster than.
            is_wrong = not isinstance(error, CommitConflictError)
            failed = StepReport(step, self.table, 0, seconds, 0, False, told, is_wrong)
            self.steps.append(failed)


def maintain_all(
    tables: Sequence[tuple[str, Callable[[], TableState]]],
    policy: Policy,
    budget: Budget,
    *,
    dry_run: bool,
    session: Session | None,
    workers: int | None,
) -> list[MaintainReport]:
    """Maintain tables under one budget, each step on all of them.

    A table has its name, and is opened here: one that cannot be opened has the step
    ``open``, which failed, and the others are maintained.
    """
    began = time.perf_counter()
    runs = [_Run(name) for name, _ in tables]
    for run, (_, opened) in zip(runs, tables, strict=True):
        with run.trying("open"):
            run.subject = Subject(opened(), policy, session, workers)
            run.table = run.subject.state.folder
    for name in (step for step in STEPS if step in policy.steps):
        for run in runs:
            if (subject := run.subject) is not None:
                with run.trying(name):
                    run.steps += _taken(run, subject, name, budget, dry_run=dry_run)
    reports = []
    for run in runs:
        subject = run.subject
        if subject is not None and not dry_run:
            with run.trying("vacuum"):
                run.steps += _expired(subject)
        ran = [step for step in run.steps if step.done]
        report = MaintainReport(
            run.table,
            tuple(run.steps),
            0 if subject is None else subject.record.n_queries,
            policy.days,
            run.before,
            subject.reads if subject is not None and ran else run.before,
            sum(step.n_bytes for step in ran),
            time.perf_counter() - began,
            dry_run,
            () if subject is None else tuple(subject.notes),
        )
        if ran:
            log_action("maintenance", run.table, report)
        reports.append(report)
    return reports


def _taken(
    run: _Run, subject: Subject, name: str, budget: Budget, *, dry_run: bool
) -> Iterator[StepReport]:
    """A step that has something to do, and is done unless the budget is too small."""
    if (offer := subject.offer(name, budget)) is None:
        return
    run.before = run.before or subject.reads
    why = offer.refused(budget)
    if dry_run or why:
        told = why or (offer.tried() if offer.tried else offer.why)
        yield StepReport(name, run.table, offer.n_bytes, 0.0, 0, False, told)
        return
    began, before = time.perf_counter(), subject.reads
    n_bytes, told = offer.do(budget)
    seconds = time.perf_counter() - began
    if not offer.is_divisible:  # else each part was spent
        budget.spend(n_bytes)
    gain = before - subject.reads
    yield StepReport(name, run.table, n_bytes, seconds, gain, True, told)


def _expired(subject: Subject) -> Iterator[StepReport]:
    """Delete the history that the retention is over for; it makes no commit."""
    began = time.perf_counter()
    if "vacuum" not in subject.policy.steps:
        return
    if deleted := expire(subject.state.location, known=subject.state.snapshot):
        seconds = time.perf_counter() - began
        told = f"deleted {len(deleted)} files of old commits"
        yield StepReport("vacuum", subject.state.folder, 0, seconds, 0, True, told)


def tables_below(root: Location, *, plain: bool = False) -> tuple[list[str], list[str]]:
    """The tables with indexes below a folder, and those without.

    An Iceberg table is its newest metadata file, as no folder tells its catalog; not
    with ``plain``, nor if Delta wrote that file for others.  A folder that cannot be
    listed is among those with indexes: it cannot be opened, and may have some.
    """
    indexed, delta, others = set[str](), set[str](), set[str]()
    newest: dict[str, FileInfo] = {}
    closed: list[str] = []
    for file in _listed(root, "", closed):
        *folders, name = file.path.split("/")
        if FOLDER in folders:
            indexed.add("/".join(folders[: folders.index(FOLDER)]))
        elif "_delta_log" in folders:
            delta.add("/".join(folders[: folders.index("_delta_log")]))
        elif folders[-1:] == ["metadata"] and name.endswith(".metadata.json"):
            folder = "/".join(folders[:-1])
            newest[folder] = max(file, newest.get(folder, file), key=_age)
        elif name.endswith(".parquet") and is_data_file(file.path):
            others.add("/".join(takewhile(lambda one: "=" not in one, folders)))
    others |= delta | newest.keys()
    hidden = (one.split("/") for one in closed if FOLDER in one.split("/"))
    indexed |= {"/".join(parts[: parts.index(FOLDER)]) for parts in hidden}
    known = indexed | others
    bare = {one for one in others - indexed if known.isdisjoint(_above(one))}
    indexed |= {one for one in closed if known.isdisjoint({one, *_above(one)})}
    by_file = {} if plain else {one: newest[one].path for one in newest.keys() - delta}
    paths = (root.plain_path(by_file.get(one, one)) for one in sorted(indexed))
    return [*paths], [*map(root.plain_path, sorted(bare - {""}))]


def _listed(root: Location, folder: str, closed: list[str]) -> Iterator[FileInfo]:
    """The files below a folder; ``closed`` gets the folders that cannot be listed."""
    try:
        yield from list(root.list_own(folder))
    except StorageError:
        try:
            entries = list(root.entries(folder))
        except StorageError:
            if not folder:
                raise
            closed.append(folder)
            return
        for one in entries:
            path = one.path.rstrip("/")
            if path == one.path:
                yield one
            elif not root.link_on_the_way(path):
                yield from _listed(root, path, closed)


def _age(file: FileInfo) -> tuple[int, int]:
    """The number that the name of a metadata file begins with, and its time."""
    number = re.match(r"v?(\d+)", file.path.rpartition("/")[2])
    return int(number[1]) if number else -1, file.mtime


def passed_over(without: Sequence[str]) -> str:
    """A line of tables without indexes; empty if there are none."""
    more = f" and {len(without) - _MOST:,} more" if len(without) > _MOST else ""
    listed = ", ".join(without[:_MOST])
    return f"without indexes, and passed over: {listed}{more}" if without else ""


def _above(path: str) -> Iterator[str]:
    """The folders above a folder, but for the root."""
    while path := path.rpartition("/")[0]:
        yield path
