"""Files of an Iceberg table that others replace, by a commit in its catalog."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from itertools import product
from math import nan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable, Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
)

import skipindex as sx
from skipindex.errors import CommitConflictError, LayoutError, TableError
from skipindex.source import iceberg as iceberg_module
from skipindex.source.iceberg import IcebergSource
from skipindex.source.iceberg_writing import _widen_zeros, replacement
from skipindex.source.parquet.partial_statistics import PartialStatistics
from tests.iceberg.catalogs import sql_catalog
from tests.iceberg.deletes import delete_positions
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.maintaining import maintain, without_spark

NEW = pa.table({"a": [7, 999], "p": ["x", "y"], "x": [None, 2.0]})


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    return sql_catalog(tmp_path)


def filled(table: Table) -> Table:
    """Three files of 80 rows, in no order of ``a``."""
    for i in range(3):
        a = [(7 * n + 3 * i) % 120 for n in range(80)]
        table.append(pa.table({"a": a, "p": ["x", "y"] * 40, "x": [1.5, None] * 40}))
    sx.open_table(table).build_indexes({"a": "exact"}, workers=1)
    return table


@pytest.fixture
def ice(catalog: SqlCatalog) -> Table:
    return filled(catalog.create_table("db.t", schema=NEW.schema))


def again(table: Table) -> Table:
    """The table in another process."""
    return table.catalog.load_table(table.name())


def rows_of(table: Table) -> Counter[Any]:
    """The rows of the table, read by pyiceberg."""
    rows = again(table).scan().to_arrow().to_pylist()
    return Counter(tuple(row.values()) for row in rows)


def files_of(table: Table) -> set[str]:
    return {task.file.file_path for task in again(table).scan().plan_files()}


def stored(path: str) -> pa.Table:
    return pq.ParquetFile(path.removeprefix("file://")).read()


def clustered(table: Table, **wish: Any) -> sx.Table:
    given = {"cluster_by": ["a"], "rows_per_file": 30, "in_place": False}
    return optimized(sx.open_table(again(table)), **{**given, **wish}).table


def test_one_commit_replaces_the_files(ice: Table) -> None:
    before, old, stale = rows_of(ice), files_of(ice), again(ice)
    table = clustered(ice)
    assert rows_of(ice) == before
    assert not old & files_of(ice)
    assert table.status().fresh
    assert table.verify().ok
    assert len(table) == 8
    assert len(table.plan("a = 7").paths) == 1
    assert table.plan("a = 7").to_pandas()["a"].tolist() == [7, 7]
    snapshot = again(ice).current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary.operation.value == "replace", "streams see no change"
    assert snapshot.summary["total-records"] == "240"
    assert {stored(path)["a"].to_pylist().count(7) for path in old} <= {0, 1}
    assert rows_of(ice) == Counter(
        tuple(row.values()) for row in stale.scan().to_arrow().to_pylist()
    )
    assert clustered(ice).status().fresh
    assert len(again(ice).snapshots()) == 4, "there was nothing to do"


def test_maintain_clusters_what_is_new_by_the_catalog(ice: Table) -> None:
    layout = sx.Clustering(by=["a"], rows_per_file=30)
    sx.open_table(again(ice)).declare_layout(layout)
    before = rows_of(ice)
    with without_spark():
        assert "cluster" in maintain(again(ice))
        assert sx.open_table(again(ice)).status().unclustered_files == 0
        assert rows_of(ice) == before
        again(ice).append(NEW)
        assert {"refresh", "cluster"} <= set(maintain(again(ice)))
    assert rows_of(ice) == before + Counter([(7, "x", None), (999, "y", 2.0)])
    table = sx.open_table(again(ice))
    assert len(table.plan("a = 999").paths) == 1


def test_maintain_rewrites_no_file_where_it_does_not_know_the_catalog(
    ice: Table,
) -> None:
    sx.open_table(again(ice)).declare_layout(sx.Clustering(by=["a"], rows_per_file=30))
    report = sx.maintain(again(ice).metadata_location, workers=1)
    assert not report.steps
    assert any("catalog" in note for note in report.notes), report.notes


def test_files_have_the_ids_and_the_bounds_of_the_table(ice: Table) -> None:
    """Columns that were renamed, and one that older files lack."""
    with ice.update_schema() as update:
        update.rename_column("a", "b")
        update.add_column("n", IntegerType())
    before = rows_of(ice)
    table = clustered(ice, cluster_by=["b"])
    assert rows_of(ice) == before
    assert table.plan("b = 7").to_pandas()["b"].tolist() == [7, 7]
    now = again(ice)
    ids = [f.metadata for f in schema_to_pyarrow(now.schema())]
    for task in now.scan().plan_files():
        file = task.file
        own = stored(file.file_path)
        numbers = [one[b"PARQUET:field_id"] for one in (f.metadata for f in own.schema)]
        assert numbers == [one[b"PARQUET:field_id"] for one in ids]
        low, high = file.lower_bounds, file.upper_bounds
        values = own["b"].to_pylist()
        assert int.from_bytes(low[1], "little") == min(values)
        assert int.from_bytes(high[1], "little") == max(values)
        assert file.null_value_counts[3] == own["x"].null_count
        assert file.null_value_counts[4] == len(own)
        assert file.record_count == len(own)
        assert file.sort_order_id is None
    assert now.scan("b = 7").to_arrow().num_rows == 2


def test_bounds_that_a_row_group_lacks_are_those_of_no_column(tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    rows = pa.table({"x": [1.0, nan], "y": [1.0, 2.0], "z": [None, 1.0]})
    with pq.ParquetWriter(path, rows.schema) as writer:
        for i in range(2):
            writer.write_table(rows.slice(i, 1))
    assert PartialStatistics.of(pq.read_metadata(path)).bounds == {"x"}
    pq.write_table(rows, path, write_statistics=["x", "z"])
    assert "y" in PartialStatistics.of(pq.read_metadata(path)).bounds


@pytest.mark.parametrize(("low", "high"), [(nan, 1.0), (1.0, nan)])
def test_nan_is_no_bound(low: float, high: float) -> None:
    """Spark writes it as one, which pyarrow never does."""
    known = SimpleNamespace(has_min_max=True, has_null_count=False, min=low, max=high)
    column = SimpleNamespace(statistics=known, path_in_schema="x")
    footer = SimpleNamespace(
        created_by="parquet-mr version 1.15.2",
        num_row_groups=1,
        num_columns=1,
        row_group=lambda _: SimpleNamespace(num_rows=2, column=lambda _: column),
    )
    assert PartialStatistics.of(footer).bounds == {"x"}
    known.min = known.max = 1.0
    assert PartialStatistics.of(footer).bounds == set()


def test_a_bound_of_one_zero_holds_the_other() -> None:
    """Iceberg's order puts -0.0 before 0.0, and a condition takes them for equal."""
    kinds = (DoubleType(), FloatType(), StringType(), LongType())
    columns = Schema(*(NestedField(i, "abcd"[i], kind) for i, kind in enumerate(kinds)))
    minus = least = struct.pack("<d", -0.0)  # the least integer too
    bounds = {
        "lower_bounds": {0: bytes(8), 1: bytes(4), 2: b"", 3: least},
        "upper_bounds": {0: minus, 1: minus[4:], 2: bytes(4), 3: least},
    }
    _widen_zeros(bounds, columns)
    assert bounds == {
        "lower_bounds": {0: minus, 1: minus[4:], 2: b"", 3: least},
        "upper_bounds": {0: bytes(8), 1: bytes(4), 2: bytes(4), 3: least},
    }
    two = struct.pack("<d", 2.0)
    ends = {"lower_bounds": {0: two}, "upper_bounds": {0: two}}
    _widen_zeros(ends, columns)
    assert ends == {"lower_bounds": {0: two}, "upper_bounds": {0: two}}


