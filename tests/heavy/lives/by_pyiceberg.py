"""Tables of Iceberg that ``pyiceberg`` writes; any snapshot of them is asked about.

What a snapshot holds is read from its files, one by one, by the field ids in their
footers.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, LongType

import skipindex as sx
from skipindex.source.iceberg import IcebergSource
from tests.heavy.lives.rows import KINDS, Column, Kind, Stored, held
from tests.heavy.lives.world import PLACES, Moment, World
from tests.iceberg.catalogs import sql_catalog
from tests.iceberg.deletes import delete_positions
from tests.rewrite.arrow_writer import optimized

_TEXTS: Final = replace(
    KINDS["string"],
    pool=[one for one in KINDS["string"].pool if "\ud7ff" not in one],
)
"""Texts that pyiceberg can cut for its bounds."""
_FIRST: Final[Mapping[str, Kind]] = {
    "k": KINDS["long"],
    "g": KINDS["integer"],
    "p": PLACES,
    "s": _TEXTS,
    "x": KINDS["double"],
    "d": KINDS["date"],
}
"""The columns of a new table, whose field ids are from 1."""
_K, _P, _S, _D = 1, 3, 4, 6
_ID: Final = b"PARQUET:field_id"


class PyicebergWorld(World):
    """A table of Iceberg; each act is one of the library."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        super().__init__(folder, rng)
        folder.mkdir(parents=True)
        fields = [(name, kind.arrow) for name, kind in _FIRST.items()]
        self.table: Table = sql_catalog(folder).create_table(
            "db.t", schema=pa.schema(fields)
        )
        self.folder = Path(self.table.location().removeprefix("file://")).resolve()
        self.gone: dict[int, dict[str, frozenset[int]]] = {}
        """The positions of deleted rows by file, of each snapshot."""
        self._now: dict[str, frozenset[int]] = {}
        self.table.append(self._drawn(30))
        self._record()

    @property
    def own_acts(self) -> Sequence[Callable[[], None]]:
        return (
            *(self.append, self.delete_by_position, self.delete, self.overwrite),
            *(self.evolve, self.rename, self.swap, self.drop_and_add, self.widen),
            *(self.partition, self.roll_back, self.expire, self.optimize),
            self.optimize_in_a_race,
        )

    @property
    def weights(self) -> dict[str, int]:
        more = {"append": 4, "delete_by_position": 3, "optimize": 2}
        return {**super().weights, **more}

    def index(self) -> None:
        self.index_exactly()

    def open(self) -> sx.Table:
        return sx.open_table(self.table)

    def asked(self) -> Moment:
        """The newest snapshot, or an older one."""
        snapshot = None
        if self.rng.random() < 0.3:
            snapshot = self.rng.choice([one for one in self.gone if self._exists(one)])
        table = sx.open_table(self.table, version=snapshot)
        return self.moment(table, *self._at(snapshot))

    @property
    def columns(self) -> list[Column]:
        """Those of the newest schema."""
        return self._columns(self.table.schema())

    @columns.setter
    def columns(self, _: list[Column]) -> None:
        """The table has them."""

    @property
    def rows(self) -> pa.Table:
        return held(*self._at(None))

    def unlike_reader(self) -> str:
        return self.unlike(self.table.scan().to_arrow())

    @staticmethod
    def _columns(schema: Schema) -> list[Column]:
        def kind(number: int, name: str) -> Kind:
            texts = {_P: PLACES, _S: _TEXTS}
            return texts.get(number) or KINDS[{"int": "integer"}.get(name, name)]

        return [
            Column(one.field_id, one.name, "", kind(one.field_id, str(one.field_type)))
            for one in schema.fields
        ]

    def _at(self, snapshot: int | None) -> tuple[list[Column], list[Stored]]:
        """The columns and the files of a snapshot."""
        scan = self.table.scan(snapshot_id=snapshot)
        gone = self.gone[snapshot or self._snapshot]
        files = []
        for task in scan.plan_files():
            path = task.file.file_path
            own = pq.ParquetFile(path.removeprefix("file://")).read()
            rows = {int(f.metadata[_ID]): own[f.name].to_pylist() for f in own.schema}
            real = str(Path(path.removeprefix("file://")).resolve())
            mine = gone.get(path, frozenset())
            files.append(Stored(real, len(own), rows, {}, mine))
        return self._columns(scan.projection()), files

    def _record(self) -> None:
        """Remember which rows of the newest snapshot are deleted."""
        self.table.refresh()
        live = {task.file.file_path for task in self.table.scan().plan_files()}
        self._now = {path: rows for path, rows in self._now.items() if path in live}
        self.gone[self._snapshot] = dict(self._now)

    @property
    def _snapshot(self) -> int:
        snapshot = self.table.current_snapshot()
        assert snapshot is not None
        return snapshot.snapshot_id

    def _exists(self, snapshot: int) -> bool:
        return self.table.snapshot_by_id(snapshot) is not None

    def _drawn(self, n: int) -> pa.Table:
        """New rows."""
        schema = schema_to_pyarrow(self.table.schema(), include_field_ids=False)
        values = [one.draw(self.rng, n) for one in self.columns]
        columns = [pa.array(v, f.type) for v, f in zip(values, schema, strict=True)]
        return pa.table(columns, schema=schema)

    def _name(self, number: int) -> str:
        return self.table.schema().find_column_name(number) or ""

    def _k(self) -> int:
        return int(self.rng.choice(KINDS["long"].pool))

    @contextmanager
    def _changed(self) -> Iterator[Table]:
        """The table, which changes; a delete may find no row."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            yield self.table
        self._record()

    # -- acts --------------------------------------------------------------------------

    def append(self, n: int = 0) -> None:
        """Rows are added."""
        with self._changed() as table:
            table.append(self._drawn(n or self.rng.randrange(1, 25)))

    def evolve(self) -> None:
        """A column more, of which older files hold NULL."""
        names = {one.name for one in self.columns}
        if free := [name for name in ("n0", "n1") if name not in names]:
            with self.table.update_schema() as update:
                update.add_column(free[0], IntegerType())
            self.append(8)

    def rename(self) -> None:
        """A column gets another name, and others may take its own later."""
        column = self.rng.choice(self.columns)
        new = self.rng.choice([f"c{self.number()}", *_FIRST])
        if new not in {one.name for one in self.columns}:
            with self.table.update_schema() as update:
                update.rename_column(column.name, new)

    def swap(self) -> None:
        """Two columns of one type get each other's names."""
        one, other = self._name(_P), self._name(_S)
        for pairs in (((one, "t1"), (other, "t2")), (("t1", other), ("t2", one))):
            with self.table.update_schema() as update:
                for old, new in pairs:
                    update.rename_column(old, new)

    def drop_and_add(self) -> None:
        """A column goes, and another of its name comes: older files hold NULL."""
        column = self.rng.choice(self.columns)
        if column.kind is KINDS["integer"] and not self._is_partitioned:
            with self.table.update_schema() as update:
                update.delete_column(column.name)
            with self.table.update_schema() as update:
                update.add_column(column.name, IntegerType())
            self.append(5)

    def widen(self) -> None:
        """A column gets a wider type."""
        narrow = [one for one in self.columns if one.kind is KINDS["integer"]]
        if narrow:
            with self.table.update_schema() as update:
                update.update_column(self.rng.choice(narrow).name, LongType())

    def partition(self) -> None:
        """Files that follow are partitioned."""
        if not self._is_partitioned:
            with self.table.update_spec() as update:
                name = self._name(self.rng.choice([_K, _P]))
                update.add_field(name, IdentityTransform(), f"by_{self.number()}")
            self.append(12)

    @property
    def _is_partitioned(self) -> bool:
        return any(spec.fields for spec in self.table.specs().values())

    def delete(self) -> None:
        """Rows with one value go."""
        with self._changed() as table:
            table.delete(f"{self._name(_K)} = {self._k()}")

    def overwrite(self) -> None:
        """Rows with one value are replaced."""
        low, new, name = self._k(), self._drawn(10), self._name(_K)
        i = new.schema.get_field_index(name)
        new = new.set_column(i, new.schema.field(i), pa.array([low] * len(new)))
        with self._changed() as table:
            table.overwrite(new, overwrite_filter=f"{name} = {low}")

    def delete_by_position(self) -> None:
        """Rows of one file go, which stay in it."""
        if tasks := list(self.table.scan().plan_files()):
            task = self.rng.choice(tasks)
            share = self.rng.choice([0.1, 0.5, 1.0])
            every = range(task.file.record_count)
            if mine := [i for i in every if self.rng.random() < share]:
                with self._changed() as table:
                    delete_positions(table, task, mine)
                    path = task.file.file_path
                    self._now[path] = self._now.get(path, frozenset()) | {*mine}

    def roll_back(self) -> None:
        """The rows are those of an older snapshot."""
        ancestors = [one.snapshot_id for one in self.table.history()]
        known = [one for one in ancestors if one in self.gone and self._exists(one)]
        target = self.rng.choice(known)
        with self._changed() as table:
            table.manage_snapshots().set_current_snapshot(snapshot_id=target).commit()
            self._now = dict(self.gone[target])

    def expire(self) -> None:
        """The oldest snapshot goes."""
        others = [
            one for one in self.table.snapshots() if one.snapshot_id != self._snapshot
        ]
        if others:
            oldest = min(others, key=lambda one: one.timestamp_ms)
            self.table.maintenance.expire_snapshots().by_id(oldest.snapshot_id).commit()
            self._record()

    def optimize(self) -> None:
        """Files of skipindex, by a commit in the catalog."""
        if known := self._clustering:
            before = self._counted()
            with self._changed():
                mode = self.rng.choice(["incremental", "full"])
                self._optimized(self.open(), known, mode)
            assert self._counted() == before, "other rows"

    @property
    def _clustering(self) -> list[str]:
        return [self._name(number) for number in (_K, _D) if number in self.exact]

    def _optimized(self, table: sx.Table, by: list[str], mode: str) -> None:
        n_rows = self.rng.choice([10, 40])
        wish = {"cluster_by": by, "rows_per_file": n_rows, "in_place": False}
        optimized(table, mode=mode, **wish)

    racing = "append", "delete", "delete_by_position", "overwrite", "roll_back"

    def optimize_in_a_race(self) -> None:
        """The same, while another writer acts."""
        if known := self._clustering:
            own = self.table.catalog.load_table(self.table.name())
            table = sx.open_table(own)

            def optimize() -> None:
                self._optimized(table, known, "full")
                self._record()

            with self._changed():
                self.race(IcebergSource, optimize)
