"""Rows of many files as marks in one array, by indexes that have the code of each row.

The codes of files with the same dictionary are compared in one numpy call for each
condition, where ``rows`` takes several calls for each file and condition.  First a
sample of the rows of every file is marked: where one of them matches, a file is kept,
and its other rows need not be looked at.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from skipindex.expressions.arrays import Ints, Mask, UnsignedInts
from skipindex.indexes.encoding.code_set import CodeSet
from skipindex.indexes.interface import UNUSABLE
from skipindex.planner.bound_predicate import (
    AllOf,
    AnyOf,
    BoundPredicate,
    Computed,
    Leaf,
    TruthValue,
)
from skipindex.planner.stages.cost import FEW
from skipindex.planner.stages.index_reader import IndexReader
from skipindex.planner.stages.records import IndexLocation, LeafRecord
from skipindex.planner.stages.rows import RowVerdict
from skipindex.storage.deadline import checked
from skipindex.table import ColumnInfo

_SAMPLED_ROWS: Final = 4096
"""Rows of a file that are marked before all of its rows are."""
_TRIED: Final = 8
"""Files whose samples are marked first."""
_LEAST_SHARE: Final = 0.5
"""The samples of other files are marked if this share of the first had a match."""
_ROWS_HELD: Final = 1 << 23
"""Rows of several files whose codes are held between the sample and all rows."""
_MOST_COPIED: Final = 1 << 14
"""Rows of a file up to which its codes are copied, to be compared with others."""
_ROWS_AT_ONCE: Final = 1 << 18
"""Rows of several files that are marked together, as their marks stay in a cache."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Some rows of some files; ``ends`` has where those of each file end."""

    files: Sequence[int]
    rows: Sequence[slice | Ints]
    ends: Sequence[int]

    def spans(self) -> Iterator[slice]:
        """Where the marks of each file are."""
        return (slice(*pair) for pair in pairwise((0, *self.ends)))

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.ends[-1] if self.ends else 0

    def where(self, places: Ints) -> _Rows:
        """The rows at ascending places."""
        cuts = np.searchsorted(places, (0, *self.ends))
        files, rows = [], []
        begins = (0, *self.ends)
        for i, (start, stop) in enumerate(pairwise(cuts.tolist())):
            if start < stop:
                mine, at = self.rows[i], places[start:stop] - begins[i]
                files.append(self.files[i])
                if isinstance(mine, slice):
                    rows.append(at * (mine.step or 1))
                else:
                    rows.append(mine[at])
        return _Rows(files, rows, np.cumsum([len(one) for one in rows]).tolist())


class _Coded(NamedTuple):
    """The codes of the rows of a file, and those that make a leaf TRUE."""

    wanted: CodeSet
    codes: UnsignedInts | None  # None if there are none of the wanted ones
    kind: str