def test_a_file_has_the_rows_of_one_partition(catalog: SqlCatalog) -> None:
    table = catalog.create_table("db.t", schema=NEW.schema)
    with table.update_spec() as update:
        update.add_field("p", IdentityTransform())
    filled(table)
    before = rows_of(table)
    result = clustered(table)
    assert rows_of(table) == before
    assert len(result.plan("a = 7").paths) == 2
    for task in again(table).scan().plan_files():
        assert set(stored(task.file.file_path)["p"].to_pylist()) == {
            task.file.partition[0]
        }
    assert again(table).scan("p = 'x'").to_arrow().num_rows == 120


# -- other writers ---------------------------------------------------------------------


def meanwhile(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]
) -> Callable[[], None]:
    """Let another writer act when the new files are written and not committed."""
    commits = IcebergSource.replace_files

    def late(*args: Any) -> None:
        act()
        commits(*args)

    monkeypatch.setattr(IcebergSource, "replace_files", late)
    return lambda: monkeypatch.setattr(IcebergSource, "replace_files", commits)


def at_the_last_moment(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]
) -> None:
    """Let another writer act between the look at the newest snapshot and the commit."""
    asks, acts = replacement, [act]

    def late(*args: Any) -> Any:
        result = asks(*args)
        if acts:
            acts.pop()()
        return result

    monkeypatch.setattr(iceberg_module, "replacement", late)


