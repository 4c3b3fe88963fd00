"""Damaged, missing, foreign and newer indexes: the file is kept, and the plan says so.

Traps C-9 and C-53: whatever goes wrong with an index, it never prunes and never raises.
"""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pytest
from crc32c import crc32c

import skipindex as sx
from skipindex.log import Snapshot
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.rewrite.vacuum import vacuum
from skipindex.source import commit
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.names import LOG, MANIFESTS, PACKS
from tests.tables import (
    build,
    edit_blobs,
    flip,
    forget_open_packs,
    newest_commit,
    newest_manifest,
    packs,
    put,
    put_all,
    rewrite_commit,
)

CONDITION = "a IN (3, 20) AND s = 'x'"
"""True for one row of file 0; the statistics alone rule out file 2."""

KINDS = ["bitmap", "bloom", "range_bitmap", "bit_sliced", "run_length", "exact"]


@pytest.fixture(autouse=True)
def no_open_packs() -> Iterator[None]:
    forget_open_packs()
    yield
    forget_open_packs()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = [
        {"a": [1, 2, 3, 9], "s": ["w", "w", "x", "z"]},
        {"a": [1, 2, 20, 30], "s": ["w", "w", "y", "z"]},
        {"a": [40, 41, 42, 43], "s": ["w", "w", "x", "x"]},
    ]
    return put_all(tmp_path, files)


def check(table: Path | sx.Table, *, notes: bool = True) -> sx.Plan:
    """The only file with a match is kept, whatever happened to the indexes."""
    plan = sx.plan_files(CONDITION, table=table)
    assert "0.parquet" in plan.paths
    low, high = plan.count_bounds
    assert low <= 1
    assert high is None or high >= 1
    assert plan.explain()
    assert plan.to_dict()
    if notes:
        assert plan.notes
    return plan


def test_whole_indexes_answer_exactly(folder: Path) -> None:
    build(folder, {"a": KINDS, "s": KINDS})
    plan = check(folder, notes=False)
    assert (plan.paths, plan.count_bounds, plan.notes) == (["0.parquet"], (1, 1), [])


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", KINDS)
def test_every_flipped_byte_of_a_pack_keeps_the_answer_right(
    folder: Path, kind: str
) -> None:
    """Header, parts, directory, tail and frame, byte by byte or as a sample."""
    table = build(folder, {"a": kind, "s": kind})
    exact = table.plan(CONDITION)
    used = {path.name for path in packs(folder)}
    assert len(used) == 3
    rng = random.Random(7)
    noticed = 0
    for path in packs(folder):
        size = path.stat().st_size
        ends = {*range(0, 64, 3), *range(size - 64, size, 3)}
        for position in ends | {rng.randrange(size) for _ in range(60)}:
            flip(path, position)
            plan = check(table, notes=False)
            if plan.notes:
                noticed += 1
                assert "2.parquet" not in plan.paths, "statistics still hold"
                assert "not used: " in plan.notes[0]
            else:
                assert plan.paths == exact.paths
                assert plan.count_bounds == exact.count_bounds
            flip(path, position)
    assert noticed > 30
    assert table.plan(CONDITION).notes == []


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.9, 0.999])
def test_a_truncated_pack_keeps_its_files(folder: Path, share: float) -> None:
    build(folder, {"a": KINDS, "s": KINDS})
    for path in packs(folder):
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * share)])
    plan = check(folder, notes=share < 0.9)
    assert "2.parquet" not in plan.paths
    if share < 0.6:
        assert plan.paths == ["0.parquet", "1.parquet"]
        assert all("the pack is cut off" in note for note in plan.notes)


def test_a_pack_that_is_cut_off_under_an_open_table(folder: Path) -> None:
    """The process has it open already; a memory map would end the process."""
    table = build(folder, {"a": "bitmap", "s": "bitmap"})
    assert table.plan(CONDITION).count_bounds == (1, 1)
    for path in packs(folder):
        with path.open("r+b") as file:
            file.truncate(5)
    plan = table.plan(CONDITION)
    assert plan.paths == ["0.parquet", "1.parquet"]
    assert "the pack is cut off" in plan.notes[0]


def test_a_missing_pack_keeps_its_files(folder: Path) -> None:
    build(folder, {"a": "bitmap", "s": "bitmap"})
    for path in packs(folder):
        path.unlink()
    plan = check(folder)
    assert plan.paths == ["0.parquet", "1.parquet"]
    assert "No such file" in plan.notes[0]
    assert plan.notes[0].startswith("1 times: pack "), "once, for all of its blobs"


def test_a_folder_in_the_place_of_a_pack_keeps_its_files(folder: Path) -> None:
    build(folder, {"a": "bitmap", "s": "bitmap"})
    for path in packs(folder):
        path.unlink()
        path.mkdir()
    assert check(folder).paths == ["0.parquet", "1.parquet"]


