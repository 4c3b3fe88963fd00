"""``Plan.verify``: read the files again, and compare a plan's claims with the rows.

Without a session pyarrow reads the values, and the plan's own conditions are decided
on them.  That finds an index, a statistic or a proof that is wrong, but no condition
that Spark reads otherwise.  With a session Spark counts, which finds those too.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skipindex.conditions.bound_predicate import (
    BoundPredicate,
    Computed,
    Judged,
    Leaf,
    evaluate,
)
from skipindex.errors import PlanError, UnsupportedTypeError, first_line
from skipindex.expressions import atoms
from skipindex.expressions.bounds import Bounds
from skipindex.expressions.operators import NULL_SAFE, Operator
from skipindex.expressions.patterns import select
from skipindex.notebook import InNotebook
from skipindex.planner.engine import engine_of
from skipindex.planner.stages.row_counts import RowCounts
from skipindex.source import UNREADABLE, check_stored, lacks
from skipindex.table import ColumnInfo, TableState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHANGED: Final = "changed since the plan was made"
_COMPARE: Final = {
    Operator.EQ: pc.equal,
    Operator.NE: pc.not_equal,
    Operator.LT: pc.less,
    Operator.LE: pc.less_equal,
    Operator.GT: pc.greater,
    Operator.GE: pc.greater_equal,
}


class Verifiable(Protocol):
    """The parts of a plan that are compared with the data."""

    @property
    def table(self) -> TableState: ...
    @property
    def tree(self) -> BoundPredicate: ...
    @property
    def paths(self) -> Sequence[str]: ...
    @property
    def row_counts(self) -> RowCounts: ...


@dataclass(frozen=True, slots=True)
class Violation:
    """A claim of a plan that does not hold.

    Args:
        path: the file, relative to the table.
        claim: what the plan says about the file.
        actual: what the file's rows show.
    """

    path: str
    claim: str
    actual: str


@dataclass(frozen=True, slots=True)
class VerifyReport(InNotebook):
    """What ``Plan.verify`` found.

    Args:
        checked: the number of files that were read.
        violations: claims of the plan that do not hold; empty if the plan is right.
        unchecked: why other files could not be checked, with their number.
    """

    checked: int
    violations: tuple[Violation, ...]
    unchecked: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_right(self) -> bool:
        """Whether all checked claims hold."""
        return not self.violations

    def __str__(self) -> str:
        n = len(self.violations)
        wrong = f"{n} claims do not hold" if n else "the plan is correct"
        unchecked = sum(self.unchecked.values())
        others = f", {unchecked} could not be checked" if unchecked else ""
        return f"{self.checked} files checked{others}: {wrong}"


def verify_plan(
    plan: Verifiable,
    *,
    sample: float | None = None,
    spark: SparkSession | None = None,
    seed: int = 0,
) -> VerifyReport:
    """See ``Plan.verify``."""
    table = plan.table
    chosen = _sample(plan, sample, seed)
    unchecked: Counter[str] = Counter()
    same = []
    for i in chosen:
        if not table.listing[i].is_same(table.location.stat(table.paths[i])):
            unchecked[_CHANGED] += 1
        else:
            same.append(i)
    if spark is not None:
        result = engine_of(spark).count_files(plan, same)
        counts = {i: (n, n) for i, n in result.items()}
    else:
        counts = {}
        for i in same:
            try:
                counts[i] = _count(plan, i)
            except UNREADABLE as error:
                unchecked[f"not readable: {first_line(error)}"] += 1
            except UnsupportedTypeError as error:
                unchecked[str(error)] += 1
    violations = [v for i, n in counts.items() for v in _judge(plan, i, *n)]
    return VerifyReport(len(counts), tuple(violations), dict(unchecked))


def _sample(plan: Verifiable, sample: float | None, seed: int) -> list[int]:
    """The files to check, by their positions in the table."""
    is_read = set(plan.paths).__contains__
    read = [i for i, path in enumerate(plan.table.paths) if is_read(path)]
    skipped = [i for i, path in enumerate(plan.table.paths) if not is_read(path)]
    if sample is None:
        return skipped + read
    given: Any = sample
    if not isinstance(given, int | float) or given < 0 or (given > 1 and given % 1):
        raise PlanError(
            f"not a sample: {sample!r} (accepted: a number of files, or a "
            "fraction below 1)"
        )
    if 0 < sample < 1:
        n_skipped, n_read = (math.ceil(sample * len(some)) for some in (skipped, read))
    else:
        n_skipped = min(int(sample), len(skipped))
        n_read = min(int(sample) - n_skipped, len(read))
    rng = random.Random(seed)
    return rng.sample(skipped, n_skipped) + rng.sample(read, n_read)


def _judge(plan: Verifiable, i: int, least: int, most: int) -> list[Violation]:
    """The claims on file ``i`` against the fewest and the most rows that match."""
    counts = plan.row_counts
    low, high = int(counts.lower[i]), int(counts.upper[i])
    result = f"{least} rows match" if least == most else f"{least} to {most} rows match"
    path = plan.table.paths[i]
    if 0 <= high < most:
        claim = f"at most {high} rows match" if high else "no row matches"
        return [Violation(path, claim, result)]
    if low > least:
        every = low == plan.table.n_rows.of_file(i)
        claim = "every row matches" if every else f"at least {low} rows match"
        return [Violation(path, claim, result)]
    return []


def _count(plan: Verifiable, i: int) -> tuple[int, int]:
    """The fewest and the most rows that match; they differ by what is not judged."""
    table, tree = plan.table, plan.tree
    deleted = table.deleted or (np.zeros(len(table), int),) * 2
    with table.opened(i) as file:
        n_rows = int(file.metadata.num_rows)
        read: dict[str, pa.Array] = {}

        def values(name: str) -> pa.Array:
            if name not in read:
                read[name] = _values(plan, i, file, table.stored(name), n_rows)
            return read[name]

        def answer(node: Judged) -> Bounds[np.ndarray]:
            match node:
                case Computed():
                    return _tested(node, values(node.column))
                case Leaf():
                    return _holds(node.atom, values(node.column))
            return _compared(values(node.left), node.operator, values(node.right))

        result = evaluate(
            tree,
            answer,
            nothing=np.zeros(n_rows, bool),
            everything=np.ones(n_rows, bool),
            is_empty=lambda mask: not mask.any(),
        )
    least, most = int(result.lower.sum()), int(result.upper.sum())
    return max(0, least - deleted[1][i]), min(most, n_rows - deleted[0][i])


def _values(
    plan: Verifiable, i: int, file: pq.ParquetFile, column: ColumnInfo, n_rows: int
) -> pa.Array:
    """All values of a column of one file, in the column's domain."""
    domain, name = column.domain, column.name
    assert domain is not None
    for partition in plan.table.partitions:
        if column.is_partition and partition.name == column.own_name:
            kind = pa.large_binary() if domain.is_bytes else pa.int64()
            if domain.name == "timestamp":
                raise UnsupportedTypeError(f"column {name!r} depends on the time zone")
            value = partition.typed(domain)[i]
            return pa.array([value] * n_rows, kind)
    if lacks(file, column.place):
        return pa.nulls(n_rows, pa.large_binary() if domain.is_bytes else pa.int64())
    where = check_stored(file, column.place, domain)
    return domain.encode(file.read(where).combine_chunks())


