"""Packages that not every installation has, and the one sentence that asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Final

from skipindex.errors import EngineError

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
