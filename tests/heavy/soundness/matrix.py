"""The sweep: every form over every type with every index kind, by the row oracle.

Of every file of every plan it is checked that

* a skipped file holds no row for which the predicate is TRUE,
* in a file of which all rows are said to match, all rows do,
* the number of rows that match is within the bounds that the plan gives.

What is counted beside: how many files could have been skipped, and how many were.
An index that has stopped helping loses no row, but shows there.
"""

from __future__ import annotations

import random
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.expressions import Predicate, Reference, to_sql
from skipindex.expressions.domain import domain_of
from skipindex.indexes import IndexSpec, index_type, index_types
from skipindex.indexes.bit_slices import slices
from skipindex.planner.stages import rows as rows_module
from tests import oracle
from tests.heavy.soundness.forms import FORMS, OPAQUE
from tests.heavy.soundness.pools import Pool, zone_of

_VARIANTS: Final[Mapping[str, Sequence[IndexSpec]]] = {
    "bloom": (sx.Bloom(error_rate=0.3),),
    "range_bitmap": (sx.RangeBitmap(max_bitmaps=2),),
    "bit_sliced": (
        sx.BitSliced(encoding="equality"),
        sx.BitSliced(base=10),
        sx.BitSliced(base=10, encoding="equality"),
        sx.BitSliced(max_slices=2),
        sx.BitSliced(base=3, max_slices=4),
    ),
}
"""Other parameters that a kind is swept with, beside its defaults."""

_LATER: Final = 5
"""Files that are replaced after the build, and as many that come after it."""


@dataclass(frozen=True)
class Indexed:
    """One column of the table: its name, its spec, and the kinds a plan may use."""

    label: str
    column: str
    spec: IndexSpec | None
    kinds: tuple[str, ...] | None


def indexed_columns(pool: Pool) -> list[Indexed]:
    """One column for every kind, and for every variant, that the type allows.

    Each is asked alone, without the statistics, so that none hides behind another;
    the last is asked with all.
    """
    found = [Indexed("minmax", "v_minmax", None, ("minmax",))]
    domain = domain_of(pool.dtype)
    for name in index_types():
        for spec in (index_type(name).spec(), *_VARIANTS.get(name, ())):
            try:
                index_type(name).check(domain)
            except sx.UnsupportedTypeError:
                continue
            column = f"v_{len(found)}"
            found.append(Indexed(_label(spec), column, spec, (name,)))
    found.append(Indexed("all together", "v_all", None, None))
    return found


def _label(spec: IndexSpec) -> str:
    shown = repr(spec).replace(", max_slices=None", "")
    return shown.replace("encoding=", "") if "(" in shown else spec.kind


@dataclass
class Tally:
    """What was checked in one cell.

    Args:
        predicates: that were planned.
        verdicts: files judged, over all predicates.
        indexed: of these, files whose index is there and fits; all that follow are
            counts of them.
        skipped: files that were skipped.
        skippable: files that hold no matching row.
        full: files of which every row was said to match.
        fillable: files of which every row matches.
        exact: files whose number of matching rows the plan knew.
    """

    predicates: int = 0
    verdicts: int = 0
    indexed: int = 0
    skipped: int = 0
    skippable: int = 0
    full: int = 0
    fillable: int = 0
    exact: int = 0

    def add(self, other: Tally) -> None:
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass
class Result:
    """The tallies by cell, and what was wrong, in words that reproduce it."""

    cells: dict[tuple[str, str, str], Tally] = field(
        default_factory=lambda: defaultdict(Tally)
    )
    failures: list[str] = field(default_factory=list)
    n_predicates: int = 0

    def along(self, axis: int) -> dict[str, Tally]:
        """The sums over the other axes: 0 is the type, 1 the form, 2 the kind."""
        sums: dict[str, Tally] = defaultdict(Tally)
        for key, tally in self.cells.items():
            sums[key[axis]].add(tally)
        return dict(sums)

    @property
    def total(self) -> Tally:
        found = Tally()
        for tally in self.cells.values():
            found.add(tally)
        return found


class Sample:
    """The table of one pool: its files, indexes, and how to know the truth."""

    def __init__(
        self, pool: Pool, folder: Path, *, random_files: int, seed: int
    ) -> None:
        self.pool = pool
        self.columns = indexed_columns(pool)
        self._names = [c.column for c in self.columns]
        files = list(pool.files(random_files, seed))
        for i, places in enumerate(files):
            self._write(folder, i, places)
        requests: dict[str, Any] = {
            c.column: [] if c.spec is None else [c.spec] for c in self.columns
        }
        requests["v_all"] = sorted({c.spec.kind for c in self.columns if c.spec})
        requests["w"] = ["bitmap", "range_bitmap", "bit_sliced", "bloom"]
        report = sx.build_indexes(folder, requests, workers=1)
        assert not report.notes, report.notes
        # Other rows in the place of some files, and files that no index has seen.
        for i in range(1, _LATER):
            files[-i] = files[i]
            self._write(folder, len(files) - i, files[i])
        for _ in range(_LATER):
            files.append([0, len(pool.pairs) - 1])
            self._write(folder, len(files) - 1, files[-1])
        self.table = sx.open_table(folder)
        self.counts = pool.counts(files)
        self.n_rows = self.counts.sum(axis=1)
        self.n_indexed = len(files) - 2 * _LATER + 1

    def truth(self, tree: Predicate, column: str) -> tuple[np.ndarray, np.ndarray]:
        """For every file the fewest and the most rows for which ``tree`` is TRUE.

        They differ by what an opaque condition may be.
        """
        counted = []
        for opaque in (True, False) if OPAQUE in to_sql(tree) else (True,):
            truths = [
                oracle.evaluate(
                    tree,
                    {column: v, "w": w},
                    unsupported=lambda text, row, opaque=opaque: opaque,
                    zone=zone_of(self.pool),
                    integers=self._integers(column),
                )
                is True
                for v, w in self.pool.pairs
            ]
            counted.append(self.counts @ np.array(truths, np.int64))
        return np.minimum.reduce(counted), np.maximum.reduce(counted)

    def _integers(self, column: str) -> list[str]:
        whole = domain_of(self.pool.dtype).name == "int"
        return [column, "w"] if whole else ["w"]

    def _write(self, folder: Path, i: int, places: Sequence[int]) -> None:
        table = self.pool.arrow(places, self._names)
        pq.write_table(table, folder / f"{i:05d}.parquet")


