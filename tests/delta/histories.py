"""Random histories of a Delta table, and what each version of it holds.

The writers are those of ``deltalake``.  The judge is given the files that its log
names, read one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

import skipindex as sx
from skipindex.errors import TableError
from tests.delta.logs import commit, delete_rows, deleted_in, live_files, protocol
from tests.histories import History, condition, counted, rows
from tests.rewrite.arrow_writer import optimized


def shown(held: pa.Table) -> Counter[Any]:
    """The rows that are not deleted."""
    left = held.filter(pa.compute.invert(held["deleted"]))
    return counted(left.drop_columns(["file", "deleted"]))


class DeltaHistory(History):
    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(seed)
        self.path = str(folder)
        by = self.rng.choice([[], ["g"], ["p"], ["p", "g"]])
        self.indexes = dict.fromkeys(set("kgpsxd").difference(by), "exact")
        write_deltalake(self.path, rows(self.rng, 30, 0), partition_by=by)
        self.has_vectors = False

    @property
    def delta(self) -> DeltaTable:
        return DeltaTable(self.path)

    @property
    def acts(self) -> Sequence[Callable[[], None]]:
        return [
            *[self.append] * 4,
            *[self.index] * 3,
            *(self.delete, self.update, self.merge, self.overwrite, self.compact),
            *(self.restore, self.vacuum, self.evolve, self.sort, self.delete_by_vector),
            *[self.optimize] * 2,
        ]

    def append(self) -> None:
        new = rows(self.rng, self.rng.randrange(1, 25), self.more)
        write_deltalake(self.path, new, mode="append")

    def evolve(self) -> None:
        """A column more, of which older files hold NULL."""
        self.more = min(self.more + 1, 2)
        new = rows(self.rng, 8, self.more)
        write_deltalake(self.path, new, mode="append", schema_mode="merge")

    def overwrite(self) -> None:
        low = self.rng.randrange(70)
        new = rows(self.rng, 10, self.more)
        new = new.set_column(0, "k", pa.array([low] * len(new), pa.int64()))
        write_deltalake(self.path, new, mode="overwrite", predicate=f"k = {low}")

    def delete(self) -> None:
        self.delta.delete(f"k = {self.rng.randrange(70)}")

    def delete_by_vector(self) -> None:
        """Rows of one file go, which stay in it."""
        if not self.has_vectors:
            commit(self.path, protocol("deletionVectors"))
            self.has_vectors = True
        held = self._held(self.delta.version())
        if held is None or not len(held):
            return
        file = self.rng.choice(held["file"].to_pylist())
        own = held.filter(pa.compute.equal(held["file"], file))["deleted"].to_pylist()
        share = self.rng.choice([0.1, 0.5, 1.0])
        gone = [
            i for i, is_gone in enumerate(own) if is_gone or self.rng.random() < share
        ]
        name = next(
            path
            for path in live_files(self.path)
            if str(Path(self.path, unquote(path)).resolve()) == file
        )
        if gone:
            delete_rows(self.path, gone, name)

    def update(self) -> None:
        self.delta.update(
            updates={"s": "'new'"}, predicate=f"k < {self.rng.randrange(20)}"
        )

    def merge(self) -> None:
        new = rows(self.rng, 6, self.more)
        new = (
            new.filter(pa.compute.is_valid(new["k"]))
            .group_by("k")
            .aggregate([(name, "min") for name in new.column_names if name != "k"])
        )
        new = new.rename_columns(
            [name.removesuffix("_min") for name in new.column_names]
        )
        (
            self.delta.merge(new, "t.k = n.k", source_alias="n", target_alias="t")
            .when_matched_update({"d": "n.d"})
            .when_not_matched_insert_all()
            .execute()
        )

    def compact(self) -> None:
        self.delta.optimize.compact()

    def sort(self) -> None:
        self.delta.optimize.z_order(["k", "d"])

    def optimize(self) -> None:
        """Files of skipindex, by a commit of Delta."""
        if not self.is_indexed:
            return
        before = self._held(self.delta.version())
        optimized(
            sx.open_table(self.path),
            cluster_by=["k", "d"],
            rows_per_file=self.rng.choice([10, 40]),
            mode=self.rng.choice(["incremental", "full"]),
            in_place=False,
        )
        after = self._held(self.delta.version())
        assert before is not None
        assert after is not None
        assert shown(before) == shown(after)

    def restore(self) -> None:
        version = self.rng.randrange(self.delta.version() + 1)
        try:
            self.delta.restore(version)
        except DeltaError:
            return  # a vacuum has deleted its files
        self.more = sum(f.name.startswith("n") for f in self.delta.schema().fields)

    def vacuum(self) -> None:
        self.delta.vacuum(0, dry_run=False, enforce_retention_duration=False)

    def index(self) -> None:
        table = sx.open_table(self.path)
        if self.is_indexed:
            table.refresh_indexes(workers=1)
        else:
            table.build_indexes(self.indexes, workers=1)
        self.is_indexed = True

    def check(self) -> str:
        version = self.delta.version()
        if self.rng.random() < 0.3:
            version = self.rng.randrange(version + 1)
        held = self._held(version)
        if held is None:
            return self._refused(version)
        with_newest = version == self.delta.version() and self.rng.random() < 0.5
        table = sx.open_table(self.path, version=None if with_newest else version)
        more = [name for name in held.column_names if name.startswith("n")]
        where = condition(self.rng, len(more))
        is_exact = "n0" not in where and "n1" not in where
        wrong = self.judged(table, self.path, held, where, is_exact)
        return wrong and f"version {version}: {where}: {wrong}"

    def _refused(self, version: int) -> str:
        """A version whose files have gone must be refused."""
        try:
            sx.open_table(self.path, version=version)
        except TableError as error:
            return "" if "is gone" in str(error) else str(error)
        return f"version {version} is opened, and files of it have gone"

    def _held(self, version: int) -> pa.Table | None:
        """The rows of a version with their file; None if files of it have gone."""
        table = DeltaTable(self.path, version=version)
        schema = pa.schema(table.schema().to_arrow())
        schema = pa.schema([(f.name, _plain(f.type)) for f in schema])
        by = table.metadata().partition_columns
        parts = []
        added = pa.table(table.get_add_actions(flatten=False)).to_pylist()
        by_path = {one["path"]: one.get("partition", {}) for one in added}
        gone = deleted_in(table)
        for path, values in by_path.items():
            file = Path(self.path, unquote(path))
            if not file.exists():
                return None
            own = pq.ParquetFile(file).read()
            columns = {}
            for field in schema:
                if field.name in by:
                    value = [values[field.name]] * len(own)
                    columns[field.name] = pa.array(value, field.type)
                elif field.name in own.column_names:
                    columns[field.name] = own[field.name].cast(field.type)
                else:
                    columns[field.name] = pa.nulls(len(own), field.type)
            columns["file"] = pa.array([str(file.resolve())] * len(own))
            mine = gone.get(unquote(path), frozenset())
            columns["deleted"] = pa.array([i in mine for i in range(len(own))])
            parts.append(pa.table(columns))
        whole = schema.append(pa.field("file", pa.string()))
        whole = whole.append(pa.field("deleted", pa.bool_()))
        return pa.concat_tables(parts) if parts else whole.empty_table()


def _plain(dtype: pa.DataType) -> pa.DataType:
    return pa.string() if str(dtype) in {"large_string", "string_view"} else dtype
