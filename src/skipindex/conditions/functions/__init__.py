"""The built-in functions of Spark that the planner knows."""

from collections.abc import Mapping
from typing import Final

from skipindex.conditions.functions import (
    casts,
    dates,
    numbers,
    reading,
    rounding,
    text,
)
from skipindex.conditions.functions.registry import Builtin

TABLES: Final = tuple(
    module.FUNCTIONS for module in (casts, dates, numbers, reading, rounding, text)
)
"""No two of them have a name in common."""

FUNCTIONS: Final[Mapping[str, Builtin]] = {
    name: builtin for table in TABLES for name, builtin in table.items()
}
"""Functions by Spark's name in lower case; operators by their sign."""
