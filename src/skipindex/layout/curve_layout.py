"""The layout along a curve: which file every row goes to, and in which order.

It is fitted once to a sample and then applied to rows anywhere, without Spark.  The
values of each column become range numbers, range numbers become cells of a grid, a
curve orders the cells, and the curve is cut into files.

If the rows of answers are put together, they come first within a partition: by the
numbers of their signatures (``workload.answers``), and along the curve among those of
one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipindex.errors import LayoutError
from skipindex.expressions.arrays import Ints
from skipindex.layout.boundaries import MAX_RANGES, Boundaries
from skipindex.layout.curves import KEY_BITS, Curve, Keys, curve_named, linear
from skipindex.layout.cuts import FileCuts, FileNumbers, Salt
from skipindex.layout.ordering import sampled_column
from skipindex.layout.weights import Weights
from skipindex.layout.workload.answers import Answers

Cells: TypeAlias = npt.NDArray[np.uint32]

RANGES_PER_FILE: Final = 64
"""Enough that files differ by 2 % at most, even if one column decides alone."""

_MIN_RANGES: Final = 256
"""Ranges of a column, however few the files are."""

_MAX_AXIS_BITS: Final = 16
"""Enough for ``MAX_RANGES``; wider words would double the cost of Hilbert."""

_SPARE_BITS: Final = 2
"""A column of few values gets 4 cells for each, to space them by their weight."""

_MAX_GROUP_BITS: Final = 31
"""At least 32 of the key's 63 bits are left for answers and the curve."""

_MAX_SIGNATURES: Final = 1 << 12
"""Distinct signatures of a sample; those with the most rows are known."""

_RANK_BITS: Final = 14
"""Room for two numbers for each signature, and for rows of none."""