@pytest.mark.parametrize("when", [meanwhile, at_the_last_moment])
def test_rows_that_others_append_meanwhile_stay(
    ice: Table, monkeypatch: pytest.MonkeyPatch, when: Callable[..., Any]
) -> None:
    before = rows_of(ice)
    when(monkeypatch, lambda: again(ice).append(NEW))
    table = clustered(ice)
    after = Counter([(7, "x", None), (999, "y", 2.0)])
    assert rows_of(ice) == before + after
    assert len(table) == 9
    assert table.plan("a = 999").to_pandas()["a"].tolist() == [999]


def _by_position(table: Table) -> None:
    delete_positions(table, next(iter(table.scan().plan_files())), [0, 1])


def _column(table: Table) -> None:
    with table.update_schema() as update:
        update.add_column("n", LongType())


def _spec(table: Table) -> None:
    with table.update_spec() as update:
        update.add_field("p", IdentityTransform())


ACTS: dict[str, Callable[[Table], object]] = {
    "delete": lambda table: table.delete("a = 7"),
    "overwrite": lambda table: table.overwrite(NEW),
    "optimize": lambda table: clustered(table, rows_per_file=50),
    "deletes": _by_position,
}
CHANGES = {"column": _column, "spec": _spec}


@pytest.mark.few(4)
@pytest.mark.parametrize("when", [meanwhile, at_the_last_moment])
@pytest.mark.parametrize("name", ACTS)
def test_files_that_others_change_meanwhile_are_a_conflict(
    ice: Table, monkeypatch: pytest.MonkeyPatch, when: Callable[..., Any], name: str
) -> None:
    truth: list[Counter[Any]] = []

    def other() -> None:
        if undo is not None:
            undo()
        ACTS[name](again(ice))
        truth.append(rows_of(ice))

    undo = when(monkeypatch, other)
    with pytest.raises(CommitConflictError, match="another writer"):
        clustered(ice)
    assert rows_of(ice) == truth[0]
    table = sx.open_table(again(ice)).refresh_indexes(workers=1).table
    assert table.verify().ok
    assert table.plan("a >= 0").to_arrow().count_rows() == sum(truth[0].values())


