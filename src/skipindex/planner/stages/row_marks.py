"""Marking the matching rows of many files together, by their codes.

The codes of files with the same dictionary are compared in one numpy call for each
condition, where ``rows`` takes several calls for each file and condition.  First a
sample of the rows of every large file is marked: where one of them matches, a file is
kept, and its other rows are not tested.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from skipindex.conditions.bound_predicate import (
    AllOf,
    AnyOf,
    BoundPredicate,
    Computed,
    Leaf,
    TruthValue,
)
from skipindex.expressions.arrays import Ints, Mask, UnsignedInts
from skipindex.indexes.encoding.code_set import CodeSet, among_rows
from skipindex.planner.stages.coded_files import (
    SAMPLED_ROWS,
    Coded,
    CodedColumn,
    CodedSource,
)
from skipindex.planner.stages.cost import FEW
from skipindex.planner.stages.index_reader import IndexReader
from skipindex.planner.stages.records import LeafRecord, Locations
from skipindex.planner.stages.rows import RowVerdict
from skipindex.storage.deadline import checked
from skipindex.storage.parts import uncounted

_SAMPLED_FROM: Final = 4 * SAMPLED_ROWS
"""Rows of a file from which a sample of them is marked first."""
_TRIED: Final = 8
"""Neighbouring files whose samples are marked first."""
_LEAST_SHARE: Final = 0.5
"""The samples of other files are marked if this share of the first had a match."""
_ROWS_HELD: Final = 1 << 23
"""Rows of several files whose codes are held from one condition to the next."""
_MOST_COPIED: Final = 1 << 14
"""Rows of a file up to which its codes are copied, to be compared with others."""
_MOST_ROWS: Final = 1 << 26
"""Rows of a file up to which they are marked, which takes a byte for each."""
_MARKS_AT_ONCE: Final = 1 << 20
"""Rows of the samples of several files that are marked together."""
_ROWS_AT_ONCE: Final = 1 << 18
"""Rows of several files that are marked together, as their marks stay in a cache."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Some rows of some files, or all (None); those of each file end at ``ends``."""

    files: Sequence[int]
    rows: Sequence[Ints | None]
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
                rows.append(at if mine is None else mine[at])
        return _Rows(files, rows, np.cumsum([len(one) for one in rows]).tolist())


class _Sample(NamedTuple):
    """Some files, each with ``SAMPLED_ROWS`` of its rows."""

    files: Ints

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.files) * SAMPLED_ROWS


