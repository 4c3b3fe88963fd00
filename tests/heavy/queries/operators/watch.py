"""Queries that do not end are cancelled, and told."""

from __future__ import annotations

import _thread
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import Final

from pyspark.sql import SparkSession

from tests.spark.pruning.costs import SWITCH

_GRACE: Final = 30.0
"""Seconds in which a cancelled query has to end."""


class StuckError(Exception):
    """A query does not end though it was cancelled: the session is of no use."""


@dataclass
class Watch:
    """Whether the query had to be cancelled."""

    fired: bool = False


@contextmanager
def at_most(spark: SparkSession, seconds: float) -> Iterator[Watch]:
    """Cancel what runs for longer.

    Skipping is switched off then, so that no key is computed any more, and the jobs
    that begin are cancelled until the block ends.

    Raises:
        StuckError: the block does not end by that.
    """
    done, watch = Event(), Watch()

    def wait() -> None:
        if done.wait(seconds):
            return
        watch.fired = True
        with suppress(Exception):
            spark.conf.set(SWITCH, "false")
        for _ in range(int(_GRACE / 0.25)):
            with suppress(Exception):
                spark.sparkContext.cancelAllJobs()
            if done.wait(0.25):
                return
        _thread.interrupt_main()

    thread = Thread(target=wait, daemon=True)
    thread.start()
    try:
        yield watch
    except KeyboardInterrupt:
        if not watch.fired:
            raise
        raise StuckError(f"a query runs on, cancelled after {seconds:g} s") from None
    finally:
        done.set()
        thread.join()
