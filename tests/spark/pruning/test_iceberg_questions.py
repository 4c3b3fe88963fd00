"""Questions about scans of Iceberg tables, without a driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType

import skipindex as sx
from skipindex.spark.pruning.query_planner import QueryPlanner
from skipindex.table import AtVersion
from tests.iceberg.catalogs import sql_catalog
from tests.iceberg.test_iceberg import add_file
from tests.spark.pruning.questions import asked, equal, skipped

COLUMNS = ("id", "plain")


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    return sql_catalog(tmp_path)


def rows(low: int) -> pa.Table:
    return pa.table({"id": range(low, low + 10), "plain": range(low + 50, low + 60)})


@pytest.fixture
def ice(catalog: SqlCatalog) -> Table:
    """Three files, ``id`` from 0 to 29 and ``plain`` from 50 to 79."""
    table = catalog.create_table("db.t", schema=rows(0).schema)
    for low in (0, 10, 20):
        table.append(rows(low))
    sx.open_table(table).build_indexes({"id": "exact", "plain": "exact"}, workers=1)
    return table


def folder(table: Table) -> Path:
    return Path(table.location().removeprefix("file://"))


def read(table: Table, **others: Any) -> dict[str, Any]:
    """What the driver says of a scan of the current snapshot."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    names = {str(field.field_id): field.name for field in table.schema().fields}
    return {
        "metadata": table.metadata_location,
        "snapshot": snapshot.snapshot_id,
        "is_current": True,
        "names": names,
    } | others


def n_skipped(planner: QueryPlanner, table: Table, *given: Any, **read_as: Any) -> int:
    """How many files need not be read under a condition."""
    files = skipped(
        planner, folder(table), equal(*given),
        data=COLUMNS, partitions=(), iceberg=read(table, **read_as),
    )  # fmt: skip
    return len(files)


def test_files_without_a_match_are_skipped(planner: QueryPlanner, ice: Table) -> None:
    assert n_skipped(planner, ice, "id", 15) == 2
    assert n_skipped(planner, ice, "plain", 15) == 3
    assert planner.records[-1].problem == ""


def test_columns_are_those_that_the_driver_reads(
    planner: QueryPlanner, ice: Table
) -> None:
    """It may have read the schema before another process changed it."""
    one, other = read(ice)["names"]
    swapped = {one: "plain", other: "id"}
    assert n_skipped(planner, ice, "id", 55, names=swapped) == 0
    assert n_skipped(planner, ice, "id", 15, names={}) == 0
    assert n_skipped(planner, ice, "id", 15, names={one: "id"}) == 2


def test_columns_have_the_types_that_the_driver_reads(
    planner: QueryPlanner, catalog: SqlCatalog
) -> None:
    small = pa.table({"id": pa.array([3], pa.int32()), "plain": [4]})
    table = catalog.create_table("db.t", schema=small.schema)
    table.append(small)
    sx.open_table(table).build_indexes({"id": "exact"}, workers=1)
    assert n_skipped(planner, table, "id", 7) == 0
    with table.update_schema() as update:
        update.update_column("id", LongType())
    assert n_skipped(planner, table, "id", 7) == 1


def test_the_snapshot_is_that_of_the_driver(planner: QueryPlanner, ice: Table) -> None:
    first = ice.history()[0].snapshot_id
    assert n_skipped(planner, ice, "id", 5, snapshot=first, is_current=False) == 0
    assert n_skipped(planner, ice, "id", 15, snapshot=first, is_current=False) == 1
    assert n_skipped(planner, ice, "id", 15) == 2
    assert n_skipped(planner, ice, "id", 15, snapshot=first) == 0
    assert f"snapshot {first}" in planner.records[-1].problem


def test_newer_metadata_are_read_anew(planner: QueryPlanner, ice: Table) -> None:
    assert n_skipped(planner, ice, "id", 15) == 2
    ice.append(rows(30))
    assert n_skipped(planner, ice, "id", 35) == 3
    sx.open_table(ice).refresh_indexes(workers=1)
    assert n_skipped(planner, ice, "id", 15) == 3


def test_values_of_partitions_in_files_without_the_column(
    planner: QueryPlanner, catalog: SqlCatalog
) -> None:
    table = catalog.create_table("db.t", schema=rows(0).schema)
    with table.update_spec() as update:
        update.add_field("id", IdentityTransform(), "by")
    uri = f"{table.location()}/data/added.parquet"
    path = Path(uri.removeprefix("file://"))
    path.parent.mkdir(parents=True)
    field = pa.field("plain", pa.int64(), metadata={"PARQUET:field_id": "2"})
    pq.write_table(pa.table([[1]], schema=pa.schema([field])), path)
    add_file(table, uri, Record(7), record_count=1)
    sx.open_table(table).build_indexes({"id": "exact", "plain": "exact"}, workers=1)
    assert n_skipped(planner, table, "id", 7) == 0
    assert n_skipped(planner, table, "plain", 7) == 1


def test_a_table_that_cannot_be_opened_is_read(
    planner: QueryPlanner, ice: Table
) -> None:
    reply = asked(
        planner, folder(ice), equal("id", 5),
        data=COLUMNS, partitions=(),
        iceberg=read(ice, metadata=f"{folder(ice)}/metadata/none.metadata.json"),
    )  # fmt: skip
    assert reply is not None
    assert reply.files == []
    assert "pyiceberg cannot read" in planner.records[-1].problem


def test_a_registered_table_is_opened_as_it_was(
    planner: QueryPlanner, ice: Table
) -> None:
    """The properties of its files, such as keys of a store, are those of the caller."""
    given = sx.open_table(ice).state
    planner.tables.give(given)
    assert n_skipped(planner, ice, "id", 15) == 2
    at = AtVersion(None, ice.metadata_location)
    opened = planner.tables.current(given.location, at).state.options.version
    assert opened.properties == given.options.version.properties != ()
