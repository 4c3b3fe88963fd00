"""Reading the join keys that filtered dimensions leave.

A row of the join has a key of the dimension's rows for which its conditions are TRUE.
The planner reads the key and the columns of the conditions, and evaluates them in
Arrow, for the files that Spark has listed.  What it finds may have more keys than the
join, as a condition that Spark alone can evaluate counts for TRUE; it never has fewer.
Where that is in doubt, the dimension leaves out nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from skipindex.conditions.bound_predicate import ComparedColumns, TruthValue, unknowns
from skipindex.conditions.functions.zones import OffsetsOf, relying_on
from skipindex.errors import PlanError, SkipIndexError, first_line
from skipindex.expressions import Literal
from skipindex.expressions.atoms import IntegerSet
from skipindex.planner.plan import Plan, plan_files
from skipindex.planner.rows.condition import condition_of, distinct_in
from skipindex.planner.rows.dataset import dataset_of
from skipindex.planner.rows.values import joined
from skipindex.source import declared_schema, folder_of
from skipindex.spark.catalyst.conditions import conditions
from skipindex.spark.catalyst.literals import INTEGERS
from skipindex.spark.pruning.judged_columns import judged_columns
from skipindex.spark.pruning.kept_columns import KeptColumns
from skipindex.spark.pruning.protocol import Dimension
from skipindex.spark.pruning.query_plan import DimensionKeys
from skipindex.spark.settings import check_reading
from skipindex.storage.deadline import (
    Deadline,
    PlanCancelledError,
    check,
    running_until,
    seconds_left,
)
from skipindex.storage.file_system.location import FileInfo
from skipindex.table import ColumnInfo, TableState
from skipindex.table.table import Options

MAX_KEYS: Final = 500_000
"""The most keys that are looked up; the last plans hold theirs in memory."""
MAX_BYTES: Final = 64 << 20
"""The most bytes of columns that are read of a dimension for one query."""
FREE_BYTES: Final = 1 << 18
"""Compressed bytes that are read, whatever the scan reads."""
RATIO: Final = 4
"""The scan reads at least so many bytes for one of the dimension's."""
_NARROW: Final = 0.5
"""A file whose keys span less than this part of all may be without some of them."""
_BATCH: Final = 1 << 15
"""Rows that are read at once."""
_MOST_SECONDS: Final = 60.0
"""For which a dimension is read that no query waits for any more."""
_SHARE: Final = 0.5
"""The part of the time that a plan has left for which it waits for dimensions."""

Keys = IntegerSet | tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Session:
    """How a query reads dimensions.

    Args:
        timezone: of its session; None is unknown.
        offsets: the rules of that zone.
        case_sensitive: whether capitals tell columns apart.
        most_bytes: compressed bytes of columns that are worth reading.
    """

    timezone: str | None
    offsets: OffsetsOf
    case_sensitive: bool
    most_bytes: int


class Dimensions:
    """Reads dimensions for queries; safe to share by threads."""

    def __init__(self) -> None:
        self._columns = KeptColumns()
        self._late: dict[str, _Reading] = {}
        """By dimension, what a query waited for without success."""

    def keys(
        self, joins: Sequence[tuple[str, Dimension]], session: Session
    ) -> list[tuple[DimensionKeys, Keys | None]]:
        """The keys that each dimension leaves for a column of the scan, if known.

        They are read at once, in threads that a query waits for half of its time:
        so a store that hangs takes from it these keys, and not its plan.
        """
        left = seconds_left()
        end = None if left is None else time.monotonic() + left * _SHARE
        readings = [_Reading(*join, session, self._columns) for join in joins]
        begun = [one for one in readings if not self._is_late(one.place)]
        for one in begun:
            one.start()
        for one in begun:
            one.join(None if end is None else max(0.0, end - time.monotonic()))
            if one.is_alive():
                self._late[one.place] = one
        return [one.result() for one in readings]

    def _is_late(self, place: str) -> bool:
        """Whether a dimension is still being read that a query gave up."""
        known = self._late.get(place)
        if known is not None and not known.is_alive():
            self._late.pop(place, None)
        return place in self._late


