"""Recorded queries as a workload: conditions by how often they were asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from skipindex.conditions.sql.parser import parse
from skipindex.errors import SkipIndexError
from skipindex.expressions import Predicate, to_sql
from skipindex.expressions.predicate import And
from skipindex.storage.file_system.location import Location
from skipindex.table.queries import OF_LOG, hidden, recorded

MOST_CONDITIONS: Final = 40
"""Conditions that a workload has at most: the most frequent ones."""
_REPEATS: Final = 3
"""Times that the most frequent condition is repeated where a text is one query."""


@dataclass(frozen=True, slots=True)
class RecordedQueries:
    """The recorded queries of a table.

    Args:
        weights: how often each condition was asked, the most frequent first; those of
            a sample stand for all.
        zone: the most frequent time zone of their sessions.
        n_queries: the number of recorded queries, with those that have no weight: of
            hidden literals, or a condition that only Spark can read.
        shapes: of all conditions; those that differ in literals alone have one.
    """

    weights: Mapping[str, int]
    zone: str | None
    n_queries: int
    shapes: frozenset[str]

    @classmethod
    def of(
        cls, table: Location, queries: str = OF_LOG, *, since: float = 0.0
    ) -> RecordedQueries:
        """The queries of the record that an argument names."""
        every = recorded(table, queries, since=since)
        whole = Counter(asked.where for asked in every if not asked.is_hidden)
        weights: dict[str, int] = {}
        # Among equally frequent ones a fixed sample, which is as old as they are.
        for where in sorted(whole, key=lambda one: (-whole[one], _mark(one))):
            if len(weights) < MOST_CONDITIONS and _is_readable(where):
                weights[where] = whole[where]
        if sampled := sum(weights.values()):
            scale = max(1.0, sum(whole.values()) / sampled)
            weights = {where: round(n * scale) for where, n in weights.items()}
        zones = Counter(asked.zone for asked in every).most_common(1)
        zone = zones[0][0] if zones else None
        shapes = frozenset(shape_of(asked.where) for asked in every)
        return cls(weights, zone, len(every), shapes)

    def texts(self) -> Sequence[str]:
        """The conditions, the frequent ones repeated."""
        most = max(self.weights.values(), default=1)
        return [
            where
            for where, n in self.weights.items()
            for _ in range(max(1, round(_REPEATS * n / most)))
        ]


def _conjuncts(tree: Predicate) -> Iterator[Predicate]:
    """The conditions between the outermost ANDs."""
    if not isinstance(tree, And):
        yield tree
        return
    for part in tree.children:
        yield from _conjuncts(part)


@lru_cache(maxsize=10_000)
def shape_of(text: str) -> str:
    """The shape of a condition; that a column is not NULL is part of other tests."""
    try:
        parts = [hidden(to_sql(part)) for part in _conjuncts(parse(text))]
    except (SkipIndexError, RecursionError):
        return hidden(text)
    kept = [part for part in parts if not part.endswith(" IS NOT NULL")]
    return " AND ".join(sorted(set(kept or parts)))


def drift(now: Mapping[str, float], former: Mapping[str, float]) -> float:
    """How far two workloads are apart, from conditions to how often they are asked.

    Conditions that differ in literals alone are one.  0 is the same, 1 has nothing in
    common.
    """
    n_now, n_former = sum(now.values()), sum(former.values())
    if not (n_now and n_former):
        return float(bool(n_now))
    apart: Counter[str] = Counter()
    for texts, n in ((now, n_now), (former, -n_former)):
        for text, times in texts.items():
            apart[shape_of(text)] += times / n  # type: ignore[assignment]
    return sum(map(abs, apart.values())) / 2


def _mark(text: str) -> bytes:
    return blake2b(text.encode(errors="replace"), digest_size=8).digest()


def _is_readable(where: str) -> bool:
    try:
        parse(where)
    except (SkipIndexError, RecursionError):
        return False
    return where != "TRUE"
