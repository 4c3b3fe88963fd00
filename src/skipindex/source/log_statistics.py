"""Statistics that the log of another format has, for files that no index knows.

Delta's protocol (PROTOCOL.md, per-file statistics) lets a writer cut texts and times.
Bounds are taken of whole numbers and dates, of times with a millisecond on both sides,
and of texts that are too short to be cut.  Those of floats leave out NaN, and those of
decimals pass through doubles: of both only NULLs are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.expressions.domain import Domain, domain_of
from skipindex.log.manifest import bound_type, summary_type

_CUT: Final = 32
"""Characters of a text from which its bound may be cut."""
_MILLISECOND: Final = 1000
"""Writers cut times to milliseconds; in microseconds."""


@dataclass(frozen=True, slots=True, eq=False)
class LogStatistics:
    """What a log says of files.

    Args:
        n_rows: of each file; null is not known.
        nulls: by the names of columns, how many NULLs each file has.
        bounds: likewise, the least and the greatest value.
    """

    n_rows: pa.Int64Array
    nulls: dict[str, pa.Int64Array]
    bounds: dict[str, tuple[pa.Array, pa.Array]]

    def at(self, rows: np.ndarray) -> LogStatistics:
        """The same of some of the files."""
        places = pa.array(rows)
        return LogStatistics(
            self.n_rows.take(places),
            {name: nulls.take(places) for name, nulls in self.nulls.items()},
            {
                name: (low.take(places), high.take(places))
                for name, (low, high) in self.bounds.items()
            },
        )

    def column(self, name: str, domain: Domain) -> pa.StructArray:
        """The statistics of a column, as a manifest stores them."""
        n, value = len(self.n_rows), bound_type(domain)
        low, high = self.bounds.get(name) or [pa.nulls(n, value)] * 2
        bounds = _bounds(low, high, domain)
        if bounds is None:
            bounds = pa.nulls(n, value), pa.nulls(n, value)
        unknown = pa.nulls(n, pa.int64())
        no = pa.array(np.zeros(n, np.bool_))
        columns = [self.nulls.get(name, unknown), unknown, *bounds, no, no]
        return pa.StructArray.from_arrays(columns, fields=list(summary_type(domain)))


def _bounds(
    low: pa.Array, high: pa.Array, domain: Domain
) -> tuple[pa.Array, pa.Array] | None:
    """The bounds in the column's domain, where they can be relied on; else None."""
    if domain_of(low.type) != domain:
        return None
    least, most = domain.encode(low), domain.encode(high)
    match domain.name:
        case "int" | "date":
            return least, most
        case "timestamp" | "timestamp_ntz":
            return pc.subtract(least, _MILLISECOND), pc.add(most, _MILLISECOND)
        case "string":
            whole = pc.and_(_is_whole(low), _is_whole(high))
            nothing = pa.scalar(None, least.type)
            return pc.if_else(whole, least, nothing), pc.if_else(whole, most, nothing)
        case _:
            return None


def _is_whole(texts: pa.StringArray) -> pa.BooleanArray:
    """Whether a text is certainly not cut, and has no character in place of a part."""
    short = pc.less(pc.utf8_length(texts), _CUT)
    return pc.and_(short, pc.invert(pc.match_substring(texts, "\ufffd")))
