"""Which segments a commit writes again together with the new rows.

The tier of a segment is the number of octal digits of its rows.  Once a tier would have
more than eight segments, they become one, which is of a higher tier.  So a manifest
of ``n`` files has at most eight segments for each octal digit of ``n``, and a row is
written again once for each of them.  (O'Neil et al., *The log-structured merge-tree*,
Acta Informatica 1996; the tiers are those of Apache Cassandra's size-tiered
compaction.)

A segment of a million rows is full and stays as it is, and no segment is larger, so
that each can be read with little memory.

A segment is worn if more than a quarter of its rows count no more.  It is written
again, so that three rows at most are written for one that went.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

FANOUT: Final = 8
"""Most segments of one tier."""
FULL: Final = 1 << 20
"""Most rows of a segment."""
_BITS: Final = 3
"""Bits of an octal digit."""


def tier(n_rows: int) -> int:
    """The tier of a segment of so many rows."""
    return -(-n_rows.bit_length() // _BITS)


def to_rewrite(
    left: Sequence[int], n_rows: Sequence[int], n_new: int, *, forget: bool
) -> set[int]:
    """The numbers of the segments whose rows are written again.

    ``n_rows`` are the rows of each segment, and ``left`` those that still count; of a
    segment without such rows nothing is written.  ``n_new`` rows are written in any
    case.  If ``forget``, no row that does not count may stay stored.
    """
    alive = {i for i, n in enumerate(left) if n}
    worn = {
        i
        for i in alive
        if left[i] * 4 < n_rows[i] * 3 or (forget and left[i] < n_rows[i])
    }
    while True:
        written = n_new + sum(left[i] for i in worn)
        tiers = Counter(tier(left[i]) for i in alive - worn if left[i] < FULL)
        tiers[tier(written % FULL)] += written % FULL > 0
        crowded = {one for one, n in tiers.items() if n > FANOUT}
        if not crowded:
            return worn
        merged = {i for i in alive - worn if left[i] < FULL}
        worn |= {i for i in merged if tier(left[i]) == min(crowded)}
