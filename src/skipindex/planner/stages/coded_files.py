"""Indexes with a code for each row, of many files, and samples of their codes.

Files of a blob with equal dictionaries are a *group*: a condition is looked up once for
all of them.  The codes of a sample of the rows of each file are rows of one matrix, so
the samples of many files are compared with a condition in one numpy call.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any, Final, NamedTuple

import numpy as np

from skipindex.expressions.arrays import Ints, UnsignedInts
from skipindex.expressions.atoms import Atom
from skipindex.indexes.encoding.code_set import CodeSet
from skipindex.indexes.interface import UNUSABLE, IndexType
from skipindex.planner.stages.index_reader import INDEX_BYTES, IndexReader
from skipindex.planner.stages.records import Locations
from skipindex.storage.deadline import checked
from skipindex.storage.pack import Blob
from skipindex.storage.parts import ReadCount, add_reads, reads_so_far
from skipindex.table import ColumnInfo

SAMPLED_ROWS: Final = 4096
"""Rows of a sample, evenly spread over a file."""
_UNOPENED: Final = -2
_WITHOUT: Final = -1
"""Stand for the groups of files whose indexes were not opened, or have no codes."""


class CodedFiles:
    """Opened indexes of the files of one blob, and the codes of sampled rows.

    Later plans use it too, and add what they open; threads share it.

    Args:
        n_files: the number of slots of the blob.

    Attributes:
        groups: by slot, the number of the group; less than zero without codes.
        indexes: by slot, the index; None if it was not opened or has no codes.
        examples: by group, one of its indexes.
        is_sampled: by slot, whether ``codes`` has its sample.
        codes: by slot, the codes of the sampled rows.
        reads: by slot, the parts, bytes and bitmaps that all of its codes take.
    """

    def __init__(self, n_files: int) -> None:
        # Looked up one at a time, where lists are several times faster than arrays.
        self.groups = [_UNOPENED] * n_files
        self.indexes: list[Any] = [None] * n_files
        self.examples: list[Any] = []
        self.is_sampled = np.zeros(n_files, np.bool_)
        self.codes: UnsignedInts = np.zeros((n_files, 0), np.uint8)
        self.reads = np.zeros((n_files, 3), np.int64)
        self._numbers: dict[Hashable, int] = {}
        self._lock = threading.Lock()

    @property
    def n_bytes(self) -> int:
        """About what it takes in memory."""
        return len(self.indexes) * INDEX_BYTES + self.codes.nbytes

    def add(self, slot: int, index: object) -> int:
        """Add an opened index, None if it cannot be used; its group."""
        key = getattr(index, "code_key", None)
        with self._lock:
            group = _WITHOUT
            if key is not None:
                group = self._numbers.setdefault(key, len(self.examples))
                if group == len(self.examples):
                    self.examples.append(index)
                self.indexes[slot] = index
            # Last, as other threads look at it without the lock.
            self.groups[slot] = group
        return group

    def add_sample(self, slot: int) -> None:
        """Hold the codes of a sample of the rows of a file.

        Raises:
            CorruptIndexError: the index is damaged.
        """
        before = reads_so_far()
        codes = self.indexes[slot].codes()
        read = reads_so_far().since(before)
        rows = np.arange(SAMPLED_ROWS) * len(codes) // SAMPLED_ROWS
        with self._lock:
            if not self.codes.shape[1]:
                shape = len(self.indexes), SAMPLED_ROWS
                self.codes = np.zeros(shape, codes.dtype)
            elif codes.dtype.itemsize > self.codes.dtype.itemsize:
                self.codes = self.codes.astype(codes.dtype)
            self.codes[slot] = codes[rows]
            self.reads[slot] = read.parts, read.n_bytes, read.bitmaps
            # Last, as other threads look at it without the lock.
            self.is_sampled[slot] = True


class CodedSource:
    """A blob with codes, for one plan.

    Args:
        kind: its kind.
        blob: the blob.
        reader: opens indexes, and takes notes of those that cannot be used.

    Attributes:
        files: what plans hold of it.
        sets: by condition and group, the codes that make it TRUE; None: not known.
    """

    def __init__(self, kind: IndexType, blob: Blob, reader: IndexReader) -> None:
        self.kind = kind
        self._blob = blob
        self._reader = reader
        files = blob.held("codes")
        if files is None:
            files = CodedFiles(len(blob.n_rows))
            blob.hold("codes", files, files.n_bytes)
        self.files: CodedFiles = files
        self.sets: dict[Atom, dict[int, CodeSet | None]] = {}

    def open(self, slot: int, file: int, column: ColumnInfo) -> int:
        """The group of a file; less than zero without codes."""
        group = self.files.groups[slot]
        if group == _UNOPENED:
            location = self.kind, self._blob, slot
            group = self.files.add(slot, self._reader.open(location, file, column))
        return group

    def code_set(self, group: int, atom: Atom) -> CodeSet | None:
        """The codes that make ``atom`` TRUE in a group; None where not known."""
        known = self.sets.setdefault(atom, {})
        if group not in known:
            known[group] = None
            try:
                known[group] = self.files.examples[group].code_set(atom)
            except UNUSABLE as error:
                self._reader.refuse(error, self._blob)
        return known[group]

    def codes(self, slot: int) -> UnsignedInts | None:
        """The codes of all rows of a file; None if they cannot be read."""
        try:
            codes: UnsignedInts = self.files.indexes[slot].codes()
        except UNUSABLE as error:
            self._reader.refuse(error, self._blob)
            return None
        return codes

    def sampled(self, slots: Ints) -> tuple[UnsignedInts, Ints]:
        """The codes of the samples of slots, and the places of those that have one.

        A sample counts as what is read for all codes.
        """
        files = self.files
        has_sample = files.is_sampled[slots]
        parts, n_bytes, bitmaps = files.reads[slots[has_sample]].sum(axis=0).tolist()
        add_reads(ReadCount(parts, n_bytes, bitmaps, cached_bytes=n_bytes))
        if not has_sample.all():
            for i in checked(np.flatnonzero(~has_sample).tolist()):
                try:
                    files.add_sample(int(slots[i]))
                except UNUSABLE as error:
                    self._reader.refuse(error, self._blob)
                else:
                    has_sample[i] = True
            self._blob.hold("codes", files, files.n_bytes)
            slots = slots[has_sample]
        return files.codes[slots], np.flatnonzero(has_sample)


class Coded(NamedTuple):
    """The codes that make a condition TRUE in a file, and where its codes are."""

    wanted: CodeSet
    source: CodedSource
    slot: int


class CodedColumn:
    """The indexes on one column that have codes, for one plan.

    Args:
        column: the column.
        locations: where its indexes are.
        reader: opens them.
    """

    def __init__(
        self, column: ColumnInfo, locations: Locations, reader: IndexReader
    ) -> None:
        self._column = column
        self._locations = locations
        self._reader = reader
        self._sources: dict[Blob, CodedSource] = {}

    def find(self, atom: Atom, files: Ints) -> dict[int, Coded | None]:
        """What decides ``atom``, for each file; None without codes."""
        result: dict[int, Coded | None] = dict.fromkeys(files.tolist())
        numbers = self._locations.source[files].tolist()
        slots = self._locations.slot[files].tolist()
        last = -1
        for file, number, slot in checked(zip(result, numbers, slots, strict=True)):
            if number < 0:
                continue
            if number != last:
                last, source = number, self._of(*self._locations.sources[number])
                groups = source.files.groups
                sets = source.sets.setdefault(atom, {})
            # Mostly it was opened by an earlier plan, and its group was asked before.
            wanted = sets.get(groups[slot])
            if wanted is None:
                result[file] = self._find_one(atom, file)
            else:
                result[file] = Coded(wanted, source, slot)
        return result

    def _find_one(self, atom: Atom, file: int) -> Coded | None:
        for kind, blob, slot in self._locations[file]:
            source = self._of(kind, blob)
            group = source.open(slot, file, self._column)
            wanted = None if group < 0 else source.code_set(group, atom)
            if wanted is not None:
                return Coded(wanted, source, slot)
        return None

    def _of(self, kind: IndexType, blob: Blob) -> CodedSource:
        if blob not in self._sources:
            self._sources[blob] = CodedSource(kind, blob, self._reader)
        return self._sources[blob]
