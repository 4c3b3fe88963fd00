"""Plans by filters that a pack has together: few reads, and never a lost file."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import skipindex as sx
from skipindex.log import Snapshot
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.planner.stages.records import Stage
from skipindex.source import commit
from skipindex.storage.file_system.location import location_of
from skipindex.storage.file_system.names import PACKS
from tests.tables import build, flip, forget_open_packs, put, put_all

N_FILES = 40
N_ROWS = 2000


def key(file: int, row: int) -> int:
    """A number that no other row has, and between those of all files."""
    return (row * N_FILES + (file + row) % N_FILES) * 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = [
        {
            "id": [key(i, row) for row in range(N_ROWS)],
            "s": [f"order {key(i, row):07x} shipped" for row in range(N_ROWS)],
        }
        for i in range(N_FILES)
    ]
    return put_all(tmp_path, files)


def one_pack(folder: Path) -> tuple[sx.Table, Path]:
    """All files in one pack, which nobody has open."""
    build(folder, {"id": "bloom"})
    table = sx.open_table(folder).compact_indexes()
    (pack,) = table.state.snapshot.manifest.packs
    forget_open_packs()
    return table, folder / PACKS / pack.name


def values_stage(plan: sx.Plan) -> Stage:
    (stage,) = [s for s in plan.stages if s.name == "value filters"]
    return stage


def test_a_point_query_reads_a_few_rows_of_bits(folder: Path) -> None:
    table, pack = one_pack(folder)
    wanted = key(11, 700)
    plan = table.plan(f"id = {wanted}")
    assert "11.parquet" in plan.paths
    assert len(plan.paths) <= 4
    read = values_stage(plan).read
    assert read.parts <= 3, "the header, and a block of bits in one part or two"
    assert read.n_bytes < 70_000 < pack.stat().st_size
    warm = values_stage(table.plan(f"id = {wanted}")).read
    assert 1 <= warm.parts <= 2


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("kind", "condition"),
    [
        ("bloom", "id = {id}"),
        ("bloom", "id IN (1, 3, {id})"),
        ("bloom", "s = 'order {id:07x} shipped'"),
        ("ngram_bloom", "s LIKE '%r {id:07x} s%'"),
        ("ngram_bloom", "s LIKE 'order%{id:07x}%'"),
        ("token_bloom", "s LIKE '% {id:07x} %'"),
    ],
)
def test_every_row_is_found(folder: Path, kind: str, condition: str) -> None:
    column = "id" if condition.startswith("id") else "s"
    table = build(folder, {column: kind})
    skipped = 0
    for file in range(0, N_FILES, 7):
        for row in (0, 1, N_ROWS - 1):
            plan = table.plan(condition.format(id=key(file, row)))
            assert f"{file}.parquet" in plan.paths
            skipped += len(plan.skipped)
    assert skipped
    assert plan.skipped[0].stage in {"min/max", kind, "value filters"}


def test_absent_values_leave_no_file(folder: Path) -> None:
    table = build(folder, {"id": "bloom"})
    left = sum(len(table.plan(f"id = {i}").paths) for i in range(1, 201, 2))
    assert left < 100 * N_FILES * 0.03


def test_merged_packs_have_all_filters_together(tmp_path: Path) -> None:
    """One file a pack is too few to lay filters together; eight of them are not."""
    for batch in (range(4), range(4, 8)):
        for i in batch:
            columns = {"id": [key(i, row) for row in range(N_ROWS)]}
            put(tmp_path / f"{i}.parquet", columns)
        build(tmp_path, {"id": "bloom"})
    table = sx.open_table(tmp_path)
    assert len(table.state.snapshot.manifest.packs) == 8
    forget_open_packs()
    apart = table.plan(f"id = {key(7, 5)}")
    merged = sx.open_table(tmp_path).compact_indexes()
    forget_open_packs()
    together = merged.plan(f"id = {key(7, 5)}")
    assert "7.parquet" in together.paths
    assert together.paths == apart.paths
    assert values_stage(together).read.parts <= 8
    assert values_stage(apart).read.parts >= 16


def test_merging_takes_turned_filters_apart_first(folder: Path) -> None:
    build(folder, {"id": "bloom"})
    for i in range(N_FILES, N_FILES + 11):
        put(folder / f"{i}.parquet", {"id": [key(i, r) for r in range(N_ROWS)]})
    build(folder, {"id": "bloom"})
    before = sx.open_table(folder)
    merged = sx.open_table(folder).compact_indexes()
    assert len(merged.state.snapshot.manifest.packs) == 1
    forget_open_packs()
    for value in (key(3, 3), key(44, 9), 1, 77_001):
        condition = f"id = {value}"
        assert merged.plan(condition).paths == before.plan(condition).paths


def test_a_file_that_was_written_anew_is_kept(folder: Path) -> None:
    table = build(folder, {"id": "bloom"})
    condition = f"id = {key(5, 5)}"
    assert "8.parquet" not in table.plan(condition).paths
    put(folder / "8.parquet", {"id": [key(5, 5)] * N_ROWS, "s": ["x"] * N_ROWS})
    assert "8.parquet" in table.refresh().plan(condition).paths


def test_slots_that_are_mixed_up_are_noticed(folder: Path) -> None:
    table, _ = one_pack(folder)
    condition = f"id = {key(11, 700)}"
    assert len(table.plan(condition).paths) < N_FILES

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        files = base.manifest.files
        at = files.schema.get_field_index("slots")
        slots = [[N_FILES - 1 - s for s in own] for own in files["slots"].to_pylist()]
        field = files.schema.field(at)
        mixed = files.set_column(at, field, pa.array(slots, field.type))
        manifest = replace(base.manifest, files=mixed)
        return manifest, base.properties

    commit(location_of(folder), change, operation="test")
    plan = sx.plan_files(condition, table=folder)
    assert len(plan.paths) == N_FILES
    assert "it belongs to another data file" in plan.notes[0]


def test_a_file_without_the_column_is_all_null(folder: Path) -> None:
    put(folder / "90.parquet", {"s": ["order"]})
    table = sx.build_indexes(folder, {"id": "bloom"}, workers=1).table
    plan = table.plan(f"id = {key(3, 3)} OR s = 'order'", kinds=["bloom"])
    assert "90.parquet" in plan.paths
    for text in ("id IS NULL", f"id = {key(3, 3)} OR id IS NULL"):
        plan = table.plan(text, kinds=["bloom", "minmax"])
        assert "90.parquet" in plan.paths
    plan = table.plan(f"id = {key(3, 3)}", kinds=["bloom", "minmax"])
    assert "3.parquet" in plan.paths
    assert "90.parquet" not in plan.paths
    assert not any("another data file" in note for note in plan.notes)


def test_damage_keeps_the_files_and_is_said(folder: Path) -> None:
    table, pack = one_pack(folder)
    whole = pack.read_bytes()
    condition = f"id = {key(11, 700)}"
    expected = table.plan(condition).paths
    kept_for_damage = 0
    for position in range(16, len(whole), len(whole) // 40):
        flip(pack, position)
        forget_open_packs()
        plan = table.plan(condition)
        assert "11.parquet" in plan.paths
        if plan.paths != expected:
            assert len(plan.paths) == N_FILES
            assert plan.notes
            kept_for_damage += 1
        pack.write_bytes(whole)
    assert kept_for_damage


def test_a_negation_and_a_range_are_not_asked(folder: Path) -> None:
    table = build(folder, {"id": "bloom"})
    wanted = key(11, 700)
    for condition in (f"id <> {wanted}", f"NOT id = {wanted}", f"id > {wanted}"):
        assert len(table.plan(condition, kinds=["bloom"]).paths) == N_FILES
    plan = table.plan(f"NOT (id <> {wanted})", kinds=["bloom"])
    assert len(plan.paths) < N_FILES


def test_a_function_of_the_column_is_not_asked(folder: Path) -> None:
    table = build(folder, {"s": "bloom"})
    plan = table.plan("upper(s) = 'ORDER'", kinds=["bloom"])
    assert len(plan.paths) == N_FILES


def test_threads_may_share_what_is_open(folder: Path) -> None:
    table = build(folder, {"id": "bloom"})

    def plan(row: int) -> list[str]:
        return table.plan(f"id = {key(row % N_FILES, row)}").paths

    alone = [plan(row) for row in range(60)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(plan, range(60))) == alone