def test_a_pack_of_another_table_is_not_believed(folder: Path, tmp_path: Path) -> None:
    """The same shape, other values: its bytes are whole, and it lies."""
    build(folder, {"a": "bitmap", "s": "bitmap"})
    other = tmp_path / "_other"
    put_all(
        other,
        [{"a": [1, 2, 4, 9], "s": ["w", "w", "y", "z"]}] * 3,
    )
    build(other, {"a": "bitmap", "s": "bitmap"})
    for mine, theirs in zip(packs(folder), packs(other) * 3, strict=False):
        shutil.copy(theirs, mine)
    plan = check(folder)
    assert plan.paths == ["0.parquet", "1.parquet"]


def test_packs_that_were_swapped_are_not_believed(folder: Path) -> None:
    build(folder, {"a": "bitmap", "s": "bitmap"})
    names = packs(folder)
    contents = [path.read_bytes() for path in names]
    for path, content in zip(names, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)
    assert check(folder).paths == ["0.parquet", "1.parquet"]


def damage_commit(folder: Path) -> None:
    flip(newest_commit(folder), 100)


def truncate_commit(folder: Path) -> None:
    path = newest_commit(folder)
    path.write_bytes(path.read_bytes()[:40])


def empty_commit(folder: Path) -> None:
    newest_commit(folder).write_bytes(b"")


def newer_format(folder: Path) -> None:
    rewrite_commit(folder, format=99)


def damage_manifest(folder: Path) -> None:
    flip(newest_manifest(folder), 300)


def truncate_manifest(folder: Path) -> None:
    path = newest_manifest(folder)
    path.write_bytes(path.read_bytes()[:-20])


def lose_manifest(folder: Path) -> None:
    newest_manifest(folder).unlink()


def replace_manifest(folder: Path) -> None:
    """A manifest that is whole, of other data, with a fitting commit."""
    data = pa.BufferOutputStream()
    table = pa.table({"path": ["0.parquet"]})
    with pa.ipc.new_file(data, table.schema) as writer:
        writer.write_table(table)
    content = data.getvalue().to_pybytes()
    newest_manifest(folder).write_bytes(content)
    record = {"name": newest_manifest(folder).name, "size": len(content)}
    rewrite_commit(folder, segments=[{**record, "crc32c": crc32c(content), "rows": 1}])


def no_log(folder: Path) -> None:
    shutil.rmtree(folder / LOG)
    (folder / LOG).mkdir()


@pytest.mark.filterwarnings("ignore:commit 0 of the table is damaged")
@pytest.mark.parametrize(
    "damage",
    [
        damage_commit,
        truncate_commit,
        empty_commit,
        newer_format,
        damage_manifest,
        truncate_manifest,
        lose_manifest,
        replace_manifest,
        no_log,
    ],
)
def test_a_damaged_or_newer_commit_keeps_every_file(
    folder: Path, damage: Callable[[Path], None]
) -> None:
    build(folder, {"a": KINDS, "s": KINDS})
    damage(folder)
    plan = check(folder)
    assert plan.paths == ["0.parquet", "1.parquet", "2.parquet"]
    if damage is not no_log:
        assert plan.notes[0].startswith(("indexes ignored: ", "indexes of "))
    if damage is newer_format:
        assert "format 99, newer than ours (2)" in plan.notes[0]


@pytest.mark.filterwarnings("ignore:commit 0 of the table is damaged")
@pytest.mark.parametrize("damage", [damage_commit, damage_manifest, lose_manifest])
def test_a_build_after_damage_begins_anew(
    folder: Path, damage: Callable[[Path], None]
) -> None:
    build(folder, {"a": "bitmap", "s": "bitmap"})
    damage(folder)
    plan = build(folder, {"a": "bitmap", "s": "bitmap"}).plan(CONDITION)
    assert (plan.count_bounds, plan.notes) == ((1, 1), [])


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    """Three segments: of files 0 to 8, of file 9, and of file 0 as it is now."""
    folder = tmp_path / "grown"
    for i in range(9):
        put(folder / f"{i}.parquet", {"a": [10 * i, 10 * i + 5]})
    build(folder, {"a": "bitmap"})
    put(folder / "9.parquet", {"a": [90, 95]})
    build(folder)
    put(folder / "0.parquet", {"a": [700, 705, 710]})
    build(folder)
    return folder


OWN = ([f"{i}.parquet" for i in range(1, 9)], ["9.parquet"], ["0.parquet"])
"""The files of each segment."""


