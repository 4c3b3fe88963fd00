"""Curves that walk a grid of integer cells, cell by cell.

A *rank* is the position of a row on one axis, from 0 to ``2**bits - 1``; a *key*
is the position of its cell on the curve.  Axes may differ in ``bits``.  Every
curve takes the highest bit of an axis first, so an axis with few bits is used up
early, and cutting low bits off a key only makes its cells larger.  The first
axis is always the most significant one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from skipindex.errors import LayoutError

Keys: TypeAlias = npt.NDArray[np.int64]
Ranks: TypeAlias = Sequence[npt.ArrayLike]

KEY_BITS: Final = 63
"""A key is a non-negative int64, which Spark sorts and compares natively."""

GOLDEN: Final = 0x9E3779B97F4A7C15
"""2**64 / golden ratio."""

_DIGIT_BITS: Final = 11
"""One spread table has 2048 entries of 8 bytes, which stay in the L1 cache."""

_Word = TypeVar("_Word", np.uint16, np.uint32, np.uint64)


class CurveFunction(Protocol):
    """A function from one rank for each axis to one key; arrays of any one shape."""

    def __call__(self, ranks: Ranks, *, bits: int | Sequence[int]) -> Keys: ...


@dataclass(frozen=True, slots=True)
class Curve:
    """A named curve, called like the function that it holds."""

    name: str
    function: CurveFunction
    share: Callable[[Sequence[int], int], tuple[int, ...]]
    """The bits of each axis, of those that it wants, that fit in a total."""
    seam_bits: Callable[[Sequence[int]], int]
    """A mask of the key's bits at whose changes a file had best end, for the bits of
    each axis.  The bounding boxes of the two neighbours then overlap least; the
    higher the bit, the more it matters."""

    def __call__(self, ranks: Ranks, *, bits: int | Sequence[int]) -> Keys:
        """The key of every row."""
        return self.function(ranks, bits=bits)

    def share_bits(
        self, wanted: Sequence[int], *, total: int = KEY_BITS
    ) -> tuple[int, ...]:
        """The bits of each axis, at most ``wanted``, that fit in ``total``.

        What is cut is the low end of the key, so a row is put among coarser
        cells but never on the wrong side of one: only the clustering gets worse.
        """
        n_axes = sum(bits > 0 for bits in wanted)
        if n_axes > total:
            raise LayoutError(
                f"cannot cluster by {n_axes} columns: their key has {total} bits, and "
                "each column needs at least one (two to four columns work best)"
            )
        return self.share(wanted, total)


def interleave(ranks: Ranks, *, bits: int | Sequence[int]) -> Keys:
    """Z-order keys: the bits of all axes in turn (Morton 1966).

    The turns go from every axis's highest bit to its lowest; an axis without
    bits left is passed over.

    >>> int(interleave([0b11, 0b00], bits=2))
    10
    """
    widths = _widths(ranks, bits)
    columns = _columns(ranks, widths)
    keys = np.zeros(np.broadcast_shapes(*(c.shape for c in columns)), np.int64)
    for column, tables in zip(columns, _spread_tables(widths), strict=True):
        for digit, table in enumerate(tables):
            keys |= table.take(_digit(column, digit, last=digit == len(tables) - 1))
    return keys


def linear(ranks: Ranks, *, bits: int | Sequence[int]) -> Keys:
    """Lexicographic keys: all bits of the first axis, then the second."""
    widths = _widths(ranks, bits)
    columns = _columns(ranks, widths)
    keys = np.zeros(np.broadcast_shapes(*(c.shape for c in columns)), np.int64)
    for column, width in zip(columns, widths, strict=True):
        keys <<= width
        keys |= column.astype(np.int64)
    return keys


def hash_curve(ranks: Ranks, *, bits: int | Sequence[int]) -> Keys:
    """Keys without any order: neighbours on the grid end up far apart.

    Multiplicative hashing (Knuth, TAOCP 3, 6.4) of the linear key, twice; a
    bijection, since odd numbers have inverses.
    """
    widths = _widths(ranks, bits)
    width = sum(widths)
    keys = linear(ranks, bits=widths).view(np.uint64)
    if width == 0:
        return keys.view(np.int64)
    mask = np.uint64((1 << width) - 1)
    factor = np.uint64((GOLDEN >> (64 - width)) | 1)
    for _ in range(2):
        keys = (keys * factor) & mask
        keys ^= keys >> np.uint64((width + 1) // 2)
    return keys.view(np.int64)


def hilbert(ranks: Ranks, *, bits: int | Sequence[int]) -> Keys:
    """Hilbert keys: neighbours on the curve are neighbours on the grid.

    Skilling's transform (AIP Conf. Proc. 707, 381, 2004) for any number of axes.
    The grid must be a cube, so a narrower axis is widened with low bits of 0: its
    highest bit still counts as much as anyone's.  Its keys then leave gaps, and
    take as many bits as the widest axis times the number of axes that have any.
    """
    widths = _widths(ranks, bits)
    columns = _columns(ranks, widths)
    shape = np.broadcast_shapes(*(c.shape for c in columns))
    used = [(c, w) for c, w in zip(columns, widths, strict=True) if w]
    if not used:
        return np.zeros(shape, np.int64)
    side = max(width for _, width in used)
    if len(used) * side > KEY_BITS:
        raise LayoutError(_too_wide(len(used) * side))
    word = np.uint16 if side <= 16 else np.uint32 if side <= 32 else np.uint64
    cube = np.empty((len(used), math.prod(shape)), word)
    for axis, (column, width) in enumerate(used):
        cube[axis] = np.broadcast_to(column, shape).reshape(-1)
        cube[axis] <<= word(side - width)
    if len(cube) > 1:
        _to_transposed_index(cube, side)
    return interleave(list(cube), bits=side).reshape(shape)


def _to_transposed_index(cube: npt.NDArray[_Word], side: int) -> None:
    """The Hilbert index of coordinates, its bits spread over the axes; in place."""
    # Without branches: ``0 - bit`` is a mask of ones or of zeros.
    word = cube.dtype.type
    zero, one = word(0), word(1)
    first = cube[0]
    for bit in range(side - 1, 0, -1):
        below = word((1 << bit) - 1)
        # Where the bit is set invert the first axis below it, elsewhere swap.
        invert = (zero - ((cube >> word(bit)) & one)) & below
        swap = invert ^ below
        first ^= invert[0]
        for axis in range(1, len(cube)):
            exchanged = (first ^ cube[axis]) & swap[axis]
            first ^= exchanged
            first ^= invert[axis]
            cube[axis] ^= exchanged
    for axis in range(1, len(cube)):
        cube[axis] ^= cube[axis - 1]
    # Each bit of the last axis flips all below it: a prefix sum, modulo 2.
    flips = cube[-1].copy()
    shift = 1
    while shift < side:
        flips ^= flips >> word(shift)
        shift *= 2
    cube ^= flips ^ cube[-1]


def _share_in_turn(wanted: Sequence[int], total: int) -> tuple[int, ...]:
    """Give a bit to each axis in turn: the highest ``total`` bits of a Z key."""
    given = [0] * len(wanted)
    for level in range(max(wanted, default=0)):
        for axis, bits in enumerate(wanted):
            if bits > level and sum(given) < total:
                given[axis] += 1
    return tuple(given)


def _share_in_cube(wanted: Sequence[int], total: int) -> tuple[int, ...]:
    """Cut every axis to the side of the largest cube of ``total`` bits."""
    side = total // max(1, sum(bits > 0 for bits in wanted))
    return tuple(min(bits, side) for bits in wanted)


def _share_in_order(wanted: Sequence[int], total: int) -> tuple[int, ...]:
    """Serve the first axis first: the highest ``total`` bits of a linear key."""
    given: list[int] = []
    for bits in wanted:
        given.append(min(bits, total - sum(given)))
    return tuple(given)


def _every_bit(_: Sequence[int]) -> int:
    """Between two changes of any bit lies a box of the grid."""
    return (1 << KEY_BITS) - 1


def _no_bit(_: Sequence[int]) -> int:
    """A box of scattered cells is as wide as the grid, wherever it ends."""
    return 0


def _lowest_bit_of_each(bits: Sequence[int]) -> int:
    """Mask of each axis's lowest bit: a change of an axis ends all later ones."""
    mask, low = 0, sum(bits)
    for width in bits:
        low -= width
        mask |= 1 << low if width else 0
    return mask


