"""Building with a choice: made by the advisor, and remembered by the table.

A later build of the same wish, after an append say, builds what was chosen then, so
that all files have the same indexes.  To choose anew, ask with other columns,
queries or another cap, or drop indexes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skipindex.advice import MAX_BYTES_RATIO, Advice, advise
from skipindex.errors import AdviceError, UnknownIndexError
from skipindex.indexes import spec_from_json, spec_to_json
from skipindex.indexes._base import IndexSpec
from skipindex.indexes._runners import Progress, Runner
from skipindex.indexes.build import CHOICE, EVERY, BuildReport, Request, build
from skipindex.indexes.minmax import MinMax
from skipindex.table import Table


@dataclass(frozen=True, slots=True)
class Wish:
    """By what the advisor is to choose; the arguments of ``advise``."""

    columns: Sequence[str] | None = None
    queries: Sequence[str] | None = None
    max_bytes_ratio: float = MAX_BYTES_RATIO
    timezone: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As a table remembers it."""
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
class AdvisedReport(BuildReport):
    """What a build did whose indexes were chosen.

    Args:
        advice: what was chosen and why; None where an earlier choice was built.
    """

    advice: Advice | None

    def __str__(self) -> str:
        text = BuildReport.__str__(self)
        return text if self.advice is None else f"{text}\n\n{self.advice}"


def build_wished(
    table: Table,
    indexes: Request | None,
    wish: Wish,
    *,
    runner: Runner,
    progress: Progress | None = None,
) -> BuildReport:
    """Build ``indexes``; None is what the advisor chooses, or chose before.

    Raises:
        AdviceError: ``indexes`` are given, and something to choose them by too.
    """
    if indexes is not None and wish != Wish():
        raise AdviceError(
            "columns, queries and max_bytes_ratio say how to choose indexes, and "
            "indexes says which (accepted: one of the two)"
        )
    request, properties, advice = chosen_request(table, indexes, wish)
    report = build(
        table, request, runner=runner, progress=progress, properties=properties
    )
    if indexes is not None:
        return report
    again = () if advice else ("the indexes are those that were chosen before",)
    return AdvisedReport(
        table=report.table,
        files=report.files,
        unchanged=report.unchanged,
        n_bytes=report.n_bytes,
        seconds=report.seconds,
        notes=(*report.notes, *again),
        advice=advice,
    )


def chosen_request(
    table: Table, indexes: Request | None, wish: Wish
) -> tuple[Request, dict[str, Any], Advice | None]:
    """What to build, the properties that remember it, and how it was chosen."""
    if indexes is not None:
        return indexes, {}, None
    request = _remembered(table, wish)
    advice = None
    if request is None:
        advice = advise(
            table,
            columns=wish.columns,
            queries=wish.queries,
            max_bytes_ratio=wish.max_bytes_ratio,
            timezone=wish.timezone,
        )
        request = advice.request
    chosen = {
        name: [spec_to_json(spec) for spec in specs] for name, specs in request.items()
    }
    # A namesake that no name can mean has statistics all the same.
    rest: Request = {EVERY: "minmax"} if wish.columns is None else {}
    properties = {CHOICE: {"wish": wish.to_json(), "indexes": chosen}}
    return {**rest, **request}, properties, advice


def _remembered(table: Table, wish: Wish) -> dict[str, list[IndexSpec | MinMax]] | None:
    """What was chosen for the same wish, if it can still be built."""
    choice = table.snapshot.properties.get(CHOICE)
    if not isinstance(choice, Mapping) or choice.get("wish") != wish.to_json():
        return None
    known = {column.name for column in table.leaves if column.domain is not None}
    try:
        request = {
            name: [spec_from_json(spec) for spec in specs]
            for name, specs in choice["indexes"].items()
        }
    except (UnknownIndexError, AttributeError, KeyError, TypeError):
        return None  # of another version of this library, or of another kind
    return request if request.keys() <= known else None
