"""A query tree: rows go left and right by the comparisons that queries make.

The leaves are files.  A curve goes beyond what all queries tell apart: it orders
the rows within each file, and cuts a leaf that is several files large.  The tree
is stored with the table as JSON, so that rows appended later go to the same leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipindex.errors import LayoutError, UnsupportedTypeError
from skipindex.expressions.domain import Domain, domain_of
from skipindex.layout.curve_layout import cells_by_weight
from skipindex.layout.curves import Curve, Keys, curve_named
from skipindex.layout.cuts import FileCuts, Salt
from skipindex.layout.interface import Placement
from skipindex.layout.ordering import count_distinct, sampled_column
from skipindex.layout.weights import split_by_weight
from skipindex.layout.workload.grow import Grower, Node
from skipindex.layout.workload.steps import MAX_STEPS, Codes, Steps
from skipindex.layout.workload.what_if import WhatIf
from skipindex.layout.workload.workload import BoundWorkload

FORMAT: Final = 1
_RANGES: Final = 256
"""Of each column of the curve, which only orders the rows within leaves."""


@dataclass(frozen=True, slots=True, eq=False)
class TreeLeaf:
    """The files from ``first_file`` on, and the cuts of the curve between them."""

    first_file: int
    cuts: FileCuts


@dataclass(frozen=True, slots=True, eq=False)
class CurveAxis:
    """A column of the curve: the cell of every code."""

    column: int
    cells: npt.NDArray[np.uint32]
    bits: int


@dataclass(frozen=True, slots=True, eq=False)
class QueryTree:
    """Sends every row to one of ``n_files`` files; see ``Layout``."""

    steps: tuple[Steps, ...]
    nodes: tuple[Node, ...]
    """The first is the root, if there is one."""
    leaves: tuple[TreeLeaf, ...]
    curve: Curve
    axes: tuple[CurveAxis, ...]

    @classmethod
    def fit(
        cls,
        sample: pa.Table,
        workload: BoundWorkload,
        *,
        n_files: int,
        curve: str = "hilbert",
        inside: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        weights: npt.ArrayLike | None = None,
    ) -> QueryTree:
        """The tree for a workload, judged by a sample of the table.

        Args:
            sample: rows of the table; other columns are ignored.
            workload: the queries.
            n_files: how many files to make.
            curve: for what the queries do not tell apart.
            inside: the columns of that curve; none is the first four columns of
                the queries.
            partition_by: columns whose values share a file only where they have
                too few rows to fill one.
            weights: what each row of the sample stands for, above 0, for instance
                its bytes, so that files get nearly equal sizes; None is 1 each.

        Raises:
            LayoutError: a column is missing or has no order, or the number of
                files is below 1.
        """
        if n_files < 1:
            raise LayoutError(f"cannot lay out {n_files} files (at least 1)")
        shape = curve_named(curve)
        ordered = tuple(inside) or workload.columns[:4]
        grouped = [_steps_of_values(sample, name, MAX_STEPS) for name in partition_by]
        spread = [_steps_of_values(sample, name, _RANGES) for name in ordered]
        what_if = WhatIf(workload)
        codes = what_if.codes(sample)
        groups = [s.codes(sample.column(s.column)) for s in grouped]
        loads = np.ones(len(sample)) if weights is None else np.asarray(weights, float)
        forks, grown = Grower(what_if, codes, groups, loads, n_files).grow()

        cut = [*what_if.steps, *grouped]
        used = {fork.column for fork in forks}
        steps = _merged([*(cut[i] for i in sorted(used)), *spread])
        place = {s.column: i for i, s in enumerate(steps)}
        found = [s.codes(sample.column(s.column)) for s in steps]
        axes = _axes(shape, [place[name] for name in ordered], steps, found)
        keys = _keys(shape, axes, found)
        seams = shape.seam_bits([axis.bits for axis in axes])

        def numbered(fork: Node) -> Node:
            """The fork by columns and codes of ``steps``, which has more values."""
            own = cut[fork.column]
            column, code = place[own.column], fork.code
            if code > 1:  # 1 is the least value: the fork between NULL and the rest
                code = steps[column].code_of(own.values[code - 2])
            return replace(fork, column=column, code=code)

        leaves = (
            TreeLeaf(
                leaf.first_file,
                FileCuts.fit(
                    keys[leaf.rows],
                    n_files=leaf.n_files,
                    weights=loads[leaf.rows],
                    seam_bits=seams,
                ),
            )
            for leaf in grown
        )
        return cls(steps, tuple(map(numbered, forks)), tuple(leaves), shape, axes)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that ``assign`` takes, in its order."""
        return tuple(steps.column for steps in self.steps)

    @property
    def domains(self) -> Mapping[str, Domain]:
        """Those that the stored layout compares in; see ``Layout.domains``."""
        return {steps.column: steps.domain for steps in self.steps}

    @property
    def n_files(self) -> int:
        """How many files there are; their numbers begin at 0."""
        return sum(leaf.cuts.n_files for leaf in self.leaves)

    @property
    def needs_salt(self) -> bool:
        """Some leaf has more rows that are alike than a file should."""
        return any(leaf.cuts.needs_salt for leaf in self.leaves)

    def assign(
        self,
        arrays: Sequence[pa.Array | pa.ChunkedArray],
        *,
        salt: Salt | None = None,
    ) -> Placement:
        """The key and the file of every row; see ``Layout.assign``."""
        codes = [s.codes(a) for s, a in zip(self.steps, arrays, strict=True)]
        keys = _keys(self.curve, self.axes, codes)
        files = np.empty(len(keys), np.int32)
        pending = [(0 if self.nodes else -1, np.arange(len(keys)))]
        while pending:
            at, rows = pending.pop()
            if at < 0:
                leaf = self.leaves[~at]
                files[rows] = leaf.first_file
                if leaf.cuts.n_files > 1:
                    own = None if salt is None else salt[rows]
                    files[rows] += leaf.cuts.assign(keys[rows], salt=own)
                continue
            node = self.nodes[at]
            is_high = codes[node.column][rows] >= node.code
            pending.append((node.low, rows[~is_high]))
            pending.append((node.high, rows[is_high]))
        return Placement(keys, files)

    def without_data(self, partition_by: Sequence[str]) -> QueryTree | None:
        """The same tree without values of the sample; None if its forks are at some.

        The literals of the queries stay.  Rows go to the same leaves, and those of a
        leaf lie in a coarser order.

        Args:
            partition_by: the columns that the tree was told to part rows by.
        """
        asked: list[set[int]] = [set() for _ in self.steps]
        for node in self.nodes:
            if node.code > 1:  # 1 tells NULL from all values
                asked[node.column].add(node.code)
        own = {
            steps.column
            for steps, codes in zip(self.steps, asked, strict=True)
            if codes
        }
        if own & set(partition_by):
            return None
        codes = [[0, 1, *sorted(found)] for found in asked]
        steps = tuple(
            replace(one, values=tuple(one.values[code - 2] for code in found[2:]))
            for one, found in zip(self.steps, codes, strict=True)
        )
        nodes = tuple(
            replace(node, code=codes[node.column].index(node.code))
            for node in self.nodes
        )
        axes = tuple(
            replace(axis, cells=axis.cells[codes[axis.column]]) for axis in self.axes
        )
        return replace(self, steps=steps, nodes=nodes, axes=axes)

    def to_json(self) -> dict[str, Any]:
        """The tree as plain values."""
        return {
            "format": FORMAT,
            "steps": [steps.to_json() for steps in self.steps],
            "nodes": [[n.column, n.code, n.low, n.high] for n in self.nodes],
            "leaves": [_leaf_to_json(leaf) for leaf in self.leaves],
            "curve": self.curve.name,
            "axes": [[a.column, a.bits, a.cells.tolist()] for a in self.axes],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> QueryTree:
        """The tree that ``to_json`` wrote.

        Raises:
            LayoutError: it is damaged, or was written by a newer library.
        """
        try:
            if data["format"] != FORMAT:
                raise LayoutError(
                    f"the query tree has format {data['format']!r} (accepted: {FORMAT})"
                )
            return cls(
                tuple(map(Steps.from_json, data["steps"])),
                tuple(Node(*node) for node in data["nodes"]),
                tuple(map(_leaf_from_json, data["leaves"])),
                curve_named(data["curve"]),
                tuple(
                    CurveAxis(column, np.array(cells, np.uint32), bits)
                    for column, bits, cells in data["axes"]
                ),
            )
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, LayoutError):
                raise
            raise LayoutError(f"the query tree is damaged: {error!r}") from error


