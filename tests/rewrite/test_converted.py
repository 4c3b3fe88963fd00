"""Folders with rewrites of skipindex that became tables of another format."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, convert_to_deltalake, write_deltalake

import skipindex as sx
from skipindex.cli import main
from tests.delta.logs import commit
from tests.iceberg.catalogs import sql_catalog
from tests.rewrite.arrow_writer import optimized

NOW = timedelta(0)


def rewritten(folder: Path) -> None:
    """Four files with 400 rows, and the unpublished files that replace them."""
    folder.mkdir(parents=True)
    for i in range(4):
        rows = pa.table({"a": range(i, 400, 4)})
        pq.write_table(rows, folder / f"part-{i}.parquet")
    sx.build_indexes(folder, {"a": "exact"}, workers=1)
    optimized(folder, cluster_by=["a"], rows_per_file=100)


def into_delta(folder: Path) -> Callable[[], int]:
    convert_to_deltalake(str(folder))
    return lambda: DeltaTable(str(folder)).to_pyarrow_table().num_rows


def into_delta_above(folder: Path) -> Callable[[], int]:
    above = str(folder.parent)
    write_deltalake(above, pa.table({"a": pa.array([], pa.int64())}))
    adds = [
        {
            "path": f"{folder.name}/{path.name}",
            "size": path.stat().st_size,
            "partitionValues": {},
            "modificationTime": 1,
            "dataChange": True,
        }
        for path in sorted(folder.glob("part-*"))
    ]
    commit(above, *({"add": add} for add in adds))
    return lambda: DeltaTable(above).to_pyarrow_table().num_rows


def into_iceberg(folder: Path) -> Callable[[], int]:
    return _iceberg(folder, folder)


def into_iceberg_above(folder: Path) -> Callable[[], int]:
    return _iceberg(folder, folder.parent)


def _iceberg(folder: Path, location: Path) -> Callable[[], int]:
    catalog = sql_catalog(folder.parents[1])
    table = catalog.create_table(
        "db.t", schema=pa.schema([("a", pa.int64())]), location=f"file://{location}"
    )
    table.add_files([f"file://{path}" for path in sorted(folder.glob("part-*"))])
    return lambda: table.scan().to_arrow().num_rows


@pytest.mark.few(6)
@pytest.mark.parametrize(
    "convert", [into_delta, into_delta_above, into_iceberg, into_iceberg_above]
)
@pytest.mark.parametrize("call", ["vacuum", "purge", "cli"])
def test_vacuum_leaves_the_files_that_another_log_names(
    tmp_path: Path, convert: Callable[[Path], Callable[[], int]], call: str
) -> None:
    folder = tmp_path / "lake" / "data"
    rewritten(folder)
    count = convert(folder)
    n_rows = count()
    files = sorted(path for path in folder.rglob("*") if path.suffix == ".parquet")
    plain = sx.open_table(folder, plain=True)
    if call == "cli":
        assert main(["vacuum", str(folder), "--plain", "--retention", "0s"]) == 0
    else:
        report = plain.vacuum(retention=NOW, purge=call == "purge")
        assert report.published == 0
        assert "may name the files" in report.waiting
    assert count() == n_rows == 400
    assert set(files) <= set(folder.rglob("*"))


def test_a_folder_that_became_a_table_of_delta_can_lose_its_indexes(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "t"
    rewritten(folder)
    count = into_delta(folder)
    sx.open_table(folder).remove_indexes()
    assert not (folder / "_skipindex").exists()
    assert count() == 400


def test_a_folder_beside_a_table_of_iceberg_is_published(tmp_path: Path) -> None:
    for i, (name, log) in enumerate((("other", "1.metadata.json"), ("data", "a.txt"))):
        folder = tmp_path / str(i) / name
        rewritten(folder)
        beside = tmp_path / str(i) / "metadata"
        beside.mkdir()
        (beside / log).write_text("{}")
        assert sx.open_table(folder).vacuum(retention=NOW).published == 4


def test_a_table_that_is_opened_by_its_log_and_became_one_of_delta(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    for i in range(2):
        pq.write_table(pa.table({"a": range(i, 40, 2)}), folder / f"part-{i}.parquet")
    sx.build_indexes(folder, {"a": "exact"}, workers=1).table.declare_exclusive()
    assert sx.open_table(folder, trust="log").plan("a = 4").count() == 1
    convert_to_deltalake(str(folder))
    DeltaTable(str(folder)).delete("a = 4")
    table = sx.open_table(folder, trust="log")
    assert table.plan("a = 4").to_arrow().count_rows() == 0
    assert table.plan("a >= 0").to_arrow().count_rows() == 39
    assert "_delta_log" in " ".join(table.plan("a = 4").notes)
