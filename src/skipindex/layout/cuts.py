"""Where a curve is cut into files.

Rows are taken in the order of their keys, so a file is an interval of keys.  Plain
quantiles would not do, for two reasons.  A cut in the middle of a large cell of the
curve makes both neighbours' bounding boxes as wide as the cell, so a cut may move to
the coarsest seam nearby.  One key may have more rows than a file should, and then its
rows are distributed over several files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from skipindex.layout.curves import GOLDEN, Keys
from skipindex.layout.weights import Weights

FileNumbers: TypeAlias = npt.NDArray[np.int32]
Salt: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.uint64]

SEAM_REACH: Final = 0.25
"""How far from its even share a cut may move to a seam, in shares of a file."""

_OVERFLOW: Final = 1.5
"""A key of more shares than this gets files of its own, and more than one."""

_CRUMB: Final = 0.5
"""A run of fewer shares than this, next to such a key, gets no file."""

_LAST_KEY: Final = (1 << 63) - 1

_EVEN_STEP: Final = np.uint64(GOLDEN)
"""Its multiples fill the 64-bit circle evenly (Weyl)."""


@dataclass(frozen=True, slots=True)
class _Segment:
    """Keys from ``start`` on belong to ``n_files`` files from ``first_file`` on."""

    start: int
    first_file: int
    n_files: int


@dataclass(frozen=True, slots=True, eq=False)
class FileCuts:
    """Assigns keys to files ``0 .. n_files - 1`` that hold nearly equal weight.

    File numbers ascend with the keys, except that rows of one overflowing key
    are dealt out over neighbouring files.
    """

    starts: Keys
    """The lowest key of each segment but the first, never descending."""
    first_file: FileNumbers
    files: FileNumbers
    """How many files share each segment; more than one only if it is one key."""
    n_files: int

    @classmethod
    def fit(
        cls,
        keys: Keys,
        *,
        n_files: int,
        weights: Weights | None = None,
        group_bits: int = 0,
        seam_bits: int = -1,
    ) -> FileCuts:
        """Cuts that give each file nearly the same weight of these keys.

        A file stays within a quarter of an even share of what was left for it
        unless keys are so heavy that it cannot.  Every file gets something,
        if there are keys at all.

        Args:
            keys: of a sample of rows, in any order.
            n_files: at least 1.
            weights: what each row of the sample stands for; None is 1 each.
            group_bits: keys that agree above this many low bits are one group, which
                is cut only if it is larger than a file; 0 makes no groups.
            seam_bits: mask of the key's bits that separate cells from each other;
                a seam is the coarser, the higher the bit that changes at it.
        """
        distinct, at = np.unique(keys, return_inverse=True)
        sums = np.bincount(at, weights, minlength=len(distinct)).astype(np.float64)
        if not len(distinct):
            segments = [_Segment(0, 0, n_files)]
        elif group_bits:
            segments = _cut_groups(distinct, sums, n_files, group_bits, seam_bits)
        else:
            segments = _cut(distinct, sums, n_files, seam_bits)
        # What follows the last possible key can hold none.
        segments = [s for s in segments if s.start <= _LAST_KEY]
        return cls(
            np.array([s.start for s in segments[1:]], np.int64),
            np.array([s.first_file for s in segments], np.int32),
            np.array([s.n_files for s in segments], np.int32),
            n_files,
        )

    @property
    def needs_salt(self) -> bool:
        """Whether the rows of some key go to several files."""
        return bool((self.files > 1).any())

    def assign(self, keys: Keys, *, salt: Salt | None = None) -> FileNumbers:
        """The file of every key.

        ``salt``, a hash of each row, deals out overflowing keys: a row with the same
        key and salt goes to the same file in every call.  None deals out by position.
        """
        segment = np.searchsorted(self.starts, keys, side="right")
        result: FileNumbers = self.first_file[segment]
        if self.needs_salt:
            if salt is None:
                mixed = np.arange(len(keys), dtype=np.uint64) * _EVEN_STEP
            else:
                mixed = salt.view(np.uint64)
            # The high half of the salt as a fraction of 2**32, times the files.
            share = (mixed >> np.uint64(32)) * self.files[segment].astype(np.uint64)
            result += (share >> np.uint64(32)).astype(np.int32)
        return result


def _cut_groups(
    keys: Keys, weights: Weights, n_files: int, group_bits: int, seam_bits: int
) -> list[_Segment]:
    """Share the files among the groups, then cut each group that has several."""
    groups, begins = np.unique(keys >> group_bits, return_index=True)
    ends = np.append(begins[1:], len(keys))
    segments: list[_Segment] = []
    for whole in _cut(groups, np.add.reduceat(weights, begins), n_files, 0):
        lowest = whole.start << group_bits
        if whole.n_files == 1:
            segments.append(_Segment(lowest, whole.first_file, 1))
            continue
        at = int(np.searchsorted(groups, whole.start))
        part = slice(begins[at], ends[at])
        inner = _cut(keys[part], weights[part], whole.n_files, seam_bits)
        for i, segment in enumerate(inner):
            start = segment.start if i else lowest
            first_file = whole.first_file + segment.first_file
            segments.append(_Segment(start, first_file, segment.n_files))
    return segments


def _cut(keys: Keys, weights: Weights, n_files: int, seam_bits: int) -> list[_Segment]:
    """Segments that use every file; ``keys`` are distinct and ascend."""
    # The share is computed again after every file from the weight and the files that
    # are left, so the last file does not pay for the others' rounding.
    before = np.concatenate(([0.0], np.cumsum(weights)))
    changes = _at_and_below_highest_bit(keys[1:] ^ keys[:-1])
    seams = changes & seam_bits
    segments: list[_Segment] = []
    item, file = 0, 0
    while item < len(keys):
        key, n_left = int(keys[item]), n_files - file
        # Keys that the sample lacks belong to the side of the seam they are on.
        start = key & ~(int(changes[item - 1]) >> 1) if item else 0
        share = (before[-1] - before[item]) / n_left
        if n_left == 1:
            segments.append(_Segment(start, file, 1))
            break
        if weights[item] > _OVERFLOW * share:
            if not segments:
                segments.append(_Segment(0, file, 1))  # keys below, if any
            rest = before[-1] - before[item + 1]
            n_own = min(round(weights[item] / share), n_left - 1)
            if rest < _CRUMB * share:
                n_own = n_left
            segments.append(_Segment(key, file, n_own))
            file += n_own
            segments.append(_Segment(key + 1, file - 1, 1))
            if file == n_files:
                break  # the few keys that are left follow the segment above
            item += 1
            continue
        end = _end_of_file(before, weights, seams, item, share)
        is_crumb = before[end] - before[item] < _CRUMB * share
        if is_crumb and weights[end] > _OVERFLOW * share:
            segments.append(_Segment(start, max(file - 1, 0), 1))
        else:
            segments.append(_Segment(start, file, 1))
            file += 1
        item = end
    return segments


def _end_of_file(
    before: Weights, weights: Weights, seams: Keys, item: int, share: float
) -> int:
    """The item before which the file that begins at ``item`` ends."""
    # At the next overflowing key, if that comes first; else at the coarsest seam in
    # reach, and of equal ones at the nearest to an even share.
    goal = before[item] + share
    low = int(np.searchsorted(before, goal - SEAM_REACH * share, side="left"))
    high = int(np.searchsorted(before, goal + SEAM_REACH * share, side="right")) - 1
    low = max(low, item + 1)
    overflowing = np.flatnonzero(weights[item : max(low, high)] > _OVERFLOW * share)
    if len(overflowing):
        return item + int(overflowing[0])
    if low > high:  # no item ends in reach, so take the nearer of its two ends
        is_nearer = goal - before[low - 1] <= before[low] - goal
        return low - 1 if low - 1 > item and is_nearer else low
    in_reach = seams[low - 1 : high]
    best = low + np.flatnonzero(in_reach == in_reach.max())
    return int(best[np.abs(before[best] - goal).argmin()])


def _at_and_below_highest_bit(values: Keys) -> Keys:
    """Set all bits below the highest one, so that values compare by it alone."""
    for shift in (1, 2, 4, 8, 16, 32):
        values = values | (values >> shift)
    return values
