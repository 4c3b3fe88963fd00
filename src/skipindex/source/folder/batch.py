"""Batches of streams: which of them a table has, so that none is added twice.

A stream that fails, or whose process is killed, runs its last batch again, with the
same number and the same rows.  The commit that adds the rows of a batch says so, so
either both are there or none.

Source: the transaction identifiers of Delta Lake's protocol (``txn``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from skipindex.errors import TableError
from skipindex.log.properties import TableProperties

_MOST_QUERIES: Final = 100
"""Streams whose last batch a table knows; no commit may grow with each new one."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of a stream.

    Args:
        query: the id of the stream, which is that of its checkpoint.
        number: of the batch, from 0; it grows with each batch.
    """

    query: str
    number: int

    def is_in(self, properties: TableProperties) -> bool:
        """Whether a table has the rows of this batch.

        Raises:
            TableError: it has a later one, so the checkpoint is older than the table.
        """
        last, _ = (properties.streams or {}).get(self.query, (-1, 0))
        if last > self.number:
            raise TableError(
                f"batch {self.number} of stream {self.query} is older than batch "
                f"{last}, which the table has: its checkpoint was restored or copied, "
                "and the rows of this batch may be others than they were; nothing was "
                "added (accepted: the newest checkpoint, or a new one, whose stream "
                "reads the source anew)"
            )
        return bool(last == self.number)

    def recorded(self, properties: TableProperties) -> TableProperties:
        """The property of a commit that adds this batch."""
        known = {**(properties.streams or {})}
        known.pop(self.query, None)
        by_turn = sorted(known.items(), key=lambda item: item[1][1])
        kept = dict(by_turn[1 - _MOST_QUERIES :])
        turn = 1 + max((turn for _, turn in kept.values()), default=0)
        return TableProperties(streams={**kept, self.query: [self.number, turn]})