class RowMarks:
    """Marks the rows that make a tree TRUE, if the indexes of its columns have codes.

    Args:
        known: what is known of the leaves.
        reader: opens their indexes.
        locations: by column name, where the indexes are.
        n_rows: of every file of the table.

    Attributes:
        empty_leaves: by leaf, the files that it rules out alone.
    """

    def __init__(
        self,
        known: Mapping[Leaf | Computed, LeafRecord],
        reader: IndexReader,
        locations: Mapping[str, Locations],
        n_rows: Ints,
    ) -> None:
        self.empty_leaves: dict[Leaf, list[int]] = {}
        self._known = known
        self._reader = reader
        self._columns = {
            record.column.name: CodedColumn(
                record.column, locations[record.column.name], reader
            )
            for record in known.values()
        }
        self._n_rows = n_rows
        self._at_hand = np.zeros(0, np.int64)
        # By leaf, what decides it in the files at hand; None without codes.
        self._coded: dict[Leaf, dict[int, Coded | None]] = {}
        # By leaf, the files at hand whose codes were probed.
        self._probed: dict[Leaf, set[int]] = {}
        # The marks of each leaf before they are combined with others.
        self._alone: dict[Leaf, Mask] = {}

    def probe(
        self, tree: BoundPredicate, files: Ints, *, samples: bool
    ) -> tuple[list[int], dict[int, RowVerdict]]:
        """Files with a match, and how many rows of the others match.

        If ``samples`` is True, a file goes to the first ones if a row of a sample
        certainly makes ``tree`` TRUE.  Files without codes, and those of more than
        ``_MOST_ROWS`` rows, are in neither.
        """
        matched: list[int] = []
        verdicts: dict[int, RowVerdict] = {}
        files = files[self._n_rows[files] <= _MOST_ROWS]
        is_sampled = self._n_rows[files] >= _SAMPLED_FROM
        if samples and self._many_match(tree, files[is_sampled]):
            some, files = files[is_sampled], files[~is_sampled]
            has_match = self._sampled(tree, some)
            matched = some[has_match].tolist()
            with uncounted():  # with their samples
                self._add_verdicts(tree, some[~has_match], verdicts)
        self._add_verdicts(tree, files, verdicts)
        return matched, verdicts

    def _pieces(self, files: Ints, n_rows: int) -> Iterable[Ints]:
        """The files in pieces of about as many rows."""
        group = np.cumsum(self._n_rows[files]) // n_rows
        return np.split(files, np.flatnonzero(np.diff(group)) + 1)

    def _many_match(self, tree: BoundPredicate, files: Ints) -> bool:
        """Whether the samples of most files are likely to have a match."""
        # Without a cache, the rows that a sample is taken of would be read again.
        if len(files) < 2 * _TRIED or not self._reader.cache.parts.limit:
            return False
        start = len(files) // 2
        with uncounted():  # they are marked again
            tried = self._sampled(tree, files[start : start + _TRIED])
        return float(tried.mean()) >= _LEAST_SHARE

    def _sampled(self, tree: BoundPredicate, files: Ints) -> Mask:
        """Which files have a match in their sample."""
        result = np.zeros(len(files), np.bool_)
        step = max(1, _MARKS_AT_ONCE // SAMPLED_ROWS)
        for start in checked(range(0, len(files), step)):
            some = files[start : start + step]
            self._take(some)
            marks = self._marks(tree, _Sample(some))
            if marks is None:
                break
            by_file = marks.reshape(len(some), SAMPLED_ROWS)
            result[start : start + step] = by_file.any(axis=1)
        return result

    def _add_verdicts(
        self, tree: BoundPredicate, files: Ints, verdicts: dict[int, RowVerdict]
    ) -> None:
        """Add how many rows of ``files`` match."""
        for some in checked(self._pieces(files, _ROWS_HELD)):
            self._take(some)
            for few in checked(self._pieces(some, _ROWS_AT_ONCE)):
                if not self._add_some(tree, few, verdicts):
                    return

    def _take(self, files: Ints) -> None:
        """Have other files at hand."""
        self._at_hand = files
        self._coded.clear()
        self._probed.clear()

    def _add_some(
        self, tree: BoundPredicate, files: Ints, verdicts: dict[int, RowVerdict]
    ) -> bool:
        """Add how many rows of ``files`` match; False if no file has codes."""
        ends = np.cumsum(self._n_rows[files]).tolist()
        rows = _Rows(files.tolist(), [None] * len(files), ends)
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
        for leaf, files in self._probed.items():
            if file in files:
                one = self._coded[leaf][file]
                if one is None:
                    return None
                kinds[one.source.kind.name] = None
        return tuple(kinds)

    def _note_empty(self, file: int, span: slice, n_rows: int) -> None:
        """Note which leaves rule out a file alone."""
        for leaf, marks in self._alone.items():
            if len(marks) == n_rows and not marks[span].any():
                self.empty_leaves.setdefault(leaf, []).append(file)

    def _marks(self, node: BoundPredicate, rows: _Rows | _Sample) -> Mask | None:
        """Which rows certainly make ``node`` TRUE; None where that is known of none."""
        # Of a file without codes, other rows may do so too.
        match node:
            case AllOf(children):
                return self._all_of(children, rows)
            case AnyOf(children):
                return self._any_of(children, rows)
            case Leaf():
                if isinstance(rows, _Sample):
                    return self._of_sample(node, rows.files)
                return self._of_leaf(node, rows)
            case TruthValue(value):
                return np.full(rows.n, value)
            case _:
                return None

    def _all_of(
        self, children: Sequence[BoundPredicate], rows: _Rows | _Sample
    ) -> Mask | None:
        marks = places = None
        left = rows
        for child in children:
            if (
                marks is not None
                and isinstance(left, _Rows)
                and np.count_nonzero(marks) * FEW < left.n
            ):
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

    def _any_of(
        self, children: Sequence[BoundPredicate], rows: _Rows | _Sample
    ) -> Mask | None:
        marks = None
        for child in children:
            more = self._marks(child, rows)
            if more is None:
                return None
            marks = more if marks is None else marks | more
        return np.zeros(rows.n, np.bool_) if marks is None else marks

    def _of_leaf(self, leaf: Leaf, rows: _Rows) -> Mask | None:
        certain = self._known[leaf].bounds.lower.tobytes()
        marks = np.zeros(rows.n, np.bool_)
        group = _Group(marks)
        coded = self._coded_by(leaf)
        probed = self._probed.setdefault(leaf, set())
        n_asked = n_coded = 0
        for file, few, span in zip(rows.files, rows.rows, rows.spans(), strict=True):
            if certain[file]:
                marks[span] = True
            elif file in coded:
                probed.add(file)
                n_asked += 1
                one = coded[file]
                if one is not None and not one.wanted.is_empty:
                    codes = one.source.codes(one.slot)
                    if codes is None:
                        coded[file] = one = None
                    else:
                        group.add(
                            span, one.wanted, codes if few is None else codes[few]
                        )
                n_coded += one is not None
        if n_asked and not n_coded:
            return None
        group.mark()
        self._alone[leaf] = marks
        return marks

    def _of_sample(self, leaf: Leaf, files: Ints) -> Mask:
        marks = np.zeros((len(files), SAMPLED_ROWS), np.bool_)
        marks[self._known[leaf].bounds.lower[files]] = True
        coded = self._coded_by(leaf)
        sources: dict[CodedSource, list[tuple[int, int, CodeSet]]] = {}
        for place, file in enumerate(files.tolist()):
            one = coded.get(file)
            if one is not None and not one.wanted.is_empty:
                mine = sources.setdefault(one.source, [])
                mine.append((place, one.slot, one.wanted))
        for source, some in sources.items():
            places, slots, wanted = zip(*some, strict=True)
            codes, sampled = source.sampled(np.array(slots))
            if len(codes):
                sets = [wanted[i] for i in sampled.tolist()]
                marks[np.array(places)[sampled]] = among_rows(codes, sets)
        return marks.ravel()

    def _coded_by(self, leaf: Leaf) -> dict[int, Coded | None]:
        """What decides a leaf in the files at hand that it is not decided for."""
        if leaf not in self._coded:
            record = self._known[leaf]
            is_open = record.bounds.upper & ~record.bounds.lower
            files = self._at_hand[is_open[self._at_hand]]
            column = self._columns[record.column.name]
            self._coded[leaf] = column.find(leaf.atom, files)
        return self._coded[leaf]


class _Group:
    """Codes of adjoining rows that are compared with the same set together."""

    def __init__(self, marks: Mask) -> None:
        self._marks = marks
        self._wanted: CodeSet | None = None
        self._codes: list[UnsignedInts] = []
        self._start = self._stop = 0

    def add(self, span: slice, wanted: CodeSet, codes: UnsignedInts) -> None:
        """Add the rows of one file, whose marks are at ``span``."""
        if (
            not wanted.equals(self._wanted)
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