class Placement(NamedTuple):
    """Where rows go."""

    keys: Keys
    """Positions on the curve: the order of rows over files and inside them."""
    files: FileNumbers


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One column as an axis of a grid."""

    boundaries: Boundaries
    cells: Cells
    """The cell of every range, never descending and below ``2**bits``."""
    bits: int

    def cells_of(self, values: pa.Array | pa.ChunkedArray) -> Cells:
        """The cell of every value."""
        return self.cells[self.boundaries.rank(values)]


@dataclass(frozen=True, slots=True, eq=False)
class CurveLayout:
    """Sends every row of a table to one of ``n_files`` files, by its content alone.

    Small enough to be sent to executors.  Rows that agree in the columns get the
    same key, on every machine and in every batch.
    """

    curve: Curve
    groups: tuple[Axis, ...]
    """Columns that come before the curve, as hive partition columns do."""
    axes: tuple[Axis, ...]
    cuts: FileCuts
    curve_bits: int
    """The low bits of a key that belong to the curve; numbers of signatures and the
    groups follow."""
    answers: Answers | None
    """The conditions whose rows are put together, if any are."""
    known: Ints
    """The signatures that are numbered, ascending."""

    @classmethod
    def fit(
        cls,
        sample: pa.Table,
        columns: Sequence[str],
        *,
        n_files: int,
        curve: str = "hilbert",
        partition_by: Sequence[str] = (),
        max_ranges: Mapping[str, int] | None = None,
        weights: npt.ArrayLike | None = None,
        answers: Answers | None = None,
    ) -> CurveLayout:
        """The clustering of a table by ``columns``, judged by its sample.

        Args:
            sample: rows of the table; other columns are ignored.
            columns: in order of importance; two to four work best.
            n_files: how many files to make.
            curve: ``"hilbert"``, ``"zorder"``, ``"linear"`` or ``"hash"``.
            partition_by: columns whose values share a file only where they have
                too few rows to fill one.
            max_ranges: the most ranges of some columns, which set their bits; of
                the others it is 64 a file, and at least 256.
            weights: what each row of the sample stands for, for instance its
                bytes, so that files get nearly equal sizes; None is 1 each.
            answers: the conditions whose rows are put together, if any are.
        """
        shape = curve_named(curve)
        if n_files < 1:
            raise LayoutError(f"cannot cluster into {n_files} files (at least 1)")
        if not columns:
            raise LayoutError("cannot cluster by no columns (at least 1)")
        usual = min(MAX_RANGES, max(_MIN_RANGES, RANGES_PER_FILE * n_files))
        ranges = dict.fromkeys(columns, usual) | dict(max_ranges or {})
        loads = None if weights is None else np.asarray(weights, np.float64)
        groups = _fit_groups(sample, partition_by, loads)
        n_bits = KEY_BITS - sum(axis.bits for axis in groups)
        n_bits -= 0 if answers is None else _RANK_BITS
        axes = _fit_axes(sample, columns, shape, n_bits, ranges, loads)
        arrays = [sample.column(name) for name in (*partition_by, *columns)]
        keys = _keys(shape, groups, axes, arrays, n_bits)
        known: Ints = np.zeros(0, np.int64)
        if answers is not None:
            own = [sampled_column(sample, name) for name in answers.columns]
            signatures = answers.signatures(own, len(sample))
            known = _heaviest(signatures, loads)
            keys = _ranked(keys, known, signatures, n_bits)
        cuts = FileCuts.fit(
            keys,
            n_files=n_files,
            weights=loads,
            group_bits=n_bits if groups or answers is not None else 0,
            seam_bits=shape.seam_bits([axis.bits for axis in axes]),
        )
        return cls(shape, groups, axes, cuts, n_bits, answers, known)

    @property
    def base(self) -> tuple[str, ...]:
        """The columns of the groups and of the axes."""
        return tuple(a.boundaries.column for a in chain(self.groups, self.axes))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that ``assign`` takes, in its order."""
        more = self.answers.columns if self.answers else ()
        return tuple(dict.fromkeys((*self.base, *more)))

    @property
    def n_files(self) -> int:
        """How many files there are; their numbers begin at 0."""
        return self.cuts.n_files

    @property
    def needs_salt(self) -> bool:
        """Some rows that are alike go to several files."""
        return self.cuts.needs_salt

    def assign(
        self,
        arrays: Sequence[pa.Array | pa.ChunkedArray],
        *,
        salt: Salt | None = None,
    ) -> Placement:
        """The key and the file of every row.

        Arrays are those of ``columns``, all of one length; ``salt`` is a hash of each
        row, see ``FileCuts.assign``.

        Raises:
            LayoutError: if an array's type does not fit its column.
        """
        by_name = dict(zip(self.columns, arrays, strict=True))
        of_base = [by_name[name] for name in self.base]
        keys = _keys(self.curve, self.groups, self.axes, of_base, self.curve_bits)
        if self.answers is not None:
            own = [by_name[name] for name in self.answers.columns]
            signatures = self.answers.signatures(own, len(arrays[0]))
            keys = _ranked(keys, self.known, signatures, self.curve_bits)
        return Placement(keys, self.cuts.assign(keys, salt=salt))


def _heaviest(signatures: Ints, weights: Weights | None) -> Ints:
    """The signatures of most rows, ascending; that of no condition is none."""
    distinct, at = np.unique(signatures, return_inverse=True)
    order = np.argsort(-np.bincount(at, weights), kind="stable")
    known: Ints = np.sort(distinct[order[: _MAX_SIGNATURES + 1]])
    return known[known > 0]


def _ranked(keys: Keys, known: Ints, signatures: Ints, curve_bits: int) -> Keys:
    """The keys with the number of the signature put before the curve."""
    # A signature that is not known has the number between its neighbours'.
    at = np.searchsorted(known, signatures)
    is_known = np.append(known, -1)[at] == signatures
    ranks = np.where(signatures == 0, 0, 1 + 2 * at + is_known)
    groups, along = keys >> curve_bits, keys & ((1 << curve_bits) - 1)
    result: Keys = (((groups << _RANK_BITS) | ranks) << curve_bits) | along
    return result


