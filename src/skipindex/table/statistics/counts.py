"""A number for each file of a table, where it is known.

Numbers of a manifest and numbers of another format's log are known of different files.
So a number that is not known is no number here: arithmetic with it is a type error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skipindex.expressions.arrays import Ints, Mask


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """How many rows, or NULLs, each file has.

    Args:
        known: the files whose number is known.
        _numbers: the numbers; 0 where they are not known.

    >>> counts = Counts.of(pa.array([3, None]))
    >>> counts.or_else(-1).tolist(), counts.of_file(1)
    ([3, -1], None)
    """

    known: Mask
    _numbers: Ints

    @classmethod
    def of(cls, numbers: pa.Array) -> Counts:
        """Return counts of these numbers; null, or a number below 0, is not known."""
        stored = np.asarray(numbers.fill_null(-1)).astype(np.int64, copy=False)
        return cls.where(stored >= 0, stored)

    @classmethod
    def where(cls, known: Mask, numbers: Ints) -> Counts:
        """Return counts of these numbers, of which only some are known."""
        known = compact(known)
        return cls(known, numbers if known.all() else np.where(known, numbers, 0))

    @classmethod
    def unknown(cls, n_files: int) -> Counts:
        """The number of no file is known."""
        no, zero = np.zeros(1, np.bool_), np.zeros(1, np.int64)
        return cls(np.broadcast_to(no, n_files), np.broadcast_to(zero, n_files))

    def or_else(self, default: int, at: Ints | None = None) -> Ints:
        """The numbers of all files, or of those at some positions.

        ``default`` stands for a number that is not known.
        """
        known = self.known if at is None else self.known[at]
        numbers = self._numbers if at is None else self._numbers[at]
        if default == 0 or known.all():
            return numbers
        return np.where(known, numbers, default)

    def of_file(self, file: int) -> int | None:
        """The number of one file; None if it is not known."""
        return int(self._numbers[file]) if self.known[file] else None

    def minus(self, other: Counts) -> Counts:
        """The difference, known of the files of which both numbers are."""
        return Counts.where(self.known & other.known, self._numbers - other._numbers)

    def only(self, files: Mask) -> Counts:
        """The numbers of these files; the others are not known."""
        return Counts.where(self.known & files, self._numbers)

    def above_zero(self) -> Mask:
        """The files whose number is known, and above 0."""
        return self._numbers > 0


def compact(mask: Mask) -> Mask:
    """The same mask, in one byte if it is the same for all files."""
    if len(mask) and bool(mask.all() if mask[0] else not mask.any()):
        return np.broadcast_to(mask[:1].copy(), mask.shape)
    return mask
