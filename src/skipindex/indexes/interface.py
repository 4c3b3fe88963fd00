"""The protocols of an index kind: a spec builds, a type opens, an index answers.

An index belongs to one column of one data file.  It answers one atom and never
walks a tree, so it knows nothing of AND, OR, files or tables.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol, runtime_checkable

import pyarrow as pa
from pyroaring import AbstractBitMap

from skipindex.errors import CorruptIndexError
from skipindex.expressions.arrays import Mask, UnsignedInts
from skipindex.expressions.atoms import Atom, Value
from skipindex.expressions.bounds import Bounds
from skipindex.expressions.domain import Domain
from skipindex.indexes.encoding.code_set import CodeSet
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.storage.parts import Parts

UNUSABLE: Final = (CorruptIndexError, OSError, pa.ArrowException)
"""What reading an index may raise, if it is damaged or cannot be read now."""


BY_VALUE: Final = "bitmap"
"""The name of the kind, and of the encoding of ``exact``, that has rows by value: a
look-up reads a small piece of a payload."""


class Index(Protocol):
    """One file's index on one column."""

    def probe(self, atom: Atom) -> Bounds[AbstractBitMap] | None:
        """Bound the rows for which ``atom`` is TRUE, or None for unknown.

        A row whose value is NULL is in ``lower`` only for ``NullAtom``.
        """


class ContextIndex(Index, Protocol):
    """An index that is cheaper to probe on few rows, or by codes, than by ``probe``.

    Any method may be missing; the planner looks for them by name.
    """

    @property
    def code_key(self) -> Hashable | None:
        """Indexes of a column with equal keys have equal codes; None: no codes."""

    def code_set(self, atom: Atom) -> CodeSet | None:
        """Exactly the codes that make ``atom`` TRUE; None: ask ``probe``."""

    def codes(self) -> UnsignedInts:
        """The code of every row, where there is a ``code_key``."""

    def probe_within(self, atom: Atom, rows: AbstractBitMap) -> Bounds[AbstractBitMap]:
        """Bound those of ``rows`` for which ``atom`` is TRUE; no other row is in it."""

    def count_within(self, atom: Atom, rows: AbstractBitMap) -> int | None:
        """How many of ``rows`` make ``atom`` TRUE; None: ask ``probe_within``.

        For the last condition of an AND, of which only the number is needed.
        """

    def has_many(self, atom: Atom) -> bool:
        """Whether so many values make ``atom`` TRUE that their rows take long to read.

        Some row has one of these values, so the file is kept without reading its rows.
        """


@runtime_checkable
class Dictionary(Protocol):
    """An index that knows which values the file has."""

    def distinct(self, limit: int) -> list[Value] | None:
        """Every value of the column without NULL, or None if there are over ``limit``.

        The list may have values that no row has.
        """


class PackIndex(Protocol):
    """An index on one column of all files of a pack, probed together."""

    @property
    def covered(self) -> Mask:
        """The slots that the index knows."""

    def ask(self, atom: Atom) -> tuple[Mask, Mask] | None:
        """The slots where no row is ruled out, and those where some row is TRUE.

        None is "unknown".  Slots that are not ``covered`` are in neither.

        Raises:
            CorruptIndexError: a part is damaged.
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


@runtime_checkable
class TogetherSpec(IndexSpec, Protocol):
    """A spec that knows more of columns of one file than of each by itself."""

    def build_together(self, columns: Sequence[EncodedColumn]) -> list[list[bytes]]:
        """The parts of each column's payload, as ``build`` has those of one."""


MEMORY_PER_ROW: Final = 64
"""Bytes a row that a spec may take to build, besides the payload and the column, ranked
if the kind has row positions, unless its attribute ``memory_per_row`` differs.
``memory_per_byte`` is of each byte of a text, and 0 unless it is said."""


PROBE_COST: Final = 1.0
"""What it costs to ask a kind for all rows of a file, in bitmaps that are read and
probed, unless its attribute ``probe_cost`` differs."""


class IndexType(Protocol):
    """A kind of index.  Two kinds share a name only if fully compatible."""

    @property
    def name(self) -> str:
        """On disk; never reused for anything else."""

    @property
    def version(self) -> int:
        """The version of the payload; a reader accepts this one and all older ones."""

    @property
    def positional(self) -> bool:
        """Whether it has row positions; other kinds answer "no row" or None."""

    @property
    def spec(self) -> type[IndexSpec]:
        """The spec's class; every parameter has a default."""

    def check(self, domain: Domain) -> None:
        """Raise ``UnsupportedTypeError`` if columns of the domain cannot be indexed."""

    def open(self, parts: Parts, domain: Domain, n_rows: int) -> Index:
        """Read the payload's header.

        Later plans use the opened index too, and threads may probe it together, so it
        holds little, and no state of a probe.

        Raises:
            CorruptIndexError: the header is not of this column of this file.
        """


def probe_cost(kind: IndexType) -> float:
    """What it costs to ask ``kind`` for all rows of a file."""
    cost: float = getattr(kind, "probe_cost", PROBE_COST)
    return cost


@runtime_checkable
class PackableType(IndexType, Protocol):
    """A kind that can pack payloads together, so that all files are probed together.

    It may leave some payloads as they are; these are opened one by one.
    """

    def pack_together(
        self, payloads: Sequence[Sequence[bytes]], domain: Domain
    ) -> tuple[list[bytes], set[int]]:
        """The parts that hold payloads together, and the slots of these payloads."""

    def unpack(
        self, shared: Parts, domain: Domain, n_files: int
    ) -> dict[int, list[bytes]]:
        """The payloads that were packed together, by slot, as they were before.

        Raises:
            CorruptIndexError: a part is damaged.
        """

    def open_pack(self, shared: Parts, domain: Domain, n_files: int) -> PackIndex:
        """Read the header of ``shared``.

        Later plans use the opened index too, and threads may probe it concurrently.

        Raises:
            CorruptIndexError: the header is not of this column of this pack.
        """


@dataclass(frozen=True, slots=True)
class MinMax:
    """Least and greatest value, NULLs and NaNs of every file, and no other index.

    Every indexed column has these statistics.

    >>> report = sx.build_indexes(path, {"price": sx.MinMax()}, workers=1)
    >>> report.table.plan("price < 4").paths
    ['part-0.parquet']
    """

    kind: ClassVar[str] = "minmax"
