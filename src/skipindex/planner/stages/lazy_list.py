"""Lists whose items are created when they are first read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from skipindex.expressions.arrays import Ints

T = TypeVar("T")

_BLOCK = 4096
"""Items that are made at a time."""


class LazyList(Sequence[T]):
    """What a plan says of some files, in order: a list that cannot be changed.

    It has a length immediately, and equals the list of its items.  An item is made each
    time that it is used, so ``list(...)`` keeps items that are used often.

    Args:
        files: by their positions in the table, which ascend.
        make: the items of some of these files.

    >>> squares = LazyList(np.arange(5), lambda files: (files * files).tolist())
    >>> len(squares), squares[-1], squares[1:3], squares == [0, 1, 4, 9, 16]
    (5, 16, [1, 4], True)
    """

    __slots__ = ("_files", "_make")

    def __init__(self, files: Ints, make: Callable[[Ints], Sequence[T]]) -> None:
        self._files = files
        self._make = make

    def __len__(self) -> int:
        return len(self._files)

    @overload
    def __getitem__(self, i: int, /) -> T: ...

    @overload
    def __getitem__(self, i: slice, /) -> LazyList[T]: ...

    def __getitem__(self, i: int | slice, /) -> T | LazyList[T]:
        if isinstance(i, slice):
            return LazyList(self._files[i], self._make)
        at = range(len(self))[i]
        return self._make(self._files[at : at + 1])[0]

    def of_file(self, file: int) -> T | None:
        """The note on a file, by its position in the table; None if there is none."""
        at = int(np.searchsorted(self._files, file))
        is_there = at < len(self) and self._files[at] == file
        return self[at] if is_there else None

    def __iter__(self) -> Iterator[T]:
        for start in range(0, len(self), _BLOCK):
            yield from self._make(self._files[start : start + _BLOCK])

    def __reversed__(self) -> Iterator[T]:
        return iter(self[::-1])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (list, LazyList)):
            return NotImplemented
        if len(self) != len(other):
            return False
        return all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Sequence[T]) -> list[T]:
        return [*self, *other]

    def __radd__(self, other: Sequence[T]) -> list[T]:
        return [*other, *self]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)  # of the files alone, not of the plan

    def __repr__(self) -> str:
        return repr(list(self))