@contextmanager
def as_in_large_files() -> Iterator[None]:
    """What pays only where files have many rows is done in those of a few.

    Indexes are asked inside of the rows that are left, and lists of values decode all
    rows.  As large files would take hours to sweep, a mistake there stays hidden else.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_module, "FEW", 1)
        patch.setattr(slices, "_DECODE_FROM_INTERVALS", 0)
        yield


def judge(
    plan: sx.Plan,
    least: np.ndarray,
    most: np.ndarray,
    n_rows: np.ndarray,
    *,
    n_indexed: int,
) -> tuple[Tally, list[str]]:
    """The tally of one plan, and its breaches of the law.

    Args:
        plan: of a table whose files are ordered as the arrays are.
        least: rows of every file that match at least.
        most: rows of every file that match at most.
        n_rows: rows of every file.
        n_indexed: the first so many files are those that an index knows; what could
            have been found out is counted over them alone.
    """
    table = plan.table
    place = {path: i for i, path in enumerate(table.paths)}
    kept = np.zeros(len(table), bool)
    kept[[place[path] for path in plan.paths]] = True
    found = plan.row_counts
    full = kept & (found.lower == n_rows) & (n_rows > 0)
    wrong = {
        "skipped, but holds a match": ~kept & (most > 0),
        "not all rows match": full & (least < n_rows),
        "fewer rows match than said": found.lower > least,
        "more rows match than said": (found.upper >= 0) & (found.upper < most),
    }
    failures = [
        f"{table.paths[i]}: {what}: {plan.where} ({found.lower[i]}..{found.upper[i]} "
        f"said, {least[i]}..{most[i]} true of {n_rows[i]})"
        for what, mask in wrong.items()
        for i in np.flatnonzero(mask)
    ]
    known = slice(n_indexed)
    tally = Tally(
        predicates=1,
        verdicts=len(table),
        indexed=n_indexed,
        skipped=int((~kept)[known].sum()),
        skippable=int((most == 0)[known].sum()),
        full=int(full[known].sum()),
        fillable=int(((least == n_rows) & (n_rows > 0))[known].sum()),
        exact=int(found.exact[known].sum()),
    )
    return tally, failures


def predicates(
    pool: Pool, *, each: int, seed: int, forms: Iterable[str] = FORMS
) -> Iterator[tuple[str, Predicate]]:
    """``each`` predicates of every form, over a column named ``v``, without repeats."""
    for name in forms:
        rng = random.Random(f"{seed} {pool.name} {name}")
        made: dict[str, Predicate] = {}
        for _ in range(4 * each):
            tree = FORMS[name](rng, pool, Reference(("v",)))
            if tree is not None and len(made) < each:
                made.setdefault(to_sql(tree), tree)
        yield from ((name, tree) for tree in made.values())


def renamed(tree: Predicate, column: str) -> Predicate:
    """``tree`` with ``column`` in the place of ``v``."""
    return _renamed(tree, Reference((column,)))


def _renamed(node: Any, column: Reference) -> Any:
    """Over any node: whatever refers to ``v`` refers to ``column``."""
    if isinstance(node, Reference):
        return column if node.parts == ("v",) else node
    if isinstance(node, tuple):
        return tuple(_renamed(child, column) for child in node)
    names = getattr(node, "__dataclass_fields__", None)
    if names is None:
        return node
    return type(node)(*(_renamed(getattr(node, name), column) for name in names))


def sweep(
    pool: Pool,
    *,
    each: int,
    random_files: int,
    seed: int,
    result: Result,
    more_statistics: int = 10,
) -> None:
    """Check every form over one pool with every kind of index.

    Args:
        pool: the column type.
        each: predicates of every form, which all kinds are asked.
        random_files: files beside those of each shape.
        seed: of all choices.
        result: is added to.
        more_statistics: so many times more predicates for the statistics, which
            answer for all files at once.
    """
    with tempfile.TemporaryDirectory() as name:
        sample = Sample(pool, Path(name), random_files=random_files, seed=seed)
        few = {tree for _, tree in predicates(pool, each=each, seed=seed)}
        for form, tree in predicates(pool, each=more_statistics * each, seed=seed):
            result.n_predicates += 1
            least, most = sample.truth(tree, "v")
            columns = sample.columns if tree in few else sample.columns[:1]
            for n, indexed in enumerate(columns):
                mine = renamed(tree, indexed.column)
                as_text = n % 2 == 0 and OPAQUE not in to_sql(mine)
                large = (result.n_predicates + n) % 2
                with as_in_large_files() if large else nullcontext():
                    plan = sample.table.plan(
                        to_sql(mine) if as_text else mine,
                        timezone=pool.zone,
                        kinds=indexed.kinds,
                    )
                    tally, failures = judge(
                        plan, least, most, sample.n_rows, n_indexed=sample.n_indexed
                    )
                result.cells[pool.name, form, indexed.label].add(tally)
                where = f"{pool.name}, {indexed.label}, "
                result.failures += [where + failure for failure in failures]
