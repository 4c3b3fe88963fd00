"""The cells of the matrix, and what `pyproject.toml` says that each must hold."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[3]

_NO_TESTS: Final = {"mypy", "ruff", "skipindex"}
"""What extras name and no test needs: tools of developers, and the package itself."""


@dataclass(frozen=True, slots=True)
class Cell:
    """An environment, and the tests that run in it.

    Args:
        name: of the cell and of its environment's folder.
        python: its version, such as ``3.12``.
        spark: its version, such as ``4.0``; without one PySpark is not installed, and
            the tests are those that need no Spark.
        is_oldest: whether each dependency of the package, those of the extra ``spark``
            among them, has the oldest version that is allowed.
    """

    name: str
    python: str
    spark: str = ""
    is_oldest: bool = False

    @property
    def marked(self) -> str:
        """The tests that run, as pytest selects them."""
        return f"{'spark' if self.spark else 'not spark'} and not slow"


CELLS: Final = (
    Cell("python-3.11", "3.11"),
    Cell("python-3.12", "3.12"),
    Cell("python-3.13", "3.13"),
    Cell("python-3.14", "3.14"),
    Cell("oldest", "3.11", is_oldest=True),
    Cell("spark-3.5", "3.11", spark="3.5"),  # 3.12 has no distutils for it
    Cell("spark-4.0", "3.12", spark="4.0"),
    Cell("spark-4.1", "3.13", spark="4.1"),
    Cell("spark-4.2", "3.13", spark="4.2"),
    Cell("spark-4.3", "3.13", spark="4.3"),
)


def project(root: Path = ROOT) -> Mapping[str, Any]:
    """The ``project`` table of `pyproject.toml`."""
    found: Mapping[str, Any] = tomllib.loads((root / "pyproject.toml").read_text())
    return found["project"]  # type: ignore[no-any-return]


def name_of(requirement: str) -> str:
    """The distribution that a requirement names."""
    match = re.match(r"[\w.-]+", requirement)
    assert match is not None, requirement
    return match[0].lower().replace("_", "-")


def _is_own(requirement: str) -> bool:
    """Whether it is another extra of the package."""
    return name_of(requirement) == "skipindex"


def lower_bound(requirement: str) -> str:
    """The oldest version that a requirement allows.

    >>> lower_bound("numpy>=2.1,<3")
    '2.1'
    """
    match = re.search(r">=\s*([\w.]+)", requirement)
    assert match is not None, f"{requirement} has no lower bound"
    return match[1]


def requirements(cell: Cell, table: Mapping[str, Any]) -> list[str]:
    """What is installed in the environment of a cell, the package itself aside.

    Args:
        cell: the cell.
        table: the ``project`` table.
    """
    extras: Mapping[str, Sequence[str]] = table["optional-dependencies"]
    for_command, for_spark = (
        [one for name in names for one in extras.get(name, ()) if not _is_own(one)]
        for names in (("sql", "cli"), ("spark",))
    )
    own = [*table["dependencies"], *for_command, *for_spark]
    pyspark = next(one for one in own if name_of(one) == "pyspark")
    own.remove(pyspark)
    if cell.is_oldest:
        own = [f"{name_of(one)}=={lower_bound(one)}" for one in own]
    elif not cell.spark:
        own = [one for one in own if one not in for_spark]
    if cell.spark:
        own.append(f"{pyspark},=={cell.spark}.*")
    return own + [
        one
        for extra in ("stores", "ssb", "dev")
        for one in extras.get(extra, ())
        if name_of(one) not in _NO_TESTS and (cell.spark or name_of(one) != "pyspark")
    ]
