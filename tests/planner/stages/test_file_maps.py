"""Plans by file maps: they decide many files at once, and only those they are of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import skipindex as sx
from skipindex.errors import CorruptIndexError
from skipindex.indexes.file_map import FILE_MAP, FileMap
from skipindex.log import Snapshot
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.source import commit
from skipindex.storage.file_system.location import location_of
from tests.tables import build, flip, forget_open_packs, packs, put, put_all, set_mtime

N_FILES = 24


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """File ``i`` holds 0, 1000 and ``7 * i``, so bounds tell nothing of 7, 14 ..."""
    files = [
        {"a": [0, 7 * i, 1000], "s": ["a", f"v{i % 5}", "z"]} for i in range(N_FILES)
    ]
    return put_all(tmp_path, files)


def one_pack(folder: Path, indexes: object) -> sx.Table:
    """All files in one pack."""
    build(folder, indexes)
    return sx.open_table(folder).compact_indexes()


def stages(plan: sx.Plan) -> dict[str, str]:
    return {skipped.path: skipped.stage for skipped in plan.skipped}


def test_one_value_opens_no_index_of_a_file(folder: Path) -> None:
    table = one_pack(folder, {"a": "bit_sliced"})
    plan = table.plan("a = 35")
    assert plan.paths == ["5.parquet"]
    assert set(stages(plan).values()) == {"file maps"}
    assert plan.skipped[0].reason == "a = 35: file map has none of the values"
    (stage,) = [s for s in plan.evaluation.runs if s.name == "file maps"]
    assert 0 < stage.read.n_bytes < 2000
    assert stage.read.bitmaps == 1, "one set of files"
    assert plan.evaluation.runs[-1].read.bitmaps == 0, "no index was opened"
    assert plan.count_bounds == (1, 1)
    assert plan.stages[-1].read.bitmaps > 0, "but for who asks how many rows match"


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("a IN (7, 21, 5)", [1, 3]),
        ("a BETWEEN 10 AND 30", [2, 3, 4]),
        ("s = 'v3'", [3, 8, 13, 18, 23]),
        ("a = 35 AND s = 'v0'", [5]),
        ("a = 35 AND s = 'v1'", []),
        ("a = 35 OR s = 'nothing'", [5]),
        ("a = 36", []),
        ("NOT (a <> 14)", [2]),
    ],
)
def test_maps_skip_what_bounds_cannot(
    folder: Path, condition: str, kept: list[int]
) -> None:
    table = one_pack(folder, {"a": "bitmap", "s": "bitmap"})
    plan = table.plan(condition)
    assert plan.paths == sorted(f"{i}.parquet" for i in kept)
    assert set(stages(plan).values()) <= {"min/max", "file maps"}


def test_a_changed_file_is_not_skipped_by_a_map(folder: Path) -> None:
    table = one_pack(folder, {"a": "bitmap"})
    put(folder / "3.parquet", {"a": [0, 35, 1000], "s": ["a", "b", "c"]})
    set_mtime(folder / "4.parquet", 1e9)
    put(folder / "new.parquet", {"a": [0, 35, 1000], "s": ["a", "b", "c"]})
    plan = table.refresh().plan("a = 35")
    assert plan.paths == ["3.parquet", "4.parquet", "5.parquet", "new.parquet"]


def test_a_map_of_other_data_files_is_not_believed(folder: Path) -> None:
    """The manifest names another footer for every file than the map has."""
    one_pack(folder, {"a": "bitmap"})

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        files = base.manifest.files
        at = files.schema.get_field_index("footer_crc")
        crcs = [(crc + 1) % (1 << 32) for crc in files["footer_crc"].to_pylist()]
        field = files.schema.field(at)
        changed = files.set_column(at, field, pa.array(crcs, field.type))
        manifest = replace(base.manifest, files=changed)
        return manifest, base.properties

    commit(location_of(folder), change, operation="test")
    plan = sx.plan_files("a = 35", table=folder)
    assert len(plan.paths) == N_FILES
    assert any(
        "file map not used: it belongs to another" in note for note in plan.notes
    )


def test_every_flipped_byte_of_a_map_keeps_its_files(folder: Path) -> None:
    table = one_pack(folder, {"a": "bitmap"})
    (pack,) = table.state.snapshot.manifest.packs
    (entry,) = [blob for blob in pack.blobs if blob.meta.kind == FILE_MAP]
    (path,) = [p for p in packs(folder) if p.name == pack.name]
    noticed = 0
    for position in range(entry.offset, entry.offset + entry.length, 7):
        flip(path, position)
        forget_open_packs()
        plan = table.plan("a = 35", kinds=["minmax", FILE_MAP])
        assert "5.parquet" in plan.paths
        if plan.notes:
            noticed += 1
            assert len(plan.paths) == N_FILES
        else:
            assert plan.paths == ["5.parquet"], "a byte of padding"
        flip(path, position)
    forget_open_packs()
    assert noticed > 20


def test_a_map_that_is_too_new_is_not_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = one_pack(folder, {"a": "bitmap"})

    def too_new(*_: object) -> FileMap:
        raise CorruptIndexError("file_map payload has version 9")

    monkeypatch.setattr(FileMap, "open", too_new)
    plan = table.plan("a = 35", kinds=["minmax", FILE_MAP])
    assert len(plan.paths) == N_FILES
    assert plan.notes == ["1 times: file map not used: file_map payload has version 9"]


def test_without_the_pack_every_file_is_kept(folder: Path) -> None:
    table = one_pack(folder, {"a": "bitmap"})
    for path in packs(folder):
        path.unlink()
    assert len(table.plan("a = 35").paths) == N_FILES


def test_maps_go_with_the_last_index_of_their_column(folder: Path) -> None:
    build(folder, {"a": ["bitmap", "bit_sliced"], "s": "bitmap"})

    def mapped(table: sx.Table) -> list[str]:
        return [c.name for c in table.columns if table.state.maps(c)]

    assert mapped(sx.open_table(folder).drop_indexes(kinds=["bit_sliced"])) == [
        "a",
        "s",
    ]
    assert mapped(sx.open_table(folder).drop_indexes(columns=["a"])) == ["s"]
    assert mapped(sx.open_table(folder).drop_indexes(kinds=["bitmap"])) == []


def test_a_bloom_filter_has_no_map(folder: Path) -> None:
    table = build(folder, {"a": "bloom"})
    assert not table.state.maps(table.state.resolve("a"))


def test_bounds_that_match_leave_counting_for_later(tmp_path: Path) -> None:
    """The least value of a file is a value of it, so some row matches."""
    put_all(tmp_path, [{"a": [*range(10 * i, 10 * i + 10)]} for i in range(3)])
    plan = build(tmp_path, {"a": "bitmap"}).plan("a >= 15", kinds=["bitmap"])
    assert plan.count_bounds == (15, 15), "without statistics"
    plan = sx.plan_files("a >= 15", table=tmp_path)
    assert plan.paths == ["1.parquet", "2.parquet"]
    assert plan.evaluation.runs[-1].read.bitmaps == 0
    assert plan.count_bounds == (15, 15)
