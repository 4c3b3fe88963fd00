"""What an index kind is: a spec that builds, and a type that opens and answers.

An index belongs to one column of one data file.  It answers one atom and never
walks a tree, so it knows nothing of AND, OR, files or tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from skipindex.expressions.atoms import Atom, Value
from skipindex.expressions.bounds import Bounds
from skipindex.expressions.domain import Domain
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.storage.parts import Parts, ReadCount

__all__ = [
    "ContextIndex",
    "Dictionary",
    "Index",
    "IndexSpec",
    "IndexType",
    "PackIndex",
    "PackableType",
    "Parts",
    "ReadCount",
]


class Index(Protocol):
    """One file's index on one column."""

    def probe(self, atom: Atom) -> Bounds[BitMap] | None:
        """Bound the rows for which ``atom`` is TRUE, or None for no opinion.

        A row whose value is NULL is never in ``lower`` but for ``NullAtom``.
        """


class ContextIndex(Index, Protocol):
    """An index whose answers inside of few rows are cheaper than over the file.

    An index has each of these methods or not; the planner looks for them by name.
    """

    def probe_within(self, atom: Atom, rows: BitMap) -> Bounds[BitMap]:
        """Bound those of ``rows`` for which ``atom`` is TRUE, and no others."""

    def count_within(self, atom: Atom, rows: BitMap) -> int | None:
        """Of how many of ``rows`` ``atom`` is TRUE; None: ask ``probe_within``.

        For the last condition of an AND, whose rows nobody needs.
        """


@runtime_checkable
class Dictionary(Protocol):
    """An index that knows which values the file has."""

    def distinct(self, limit: int) -> list[Value] | None:
        """Every value of the column, NULL aside, and perhaps some that no row has.

        None if there are more than ``limit``.
        """


class PackIndex(Protocol):
    """What is known of all files of a pack, on one column, and asked at once."""

    @property
    def covered(self) -> npt.NDArray[np.bool_]:
        """The slots of which anything is known."""

    def ask(
        self, atom: Atom
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]] | None:
        """The slots where no row is ruled out, and those where some row is TRUE.

        None is "no opinion".  Slots that are not ``covered`` are in neither.

        Raises:
            CorruptIndexError: what was read makes no sense.
        """


class IndexSpec(Protocol):
    """What a user asks for: a kind and its parameters.  A frozen dataclass."""

    @property
    def kind(self) -> str:
        """The name of the ``IndexType``."""

    def build(self, column: EncodedColumn) -> list[bytes]:
        """The parts of the payload; the same bytes on every run.

        Raises:
            UnsupportedTypeError: this kind cannot hold the column.
        """


class IndexType(Protocol):
    """A kind of index.  Two kinds share a name only if fully compatible."""

    @property
    def name(self) -> str:
        """On disk; never reused for anything else."""

    @property
    def version(self) -> int:
        """Of the payload; a reader accepts this one and all before."""

    @property
    def positional(self) -> bool:
        """Whether it knows rows.  If not, it only ever says "no row at all"."""

    @property
    def spec(self) -> type[IndexSpec]:
        """The spec's class; every parameter has a default."""

    def check(self, domain: Domain) -> None:
        """Raise ``UnsupportedTypeError`` where columns of this domain cannot be."""

    def open(self, parts: Parts, domain: Domain, n_rows: int) -> Index:
        """Read the payload's header; ``CorruptIndexError`` if it makes no sense.

        What is opened is kept for later plans, and threads may ask it at once: it
        holds little, and no state of a question.
        """


@runtime_checkable
class PackableType(IndexType, Protocol):
    """A kind that can put the payloads of a pack together, to ask all files at once.

    A kind has these methods or not.  It may put together some payloads and leave
    others as they are, which are then opened one by one.
    """

    def pack_together(
        self, payloads: Sequence[Sequence[bytes]], domain: Domain
    ) -> tuple[list[bytes], set[int]]:
        """The parts of payloads together, and the slots whose payloads are in them."""

    def unpack(
        self, shared: Parts, domain: Domain, n_files: int
    ) -> dict[int, list[bytes]]:
        """By slot, the payloads that were put together, as they were before.

        Raises:
            CorruptIndexError: a part makes no sense.
        """

    def open_pack(self, shared: Parts, domain: Domain, n_files: int) -> PackIndex:
        """Read the header of ``shared``; ``CorruptIndexError`` if it makes no sense.

        What is opened is kept for later plans, and threads may ask it at once.
        """


@dataclass(frozen=True, slots=True)
class MinMax:
    """Ask for nothing but the statistics, which every indexed column gets anyway."""

    kind: ClassVar[str] = "minmax"
