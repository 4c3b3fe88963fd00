"""Two sets that enclose an unknown set, and the operations that keep this true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar


class SetLike(Protocol):
    """What ``Bounds`` asks of a set: a roaring bitmap, or a numpy mask."""

    def __and__(self, other: Any, /) -> Any: ...

    def __or__(self, other: Any, /) -> Any: ...


S = TypeVar("S", bound=SetLike)


@dataclass(slots=True, eq=False)
class Bounds(Generic[S]):
    """``lower <= {x : the predicate is TRUE for x} <= upper``.

    The elements are rows of one file (roaring bitmaps of row positions) or the
    files of a table (numpy masks).  WHERE keeps TRUE alone, and in a tree of AND
    and OR "is TRUE" distributes: ``T(a AND b) = T(a) & T(b)``, ``T(a OR b) =
    T(a) | T(b)``.  So UNKNOWN may be read as FALSE, and these three operations
    are all that is needed.  There is no NOT: negation is a property of the
    atom, never the complement of a set.

    Where both are one object, the set is known.  Those who get bounds change neither
    of the sets, which may be shared.
    """

    lower: S
    upper: S

    def __and__(self, other: Bounds[S]) -> Bounds[S]:
        """TRUE for both."""
        return Bounds(self.lower & other.lower, self.upper & other.upper)

    def __or__(self, other: Bounds[S]) -> Bounds[S]:
        """TRUE for either."""
        if self.lower is self.upper and other.lower is other.upper:
            return exactly(self.upper | other.upper)
        return Bounds(self.lower | other.lower, self.upper | other.upper)

    def refine(self, other: Bounds[S]) -> Bounds[S]:
        """Combine two sources on the same predicate: lowers unite, uppers intersect."""
        return Bounds(self.lower | other.lower, self.upper & other.upper)


def exactly(known: S) -> Bounds[S]:
    """The bounds of a set that is known."""
    return Bounds(known, known)
