"""Manifests: merged, cut and written, they say what a plain dictionary would."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.errors import CorruptIndexError
from skipindex.log.manifest import Manifest, with_column
from skipindex.storage.checks import checked_packs, unpacked_bytes
from skipindex.storage.file_system.file_info import FileInfo
from tests.log.pieces import PIECES, Known, add, facts, manifest_of, piece
from tests.tables import build, put


@given(st.lists(PIECES, max_size=5))
def test_merging_is_what_a_dictionary_would_do(pieces: list[Manifest]) -> None:
    """In memory, and through bytes that are the same on every run."""
    merged, model = Manifest.empty(), dict[str, Known]()
    for new in pieces:
        merged = merged.merge(new)
        data = merged.to_bytes()
        again = Manifest.from_bytes(data)
        assert again.to_bytes() == data
        assert again.packs == merged.packs
        merged = again
        add(model, new)
    assert facts(merged) == model
    served = {name for known in model.values() for name, _ in known.payloads.values()}
    assert {pack.name for pack in merged.packs} == served, "no pack without a use"


@given(st.lists(PIECES, min_size=1, max_size=4), st.data())
def test_what_is_dropped_is_gone_and_the_rest_stays(
    pieces: list[Manifest], data: st.DataObject
) -> None:
    merged = Manifest.empty()
    for new in pieces:
        merged = merged.merge(new)
    before = facts(merged)
    keys = sorted({key for known in before.values() for key in known.payloads})
    gone = set(data.draw(st.lists(st.sampled_from(keys)))) if keys else set()
    names = set(data.draw(st.lists(st.sampled_from(["x", "y"]))))
    after = facts(merged.without_blobs(gone).without_stats(names))
    for path, known in before.items():
        left = {k: v for k, v in known.payloads.items() if k not in gone}
        stats = {k: v for k, v in known.stats.items() if k not in names}
        assert after[path] == Known(known.identity, stats, left)


@given(st.lists(PIECES, max_size=4))
def test_pieces_of_one_build_stand_side_by_side(pieces: list[Manifest]) -> None:
    apart = []
    for i, each in enumerate(pieces):
        paths = pa.array([f"{i}/{path}" for path in each.paths], pa.string())
        field_ = each.files.schema.field("path")
        files = each.files.set_column(0, field_, paths)
        apart.append(Manifest(files, each.stats, each.packs))
    joined = facts(Manifest.concat(apart))
    assert joined == {p: known for each in apart for p, known in facts(each).items()}


def test_two_builders_of_the_same_bytes_lose_nothing() -> None:
    """Both packs have one name, and neither takes the other's place."""
    mine = piece({"a": 1, "b": 1}, {"x": [0, 1]})
    merged = mine.merge(mine)
    assert facts(merged) == facts(merged.merge(mine)) == facts(mine)


@pytest.mark.parametrize("position", range(3))
def test_each_part_of_the_identity_counts(position: int) -> None:
    old = piece({"a": 1}, {"x": [0]}, low=1)
    new = piece({"a": 1}, {"y": [0]}, low=2)
    name = ["size", "mtime", "footer_crc"][position]
    at = new.files.schema.get_field_index(name)
    field_ = new.files.schema.field(name)
    files = new.files.set_column(at, field_, pa.array([99], field_.type))
    merged = old.merge(Manifest(files, new.stats, new.packs))
    assert facts(merged)["a"].stats == {"y": 2}


def test_statistics_of_another_domain_are_dropped() -> None:
    """Trap C-46: a column of the same name that is another column."""
    old = piece({"a": 1, "b": 1}, {"x": []}, low=1, domain="int")
    merged = old.merge(piece({"a": 1}, {"x": []}, low=2, domain="string"))
    assert merged.stats["x"].domain == "string"
    known = facts(merged)
    assert (known["a"].stats, known["b"].stats) == ({"x": 2}, {})


def test_a_manifest_that_grew_step_by_step_is_in_one_piece() -> None:
    """Else each column is copied at each later commit."""
    whole = manifest(3)
    for i in range(4):
        whole = whole.merge(manifest(i + 4))
    assert {column.num_chunks for column in whole.files.columns} == {1}


def test_nothing_is_a_manifest_too() -> None:
    empty = Manifest.empty()
    again = Manifest.from_bytes(empty.to_bytes())
    assert (len(again), again.paths, again.blobs()) == (0, [], [])
    assert len(empty.merge(again)) == len(Manifest.concat([])) == 0
    nothing = Manifest.from_bytes(piece({}, {"x": []}).to_bytes())
    assert nothing.stats["x"].domain == "int", "statistics of no file are not none"
    assert len(nothing.stats["x"].values) == 0


def test_names_may_hold_any_character() -> None:
    name = 'a.b `ü` "x" \n'
    manifest = piece({"p=é %20/ß.parquet": 1}, {name: [0]}, low=4)
    known: dict[str, Any] = facts(Manifest.from_bytes(manifest.to_bytes()))
    assert known["p=é %20/ß.parquet"].stats == {name: 4}