class _Reading(threading.Thread):
    """One dimension as it is read for a query."""

    def __init__(
        self, column: str, side: Dimension, session: Session, kept: KeptColumns
    ) -> None:
        super().__init__(name="skipindex-dimension", daemon=True)
        self.place = side.uri
        self._column = column
        self._work: Callable[[], Keys] = lambda: _SideReader(side, session, kept).keys()
        self._keys: Keys | None = None
        self._problem = ""
        self._seconds = 0.0

    def run(self) -> None:
        start = time.perf_counter()
        try:
            with running_until(Deadline(_MOST_SECONDS)):
                self._keys = self._work()
        except (PlanError, PlanCancelledError) as error:
            self._problem = first_line(error)
        except Exception as error:  # noqa: BLE001 (a query never fails by its plan)
            self._problem = f"{type(error).__name__}: {first_line(error)}"
        self._seconds = time.perf_counter() - start

    def result(self) -> tuple[DimensionKeys, Keys | None]:
        """What is known now."""
        told = DimensionKeys(self._column, self.place)
        if self.ident is None or self.is_alive():
            return replace(told, problem="it takes too long to read"), None
        keys = self._keys
        n_keys = None if keys is None else len(keys)
        told = replace(
            told, n_keys=n_keys, seconds=self._seconds, problem=self._problem
        )
        return told, keys


