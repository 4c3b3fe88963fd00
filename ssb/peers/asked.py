"""Which queries are asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ssb import SsbError
from ssb.queries import LOOKUPS, QUERIES, Query


def queries_of(
    data: Path, names: Sequence[str] | None = None, *, lookups: int = 0, seed: int = 1
) -> Sequence[Query]:
    """The 13 queries and the look-ups, those that are drawn too; or some of them.

    Args:
        data: an SSB data set, from whose rows look-ups are drawn.
        names: of the queries; all if None.
        lookups: how many are drawn.
        seed: of the draw.

    Raises:
        SsbError: a name is unknown, or nothing can be drawn from ``data``.
    """
    queries = (*QUERIES, *LOOKUPS, *_drawn(data, lookups, seed))
    known = {query.name: query for query in queries}
    unknown = sorted(set(names or ()) - set(known))
    if unknown:
        raise SsbError(f"no query {unknown[0]!r}: accepted are {', '.join(known)}")
    return queries if names is None else [known[name] for name in names]


def _drawn(data: Path, lookups: int, seed: int) -> Sequence[Query]:
    if not lookups:
        return ()
    from ssb.data.generate import find_dataset  # noqa: PLC0415 (needs PySpark)
    from ssb.workloads.drawn import drawn_lookups  # noqa: PLC0415 (likewise)

    dataset = find_dataset(data)
    if dataset is None:
        raise SsbError(f"no SSB data set at {data}: look-ups are drawn from one")
    return drawn_lookups(dataset, lookups, seed=seed)
