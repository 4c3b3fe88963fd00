"""Tables of Delta that ``deltalake`` writes; any version of them is asked about.

What a version holds is read from the files that its log names, one by one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

import skipindex as sx
from skipindex.source.delta import DeltaSource
from tests.delta.logs import commit, delete_rows, deleted_in, live_files, protocol
from tests.heavy.lives.delta import DeltaWorld
from tests.heavy.lives.rows import (
    KINDS,
    Column,
    Stored,
    held,
)
from tests.heavy.lives.world import PLACES, Moment, World
from tests.rewrite.arrow_writer import optimized

_KINDS: Final = {
    "k": KINDS["long"],
    "g": KINDS["integer"],
    "p": PLACES,
    "s": KINDS["string"],
    "x": KINDS["double"],
    "d": KINDS["date"],
    "n0": KINDS["integer"],
    "n1": KINDS["integer"],
}
_FIRST: Final = "kgpsxd"
"""The columns of a new table."""


class DeltalakeWorld(World):
    """A table of Delta; each act is one of the library."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        super().__init__(folder, rng)
        self.columns = [self._column(name) for name in _FIRST]
        by = rng.choice([[], ["g"], ["p"], ["p", "g"]])
        write_deltalake(self.uri, self._drawn(30), partition_by=by)
        self.columns = self._columns(self.delta)
        self.has_vectors = False

    @property
    def uri(self) -> str:
        """The folder, as the library takes it."""
        return str(self.folder)

    @property
    def delta(self) -> DeltaTable:
        """The newest version."""
        return DeltaTable(self.uri)

    @property
    def own_acts(self) -> Sequence[Callable[[], None]]:
        return (
            *(self.append, self.delete, self.update, self.merge, self.overwrite),
            *(self.join_files, self.restore, self.vacuum_by_delta, self.evolve),
            *(self.sort, self.delete_by_vector, self.optimize),
            self.optimize_in_a_race,
        )

    @property
    def weights(self) -> dict[str, int]:
        return {**super().weights, "append": 4, "optimize": 2}

    def index(self) -> None:
        self.index_exactly()

    def open(self) -> sx.Table:
        return sx.open_table(self.uri)

    def asked(self) -> Moment:
        """The newest version, or an older one; one whose files have gone is refused."""
        newest = self.delta.version()
        version = newest
        if self.rng.random() < 0.3:
            version = self.rng.randrange(newest + 1)
        found = self._at(version)
        if found is None:
            self.allowed = ["is gone"]
            sx.open_table(self.uri, version=version)
            raise AssertionError(f"version {version} is opened, and has lost files")
        self.allowed = []
        is_named = version < newest or self.rng.random() < 0.5
        table = sx.open_table(self.uri, version=version if is_named else None)
        return self.moment(table, *found)

    @property
    def rows(self) -> pa.Table:
        found = self._at(self.delta.version())
        assert found is not None
        return held(*found)

    def unlike_reader(self) -> str:
        return DeltaWorld.unlike_reader(self)  # type: ignore[arg-type]

    @staticmethod
    def _column(name: str) -> Column:
        return Column([*_KINDS].index(name), name, name, _KINDS[name])

    def _columns(self, table: DeltaTable) -> list[Column]:
        result = [self._column(one.name) for one in table.schema().fields]
        for one in result:
            one.is_partition = one.name in table.metadata().partition_columns
        return result

    def _drawn(self, n: int) -> pa.Table:
        """New rows."""
        kinds = {one.name: one.kind for one in self.columns if one.kind}
        return pa.table(
            {
                k: pa.array(kind.draw(self.rng, n), kind.arrow)
                for k, kind in kinds.items()
            }
        )

    def _at(self, version: int) -> tuple[list[Column], list[Stored]] | None:
        """The columns and the files of a version; None if files of it have gone."""
        table = DeltaTable(self.uri, version=version)
        columns = self._columns(table)
        gone, files = deleted_in(table), []
        for add in pa.table(table.get_add_actions(flatten=False)).to_pylist():
            path = self.folder / unquote(add["path"])
            if not path.exists():
                return None
            own = pq.ParquetFile(path).read()
            names = {*own.column_names}
            rows = {
                c.number: own[c.name].to_pylist() for c in columns if c.name in names
            }
            values = {
                c.number: add["partition"][c.name] for c in columns if c.is_partition
            }
            mine = gone.get(unquote(add["path"]), frozenset())
            files.append(Stored(str(path.resolve()), len(own), rows, values, mine))
        return columns, files

    # -- acts --------------------------------------------------------------------------

    def append(self) -> None:
        """Rows are added."""
        write_deltalake(self.uri, self._drawn(self.rng.randrange(1, 25)), mode="append")

    def evolve(self) -> None:
        """A column more, of which older files hold NULL."""
        new = [name for name in _KINDS if name not in {c.name for c in self.columns}]
        self.columns += [self._column(name) for name in new[:1]]
        write_deltalake(self.uri, self._drawn(8), mode="append", schema_mode="merge")

    def _k(self) -> int:
        return int(self.rng.choice(KINDS["long"].pool))

    def overwrite(self) -> None:
        """Rows with one value are replaced."""
        low = self._k()
        new = self._drawn(10).set_column(0, "k", pa.array([low] * 10, pa.int64()))
        write_deltalake(self.uri, new, mode="overwrite", predicate=f"k = {low}")

    def delete(self) -> None:
        """Rows with one value go."""
        self.delta.delete(f"k = {self._k()}")

    def delete_by_vector(self) -> None:
        """Rows of one file go, which stay in it."""
        if not self.has_vectors:
            commit(self.uri, protocol("deletionVectors"))
            self.has_vectors = True
        _, files = self._at(self.delta.version()) or ([], [])
        paths = {
            str((self.folder / unquote(one)).resolve()): one
            for one in live_files(self.uri)
        }
        if some := [one for one in files if one.valid]:
            file = self.rng.choice(some)
            self.gone_from(file)
            delete_rows(self.uri, sorted(file.gone), paths[file.path])

    def update(self) -> None:
        """A column of some rows changes."""
        self.delta.update(updates={"s": "'new'"}, predicate=f"k < {self._k()}")

    def merge(self) -> None:
        """Some rows change, and others are added."""
        new = self._drawn(6).filter(pa.compute.field("k").is_valid()).group_by("k")
        others = [one.name for one in self.columns[1:]]
        rows = new.aggregate([(name, "min") for name in others])
        rows = rows.rename_columns([n.removesuffix("_min") for n in rows.column_names])
        (
            self.delta.merge(rows, "t.k = n.k", source_alias="n", target_alias="t")
            .when_matched_update({"d": "n.d"})
            .when_not_matched_insert_all()
            .execute()
        )

    def join_files(self) -> None:
        """Small files become one."""
        self.delta.optimize.compact()

    def sort(self) -> None:
        """Rows are sorted along a curve."""
        self.delta.optimize.z_order(["k", "d"])

    def optimize(self) -> None:
        """Files of skipindex, by a commit of Delta."""
        if self.exact:
            before = self._counted()
            self._optimized(self.rng.choice(["incremental", "full"]))
            assert self._counted() == before, "other rows"

    def _optimized(self, mode: str) -> None:
        n_rows = self.rng.choice([10, 40])
        wish = {"cluster_by": ["k", "d"], "rows_per_file": n_rows, "in_place": False}
        optimized(self.open(), mode=mode, **wish)

    racing = "append", "delete", "delete_by_vector", "join_files", "update", "restore"

    def optimize_in_a_race(self) -> None:
        """The same, while another writer acts."""
        self.race(DeltaSource, lambda: self._optimized("full"))

    def restore(self) -> None:
        """The rows and columns are those of an older version."""
        try:
            self.delta.restore(self.rng.randrange(self.delta.version() + 1))
        except DeltaError:
            return  # a vacuum has deleted its files
        self.columns = self._columns(self.delta)

    def vacuum_by_delta(self) -> None:
        """Files of older versions are deleted."""
        self.delta.vacuum(0, dry_run=False, enforce_retention_duration=False)