def _steps_of_values(sample: pa.Table, name: str, n_ranges: int) -> Steps:
    """Steps that cut a column into ranges of nearly equal weight."""
    column = sampled_column(sample, name).combine_chunks()
    try:
        domain = domain_of(column.type, name)
    except UnsupportedTypeError as error:
        raise LayoutError(f"cannot lay out by {name!r}: {error}") from error
    distinct, counts = count_distinct(domain.encode(column).drop_null())
    starts = split_by_weight(counts, n_ranges)
    values = distinct.take(pa.array(starts, pa.int64())).to_pylist()
    return Steps.of(name, domain, values)


def _merged(steps: Sequence[Steps]) -> tuple[Steps, ...]:
    """One entry for each column, with the steps of all of its entries."""
    found: dict[str, Steps] = {}
    for own in steps:
        before = found.get(own.column)
        values = own.values if before is None else (*before.values, *own.values)
        found[own.column] = Steps.of(own.column, own.domain, values)
    return tuple(found.values())


def _axes(
    shape: Curve,
    columns: Sequence[int],
    steps: Sequence[Steps],
    codes: Sequence[Codes],
) -> tuple[CurveAxis, ...]:
    wanted = [(steps[i].n_codes - 1).bit_length() + 1 for i in columns]
    given = shape.share_bits(wanted)
    axes = []
    for column, bits in zip(columns, given, strict=True):
        weights = np.bincount(codes[column], minlength=steps[column].n_codes)
        cells = cells_by_weight(weights.astype(np.float64), bits=bits)
        axes.append(CurveAxis(column, cells, bits))
    return tuple(axes)


def _keys(shape: Curve, axes: Sequence[CurveAxis], codes: Sequence[Codes]) -> Keys:
    cells = [axis.cells[codes[axis.column]] for axis in axes]
    return shape(cells, bits=[axis.bits for axis in axes])


def _leaf_to_json(leaf: TreeLeaf) -> dict[str, Any]:
    found: dict[str, Any] = {"first": leaf.first_file, "files": leaf.cuts.n_files}
    if leaf.cuts.n_files > 1:
        found["cuts"] = leaf.cuts.to_json()
    return found


def _leaf_from_json(data: Mapping[str, Any]) -> TreeLeaf:
    cuts = FileCuts.from_json(data["cuts"]) if "cuts" in data else FileCuts.single()
    return TreeLeaf(data["first"], cuts)