@pytest.mark.few(2)
@pytest.mark.filterwarnings("ignore:commit 2 of the table is damaged")
@pytest.mark.parametrize(
    "damage",
    [
        Path.unlink,
        lambda path: flip(path, 400),
        lambda path: path.write_bytes(path.read_bytes()[:-20]),
        lambda path: path.write_bytes(b""),
    ],
)
@pytest.mark.parametrize("at", range(3))
def test_a_damaged_segment_keeps_its_files_and_the_others_skip(
    grown: Path, at: int, damage: Callable[[Path], None]
) -> None:
    segments = sx.open_table(grown).state.snapshot.segments
    assert [one.n_live for one in segments] == [8, 1, 1]
    stored = {path.name for path in packs(grown)}
    damage(grown / segments[at].path)
    for a, own in ((25, "2.parquet"), (95, "9.parquet"), (710, "0.parquet")):
        plan = sx.plan_files(f"a = {a}", table=grown)
        assert plan.paths == sorted({*OWN[at], own})
        assert plan.notes[0].startswith(f"indexes of {len(OWN[at])} files ignored: ")
        assert segments[at].name in plan.notes[0]
    plan = sx.plan_files("a = 33", table=grown)
    assert plan.paths == OWN[at], "and none else, so the answer is tight"
    report = sx.open_table(grown).verify()
    named = [text for text in report.damaged if segments[at].name in text]
    assert len(named) == 1, report
    vacuum(grown, retention=timedelta(0))
    assert {path.name for path in packs(grown)} == stored, "what it named is not known"
    build(grown)
    for a, own in ((25, "2.parquet"), (95, "9.parquet"), (710, "0.parquet")):
        plan = sx.plan_files(f"a = {a}", table=grown)
        assert (plan.paths, plan.notes) == ([own], [])
    report = sx.open_table(grown).verify()
    assert not report.stale
    assert not any("commit 3" in text for text in report.damaged), "commit 2 may be"


def test_two_damaged_segments_are_both_named(grown: Path) -> None:
    segments = sx.open_table(grown).state.snapshot.segments
    for one in segments[1:]:
        (grown / one.path).unlink()
    with pytest.warns(UserWarning, match="commit 2 of the table is damaged"):
        plan = sx.plan_files("a = 33", table=grown)
    assert plan.paths == ["0.parquet", "9.parquet"]
    for one, note in zip(segments[1:], plan.notes, strict=False):
        assert one.name in note


def change_packs(folder: Path, **changes: object) -> None:
    """Commit the manifest with other words about its blobs."""

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        manifest = base.manifest
        record = [pack.to_json() for pack in manifest.packs]
        for pack in record:
            pack["blobs"] = [{**blob, **changes} for blob in pack["blobs"]]
        infos = tuple(type(manifest.packs[0]).from_json(pack) for pack in record)
        changed = type(manifest)(manifest.files, manifest.stats, infos)
        return changed, base.properties

    commit(Location(str(folder)), change, operation="test")


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"version": 9}, "bitmap version 9 is newer than ours"),
        ({"version": 0}, "payload version 2"),
        ({"kind": "hologram"}, "unknown index kind 'hologram'"),
        ({"offset": 0}, "no blob begins there"),
        ({"offset": 1 << 40}, "the pack is cut off"),
        ({"length": 30}, "not used"),
        ({"length": 3}, "not used"),
        ({"length": 0}, "not used"),
        ({"spec": {"kind": "bitmap", "new": 1}}, "it holds another index"),
    ],
    ids=str,
)
def test_a_manifest_that_says_otherwise_keeps_the_files(
    folder: Path, changes: dict[str, object], note: str
) -> None:
    build(folder, {"a": "bitmap", "s": "bitmap"})
    change_packs(folder, **changes)
    plan = check(folder)
    assert plan.paths == ["0.parquet", "1.parquet"]
    assert any(note in each for each in plan.notes), plan.notes


def test_slots_that_are_mixed_up_are_noticed(tmp_path: Path) -> None:
    """Every slot holds a payload, but of another data file."""
    files = [{"a": [i, 10 + i], "s": ["x", "y"]} for i in range(8)]
    put_all(tmp_path, files)
    table = build(tmp_path, {"a": "bitmap", "s": "bitmap"})
    condition = "a IN (3, 10) AND s = 'x'"
    assert table.plan(condition).paths == ["3.parquet"]

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        files = base.manifest.files
        at = files.schema.get_field_index("slots")
        slots = [[1 - slot for slot in own] for own in files["slots"].to_pylist()]
        field = files.schema.field(at)
        mixed = files.set_column(at, field, pa.array(slots, field.type))
        manifest = replace(base.manifest, files=mixed)
        return manifest, base.properties

    commit(Location(str(tmp_path)), change, operation="test")
    plan = sx.plan_files(condition, table=tmp_path)
    assert "3.parquet" in plan.paths
    assert "it belongs to another data file" in plan.notes[0]


