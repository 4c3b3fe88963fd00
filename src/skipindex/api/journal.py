"""The log of what the public calls do, under the name ``skipindex``.

INFO tells of builds, commits and vacuums.  WARNING tells of an index that a plan could
not use, once for each table and reason.
"""

from __future__ import annotations

import functools
import logging
from typing import Final

LOG: Final = logging.getLogger("skipindex")


def tell(action: str, folder: str, outcome: object) -> None:
    """Log what was done to a table, in one line."""
    LOG.info("%s of %s: %s", action, folder, str(outcome).partition("\n")[0])


@functools.lru_cache(maxsize=10_000)
def warn_once(folder: str, reason: str) -> None:
    """Log why an index of a table is not used, unless that was logged before."""
    LOG.warning("an index of %s is not used: %s", folder, reason)
