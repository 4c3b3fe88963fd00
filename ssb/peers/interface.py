"""What every compared system is asked: what it keeps, and what that costs."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ssb import SsbError
from ssb.queries import Query


class CannotSayError(SsbError):
    """A peer cannot express a condition, or does not say what it read."""


class MissingPeerError(SsbError):
    """A peer is not installed."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a peer needs before it is asked anything.

    Args:
        seconds: to make its statistics and indexes; copies of the data are not counted.
        n_bytes: of them on disk.
        note: what these figures hold.
    """

    seconds: float
    n_bytes: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a peer keeps for one condition.

    Args:
        kept: units that it would read.
        of: units in all.
        seconds: of planning alone; None where that cannot be told from reading.
        rows: that match, as the peer counted them by reading.
        files: the names of the files that it would read, where it tells them.
        note: what else there is to know.
    """

    kept: int
    of: int
    seconds: float | None
    rows: int | None = None
    files: frozenset[str] | None = None
    note: str = ""

    @classmethod
    def of_files(
        cls, kept: frozenset[str], of: int, seconds: float, note: str = ""
    ) -> Answer:
        """The answer of a peer that tells the names of the files."""
        return cls(len(kept), of, seconds, files=kept, note=note)


class Peer(Protocol):
    """A system that skips.

    Args:
        name: in the report.
        version: of its library.
        unit: what it counts: files, row groups, fragments.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def unit(self) -> str: ...

    def build(self, files: Sequence[Path], columns: Sequence[str]) -> Cost:
        """Make what it needs for these Parquet files, which stay as they are.

        What it was built for before is forgotten.

        Args:
            files: of one layout.
            columns: that the conditions stand on.
        """
        ...

    def ask(self, query: Query) -> Answer:
        """What it would read for the condition of a query.

        Raises:
            CannotSayError: it cannot express the condition.
        """
        ...


def library(module: str, needs: str = "the extra 'peers'") -> Any:
    """A module of a library that may not be there.

    Args:
        module: its name.
        needs: what installs it.

    Raises:
        MissingPeerError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPeerError(
            f"{module} cannot be imported ({error}): it comes with {needs}"
        ) from error


def version_of(distribution: str) -> str:
    """The installed version of a distribution."""
    return importlib.metadata.version(distribution)
