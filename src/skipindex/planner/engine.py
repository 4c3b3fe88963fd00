"""What planning needs of a query engine, and how the engine of a value is found.

The planner itself reads no data and starts no engine.  An engine is a class that
wraps a session.  It is found by the package of the session's type, so that a plan
takes a session of any engine that is installed and announces itself by an entry point
of the group ``skipindex.engines``: its name is the package, its object the class.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Protocol, TypeVar, cast

import pyarrow as pa

from skipindex.build.runners import Runner
from skipindex.errors import EngineError, first_line

ENTRY_POINTS: Final = "skipindex.engines"
OPAQUE: Final = "opaque("
"""In the text of a condition: begins what only the engine can compute."""
_BUILT_IN: Final = {"pyspark": ("skipindex.spark.engine", "SparkEngine")}

PlanT_contra = TypeVar("PlanT_contra", contravariant=True)


class Engine(Protocol[PlanT_contra]):
    """A query engine with one session of it."""

    def __init__(self, session: Any) -> None:
        """Wrap a session."""

    @staticmethod
    def condition_text(condition: Any) -> str:
        """A condition of the engine's own kind, as Spark SQL.

        A part that has no text reads ``opaque()``, with any text in the parentheses.

        Raises:
            PredicateError: SQL has no text for it.
        """

    @staticmethod
    def arrow_schema(schema: Any) -> pa.Schema:
        """A schema of the engine's own kind, as Arrow types."""

    def read(self, plan: PlanT_contra) -> Any:
        """The matching rows of a plan, as the engine's kind of table.

        An engine that has rules of time zones of its own reads ``plan.under`` these.

        Raises:
            PlanError: the session's settings are not those of the plan.
        """

    def count(self, plan: PlanT_contra) -> int:
        """How many rows match; files whose number is known are not read.

        Raises:
            PlanError: the session's settings are not those of the plan.
        """

    def count_files(self, plan: PlanT_contra, files: Sequence[int]) -> dict[int, int]:
        """How many rows of each of these files match, by its position in the table.

        Raises:
            PlanError: the session's settings are not those of the plan.
        """

    def runner(self) -> Runner:
        """What runs build tasks on the engine's executors."""


def engine_type(value: object) -> type[Engine[Any]] | None:
    """The engine of a session, or of a value such as a PySpark ``Column``, if any."""
    for base in type(value).__mro__:
        package = base.__module__.partition(".")[0]
        if package in _BUILT_IN:
            module, name = _BUILT_IN[package]
            result = getattr(importlib.import_module(module), name)
            return cast("type[Engine[Any]]", result)
        if package in _others():
            return _loaded(package)
    return None


def engine_of(session: object) -> Engine[Any]:
    """The engine of a session."""
    result = engine_type(session)
    if result is None:
        known = ", ".join(sorted({*_BUILT_IN, *_others()}))
        raise EngineError(f"no engine for {session!r} (accepted: a session of {known})")
    return result(session)


@functools.cache
def _others() -> Mapping[str, EntryPoint]:
    """The entry points of other engines, by the name of the package."""
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def _loaded(package: str) -> type[Engine[Any]]:
    try:
        return cast("type[Engine[Any]]", _others()[package].load())
    except ImportError as error:
        raise EngineError(
            f"the engine of {package} cannot be loaded from the entry point of "
            f"{ENTRY_POINTS}: {first_line(error)}"
        ) from error