def _holds(atom: atoms.Atom, values: pa.Array) -> Bounds[np.ndarray]:
    """The rows for which ``atom`` is TRUE, by comparing every value."""
    valid = _mask(values.is_valid())
    match atom:
        case atoms.NullAtom():
            mask = ~valid
        case atoms.NotNullAtom():
            mask = valid
        case atoms.OneOf(values=wanted):
            mask = _mask(_is_one_of(values, wanted))
        case atoms.NoneOf(values=others):
            mask = valid & ~_mask(_is_one_of(values, others))
        case atoms.Range(_, low, high):
            mask = valid
            for compare, end in ((pc.greater_equal, low), (pc.less, high)):
                if end is not None:
                    mask = mask & _mask(compare(values, pa.scalar(end, values.type)))
        case atoms.Matches(_, pattern, negated):
            certain, possible = select(pattern, values.fill_null(b""))
            if negated:
                certain, possible = ~possible, ~certain
            return Bounds(certain & valid, possible & valid)
        case _:
            assert_never(atom)
    return Bounds(mask, mask)


def _tested(leaf: Computed, values: pa.Array) -> Bounds[np.ndarray]:
    """The rows for which a function's answer is TRUE, one distinct value at a time."""
    encoded = values.dictionary_encode()
    result = [leaf.test(value) for value in [*encoded.dictionary.to_pylist(), None]]
    codes = np.asarray(encoded.indices.fill_null(len(result) - 1))
    certain = np.array([one is True for one in result])
    possible = np.array([one is not False for one in result])
    return Bounds(certain[codes], possible[codes])


def _compared(
    left: pa.Array, operator: Operator, right: pa.Array
) -> Bounds[np.ndarray]:
    """The rows for which the values of two columns compare so."""
    if operator in NULL_SAFE:
        result = _mask(pc.equal(left, right)) | _mask(
            pc.and_(left.is_null(), right.is_null())
        )
        mask = result if operator is Operator.NULL_SAFE_EQ else ~result
    else:
        mask = _mask(_COMPARE[operator](left, right))
    return Bounds(mask, mask)


def _is_one_of(values: pa.Array, wanted: Sequence[Any]) -> pa.Array:
    return pc.is_in(values, value_set=pa.array(wanted, values.type))


def _mask(array: pa.Array) -> np.ndarray:
    mask: np.ndarray = np.array(array.fill_null(False), bool)
    return mask
