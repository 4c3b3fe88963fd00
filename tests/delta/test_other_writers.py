"""Logs of Delta as other writers make them: valid, and unlike those of deltalake."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import skipindex as sx
from skipindex.errors import TableError
from tests.delta.logs import actions_of, commit, inline_vector, live_files, protocol
from tests.delta.test_delta import mapped
from tests.rewrite.arrow_writer import optimized


def stats_of(path: str) -> dict[str, Any]:
    """What the log says of the newest file of the version."""
    live = live_files(path)
    adds = [one for one in actions_of(path, "add") if one["path"] in live]
    result: dict[str, Any] = json.loads(adds[-1]["stats"])
    return result


# -- counts ----------------------------------------------------------------------------


# -- names and paths -------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["never", "before", "after"])
def test_a_partition_column_may_have_the_name_that_files_call_another(
    tmp_path: Path, moment: str
) -> None:
    path = str(tmp_path / "t")
    rows = pa.table({"a": ["foo", "bar"], "p": ["x", "y"]})
    write_deltalake(path, rows, partition_by=["p"])
    if moment == "before":
        sx.build_indexes(path, {"a": "exact"}, workers=1)
    mapped(path, "name", ("e", "a"))
    if moment == "after":
        sx.build_indexes(path, {"*": "exact"}, workers=1)
    table = sx.open_table(path)
    conditions = ("e = 'foo'", 1), ("a = 'x'", 1), ("a = 'foo'", 0), ("e = 'x'", 0)
    for where, n in (*conditions, ("e = 'foo' AND a = 'x'", 1), ("e > 'a'", 2)):
        assert table.plan(where).to_arrow().count_rows() == n, where
        assert len(table.plan(where).paths) >= n
    assert table.plan("a = 'foo'").paths == []


def renamed(path: str, names: dict[str, str]) -> None:
    """Give columns other names, in the schema and among the partition columns."""
    meta = actions_of(path, "metaData")[-1]
    meta["configuration"] = {"delta.columnMapping.mode": "name"}
    schema = json.loads(meta["schemaString"])
    for i, field in enumerate(schema["fields"]):
        field["metadata"] = {
            "delta.columnMapping.id": i + 1,
            "delta.columnMapping.physicalName": field["name"],
        }
        field["name"] = names.get(field["name"], field["name"])
    meta["configuration"]["delta.columnMapping.maxColumnId"] = str(len(schema))
    meta["partitionColumns"] = [names.get(n, n) for n in meta["partitionColumns"]]
    meta["schemaString"] = json.dumps(schema)
    commit(path, protocol("columnMapping"), {"metaData": meta})


def test_an_index_of_a_column_that_was_dropped_is_not_missed(tmp_path: Path) -> None:
    """The log has all columns of the table, so no schema would have more."""
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"a": [1, 2], "b": [3, 4]}))
    sx.build_indexes(path, {"a": "exact"}, workers=1)
    renamed(path, {})
    meta = actions_of(path, "metaData")[-1]
    schema = json.loads(meta["schemaString"])
    schema["fields"] = [one for one in schema["fields"] if one["name"] != "a"]
    commit(path, {"metaData": {**meta, "schemaString": json.dumps(schema)}})
    assert [one.name for one in sx.open_table(path).columns] == ["b"]
    assert sx.open_table(path).refresh_indexes(workers=1).notes == ()
    assert sx.open_table(path).status().fresh


@pytest.mark.parametrize(
    "names",
    [
        {"ts": "old", "other": "ts"},
        {"day": "k2", "k2": "day"},
        {"ts": "at"},
        {},
    ],
)
def test_a_derivation_is_of_the_columns_that_it_was_declared_of(
    tmp_path: Path, names: dict[str, str]
) -> None:
    path = str(tmp_path / "t")
    times = [datetime(2024, 1, 1 + i, 12, tzinfo=UTC) for i in range(4)]
    later = [one + timedelta(days=100) for one in times]
    rows = pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "other": pa.array(later, pa.timestamp("us", "UTC")),
            "day": [1, 2, 3, 4],
            "k2": [31, 30, 29, 28],
            "k": range(4),
        }
    )
    write_deltalake(path, rows, partition_by=["day", "k2"])
    sx.build_indexes(path, {"k": "exact", "*": None}, workers=1)
    sx.open_table(path).declare_derived({"day": "day(ts)"}, timezone="UTC")
    renamed(path, names)
    table = sx.open_table(path)
    for column in ("ts", "other"):
        name = names.get(column, column)
        for i in range(4):
            at = rows[column][i].as_py().strftime("%Y-%m-%d %H:%M:%S")
            plan = table.plan(f"{name} = TIMESTAMP '{at}'", timezone="UTC")
            assert plan.to_pandas()["k"].tolist() == [i]
    assert bool(table.status().derived) == (not names)
    assert any("declare_derived" in note for note in table.status().notes) == bool(
        names
    )


@pytest.mark.parametrize("path", ["/x/f.parquet", "s3://b/f.parquet", "../f.parquet"])
def test_files_outside_of_the_folder_are_refused(tmp_path: Path, path: str) -> None:
    """The log of a shallow clone names them."""
    table = str(tmp_path / "t")
    write_deltalake(table, pa.table({"a": [1]}))
    add = {"path": path, "size": 9, "modificationTime": 1, "dataChange": True}
    commit(table, {"add": {**add, "partitionValues": {}}})
    with pytest.raises(TableError, match=r"no path in its folder, .* shallow clone"):
        sx.open_table(table)


def test_a_vacuum_takes_no_folder_of_delta_for_a_partition(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    write_deltalake(table, pa.table({"a": [1]}))
    (add,) = actions_of(table, "add")
    for folder in ("p=1", "ä"):
        (tmp_path / "t" / folder).mkdir()
        pq.write_table(pa.table({"a": [2]}), tmp_path / "t" / folder / "f.parquet")
        size = (tmp_path / "t" / folder / "f.parquet").stat().st_size
        more = {**add, "path": f"{quote(folder)}/f.parquet", "size": size}
        commit(table, {"add": {**more, "stats": "{}"}})
    sx.build_indexes(table, {"a": "exact"}, workers=1)
    sx.open_table(table).vacuum(retention=timedelta(0))
    assert len(sx.open_table(table).plan("a = 2").to_pandas()) == 2


def test_a_file_in_two_spellings_is_refused(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    write_deltalake(table, pa.table({"a": [1]}))
    (add,) = actions_of(table, "add")
    commit(table, {"add": {**add, "path": "%70" + add["path"][1:]}})
    with pytest.raises(TableError, match="2 times, perhaps in different spellings"):
        sx.open_table(table)


# -- statistics that optimize writes ---------------------------------------------------


def rewritten(path: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    """Optimize, by a writer of Parquet with these options."""
    real = pq.write_table

    def write(rows: pa.Table, to: Path, **given: Any) -> None:
        real(rows, to, **{**options, **given})

    monkeypatch.setattr(pq, "write_table", write)
    wish = {"cluster_by": ["a"], "rows_per_file": 1000, "in_place": False}
    optimized(sx.open_table(path), **wish)


def test_nulls_are_of_all_row_groups_or_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"a": [1, 2], "s": ["a", None]}))
    sx.build_indexes(path, {"a": "exact"}, workers=1)
    rewritten(path, monkeypatch, write_statistics=["a"])
    assert stats_of(path)["nullCount"] == {"a": 0}
    assert len(sx.open_table(path).plan("s IS NULL").to_pandas()) == 1


@pytest.mark.parametrize(
    ("properties", "described"),
    [
        ({}, {"a", "s", "t"}),
        ({"dataSkippingNumIndexedCols": "0"}, set()),
        ({"dataSkippingNumIndexedCols": "2"}, {"a", "s"}),
        ({"dataSkippingNumIndexedCols": "-1"}, {"a", "s", "t"}),
        ({"dataSkippingStatsColumns": "t.f, `a`"}, {"a", "t"}),
        ({"dataSkippingStatsColumns": "t"}, {"t"}),
        ({"dataSkippingStatsColumns": ""}, set()),
        ({"dataSkippingStatsColumns": "a, `"}, set()),
    ],
)
def test_the_log_has_statistics_of_the_columns_that_the_table_wants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, properties: dict[str, str],
    described: set[str],
) -> None:  # fmt: skip
    path = str(tmp_path / "t")
    given = {f"delta.{name}": value for name, value in properties.items()}
    rows = pa.table({"a": [1, 2], "s": ["x", "y"], "t": [{"f": 1}, {"f": 2}]})
    write_deltalake(path, rows, configuration=given)
    sx.build_indexes(path, {"a": "exact"}, workers=1)
    rewritten(path, monkeypatch)
    stats = stats_of(path)
    assert stats["numRecords"] == 2
    for kind in ("minValues", "maxValues", "nullCount"):
        assert {name for name, value in stats[kind].items() if value != {}} == described


# -- what is refused, or read ----------------------------------------------------------


@pytest.mark.parametrize("version", ["1", "2024-01-01", -1, 10**20, True, 1.0, b"1"])
def test_what_is_no_version_is_refused(tmp_path: Path, version: Any) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"a": [1]}))
    with pytest.raises(TableError, match="not a version"):
        sx.open_table(path, version=version)
    assert len(sx.open_table(path, version=np.int64(0))) == 1


def test_a_vector_of_a_file_without_a_number_of_rows_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"a": [1, 2]}))
    (add,) = actions_of(path, "add")
    add = {**add, "stats": "{}", "deletionVector": inline_vector([0])}
    remove = {"path": add["path"], "dataChange": True, "deletionTimestamp": 1}
    commit(path, protocol("deletionVectors"), {"remove": remove}, {"add": add})
    with pytest.raises(TableError, match=r"deletion vectors of .* cannot be read"):
        sx.open_table(path)


def test_partitions_of_booleans_are_read(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = pa.table({"a": [1, 2, 3], "p": [True, False, None]})
    write_deltalake(path, rows, partition_by=["p"])
    sx.build_indexes(path, {"a": "exact"}, workers=1)
    table = sx.open_table(path)
    conditions = {
        "p": [1],
        "NOT p": [2],
        "p IS NULL": [3],
        "p = false OR a = 1": [1, 2],
    }
    for where, kept in conditions.items():
        plan = table.plan(where)
        assert len(plan.paths) == len(kept)
        assert sorted(plan.to_pandas()["a"]) == kept
        assert sorted(plan.to_polars().collect()["a"].to_list()) == kept
        assert sorted(a for a, _ in plan.to_duckdb().fetchall()) == kept


def test_a_function_of_a_column_where_no_file_is_kept(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"a": [1], "s": [date(2024, 1, 1)]}))
    mapped(path, "name", ("b", "s"))
    assert sx.open_table(path).plan("month(s) = 2").to_pandas().empty
