"""A table that others write, and what skipindex is called to do with it."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from unittest import mock

import pyarrow as pa

import skipindex as sx
from skipindex.errors import (
    CommitConflictError,
    SkipIndexError,
    UnsupportedTypeError,
)
from skipindex.source.source import LogSource
from tests.heavy.lives.rows import (
    Column,
    Kind,
    Stored,
    counted,
    every,
    held,
    name_of,
)
from tests.rewrite.arrow_writer import optimized

PLACES: Final = Kind(
    "string", pa.string(), ("1", "w v", "x", "y/z", "ü"), lambda value: f"'{value}'"
)
"""Texts that partitions may be named by."""
_SOME_KINDS: Final = ("exact", "exact", "minmax", "bloom", "bitmap", "bit_sliced")
_NAMES: Final = "abcdefghijkl"


@dataclass(frozen=True, slots=True)
class Moment:
    """A table as it is asked about.

    Args:
        table: as it is open.
        columns: that it has.
        rows: that it holds, with their ``file`` and ``row``.
        exact: columns of which each file that is known has an exact index.
        spared: files that are known and have lost no row.
    """

    table: sx.Table
    columns: Sequence[Column]
    rows: pa.Table
    exact: Sequence[Column] = ()
    spared: frozenset[str] = frozenset()


class World:
    """What a table holds by its specification, and the acts that change it.

    Args:
        folder: of the table.
        rng: what it is.
    """

    n_acts = 9
    """Of a life."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.folder = folder
        self.rng = rng
        self.columns: list[Column] = []
        self.files: dict[str, Stored] = {}
        """By their path; a path more than once has a mark behind it."""
        self.allowed: list[str] = []
        """What messages of refusals say that are right for this table."""
        self.is_indexed = False
        self.exact: frozenset[int] = frozenset()
        """The numbers of columns with an exact index."""
        self.dropped: set[str] = set()
        """Files whose indexes were dropped, and were not built again."""
        self.n_made = 0

    @property
    def acts(self) -> Mapping[str, Callable[[], None]]:
        """What can be done, by name."""
        ours = self.index, self.refresh, self.drop, self.vacuum
        every = *ours, self.maintain, self.compact, *self.own_acts
        return {one.__name__: one for one in every}

    @property
    def own_acts(self) -> Sequence[Callable[[], None]]:
        """Those of the format's writers, and those of skipindex that need it."""
        raise NotImplementedError

    @property
    def weights(self) -> Mapping[str, int]:
        """How often an act is drawn; once if it is not here."""
        return {"index": 3, "refresh": 2}

    def open(self) -> sx.Table:
        """The table as it is now."""
        raise NotImplementedError

    def asked(self) -> Moment:
        """What is asked about: the table as it is now."""
        return Moment(self.open(), self.columns, self.rows)

    def moment(
        self, table: sx.Table, columns: Sequence[Column], files: Sequence[Stored]
    ) -> Moment:
        """A table with these files, whose exact indexes must skip what they can."""
        known = self._full(one.path for one in table.files if one.n_rows is not None)
        return Moment(
            table,
            columns,
            held(columns, files),
            [one for one in columns if one.number in self.exact],
            frozenset(one.path for one in files if not one.gone) & known - self.dropped,
        )

    def _full(self, paths: Iterable[str]) -> set[str]:
        return {str((self.folder / path).resolve()) for path in paths}

    def unlike_reader(self) -> str:
        """What another reader of the table finds instead; empty if the same."""
        raise NotImplementedError

    @property
    def rows(self) -> pa.Table:
        """The rows that are not deleted."""
        return held(self.columns, self.files.values())

    def unlike(self, found: pa.Table) -> str:
        """How the rows that another reader has are others; empty if they are not."""
        names = [one.name for one in self.columns]
        if sorted(found.column_names) != sorted(names):
            return f"columns {found.column_names}, expected {names}"
        schema = pa.schema([one.as_field(name_of) for one in self.columns])
        own = counted(found.select(names).cast(schema), names)
        right = counted(self.rows, names)
        more, lost = [*(own - right)][:2], [*(right - own)][:2]
        return f"lost {lost}, more {more}"[:600] if own != right else ""

    def some(self, counts: Sequence[int]) -> list[Any]:
        """Some files, each once: one of these numbers of them."""
        known = [*{one.path: one for one in self.files.values()}.values()]
        return self.rng.sample(known, min(len(known), self.rng.choice(counts)))

    def gone_from(self, file: Stored) -> list[int]:
        """Rows that are deleted now; at least one."""
        share = self.rng.choice([0.0, 0.2, 0.6, 1.0])
        gone = [i for i in file.valid if self.rng.random() < share]
        gone = gone or file.valid[:1]
        file.gone |= frozenset(gone)
        return gone

    def number(self) -> int:
        """One that was never given before."""
        self.n_made += 1
        return self.n_made

    def name(self) -> uuid.UUID:
        """A name of a file, which the case always gives."""
        return uuid.UUID(int=self.rng.getrandbits(128))

    def free_name(self, taken: Sequence[Column]) -> str:
        """A name that no column has now; a dropped or renamed one may have had it."""
        names = {one.name for one in taken}
        return self.rng.choice([name for name in _NAMES if name not in names])

    def pick(self, *, is_partition: bool | None = None) -> Column | None:
        """A column, or a field of a struct."""
        known = [
            one
            for one in every(self.columns)
            if is_partition is None or one.is_partition == is_partition
        ]
        return self.rng.choice(known) if known else None

    def siblings(self, column: Column) -> list[Column]:
        """The columns, or the fields, among which a name must be unique."""
        of = [self.columns, *(one.fields for one in every(self.columns))]
        return next(some for some in of if any(one is column for one in some))

    def race(self, by: type[LogSource], optimize: Callable[[], object]) -> None:
        """Another act when the files of ``optimize`` are written and not committed."""
        names = sorted(self.racing)
        act, commit = self.acts[self.rng.choice(names)], by.replace_files
        truth: list[Counter[Any]] = []

        def late(*given: Any) -> None:
            if not truth:
                act()
                truth.append(self._counted())
            commit(*given)

        before = self._counted()
        with (
            mock.patch.object(by, "replace_files", late),
            suppress(CommitConflictError),
        ):
            optimize()
        assert self._counted() == (truth or [before])[0], (
            f"other rows, and {act.__name__}"
        )

    racing: Sequence[str] = ()
    """The acts that may come between."""

    def _counted(self) -> Counter[Any]:
        return counted(self.rows, [one.name for one in self.columns])

    # -- acts of skipindex -------------------------------------------------------------

    def index(self) -> None:
        """Indexes of one kind on all columns, or of some kinds on some."""
        wanted: dict[str, str | None] = {
            "*": self.rng.choice(["exact", "minmax", None])
        }
        for one in self.columns:
            if (
                one.kind is not None
                and not one.is_partition
                and self.rng.random() < 0.4
            ):
                wanted[one.name] = self.rng.choice(_SOME_KINDS)
        try:
            self.open().build_indexes(wanted, workers=1)
        except UnsupportedTypeError:
            self.open().build_indexes({"*": "exact"}, workers=1)
        self.is_indexed = True

    def index_exactly(self) -> None:
        """An exact index on each column that is in files."""
        own = [one for one in self.columns if not one.is_partition]
        wanted = {one.name: "exact" for one in own}
        table = self.open().build_indexes(wanted, workers=1).table
        self.dropped -= self._full(table.paths)
        self.is_indexed = True
        self.exact = frozenset(one.number for one in own)

    def refresh(self) -> None:
        """Files without an index get one."""
        if self.is_indexed:
            self.open().refresh_indexes(workers=1)

    def drop(self) -> None:
        """All indexes go."""
        if self.is_indexed:
            table = self.open()
            self.dropped |= self._full(table.state.snapshot.manifest.paths)
            table.drop_indexes()
            self.exact = frozenset()

    def vacuum(self) -> None:
        """Files that skipindex needs no longer go."""
        if self.is_indexed:
            self.open().vacuum(retention=timedelta(0), purge=self.rng.random() < 0.3)

    def maintain(self) -> None:
        """What is due is done, without Spark."""
        if self.is_indexed:
            sx.maintain(self.open(), workers=1)

    def compact(self) -> None:
        """Small packs of indexes become one."""
        if self.is_indexed:
            self.open().compact_indexes()

    def rewrite_as_folder(self) -> None:
        """Files that no log names yet are a table of skipindex, which rewrites them.

        The log of the other format then names the old ones, which wait to be deleted.
        """
        with suppress(SkipIndexError):  # of files of which a plain folder is no table
            table = sx.build_indexes(str(self.folder), {"*": "exact"}, workers=1).table
            self.is_indexed = True
            by = [one.name for one in table.columns if not one.reason]
            optimized(self.folder, cluster_by=by[:1], rows_per_file=10)