class RowMarks:
    """Marks the rows that make a tree TRUE, if the indexes of its columns have codes.

    Args:
        known: what is known of the leaves.
        reader: opens their indexes.
        locations: by column name and file, where the indexes are.
        n_rows: of every file of the table.

    Attributes:
        empty_leaves: by leaf, the files that it rules out alone.
    """

    def __init__(
        self,
        known: Mapping[Leaf | Computed, LeafRecord],
        reader: IndexReader,
        locations: Mapping[str, Mapping[int, Sequence[IndexLocation]]],
        n_rows: Ints,
    ) -> None:
        self.empty_leaves: dict[Leaf, list[int]] = {}
        self._known = known
        self._reader = reader
        self._locations = locations
        self._n_rows = n_rows
        self._memos: dict[Leaf, dict[Hashable, CodeSet]] = {}
        # By leaf and file, of the files that are marked now; None without codes.
        self._coded: dict[Leaf, dict[int, _Coded | None]] = {}
        # The marks of each leaf before they are combined with others.
        self._alone: dict[Leaf, Mask] = {}

    def probe(
        self, tree: BoundPredicate, files: Ints, *, samples: bool
    ) -> tuple[list[int], dict[int, RowVerdict]]:
        """Files with a match, and how many rows of the others match.

        If ``samples`` is True, a file goes to the first ones if a row of a sample
        certainly makes ``tree`` TRUE.  Files without codes are in neither.
        """
        matched: list[int] = []
        verdicts: dict[int, RowVerdict] = {}
        is_sampled = samples and self._many_match(tree, files)
        for some in checked(self._pieces(files, _ROWS_HELD)):
            has_match = np.zeros(len(some), np.bool_)
            if is_sampled:
                has_match = self._sampled(tree, some)
                matched += some[has_match].tolist()
            for few in checked(self._pieces(some[~has_match], _ROWS_AT_ONCE)):
                if not self._add_verdicts(tree, few, verdicts):
                    return matched, verdicts
            self._coded.clear()
        return matched, verdicts

    def _pieces(self, files: Ints, n_rows: int) -> Iterable[Ints]:
        """The files in pieces of about as many rows."""
        group = np.cumsum(self._n_rows[files]) // n_rows
        return np.split(files, np.flatnonzero(np.diff(group)) + 1)

    def _many_match(self, tree: BoundPredicate, files: Ints) -> bool:
        """Whether the samples of most files are likely to have a match."""
        step = len(files) // _TRIED
        if step < 2:
            return False
        tried = self._sampled(tree, files[step // 2 :: step])
        return float(tried.mean()) >= _LEAST_SHARE

    def _sampled(self, tree: BoundPredicate, files: Ints) -> Mask:
        """Which files have a match in their sample."""
        counts = self._n_rows[files].tolist()
        samples = [slice(0, n, max(1, -(-n // _SAMPLED_ROWS))) for n in counts]
        lengths = [len(range(0, one.stop, one.step)) for one in samples]
        rows = _Rows(files.tolist(), samples, np.cumsum(lengths).tolist())
        marks = self._marks(tree, rows)
        if marks is None:
            return np.zeros(len(files), np.bool_)
        return np.array([marks[span].any() for span in rows.spans()], np.bool_)

    def _add_verdicts(
        self, tree: BoundPredicate, files: Ints, verdicts: dict[int, RowVerdict]
    ) -> bool:
        """Add how many rows of ``files`` match; False if no file has codes."""
        ends = np.cumsum(self._n_rows[files]).tolist()
        rows = _Rows(files.tolist(), [slice(None)] * len(files), ends)
        self._alone.clear()
        marks = self._marks(tree, rows)
        if marks is None:
            return False
        for file, span in zip(rows.files, rows.spans(), strict=True):
            kinds = self._kinds(file)
            if kinds is None:
                continue
            n = int(np.count_nonzero(marks[span]))
            verdicts[file] = RowVerdict(n, n, kinds)
            if not n:
                self._note_empty(file, span, rows.n)
        return True

    def _kinds(self, file: int) -> tuple[str, ...] | None:
        """The kinds that were probed for a file; None if a column has no codes."""
        kinds: dict[str, None] = {}
        for coded in self._coded.values():
            if file not in coded:
                continue
            one = coded[file]
            if one is None:
                return None
            kinds[one.kind] = None
        return tuple(kinds)

    def _note_empty(self, file: int, span: slice, n_rows: int) -> None:
        """Note which leaves rule out a file alone."""
        for leaf, marks in self._alone.items():
            if len(marks) == n_rows and not marks[span].any():
                self.empty_leaves.setdefault(leaf, []).append(file)

    def _marks(self, node: BoundPredicate, rows: _Rows) -> Mask | None:
        """Which rows certainly make ``node`` TRUE; None where that is known of none."""
        # Of a file without codes, other rows may do so too.
        match node:
            case AllOf(children):
                return self._all_of(children, rows)
            case AnyOf(children):
                return self._any_of(children, rows)
            case Leaf():
                return self._of_leaf(node, rows)
            case TruthValue(value):
                return np.full(rows.n, value)
            case _:
                return None

    def _all_of(self, children: Sequence[BoundPredicate], rows: _Rows) -> Mask | None:
        marks = places = None
        left = rows
        for child in children:
            if marks is not None and np.count_nonzero(marks) * FEW < left.n:
                few = np.flatnonzero(marks)
                places = few if places is None else places[few]
                left, marks = left.where(few), None
                if not left.n:
                    break
            more = self._marks(child, left)
            if more is None:
                return None
            # Not in place: the marks of the first leaf are kept.
            marks = more if marks is None else marks & more
        if places is None and marks is not None:
            return marks
        result = np.full(rows.n, not children)
        if places is not None:
            result[places if marks is None else places[marks]] = True
        return result

    def _any_of(self, children: Sequence[BoundPredicate], rows: _Rows) -> Mask | None:
        marks = None
        for child in children:
            more = self._marks(child, rows)
            if more is None:
                return None
            marks = more if marks is None else marks | more
        return np.zeros(rows.n, np.bool_) if marks is None else marks

    def _of_leaf(self, leaf: Leaf, rows: _Rows) -> Mask | None:
        record = self._known[leaf]
        # Looked up one at a time, where bytes are several times faster than arrays.
        possible = record.bounds.upper.tobytes()
        certain = record.bounds.lower.tobytes()
        marks = np.zeros(rows.n, np.bool_)
        group = _Group(marks)
        coded = self._coded.setdefault(leaf, {})
        are_coded: set[bool] = set()
        for file, few, span in zip(rows.files, rows.rows, rows.spans(), strict=True):
            if certain[file]:
                marks[span] = True
            elif possible[file]:
                if file not in coded:
                    coded[file] = self._probed(leaf, record.column, file)
                one = coded[file]
                are_coded.add(one is not None)
                if one is not None and one.codes is not None:
                    group.add(span, one.wanted, one.codes[few])
        if are_coded == {False}:
            return None
        group.mark()
        self._alone[leaf] = marks
        return marks

    def _probed(self, leaf: Leaf, column: ColumnInfo, file: int) -> _Coded | None:
        """The codes that decide a leaf for a file; None if it has no such index."""
        memo = self._memos.setdefault(leaf, {})
        for location in self._locations[column.name].get(file, ()):
            index: Any = self._reader.open(location, file, column)
            code_set = getattr(index, "code_set", None)
            if code_set is None:
                continue
            try:
                wanted: CodeSet | None = code_set(leaf.atom, memo)
                if wanted is None:
                    continue
                codes = index.codes() if wanted.intervals else None
            except UNUSABLE as error:
                self._reader.refuse(error, location[1])
                continue
            return _Coded(wanted, codes, location[0].name)
        return None


class _Group:
    """Codes of adjoining rows that are compared with the same set at once."""

    def __init__(self, marks: Mask) -> None:
        self._marks = marks
        self._wanted: CodeSet | None = None
        self._codes: list[UnsignedInts] = []
        self._start = self._stop = 0

    def add(self, span: slice, wanted: CodeSet, codes: UnsignedInts) -> None:
        """Add the rows of one file, whose marks are at ``span``."""
        if (
            wanted is not self._wanted
            or span.start != self._stop
            or codes.dtype != self._codes[-1].dtype
            or len(codes) > _MOST_COPIED
        ):
            self.mark()
            self._wanted, self._codes, self._start = wanted, [], span.start
        self._codes.append(codes)
        self._stop = span.stop

    def mark(self) -> None:
        """Mark the rows that were added."""
        if self._wanted is not None:
            codes = self._codes
            every = codes[0] if len(codes) == 1 else np.concatenate(codes)
            self._marks[self._start : self._stop] = self._wanted.among(every)
