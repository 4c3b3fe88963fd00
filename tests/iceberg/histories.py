"""Random histories of an Iceberg table, and what each snapshot of it holds.

The writers are those of ``pyiceberg``.  The judge is given a snapshot's files, read
one by one by the field ids in their footers, and which rows were deleted.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import FileScanTask, Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, LongType

import skipindex as sx
from tests.histories import History, condition, counted, rows
from tests.iceberg.catalogs import sql_catalog
from tests.iceberg.deletes import delete_positions
from tests.rewrite.arrow_writer import optimized

_COLUMNS: Final = "kgpsxd"
_WORDS: Final = r"'[^']*'|\b([kgpsxd]|n\d)\b"
_Gone = dict[str, frozenset[int]]


class IcebergHistory(History):
    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(seed)
        folder.mkdir(parents=True)
        catalog = sql_catalog(folder)
        first = rows(self.rng, 30, 0)
        self.table: Table = catalog.create_table("db.t", schema=first.schema)
        self.names = {name: name for name in _COLUMNS}
        """The columns as ``rows`` and ``condition`` call them, and the table."""
        self.exact: set[str] = set()
        self.n_names = 0
        self.gone: dict[int, _Gone] = {}
        """The positions of deleted rows by file, of each snapshot."""
        self._now: _Gone = {}
        self.table.append(first)
        self.record()

    @property
    def acts(self) -> Sequence[Callable[[], None]]:
        return [
            *[self.append] * 4,
            *[self.index] * 3,
            *[self.delete_by_position] * 3,
            *(self.delete, self.overwrite, self.evolve, self.rename, self.swap),
            *(self.drop_and_add, self.widen, self.partition, self.roll_back),
            *(self.expire,),
            *[self.optimize] * 2,
        ]

    @staticmethod
    @contextmanager
    def _quiet() -> Iterator[None]:
        """A delete may find no row."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            yield

    def record(self) -> None:
        self.table.refresh()
        live = {task.file.file_path for task in self.table.scan().plan_files()}
        self._now = {path: r for path, r in self._now.items() if path in live}
        self.gone[self._snapshot()] = dict(self._now)

    def _snapshot(self) -> int:
        snapshot = self.table.current_snapshot()
        assert snapshot is not None
        return snapshot.snapshot_id

    def _rows(self, n: int) -> pa.Table:
        """New rows, under the names and types of the table."""
        new = rows(self.rng, n, self.more)
        schema = schema_to_pyarrow(self.table.schema(), include_field_ids=False)
        own = {self._name(name): name for name in new.column_names}
        columns = {one.name: new[own[one.name]].cast(one.type) for one in schema}
        return pa.table(columns, schema=schema)

    def _name(self, name: str) -> str:
        return self.names.get(name, name)

    def _condition(self) -> tuple[str, bool]:
        """A condition, and whether each of its columns has an exact index."""

        def renamed(match: re.Match[str]) -> str:
            return match[0] if match[1] is None else self._name(match[1])

        text = condition(self.rng, self.more)
        used = set(re.findall(_WORDS, text)) - {""}
        return re.sub(_WORDS, renamed, text), used <= self.exact

    def append(self) -> None:
        self.table.append(self._rows(self.rng.randrange(1, 25)))

    def evolve(self) -> None:
        """A column more, of which older files hold NULL."""
        if self.more < 2:
            with self.table.update_schema() as update:
                update.add_column(f"n{self.more}", IntegerType())
            self.more += 1
            self.table.append(self._rows(8))

    def rename(self) -> None:
        name = self.rng.choice([*_COLUMNS])
        self.n_names += 1
        new = self.rng.choice([f"c{self.n_names}", name])
        if new not in self.names.values():
            with self.table.update_schema() as update:
                update.rename_column(self.names[name], new)
            self.names[name] = new

    def swap(self) -> None:
        """Two columns of one type get each other's names."""
        one, other = self.names["p"], self.names["s"]
        for pairs in (((one, "t1"), (other, "t2")), (("t1", other), ("t2", one))):
            with self.table.update_schema() as update:
                for old, new in pairs:
                    update.rename_column(old, new)
        self.names |= {"p": other, "s": one}

    def drop_and_add(self) -> None:
        """A column goes, and another of its name comes: older files hold NULL."""
        if self._is_partitioned():
            return
        for change in ("delete_column", "add_column"):
            with self.table.update_schema() as update:
                getattr(update, change)(
                    self.names["g"], *([IntegerType()] * (change == "add_column"))
                )
        self.table.append(self._rows(5))

    def widen(self) -> None:
        with self.table.update_schema() as update:
            update.update_column(self.names["g"], LongType())

    def partition(self) -> None:
        name = self.rng.choice("kp")
        if not self._is_partitioned():
            with self.table.update_spec() as update:
                update.add_field(
                    self.names[name], IdentityTransform(), f"by_{self.n_names}"
                )
            self.table.append(self._rows(12))

    def _is_partitioned(self) -> bool:
        return any(spec.fields for spec in self.table.specs().values())

    def delete(self) -> None:
        with self._quiet():
            self.table.delete(f"{self.names['k']} = {self.rng.randrange(70)}")

    def overwrite(self) -> None:
        low = self.rng.randrange(70)
        new, name = self._rows(10), self.names["k"]
        i = new.schema.get_field_index(name)
        new = new.set_column(i, new.schema.field(i), pa.array([low] * len(new)))
        with self._quiet():
            self.table.overwrite(new, overwrite_filter=f"{name} = {low}")

    def delete_by_position(self) -> None:
        tasks = list(self.table.scan().plan_files())
        if not tasks:
            return
        task = self.rng.choice(tasks)
        share = self.rng.choice([0.1, 0.5, 1.0])
        every = range(task.file.record_count)
        mine = [i for i in every if self.rng.random() < share]
        if mine:
            delete_positions(self.table, task, mine)
            path = task.file.file_path
            self._now[path] = self._now.get(path, frozenset()) | frozenset(mine)

    def roll_back(self) -> None:
        ancestors = [one.snapshot_id for one in self.table.history()]
        known = [one for one in ancestors if one in self.gone and self._exists(one)]
        target = self.rng.choice(known)
        self.table.manage_snapshots().set_current_snapshot(snapshot_id=target).commit()
        self._now = dict(self.gone[target])

    def _exists(self, snapshot: int) -> bool:
        return self.table.snapshot_by_id(snapshot) is not None

    def expire(self) -> None:
        others = [
            one.snapshot_id
            for one in self.table.snapshots()
            if one.snapshot_id != self._snapshot()
        ]
        if others:
            oldest = min(
                others, key=lambda n: self.table.snapshot_by_id(n).timestamp_ms
            )  # type: ignore[union-attr]
            self.table.maintenance.expire_snapshots().by_id(oldest).commit()

    def optimize(self) -> None:
        """Files of skipindex, by a commit in the catalog."""
        known = [self.names[name] for name in "kd" if name in self.exact]
        if not known:
            return
        before = self.table.scan().to_arrow()
        optimized(
            sx.open_table(self.table),
            cluster_by=known,
            rows_per_file=self.rng.choice([10, 40]),
            mode=self.rng.choice(["incremental", "full"]),
            in_place=False,
        )
        self.table.refresh()
        assert counted(before) == counted(self.table.scan().to_arrow())

    def index(self) -> None:
        table = sx.open_table(self.table)
        if self.is_indexed:
            table.refresh_indexes(workers=1)
        else:
            wanted = self.rng.sample([*_COLUMNS], 4)
            self.exact = set(wanted) - {"g"}  # which is dropped and added
            indexes = {self.names[name]: "exact" for name in wanted}
            table.build_indexes(indexes, workers=1)
        self.is_indexed = True

    def check(self) -> str:
        snapshot = self._snapshot()
        is_old = self.rng.random() < 0.3
        if is_old:
            # Of an older schema the conditions are not known.
            known = [
                one
                for one in self.gone
                if self._exists(one) and self._schema(one) == self._schema(None)
            ]
            is_old = bool(known)
            snapshot = self.rng.choice(known or [snapshot])
        scan = self.table.scan(snapshot_id=snapshot if is_old else None)
        held = self._held(scan.projection(), list(scan.plan_files()), snapshot)
        table = sx.open_table(self.table, version=snapshot if is_old else None)
        where, is_exact = self._condition()
        folder = self.table.location().removeprefix("file://")
        wrong = self.judged(table, folder, held, where, is_exact)
        wrong = wrong or self._located(table, held)
        return wrong and f"snapshot {snapshot}: {where}: {wrong}"

    def _located(self, table: sx.Table, held: pa.Table) -> str:
        """What is wrong with the places of some keys; empty if nothing."""
        name = self.names["k"]
        keys = [self.rng.randrange(75) for _ in range(5)]
        places = table.locate(keys, name).read_all().to_pylist()
        told = {(one["file"].rpartition("/")[2], one["key"]) for one in places}
        for one in held.to_pylist():
            file = one["file"].rpartition("/")[2]
            is_wanted = one[name] in keys and not one["deleted"]
            if is_wanted and not {(file, one[name]), (file, None)} & told:
                return f"locate misses {one[name]} in {file}"
        here = [one[name] for one in held.to_pylist() if not one["deleted"]]
        rows = table.locate(keys, name).read([name])[name].to_pylist()
        right = rows == [key for key in keys for _ in range(here.count(key))]
        return "" if right else f"the rows of {keys} are {rows}"

    def _schema(self, snapshot: int | None) -> Any:
        return self.table.scan(snapshot_id=snapshot).projection().as_struct()

    def _held(self, columns: Any, tasks: list[FileScanTask], snapshot: int) -> pa.Table:
        """The rows of a snapshot with their file, and which are deleted."""
        schema = schema_to_pyarrow(columns)
        parts = []
        for task in tasks:
            path = str(Path(task.file.file_path.removeprefix("file://")).resolve())
            own = pq.ParquetFile(path).read()
            by_id = {
                field.metadata[b"PARQUET:field_id"]: own[field.name]
                for field in own.schema
            }
            values = {}
            for field in schema:
                dtype = pa.string() if "string" in str(field.type) else field.type
                mine = by_id.get(field.metadata[b"PARQUET:field_id"])
                none = pa.nulls(len(own), dtype)
                values[field.name] = none if mine is None else mine.cast(dtype)
            gone = self.gone[snapshot].get(task.file.file_path, frozenset())
            values["file"] = pa.array([path] * len(own), pa.string())
            values["deleted"] = pa.array([i in gone for i in range(len(own))])
            parts.append(pa.table(values))
        if parts:
            return pa.concat_tables(parts)
        texts = {f.name for f in schema if "string" in str(f.type)} | {"file"}
        whole = schema.append(pa.field("file", pa.string()))
        whole = whole.append(pa.field("deleted", pa.bool_()))
        plain = [(f.name, pa.string() if f.name in texts else f.type) for f in whole]
        return pa.schema(plain).empty_table()