CURVES: Final[Mapping[str, Curve]] = MappingProxyType(
    {
        "hilbert": Curve("hilbert", hilbert, _share_in_cube, _every_bit),
        "zorder": Curve("zorder", interleave, _share_in_turn, _every_bit),
        "linear": Curve("linear", linear, _share_in_order, _lowest_bit_of_each),
        "hash": Curve("hash", hash_curve, _share_in_turn, _no_bit),
    }
)
"""Every curve by the name that users give it."""


def curve_named(name: str) -> Curve:
    """The curve of that name."""
    if name not in CURVES:
        accepted = ", ".join(map(repr, CURVES))
        raise LayoutError(f"no curve is named {name!r} (accepted: {accepted})")
    return CURVES[name]


def _widths(ranks: Ranks, bits: int | Sequence[int]) -> tuple[int, ...]:
    widths = (bits,) * len(ranks) if isinstance(bits, int) else tuple(bits)
    if not widths or len(widths) != len(ranks):
        raise LayoutError(
            f"cannot make keys of {len(ranks)} axes with bits for {len(widths)}"
        )
    if min(widths) < 0 or sum(widths) > KEY_BITS:
        raise LayoutError(_too_wide(sum(widths)))
    return widths


def _too_wide(n_bits: int) -> str:
    return f"a key cannot have {n_bits} bits (accepted: 0 to {KEY_BITS})"