@pytest.mark.parametrize("name", CHANGES)
def test_a_table_that_is_another_meanwhile_is_a_conflict(
    ice: Table, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    meanwhile(monkeypatch, lambda: CHANGES[name](again(ice)))
    files = files_of(ice)
    with pytest.raises(CommitConflictError, match="other columns or partitions"):
        clustered(ice)
    assert files_of(ice) == files


@pytest.mark.parametrize("error", [CommitFailedException, TimeoutError])
def test_an_answer_that_was_lost_is_known_by_the_snapshot(
    ice: Table, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    commits = Table._do_commit

    def lost(*args: Any) -> None:
        commits(*args)
        raise error("no answer")

    before = rows_of(ice)
    with monkeypatch.context() as context:
        context.setattr(Table, "_do_commit", lost)
        table = clustered(ice)
    assert table.status().fresh
    assert rows_of(ice) == before
    assert len(again(ice).snapshots()) == 4


def test_a_commit_that_fails_leaves_the_table(
    ice: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, files = rows_of(ice), files_of(ice)
    for error, wanted, match in (
        (TimeoutError, TableError, "the rows are the same"),
        (CommitFailedException, CommitConflictError, "20 times"),
    ):

        def fails(*_: Any, error: type[Exception] = error) -> None:
            raise error("no")

        with monkeypatch.context() as context:
            context.setattr(Table, "_do_commit", fails)
            with pytest.raises(wanted, match=match):
                clustered(ice)
        assert (rows_of(ice), files_of(ice)) == (before, files)


# -- what is refused -------------------------------------------------------------------


def test_files_with_deleted_rows_are_left(ice: Table) -> None:
    task = next(iter(ice.scan().plan_files()))
    delete_positions(ice, task, [0, 1])
    before = rows_of(ice)
    report = optimized(
        sx.open_table(again(ice)), cluster_by=["a"], rows_per_file=30, in_place=False
    )
    assert report.files_in == 2
    assert "1 files were not rewritten: rows of" in str(report)
    assert task.file.file_path in files_of(ice)
    assert rows_of(ice) == before
    assert sum(before.values()) == 238


def test_files_of_other_specs_and_types_are_left(ice: Table) -> None:
    with ice.update_schema() as update:
        update.add_column("n", IntegerType())
    ice.append(NEW.append_column("n", pa.array([1, 2], pa.int32())))
    with ice.update_schema() as update:
        update.update_column("n", LongType())
    before = rows_of(ice)
    wish = {"cluster_by": ["a"], "rows_per_file": 30, "in_place": False}
    report = optimized(sx.open_table(again(ice)), **wish)
    assert "it has 'n' as int32, and the table as int64" in str(report)
    with ice.update_spec() as update:
        update.add_field("p", IdentityTransform())
    report = optimized(sx.open_table(again(ice)), **wish)
    assert "4 files were not rewritten: " in str(report)
    assert "older partition spec" in str(report)
    assert rows_of(ice) == before


def test_files_that_name_a_column_as_another_is_named_now_are_left(ice: Table) -> None:
    """Spark takes the type of the column from the other one."""
    with ice.update_schema() as update:
        update.rename_column("x", "y")
        update.rename_column("a", "x")
    before = rows_of(ice)
    report = optimized(
        sx.open_table(again(ice)), cluster_by=["x"], rows_per_file=30, in_place=False
    )
    assert "another column is named 'x' now" in str(report)
    assert (report.files_in, rows_of(ice)) == (0, before)


def test_a_table_that_cannot_be_rewritten_is_refused(
    ice: Table, catalog: SqlCatalog
) -> None:
    first = ice.history()[0].snapshot_id
    static = StaticTable.from_metadata(ice.metadata_location)
    ids = pa.table({"a": [[1]], "b": [2]})
    lists = catalog.create_table("db.l", schema=ids.schema)
    lists.append(ids)
    sx.open_table(lists).build_indexes({"b": "exact"}, workers=1)
    spread = catalog.create_table("db.o", NEW.schema)
    spread.append(NEW)
    with spread.transaction() as change:
        change.set_properties({"write.object-storage.enabled": "true"})
    for table, why in (
        (sx.open_table(ice, version=first), "it is open at a snapshot"),
        (sx.open_table(ice.metadata_location), "by a metadata file"),
        (sx.open_table(static), "by a metadata file"),
        (sx.open_table(lists), "'a' is of type list"),
        (sx.open_table(spread), "spread over a store"),
    ):
        with pytest.raises(TableError, match=why):
            optimized(table, cluster_by=["b"], in_place=False)


def test_files_that_are_written_with_other_ids_are_refused(
    ice: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tests.rewrite.arrow_writer.schema_to_pyarrow",
        lambda schema: schema_to_pyarrow(schema, include_field_ids=False),
    )
    before = files_of(ice)
    with pytest.raises(TableError, match="no field ids"):
        clustered(ice)
    assert files_of(ice) == before


@pytest.mark.slow
@pytest.mark.spark
def test_spark_clusters_a_table(ice: Table, spark: Any) -> None:
    with ice.update_schema() as update:
        update.rename_column("x", "y")
        update.rename_column("a", "k")
        update.add_column("n", IntegerType())
    before = rows_of(ice)
    table = sx.open_table(ice).declare_layout(sx.Clustering(by=["k"], rows_per_file=30))
    with pytest.raises(LayoutError, match="publish"):
        table.optimize(spark, publish=True)
    report = table.optimize(spark)
    assert (report.files_in, rows_of(ice)) == (3, before)
    assert report.table.status().fresh
    assert report.table.plan("k = 7").to_pandas()["k"].tolist() == [7, 7]
    assert len(report.table.plan("k = 7").paths) < 3
    assert spark.conf.get("spark.sql.parquet.fieldId.read.enabled") == "false"


@pytest.mark.spark
def test_bounds_of_one_zero_hold_the_other(catalog: SqlCatalog, spark: Any) -> None:
    zeros = {"x": [0.0, 0.0], "y": [-0.0, -0.0], "z": [1.0, -1.0]}
    rows = pa.table({"a": [0, 0], **zeros, "text": ["", ""]})
    table = catalog.create_table("db.z", schema=rows.schema)
    for _ in range(2):
        table.append(rows)
    sx.open_table(table).build_indexes({"a": "minmax"}, workers=1)
    sx.open_table(again(table)).optimize(spark, layout=sx.Clustering(by=["a"]))
    (task,) = again(table).scan().plan_files()
    bounds = {}
    for number in (2, 3, 4):
        ends = task.file.lower_bounds[number], task.file.upper_bounds[number]
        bounds[number] = [struct.unpack("<d", end)[0] for end in ends]
    assert repr(bounds) == "{2: [-0.0, 0.0], 3: [-0.0, 0.0], 4: [-1.0, 1.0]}"
    assert task.file.lower_bounds[5] == task.file.upper_bounds[5] == b""
    assert task.file.upper_bounds[1] == bytes(8)
    for column, zero in product("xy", ("0.0", "-0.0")):
        assert again(table).scan(f"{column} = {zero}").to_arrow().num_rows == 4