# What is too much, or no manifest: refused before it takes memory or time


def manifest(n_files: int) -> Manifest:
    return manifest_of([FileInfo(f"{i}", 1, 1) for i in range(n_files)])


def written(batches: list[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def test_what_a_manifest_says_of_its_size_is_true() -> None:
    whole = manifest(10_000)
    # A manifest without tags or row groups has no column of them.
    files = whole.files.drop_columns(["tag", "groups", "columns"])
    assert unpacked_bytes(whole.to_bytes()) >= files.nbytes
    assert unpacked_bytes(whole.to_bytes()) < 2 * whole.files.nbytes


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    zeros = pa.array([bytes(1 << 27)], pa.large_binary())
    data = written([pa.record_batch([zeros], names=["path"])])
    assert len(data) < 1 << 15
    before = pa.total_allocated_bytes()
    pool = pa.default_memory_pool()
    peak = pool.max_memory()
    with pytest.raises(CorruptIndexError, match="too large when it is unpacked"):
        Manifest.from_bytes(data)
    assert pa.total_allocated_bytes() <= before + len(data)
    assert pool.max_memory() is None or pool.max_memory() == peak


def test_a_manifest_in_many_pieces_is_none() -> None:
    files = manifest(2).files.replace_schema_metadata({"packs": "[]"})
    (batch,) = files.to_batches()
    assert len(Manifest.from_bytes(written([batch] * 3))) == 6
    with pytest.raises(CorruptIndexError, match="too many pieces"):
        Manifest.from_bytes(written([batch] * 100))


@pytest.mark.parametrize(
    ("groups", "what"),
    [
        ([[[1, 4, 9]], [[1, 4, 9], [1, 13, 9]]], "another number of rows"),
        ([[[1, 4, 9]], []], ""),
        ([[[2, 4, 9], [-1, 13, 9]], [[1, 4, 9]]], "out of range"),
        ([[[1, -4, 9]], [[1, 4, 9]]], "out of range"),
        ([None, [[1, 4]]], "no rows, first byte and bytes"),
        ([None, b"1234"], "no rows, first byte and bytes"),
        ([None, [[1, 4, 9]]], ""),
        ([[[0, 4, 0], [1, 4, 9], [0, 13, 0]], [[1, 4, 9]]], ""),
    ],
)
def test_row_groups_are_checked(groups: list[Any], what: str) -> None:
    whole = manifest(2)
    packed = [
        np.array(one, "<i8").tobytes() if isinstance(one, list) else one
        for one in groups
    ]
    values = pa.array(packed, pa.binary())
    changed = replace(whole, files=with_column(whole.files, "groups", values))
    data = changed.to_bytes()
    if what:
        with pytest.raises(CorruptIndexError, match=what):
            changed.to_checked_bytes(1 << 20)
        with pytest.raises(CorruptIndexError, match=what):
            Manifest.from_bytes(data)
    else:
        assert Manifest.from_bytes(data).files["groups"].to_pylist() == packed


def test_what_holds_more_than_rows_is_no_manifest() -> None:
    words = pa.array(["a", "a"]).dictionary_encode()
    with pytest.raises(CorruptIndexError, match="more than rows"):
        Manifest.from_bytes(written([pa.record_batch([words], names=["path"])]))


@pytest.mark.parametrize(
    "encodings", [["run_length"], {"run_length": -1}, {"x" * 65: 1}]
)
def test_encodings_that_no_builder_writes_are_refused(
    tmp_path: Path, encodings: object
) -> None:
    put(tmp_path / "0.parquet", {"a": [1, 2]})
    (pack,) = build(tmp_path, {"a": "exact"}).state.snapshot.manifest.packs
    record = pack.to_json()
    list(checked_packs([record]))
    assert record["blobs"][0]["encodings"] == {"run_length": 1}
    record["blobs"][0]["encodings"] = encodings
    with pytest.raises(CorruptIndexError):
        list(checked_packs([record]))


@pytest.mark.parametrize(
    ("orders", "is_good"),
    [
        ([], True),
        ([None, None], True),
        ([0, 0, 3], True),
        ([0, None], False),
        ([None, 0], False),
        ([0, 2, 1], False),
    ],
)
def test_packs_are_in_their_order_or_have_none(
    tmp_path: Path, orders: list[int | None], *, is_good: bool
) -> None:
    put(tmp_path / "0.parquet", {"a": [1, 2]})
    (pack,) = build(tmp_path, {"a": "exact"}).state.snapshot.manifest.packs
    records = [replace(pack, order=order).to_json() for order in orders]
    if is_good:
        assert list(checked_packs(records)) == records
        return
    with pytest.raises(CorruptIndexError, match="order"):
        list(checked_packs(records))