def cells_by_weight(weight_of_range: Weights, *, bits: int) -> Cells:
    """A cell for every range: it stands in the middle of its rows.

    So the highest bit halves the rows, not the values, and splits off a value
    that most rows have.  Different ranges get different cells if there are
    enough.
    """
    n_cells, n_ranges = 1 << bits, len(weight_of_range)
    total = weight_of_range.sum()
    if total == 0:
        return _even_cells(n_ranges, bits)
    middle = (np.cumsum(weight_of_range) - weight_of_range / 2) / total
    cells = np.minimum((middle * n_cells).astype(np.int64), n_cells - 1)
    if n_cells >= n_ranges:
        order = np.arange(n_ranges)
        cells = np.maximum.accumulate(cells - order) + order
        cells = np.minimum(cells, n_cells - n_ranges + order)
    result: Cells = cells.astype(np.uint32)
    return result


def _even_cells(n_ranges: int, bits: int) -> Cells:
    order: npt.NDArray[np.int64] = np.arange(n_ranges, dtype=np.int64)
    cells = (order << bits) // n_ranges
    return cells.astype(np.uint32)


def n_files_for(n_rows: int, rows_per_file: int) -> int:
    """The fewest files of at most ``rows_per_file`` rows on average, min 1."""
    if rows_per_file < 1:
        raise LayoutError(f"cannot write files of {rows_per_file} rows (at least 1)")
    return max(1, -(-n_rows // rows_per_file))


def _keys(
    shape: Curve,
    groups: Sequence[Axis],
    axes: Sequence[Axis],
    arrays: Sequence[pa.Array | pa.ChunkedArray],
    curve_bits: int,
) -> Keys:
    cells = [
        axis.cells_of(values)
        for axis, values in zip(chain(groups, axes), arrays, strict=True)
    ]
    keys = shape(cells[len(groups) :], bits=[axis.bits for axis in axes])
    if groups:
        widths = [axis.bits for axis in groups]
        keys |= linear(cells[: len(groups)], bits=widths) << curve_bits
    return keys


def _fit_groups(
    sample: pa.Table, names: Sequence[str], weights: Weights | None
) -> tuple[Axis, ...]:
    """Give every distinct value its own cell, as far as the key has room."""
    boundaries = [_fit(sample, name, MAX_RANGES, weights) for name in names]
    wanted = [(b.n_ranges - 1).bit_length() for b in boundaries]
    given = curve_named("linear").share_bits(wanted, total=_MAX_GROUP_BITS)
    return tuple(
        Axis(b, _even_cells(b.n_ranges, bits), bits)
        for b, bits in zip(boundaries, given, strict=True)
    )


def _fit_axes(
    sample: pa.Table,
    names: Sequence[str],
    shape: Curve,
    n_bits: int,
    max_ranges: Mapping[str, int],
    weights: Weights | None,
) -> tuple[Axis, ...]:
    boundaries = [_fit(sample, name, max_ranges[name], weights) for name in names]
    wanted = [_wanted_bits(b.n_ranges) for b in boundaries]
    given = shape.share_bits(wanted, total=n_bits)
    return tuple(
        Axis(b, cells_by_weight(_weights(b, sample, weights), bits=bits), bits)
        for b, bits in zip(boundaries, given, strict=True)
    )


def _weights(
    boundaries: Boundaries, sample: pa.Table, weights: Weights | None
) -> Weights:
    """The weight of each range in the sample."""
    ranks = boundaries.rank(sample.column(boundaries.column))
    result = np.bincount(ranks, weights, minlength=boundaries.n_ranges)
    return result.astype(np.float64)


def _fit(
    sample: pa.Table, name: str, max_ranges: int, weights: Weights | None
) -> Boundaries:
    column = sampled_column(sample, name)
    return Boundaries.fit(column, column=name, max_ranges=max_ranges, weights=weights)


def _wanted_bits(n_ranges: int) -> int:
    if n_ranges == 1:
        return 0
    return min((n_ranges - 1).bit_length() + _SPARE_BITS, _MAX_AXIS_BITS)
