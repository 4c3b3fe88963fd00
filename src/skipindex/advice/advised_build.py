"""Builds with the advisor's choice, which the table's log records.

A later build with the same arguments, for instance after an append, builds what was
chosen then, so that all files have the same indexes.  Other columns, queries or another
cap choose again, and so does a build after indexes were dropped.  Indexes that a new
choice leaves out are dropped, unless they were named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from skipindex.advice import MAX_BYTES_RATIO, Advice, advise
from skipindex.advice.advise import asked_in
from skipindex.build.builder import BuildReport, build, refresh
from skipindex.build.column_requests import Request
from skipindex.build.runners import Progress, Runner
from skipindex.build.wanted import (
    SpecKey,
    SpecsByColumn,
    asked_for,
    chosen_for,
    has_any,
    restrictions,
    spec_keys,
    to_json,
    with_asked,
)
from skipindex.errors import AdviceError, UnknownIndexError
from skipindex.indexes import spec_from_json
from skipindex.log.properties import TableProperties
from skipindex.planner.recorded import RecordedQueries
from skipindex.storage.blobs import spec_key
from skipindex.table import TableState
from skipindex.table.queries import is_of_log

_CRITERIA: Final = "wish"
"""The name that commits have for them."""
_NOTHING: Final = 1e-12
"""The part of the cap that is left if indexes that were named take all of it."""


@dataclass(frozen=True, slots=True)
class AdviceRequest:
    """What the advisor chooses by: the arguments of ``advise``."""

    columns: Sequence[str] | None = None
    queries: Sequence[str] | None = None
    max_bytes_ratio: float = MAX_BYTES_RATIO
    timezone: str | None = None

    def resolved(self, table: TableState) -> AdviceRequest:
        """The same, with the queries that a record has now."""
        if not is_of_log(self.queries):
            return self
        record = RecordedQueries.of(table.location, str(self.queries))
        queries, columns = asked_in(table, record, self.columns)
        zone = self.timezone or record.zone
        return replace(self, queries=queries, columns=columns, timezone=zone)

    def to_json(self) -> dict[str, Any]:
        """The request as a table remembers it."""
        return {
            "columns": _listed(self.columns),
            "queries": _listed(self.queries),
            "max_bytes_ratio": self.max_bytes_ratio,
            "timezone": self.timezone,
        }


def _listed(texts: Sequence[str] | None) -> list[str] | None:
    if texts is None:
        return None
    return [texts] if isinstance(texts, str) else list(texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisedReport(BuildReport[TableState]):
    """What a build did whose indexes were chosen.

    Args:
        advice: what was chosen and why; None where an earlier choice was built.
    """

    advice: Advice | None

    def __str__(self) -> str:
        text = BuildReport.__str__(self)
        return text if self.advice is None else f"{text}\n{self.advice.to_text()}"


def build_advised(
    table: TableState,
    indexes: Request | None,
    criteria: AdviceRequest,
    *,
    runner: Runner,
    progress: Progress | None = None,
    repair: bool | None = None,
    memory: int | None = None,
    advice: Advice | None = None,
) -> BuildReport[TableState]:
    """Build ``indexes``; None is what the table has, else what the advisor chooses.

    ``advice`` is what it has chosen by the same criteria a moment ago.
    ``progress`` is called with the number of units done and of all.  A worker may take
    ``memory`` bytes; None is by the machine that it is on.
    """
    table.snapshot.require_known()  # before anything is read for a choice
    criteria = criteria.resolved(table)
    if indexes is not None and criteria != AdviceRequest():
        raise AdviceError(
            "indexes cannot be combined with columns, queries or max_bytes_ratio, by "
            "which the advisor chooses (accepted: one of the two)"
        )
    if indexes is None and criteria == AdviceRequest() and has_any(table):
        report = refresh(
            table,
            runner=runner,
            progress=progress,
            repair=repair,
            memory=memory,
        )
        return _advised(report, None, "the table's requested indexes are used")
    wanted = to_build(table, indexes, criteria, advice)
    report = build(
        table,
        wanted.request,
        runner=runner,
        progress=progress,
        properties=wanted.properties,
        repair=repair,
        dropped=wanted.superseded,
        memory=memory,
    )
    if indexes is not None:
        return report
    again = ("the table's chosen indexes are used",)
    return _advised(report, wanted.advice, *(() if wanted.advice else again))


@dataclass(frozen=True, slots=True)
class ToBuild:
    """What to build on a table.

    Args:
        request: by column.
        properties: of the table, which remember it.
        superseded: what was chosen before, and is not now.
        advice: how it was chosen; None where it was named, or chosen before.
    """

    request: Request
    properties: TableProperties
    superseded: frozenset[SpecKey] = frozenset()
    advice: Advice | None = None


def to_build(
    table: TableState,
    indexes: Request | None,
    criteria: AdviceRequest,
    advice: Advice | None = None,
) -> ToBuild:
    """What to build: ``indexes``, or what the advisor chooses, or has just chosen."""
    if indexes is not None:
        asked = TableProperties(indexes=with_asked(table, indexes))
        return ToBuild({**restrictions(table), **indexes}, asked)
    remembered = None if advice is not None else _remembered(table, criteria)
    chosen: SpecsByColumn = {}
    if remembered is None:
        advice = advice or advise_under_cap(table, criteria)
        chosen.update(advice.request)
    else:
        chosen = remembered
    return ToBuild(
        {**restrictions(table), **chosen},
        TableProperties(
            choice={_CRITERIA: criteria.to_json(), "indexes": to_json(chosen)}
        ),
        frozenset(_superseded(table, chosen)),
        advice,
    )


def _advised(
    report: BuildReport[TableState], advice: Advice | None, *notes: str
) -> AdvisedReport:
    values = {one.name: getattr(report, one.name) for one in fields(report)}
    return AdvisedReport(**values | {"notes": (*report.notes, *notes)}, advice=advice)


def advise_under_cap(table: TableState, criteria: AdviceRequest) -> Advice:
    """A choice under the cap, which is of all indexes of the table together."""
    named = spec_keys(asked_for(table))
    taken = sum(
        blob.length
        for pack in table.snapshot.manifest.packs
        for blob in pack.blobs
        if (blob.meta.column, spec_key(blob.meta.spec)) in named
    )
    ratio = criteria.max_bytes_ratio
    if taken and table.n_bytes and ratio > 0:
        ratio = max(_NOTHING, ratio - taken / table.n_bytes)
    return advise(
        table,
        columns=criteria.columns,
        queries=criteria.queries,
        max_bytes_ratio=ratio,
        timezone=criteria.timezone,
    )


def _superseded(table: TableState, chosen: SpecsByColumn) -> set[SpecKey]:
    """What was chosen before, and is neither chosen now nor requested by name."""
    kept = spec_keys(asked_for(table)) | spec_keys(chosen)
    return spec_keys(chosen_for(table)) - kept


def _remembered(table: TableState, criteria: AdviceRequest) -> SpecsByColumn | None:
    """What was chosen by the same criteria, if it can still be built."""
    choice = table.snapshot.properties.choice
    if choice is None or choice.get(_CRITERIA) != criteria.to_json():
        return None
    known = {column.name for column in table.leaves if column.domain is not None}
    try:
        request: SpecsByColumn = {
            name: [spec_from_json(spec) for spec in specs]
            for name, specs in choice["indexes"].items()
        }
    except (UnknownIndexError, AttributeError, KeyError, TypeError):
        return None  # of another version of this library, or of another kind
    return request if request.keys() <= known else None