class _SideReader:
    """One dimension, for one query."""

    def __init__(self, side: Dimension, session: Session, kept: KeptColumns) -> None:
        check_reading({}, side.reader, side.options)
        self._side, self._session, self._kept = side, session, kept
        self._location = side.location()
        self._nodes = self._nodes_now()
        self._files = self._files_now()
        self._plans: list[Plan] = []
        self._others = [(name, self._other(keys)) for name, keys in side.keys]
        """By column, what it is joined with itself; None is unknown."""
        self._is_known = all(other is not None for _, other in self._others)

    @cached_property
    def _schema(self) -> tuple[pa.Schema, Mapping[str, str]]:
        result = declared_schema(self._side.data)
        if result is None:
            raise PlanError(f"no schema of Spark's: {self._side.data[:80]!r}")
        return result

    @cached_property
    def _state(self) -> TableState:
        path = self._side.paths[0]
        observed = folder_of(self._files, *self._schema, path)
        state = TableState(self._location, observed, Options(declared=self._schema[0]))
        state.check_names(case_sensitive=self._session.case_sensitive)
        return state

    @cached_property
    def _judged(self) -> Mapping[str, str]:
        case_sensitive = self._session.case_sensitive
        return judged_columns(self._state, self._side, case_sensitive=case_sensitive)

    def _other(self, keys: Any) -> _SideReader | pa.Array | None:
        try:
            if isinstance(keys, Dimension):
                return _SideReader(keys, self._session, self._kept)
            return pa.array(keys)
        except (SkipIndexError, OSError, pa.ArrowException):
            return None

    @property
    def _owner(self) -> Hashable:
        """What values of columns depend on."""
        return (
            self._location,
            tuple(self._files),
            self._nodes,
            self._side.data,
            tuple(self._side.partitions_types.items()),
            self._session.timezone,
            self._session.case_sensitive,
        )

    @property
    def _further(self) -> Sequence[_SideReader]:
        return [one for _, one in self._others if isinstance(one, _SideReader)]

    @property
    def files(self) -> Sequence[FileInfo]:
        """The files that the keys depend on."""
        return [*self._files, *(file for one in self._further for file in one.files)]

    @property
    def is_final(self) -> bool:
        """Whether the keys depend on the files and on the question alone."""
        further = all(one.is_final for one in self._further)
        relied = any(plan.rules.relied for plan in self._plans)
        return self._is_known and not relied and further

    @property
    def question(self) -> Hashable:
        """What the keys depend on, with what the files are now."""
        others = [
            (name, one.question)
            if isinstance(one, _SideReader)
            else (name, *one.to_pylist())
            for name, one in self._others
            if one is not None
        ]
        side = self._side
        asked = side.is_catalog_table, side.key, side.conjuncts
        return self._owner, *asked, tuple(others)

    def keys(self) -> Keys:
        """The distinct keys that are not NULL.

        Raises:
            PlanError: they are not known, too many, or not worth reading.
        """
        values = self.values()
        if pa.types.is_integer(values.type):
            return IntegerSet(np.asarray(values.cast(pa.int64())))
        return tuple(values.to_pylist())

    def values(self) -> pa.Array:
        """The same in Arrow."""
        return self._kept.keys(self.question, self.files, self._values)

    def _values(self) -> tuple[pa.Array, bool]:
        """The same, and whether they may be kept."""
        key = self._column(self._side.key)
        if key.domain is None or self._side.key not in self._judged:
            raise PlanError(
                f"the planner knows no keys of column {self._side.key!r}"
                f"{key.reason and f' ({key.reason})'}"
            )
        self._plans = self._conditions()
        others = list(self._other_keys())
        if not self._plans and not others:
            raise PlanError("Spark alone can evaluate its conditions")
        names = {key.own_name, *(name for name, _ in others)}
        names.update(one.own_name for plan in self._plans for one in plan.columns)
        table = self._kept.table(self._owner, self._files, sorted(names), self._read)
        parts = [
            part
            for plan in self._plans
            if (part := _expression(plan, table)) is not None
        ]
        parts += [expression for _, expression in others]
        if not parts:
            raise PlanError("Spark alone can evaluate its conditions")
        left = ds.dataset(table).to_table(
            columns=[key.own_name], filter=joined(parts, every=True)
        )
        values = pc.unique(left[key.own_name]).drop_null()
        if len(values) > MAX_KEYS:
            raise PlanError(f"it has {len(values):,} keys (at most {MAX_KEYS:,} count)")
        return values, self.is_final

    def _column(self, name: str) -> ColumnInfo:
        return self._state.resolve(name, case_sensitive=self._session.case_sensitive)

    def _conditions(self) -> list[Plan]:
        """The conditions that Arrow can evaluate, as far as that is known."""
        written = conditions(self._side.conjuncts, self._judged)
        plans = (
            plan_files(
                predicate,
                table=self._state,
                timezone=written.zone or self._session.timezone,
                case_sensitive=self._session.case_sensitive,
                offsets=self._session.offsets,
            )
            for predicate in written.parts
        )
        return [
            plan
            for plan in plans
            if {type(one) for one in unknowns(plan.tree)} <= {ComparedColumns}
            and plan.tree != TruthValue(value=True)
        ]

    def _other_keys(self) -> Iterator[tuple[str, pc.Expression]]:
        """What columns need to have, because the dimension is joined itself."""
        for name, other in self._others:
            kind = self._judged.get(name, "")
            if other is None or (kind not in INTEGERS and kind != "string"):
                continue  # all keys are possible
            dtype = pa.int64() if kind in INTEGERS else pa.string()
            try:
                values = other.values() if isinstance(other, _SideReader) else other
                column = self._column(name)
                value = pc.field(column.own_name).cast(dtype)
                yield column.own_name, value.isin(values.cast(dtype))
            except (SkipIndexError, OSError, pa.ArrowException):
                self._is_known = False

    def _read(self, names: Sequence[str]) -> pa.Table:
        """Columns from the files, which are what they were before and after that."""
        wanted = set(names)
        state = self._state.typed(
            pa.schema([field for field in self._state.schema if field.name in wanted]),
            self._schema[1],
        )
        dataset = dataset_of(
            state,
            range(len(state)),
            timezone=self._session.timezone,
            case_sensitive=self._session.case_sensitive,
        )
        self._check_price(dataset, names)
        batches, n_bytes = [], 0
        for batch in dataset.to_batches(
            columns=list(names),
            batch_size=_BATCH,
            batch_readahead=2,
            fragment_readahead=2,
        ):
            check()
            n_bytes += batch.nbytes
            if n_bytes > MAX_BYTES:
                raise _too_large(n_bytes)
            batches.append(batch)
        if (self._files_now(), self._nodes_now()) != (self._files, self._nodes):
            raise PlanError("it changed while it was read")
        schema = pa.schema([dataset.schema.field(name) for name in names])
        return pa.Table.from_batches(batches, schema)

    def _check_price(self, dataset: ds.FileSystemDataset, names: Sequence[str]) -> None:
        """Raise ``PlanError`` if the columns are too large, by the files' footers."""
        begins = tuple(f"{name}." for name in names)
        stored = taken = 0
        for fragment in dataset.get_fragments():
            check()
            footer = fragment.metadata
            for i in range(footer.num_row_groups):
                group = footer.row_group(i)
                for j in range(group.num_columns):
                    chunk = group.column(j)
                    if f"{chunk.path_in_schema}.".startswith(begins):
                        stored += chunk.total_compressed_size
                        taken += chunk.total_uncompressed_size
            if taken > MAX_BYTES:
                raise _too_large(taken)
            if stored > self._session.most_bytes:
                raise PlanError(
                    f"its columns have more than {self._session.most_bytes:,} bytes, "
                    "which is not worth it for this scan"
                )

    def _nodes_now(self) -> Hashable:
        """What tells files of a disk apart that have one size and one time."""
        # A program that sets the time of a file, such as cp -p, changes its inode.
        if not self._location.is_local:
            return ()
        nodes = (Path(self._location.full(path)).stat() for path in self._side.paths)
        return tuple((one.st_dev, one.st_ino, one.st_ctime_ns) for one in nodes)

    def _files_now(self) -> Sequence[FileInfo]:
        """The files that Spark has listed, as they are now; an error if others are."""
        side, location = self._side, self._location
        result: Sequence[FileInfo | None]
        if location.is_local:
            result = [location.stat(path) for path in side.paths]
        else:
            there = {file.path: file for file in location.list()}
            result = [there.get(path) for path in side.paths]
        files = [file for file in result if file is not None]
        now = [(file.path, file.size, file.mtime // 1_000_000) for file in files]
        listed = list(zip(side.paths, side.sizes, side.millis, strict=True))
        if not files or now != listed:
            raise PlanError("its files are not those that Spark has listed")
        return files


def _expression(plan: Plan, table: pa.Table) -> pc.Expression | None:
    """The condition in Arrow; None if Spark alone can evaluate it."""
    try:
        with relying_on(plan.rules):
            return condition_of(plan.tree, plan.table, distinct_in(table))
    except PlanError:
        return None


def tells_files_apart(fact: TableState, column: str) -> bool:
    """Whether keys of a column can leave out a file, by an index or by its bounds.

    Bounds do not where all files span the same keys.
    """
    try:
        info = fact.resolve(column)
    except SkipIndexError:
        return False
    if info.is_partition or fact.blobs(info) or fact.maps(info):
        return True
    if info.domain is None or info.domain.name not in {"int", "date"}:
        return False
    stats = fact.stats(info)
    low, high = stats.low[stats.bounded], stats.high[stats.bounded]
    if not len(low):
        return False
    spans = high.astype(np.float64) - low
    return bool(spans.min() <= _NARROW * (float(high.max()) - float(low.min())))


def _too_large(n_bytes: int) -> PlanError:
    return PlanError(
        f"its columns have more than {n_bytes:,} bytes (at most {MAX_BYTES:,} are read)"
    )