def test_a_blob_of_another_domain_answers_nothing(folder: Path) -> None:
    build(folder, {"a": "bitmap", "s": "bitmap"})
    change_packs(folder, domain="decimal:2")
    assert check(folder, notes=False).paths == ["0.parquet", "1.parquet"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_newer_payload_is_refused_by_its_own_version(folder: Path, kind: str) -> None:
    """The container fits; only the payload's first byte says that it is newer."""

    def make_newer(blob: bytearray) -> None:
        for at, _ in first_parts(blob):
            blob[at] = 99
        fix_checksums(blob)

    build(folder, {"a": kind, "s": kind})
    edit_blobs(folder, make_newer)
    plan = check(folder)
    assert plan.paths == ["0.parquet", "1.parquet"]
    assert any("version 99" in note for note in plan.notes), plan.notes


@pytest.mark.parametrize("kind", KINDS)
def test_noise_with_fitting_checksums_is_no_index(folder: Path, kind: str) -> None:
    """A header of random bytes behind checksums that fit: its writer was wrong."""
    rng = random.Random(11)

    def make_noise(blob: bytearray) -> None:
        for at, n in first_parts(blob):
            blob[at + 1 : at + n] = rng.randbytes(n - 1)
        fix_checksums(blob)

    build(folder, {"a": kind, "s": kind})
    edit_blobs(folder, make_noise)
    plan = check(folder)
    assert plan.paths == ["0.parquet", "1.parquet"]


@pytest.mark.parametrize(
    ("hashing", "ours", "foreign"),
    [("pybloom", b"XXH3_128", b"MD5_1280"), (None, b"splitmix64", b"splitmix65")],
)
def test_a_filter_of_a_foreign_scheme_is_no_index(
    folder: Path, hashing: str | None, ours: bytes, foreign: bytes
) -> None:
    """pybloom-live 3 hashed with md5 where 4 takes xxh128, and finds no key of it."""

    def take_for_foreign(blob: bytearray) -> None:
        for at, n in first_parts(blob):
            blob[at : at + n] = blob[at : at + n].replace(ours, foreign)
        fix_checksums(blob)

    table = build(folder, {"a": sx.Bloom(hashing=hashing)})
    question = "a IN (4, 20)"
    assert table.plan(question).paths == ["1.parquet"]
    edit_blobs(folder, take_for_foreign)
    plan = sx.plan_files(question, table=folder)
    assert plan.paths == ["0.parquet", "1.parquet"]
    assert any(f"scheme {foreign!r}"[:-1] in note for note in plan.notes), plan.notes


def parts_of(blob: bytearray) -> tuple[int, list[int], list[int], list[int]]:
    """Where the directory is, the first parts, and where parts are and how long."""
    (directory,) = struct.unpack_from("<Q", blob, len(blob) - 16)
    n_files, n_parts = struct.unpack_from("<II", blob, directory)
    first = struct.unpack_from(f"<{n_files + 1}I", blob, directory + 16)
    at = directory + 16 + 4 * (3 * n_files + 1)
    starts = struct.unpack_from(f"<{n_parts}Q", blob, at)
    lengths = struct.unpack_from(f"<{n_parts}I", blob, at + 8 * n_parts)
    return directory, list(first), list(starts), list(lengths)


def first_parts(blob: bytearray) -> list[tuple[int, int]]:
    """Place and length of the header of every payload, or of that of all files."""
    _, first, starts, lengths = parts_of(blob)
    heads = [0] if first[0] else first[:-1]
    return [(starts[i], lengths[i]) for i in heads]


def fix_checksums(blob: bytearray) -> None:
    """Let every crc32c of a blob fit its bytes."""
    directory, first, starts, lengths = parts_of(blob)
    n_files, n_parts = len(first) - 1, len(starts)
    crcs = [
        crc32c(bytes(blob[start : start + n]))
        for start, n in zip(starts, lengths, strict=True)
    ]
    at = directory + 16 + 4 * (3 * n_files + 1) + 12 * n_parts
    struct.pack_into(f"<{n_parts}I", blob, at, *crcs)
    (size,) = struct.unpack_from("<I", blob, len(blob) - 8)
    header = crc32c(bytes(blob[:16]))
    crc = crc32c(bytes(blob[directory : directory + size]), header)
    struct.pack_into("<I", blob, len(blob) - 4, crc)


def test_other_files_beside_the_indexes_change_nothing(folder: Path) -> None:
    build(folder, {"a": "bitmap", "s": "bitmap"})
    for part in (LOG, MANIFESTS, PACKS):
        (folder / part / "README").write_text("hello")
        (folder / part / ".tmp").mkdir()
    plan = check(folder, notes=False)
    assert (plan.count_bounds, plan.notes) == ((1, 1), [])
