"""Helpers of the public calls: the Spark session, the log, and workers.

The log has the name ``skipindex``.  INFO reports builds, commits and vacuums.  WARNING
reports an index that a plan could not use, once for each table and reason, and a
build that could not start worker processes.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from skipindex.api.checks import check_workers
from skipindex.build.runners import LocalRunner, Runner
from skipindex.errors import EngineError
from skipindex.planner.engine import engine_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG: Final = logging.getLogger("skipindex")

SPARK: Final = ("pyspark", "pandas")
"""What ``skipindex[spark]`` installs; PySpark's Arrow functions need pandas."""


@contextmanager
def needs_spark() -> Iterator[None]:
    """Import what runs on Spark in here.

    Raises:
        EngineError: a package of ``SPARK`` is missing; the message has the command.
    """
    missing = [name for name in SPARK if not _is_there(name)]
    if missing:
        raise EngineError(
            f"Spark is needed, and {' and '.join(missing)} is not installed (type: pip "
            "install 'skipindex[spark]')"
        )
    yield


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ValueError:  # the module was taken out of sys.modules
        return False


def log_action(action: str, folder: str, outcome: object) -> None:
    """Log what was done to a table, in one line."""
    LOG.info("%s of %s: %s", action, folder, str(outcome).partition("\n")[0])


@functools.lru_cache(maxsize=10_000)
def warn_once(folder: str, reason: str) -> None:
    """Log why an index of a table is not used, unless that was logged before."""
    LOG.warning("an index of %s is not used: %s", folder, reason)


def runner_of(spark: SparkSession | None, workers: int | None) -> Runner:
    """The executors of a session; without one, so many processes, or one a core."""
    check_workers(workers)
    if spark is None:
        return LocalRunner.default() if workers is None else LocalRunner(workers)
    with needs_spark():
        return engine_of(spark).runner()