def _columns(
    ranks: Ranks, widths: tuple[int, ...]
) -> list[npt.NDArray[np.integer[npt.NBitBase]]]:
    columns = []
    for axis, (values, width) in enumerate(zip(ranks, widths, strict=True)):
        column = np.asarray(values)
        if column.dtype.kind not in "iu":
            raise LayoutError(
                f"ranks of axis {axis} must be integers, not {column.dtype}"
            )
        low, high = (int(column.min()), int(column.max())) if column.size else (0, 0)
        if low < 0 or high >> width:
            worst = low if low < 0 else high
            raise LayoutError(
                f"rank {worst} of axis {axis} does not fit in {width} bits"
            )
        if column.dtype.itemsize == 1:  # too narrow for the mask of a digit
            column = column.astype(np.uint16)
        columns.append(column)
    return columns


def _digit(
    column: npt.NDArray[np.integer[npt.NBitBase]], digit: int, *, last: bool
) -> npt.NDArray[np.integer[npt.NBitBase]]:
    shifted = column >> (digit * _DIGIT_BITS) if digit else column
    return shifted if last else shifted & ((1 << _DIGIT_BITS) - 1)


@lru_cache(maxsize=64)
def _spread_tables(widths: tuple[int, ...]) -> tuple[tuple[Keys, ...], ...]:
    """For each axis and each digit of it, where its bits go in a Z key."""
    turns = [
        (axis, width - 1 - level)
        for level in range(max(widths))
        for axis, width in enumerate(widths)
        if width > level
    ]
    place = {turn: len(turns) - 1 - i for i, turn in enumerate(turns)}
    tables = []
    for axis, width in enumerate(widths):
        digits = []
        for low in range(0, width, _DIGIT_BITS):
            size = min(_DIGIT_BITS, width - low)
            values = np.arange(1 << size, dtype=np.int64)
            table = np.zeros_like(values)
            for bit in range(size):
                table |= ((values >> bit) & 1) << place[axis, low + bit]
            table.flags.writeable = False
            digits.append(table)
        tables.append(tuple(digits))
    return tuple(tables)
