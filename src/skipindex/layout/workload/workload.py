"""The queries that a layout is fitted to, bound to the columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipindex.conditions.binding.binder import Binder
from skipindex.conditions.bound_predicate import BoundPredicate, Leaf, leaves
from skipindex.conditions.functions.zones import ZoneRules, offsets_here, relying_on
from skipindex.conditions.simplify import simplify
from skipindex.conditions.sql.parser import parse
from skipindex.errors import LayoutError, UnsupportedTypeError
from skipindex.expressions import Predicate, to_sql
from skipindex.expressions.atoms import NoneOf, OneOf, Range, Value, successor
from skipindex.expressions.domain import Domain, domain_of
from skipindex.planner.recorded import RecordedQueries
from skipindex.storage.file_system.location import Location
from skipindex.table import ColumnInfo
from skipindex.table.queries import is_of_log
from skipindex.table.schema import Columns

METHODS: Final = ("curve", "answers")
ANSWERS_SHARE: Final = 0.2


@dataclass(frozen=True, slots=True, init=False)
class Workload:
    """The queries that a table is laid out for; pass it as ``layout``.

    skipindex chooses columns, bits and curve by the files that each query would skip,
    on a sample of the rows.  Every query finds its rows in any layout.

    >>> sx.Workload(["city = 'Rome'", sx.col("price") < 4]).queries
    ("city = 'Rome'", 'price < 4')
    """

    queries: tuple[str, ...]
    weights: tuple[float, ...]
    method: str
    timezone: str | None
    answers_share: float
    record: str

    def __init__(
        self,
        queries: Iterable[str | Predicate] | str,
        *,
        weights: Sequence[float] | None = None,
        method: str = "curve",
        timezone: str | None = None,
        answers_share: float = ANSWERS_SHARE,
    ) -> None:
        """Check the queries.

        Args:
            queries: WHERE conditions in Spark SQL, or built with ``col``.  ``"log"``
                is the queries that are recorded beside the table, by how often they
                ran, and ``"log:FOLDER"`` those in a folder; ``optimize`` reads them.
            weights: how often each query runs; None is equally often.
            method: ``"curve"`` chooses columns and a curve.  ``"answers"`` puts the
                rows that match queries into a few files, and orders all others along
                that curve: for row-level indexes, because min/max says little of
                such files.
            timezone: of the session that will ask.
            answers_share: of ``"answers"``, the most rows that are put together, as
                a share of all; queries that match more are omitted.

        Raises:
            LayoutError: there is no query, or no such method, or a weight is
                missing or below 0, or the share is not between 0 and 1.
            PredicateError: a query cannot be parsed.
        """
        record = queries if isinstance(queries, str) else ""
        if record and not is_of_log(record):
            raise LayoutError(f"a workload is a list of conditions, not {queries!r}")
        if record and weights is not None:
            raise LayoutError(
                "the record has the weights of its queries (accepted: 'log')"
            )
        texts = tuple(
            q if isinstance(q, str) else to_sql(q) for q in (() if record else queries)
        )
        if not (texts or record):
            raise LayoutError("a workload has no queries (at least 1)")
        if method not in METHODS:
            accepted = ", ".join(map(repr, METHODS))
            raise LayoutError(f"no method is named {method!r} (accepted: {accepted})")
        if not 0 <= answers_share <= 1:
            raise LayoutError(f"answers_share is {answers_share!r} (accepted: 0 to 1)")
        for text in texts:
            parse(text)
        given = (1.0,) * len(texts) if weights is None else tuple(map(float, weights))
        is_good = len(given) == len(texts) and min(given, default=0) >= 0
        if not (is_good and (record or sum(given) > 0)):
            raise LayoutError(
                f"{len(given)} weights for {len(texts)} queries (one for each, none "
                "below 0, and one above)"
            )
        object.__setattr__(self, "queries", texts)
        object.__setattr__(self, "weights", given)
        object.__setattr__(self, "method", method)
        object.__setattr__(self, "timezone", timezone)
        object.__setattr__(self, "answers_share", float(answers_share))
        object.__setattr__(self, "record", record)

    def recorded(self, table: Location) -> Workload:
        """The same with the queries of a table's record, if it is of a record.

        Raises:
            LayoutError: the record has none that a layout can be chosen for.
        """
        if not self.record:
            return self
        record = RecordedQueries.of(table, self.record)
        if not record.weights:
            raise LayoutError(
                f"no query on {table.full('')!r} is recorded with its literals "
                "(accepted: a list of conditions, or a record of queries)"
            )
        return Workload(
            record.weights,
            weights=[float(n) for n in record.weights.values()],
            method=self.method,
            timezone=self.timezone or record.zone,
            answers_share=self.answers_share,
        )

    def bind(
        self, schema: pa.Schema, *, refused: Mapping[str, str] | None = None
    ) -> BoundWorkload:
        """The queries over the columns of ``schema``.

        Args:
            schema: of the table.
            refused: columns that must not be used, and why.

        Raises:
            PredicateError: a query names a column that does not exist.
            LayoutError: no query has a condition that a layout could serve.
        """
        infos = {f.name: _info(f, (refused or {}).get(f.name, "")) for f in schema}

        binder = Binder(Columns(infos, "the rows to lay out").find, self.timezone)
        with relying_on(ZoneRules(offsets_here)):
            trees = tuple(simplify(binder.bind(parse(text))) for text in self.queries)
        domains: dict[str, Domain] = {}
        for tree in trees:
            for leaf in leaves(tree):
                domain = infos[leaf.column].domain
                assert domain is not None
                domains[leaf.column] = domain
        if not domains:
            raise LayoutError(
                "no query has a condition on a single column to cluster by"
            )
        return BoundWorkload(trees, np.array(self.weights), domains)

    def to_json(self) -> dict[str, Any]:
        """The workload as plain values."""
        return {
            "queries": list(self.queries),
            "weights": list(self.weights),
            "method": self.method,
            "timezone": self.timezone,
            "answers_share": self.answers_share,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Workload:
        """The workload that ``to_json`` wrote."""
        return cls(
            data["queries"],
            weights=data["weights"],
            method=data["method"],
            timezone=data["timezone"],
            answers_share=data.get("answers_share", ANSWERS_SHARE),
        )


@dataclass(frozen=True, slots=True, eq=False)
class BoundWorkload:
    """The queries of a workload as atoms under AND and OR."""

    trees: tuple[BoundPredicate, ...]
    weights: npt.NDArray[np.float64]
    domains: Mapping[str, Domain]
    """Domains of the columns that queries have atoms on, in the order of queries."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the queries filter on."""
        return tuple(self.domains)

    def literals(self) -> dict[str, list[Value]]:
        """The values at which some atom of each column begins or ends."""
        result: dict[str, list[Value]] = {name: [] for name in self.domains}
        for tree in self.trees:
            for leaf in leaves(tree):
                atom = leaf.atom if isinstance(leaf, Leaf) else None
                match atom:
                    case Range(_, low, high):
                        ends = [v for v in (low, high) if v is not None]
                    case OneOf(_, values) | NoneOf(_, values):
                        ends = [*values, *map(successor, values)]
                    case _:
                        ends = []
                result[leaf.column] += ends
        return result


def _info(field: pa.Field, reason: str) -> ColumnInfo:
    if reason:
        return ColumnInfo(field.name, None, reason)
    try:
        return ColumnInfo(field.name, domain_of(field.type, field.name))
    except UnsupportedTypeError:
        return ColumnInfo(field.name, None, f"type {field.type} has no order")
