"""All queries of the skipping benchmark, in groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ssb.data.generate import Dataset
from ssb.queries import LOOKUPS, QUERIES, Query
from ssb.workloads.drawn import TOTALS, drawn_lookups

SSB: Final = "ssb"
EXTRA: Final = "extra"
CROSS: Final = "cross"
DRAWN: Final = "drawn"
GROUPS: Final = {
    SSB: "the 13 queries",
    EXTRA: "equality and range on a column of many values",
    CROSS: "two columns of many values at once",
    DRAWN: "look-ups drawn from the data",
}
"""The groups of queries, and what they are."""

EXTRA_QUERIES: Final = tuple(q for q in LOOKUPS if q.name in {"equal", "range"})
"""A Bloom filter helps the first of them and not the second."""

_CROSS: Final = (
    "lo_ordtotalprice = 19665277",
    "lo_ordtotalprice = 19665277 AND lo_revenue = 2141624",
    "lo_ordtotalprice = 19665277 AND lo_revenue >= 10304000",
    "lo_ordtotalprice = 21877827 AND lo_revenue BETWEEN 83800 AND 103800",
    "lo_ordtotalprice > 21877827 AND lo_revenue BETWEEN 83800 AND 93800",
    "lo_ordtotalprice >= 93565 AND lo_ordtotalprice < 93909",
    (
        "lo_ordtotalprice >= 93565 AND lo_ordtotalprice < 91003562 "
        "AND lo_revenue BETWEEN 904300 AND 9904300"
    ),
)
CROSS_QUERIES: Final = tuple(
    Query(f"cross-{i}", where, TOTALS) for i, where in enumerate(_CROSS, 1)
)
"""Of a published test of Iceberg indexes on one TB of SSB, with its literals.

Only the rows of a file can tell that both of its conditions hold in no row.
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """The queries of one run of the benchmark.

    Args:
        groups: by the names of ``GROUPS``.
    """

    groups: dict[str, tuple[Query, ...]]

    @property
    def queries(self) -> tuple[Query, ...]:
        """All of them; no two have one name."""
        return tuple(query for group in self.groups.values() for query in group)


def workload(dataset: Dataset, *, lookups: int, seed: int) -> Asked:
    """The fixed queries, and ``lookups`` ones that are drawn from the data.

    Args:
        dataset: of SSB.
        lookups: how many are drawn.
        seed: of the draw.

    Raises:
        SsbError: ``lookups`` is negative.
    """
    return Asked(
        {
            SSB: QUERIES,
            EXTRA: EXTRA_QUERIES,
            CROSS: CROSS_QUERIES,
            DRAWN: drawn_lookups(dataset, lookups, seed=seed),
        }
    )
