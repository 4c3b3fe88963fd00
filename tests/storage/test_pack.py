"""Packs: what was put in comes out, and no damaged byte goes unnoticed."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import example, given
from hypothesis import strategies as st
from pyroaring import BitMap, FrozenBitMap

from skipindex.errors import CorruptIndexError, IndexVersionError
from skipindex.storage.bitmaps import bitmap_of, memory_of
from skipindex.storage.file_system.byte_source import ByteSource
from skipindex.storage.pack import (
    CONTAINER,
    Blob,
    BlobBuilder,
    BlobEntry,
    BlobMeta,
    write_pack,
)
from skipindex.storage.pack.format import SHARED_FROM
from skipindex.storage.parts import ReadCount
from tests.quick_run import examples

META = BlobMeta("bitmap", 1, "c", "int", {"kind": "bitmap"})
Payloads = list[list[bytes]]


class Bytes(ByteSource):
    """Bytes in memory, which count how often they are read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reads = 0

    def __len__(self) -> int:
        return len(self.data)

    def read(self, offset: int, length: int) -> memoryview:
        self.reads += 1
        return memoryview(self.data)[offset : offset + length]


def builder(payloads: Payloads, meta: BlobMeta = META) -> BlobBuilder:
    made = BlobBuilder(meta)
    for i, parts in enumerate(payloads):
        made.add(parts, n_rows=100 + i, identity=7_000 + i)
    return made


def pack_of(payloads: Payloads) -> tuple[bytes, BlobEntry]:
    _, data, entries = write_pack([builder(payloads)])
    return data, entries[0]


def read_all(data: bytes, entry: BlobEntry, n_files: int) -> Payloads:
    """Every part of every file, as a plan would read them."""
    blob = Blob(Bytes(data), entry)
    found: Payloads = []
    for slot in range(n_files):
        parts = blob.payload(slot, ReadCount())
        if parts is None:
            found.append([])
            continue
        blob.check_identity(slot, n_rows=100 + slot, footer_crc=7_000 + slot)
        found.append([bytes(parts[i]) for i in range(len(parts))])
        assert [bytes(p) for p in parts.read(0, len(parts))] == found[-1]
    return found


SMALL: Payloads = [[b"first", b"", b"third part"], [], [b"x" * 17]]


@given(st.lists(st.lists(st.binary(max_size=40), max_size=5), max_size=6))
@example([[bytes([i % 256])] for i in range(3_000)])
def test_what_was_put_in_comes_out(payloads: Payloads) -> None:
    data, entry = pack_of(payloads)
    assert builder(payloads).n_bytes == sum(len(p) for parts in payloads for p in parts)
    assert read_all(data, entry, len(payloads)) == payloads


def test_a_pack_may_hold_several_blobs() -> None:
    others = [BlobMeta(f"kind{i}", i, f"c{i}", "int", {"i": i}) for i in range(1, 4)]
    contents = [[[bytes([i]) * i, b"z"]] for i in range(1, 4)]
    made = [builder(c, m) for c, m in zip(contents, others, strict=True)]
    _, data, entries = write_pack(made)
    assert [entry.meta for entry in entries] == others
    assert [entry.offset % 8 for entry in entries] == [0, 0, 0]
    for entry, content in zip(entries, contents, strict=True):
        assert read_all(data, entry, 1) == content


def test_the_name_is_of_the_content() -> None:
    name, data, _ = write_pack([builder(SMALL)])
    assert name == hashlib.sha256(data).hexdigest()[:32] + ".puffin"
    assert write_pack([builder(SMALL)])[:2] == (name, data)
    assert write_pack([builder([*SMALL, []])])[0] != name


def test_other_tools_read_it_as_a_puffin_file() -> None:
    """Read as Apache Iceberg's specification says, from the end."""
    data, entry = pack_of(SMALL)
    assert data[:4] == data[-4:] == b"PFA1"
    length, flags = struct.unpack("<iI", data[-12:-4])
    assert flags == 0
    footer = data[-12 - length - 4 : -12]
    assert footer[:4] == b"PFA1"
    (blob,) = json.loads(footer[4:])["blobs"]
    assert blob["type"] == "skipindex-bitmap-v1"
    assert (blob["offset"], blob["length"]) == (entry.offset, entry.length)
    assert data[blob["offset"] :][:4] == b"SKIX"
    assert {"fields", "snapshot-id", "sequence-number"} <= blob.keys()


def test_every_flipped_byte_is_noticed_or_harmless() -> None:
    data, entry = pack_of(SMALL)
    harmless = 0
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0xFF
        try:
            found = read_all(bytes(damaged), entry, len(SMALL))
        except CorruptIndexError:
            continue
        assert found == SMALL, f"byte {position}"
        harmless += 1
    inside = entry.length - sum(-len(p) % 8 for parts in SMALL for p in parts)
    assert harmless == len(data) - inside, "all but the puffin frame and padding"


def test_every_cut_is_noticed_or_harmless() -> None:
    data, entry = pack_of(SMALL)
    end = entry.offset + entry.length
    for length in range(end):
        with pytest.raises(CorruptIndexError, match="cut off"):
            Blob(Bytes(data[:length]), entry)
    for whole in (*(data[:length] for length in range(end, len(data))), data + b"tail"):
        assert read_all(whole, entry, len(SMALL)) == SMALL
    with pytest.raises(CorruptIndexError):
        Blob(Bytes(b"\0" * 8 + data), entry)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"kind": "bloom"}, "holds another index"),
        ({"column": "d"}, "holds another index"),
        ({"domain": "string"}, "holds another index"),
        ({"spec": {"kind": "bitmap", "x": 1}}, "holds another index"),
        ({"version": 2}, "payload version 1"),
    ],
    ids=str,
)
def test_the_blob_of_another_index_is_refused(
    change: dict[str, Any], text: str
) -> None:
    data, entry = pack_of(SMALL)
    other = replace(entry, meta=replace(entry.meta, **change))
    with pytest.raises(CorruptIndexError, match=text):
        Blob(Bytes(data), other)


def test_another_whole_blob_of_the_same_shape_is_refused() -> None:
    """All its own checksums fit, and so do its name, column and data files."""
    entry = pack_of([[b"aaaa"], [b"bbbb"]])[1]
    data, other = pack_of([[b"aaaa"], [b"cccc"]])
    assert (other.offset, other.length) == (entry.offset, entry.length)
    with pytest.raises(CorruptIndexError, match="it is another blob"):
        Blob(Bytes(data), entry)


def test_the_slot_of_another_data_file_is_refused() -> None:
    data, entry = pack_of([[b"aaaa"], [b"bbbb"]])
    blob = Blob(Bytes(data), entry)
    blob.check_identity(0, n_rows=100, footer_crc=7_000)
    for n_rows, footer_crc in ((100, 7_001), (101, 7_000), (101, 7_001)):
        with pytest.raises(CorruptIndexError, match="another data file"):
            blob.check_identity(0, n_rows=n_rows, footer_crc=footer_crc)


SLOTS = st.integers(-3, 6) | st.sampled_from([-(1 << 31), (1 << 31) - 1])


def _fits(blob: Blob, slot: int, n_rows: int, footer_crc: int) -> bool:
    """Whether there is such a slot, and it is of that data file."""
    if not 0 <= slot < len(blob.n_rows):
        return False
    try:
        blob.check_identity(slot, n_rows=n_rows, footer_crc=footer_crc)
    except CorruptIndexError:
        return False
    return True


@given(
    st.lists(
        st.tuples(SLOTS, st.just(0) | st.integers(99, 105), st.integers(6_999, 7_005))
    ),
    st.sampled_from([np.int32, np.int64]),
)
@example([(1, 101, 7_001), (1, 0, 7_001), (2, 102, 7_002)], np.int32)
def test_many_slots_are_judged_as_one_by_one(
    asked: list[tuple[int, int, int]], slot_type: type[np.signedinteger[Any]]
) -> None:
    payloads: Payloads = [[b"a"], [], [b"c", b"d"], [b"e"]]
    blob = Blob(Bytes(pack_of(payloads)[0]), pack_of(payloads)[1])
    slots = np.array([slot for slot, _, _ in asked], slot_type)
    n_rows = np.array([n for _, n, _ in asked], np.int64)
    footers = np.array([crc for _, _, crc in asked], np.uint32)
    inside = [0 <= slot < len(payloads) for slot, _, _ in asked]
    found = blob.fits(slots, n_rows, footers).tolist()
    assert found == [_fits(blob, *one) for one in asked]
    # A slot without a payload has no rows.
    assert found == [
        there and (n, crc) == (100 + slot if payloads[slot] else 0, 7_000 + slot)
        for there, (slot, n, crc) in zip(inside, asked, strict=True)
    ]
    assert blob.has_payload(slots).tolist() == [
        not there or bool(payloads[slot])
        for there, (slot, _, _) in zip(inside, asked, strict=True)
    ]


def test_a_newer_container_is_refused() -> None:
    data, entry = pack_of([[b"part"]])
    blob = bytearray(data[entry.offset : entry.offset + entry.length])
    struct.pack_into("<H", blob, 4, CONTAINER + 1)
    start, length, _ = struct.unpack("<QII", blob[-16:])
    crc = crc32c(bytes(blob[start : start + length]), crc32c(bytes(blob[:16])))
    struct.pack_into("<I", blob, len(blob) - 4, crc)
    with pytest.raises(IndexVersionError, match="container version 3"):
        Blob(Bytes(bytes(blob)), replace(entry, offset=0, crc=crc))


def test_slots_and_parts_that_are_not_there() -> None:
    data, entry = pack_of(SMALL)
    blob = Blob(Bytes(data), entry)
    for slot in (-1, 3, 1 << 40):
        with pytest.raises(CorruptIndexError, match="no slot"):
            blob.payload(slot, ReadCount())
    parts = blob.payload(0, ReadCount())
    assert parts is not None
    assert len(parts) == 3
    assert blob.payload(1, ReadCount()) is None, "no index"
    with pytest.raises(CorruptIndexError, match="no part 3"):
        parts[3]
    with pytest.raises(CorruptIndexError, match="no part"):
        parts.read(-1, 1)
    assert parts.read(2, 2) == []


def test_reads_are_counted_and_neighbours_come_together() -> None:
    data, entry = pack_of([[b"a" * 100, b"b" * 50, b"c" * 9]])
    source, count = Bytes(data), ReadCount()
    parts = Blob(source, entry).payload(0, count)
    assert parts is not None
    assert (count.parts, count.n_bytes) == (0, 0), "opening reads no part"
    before = source.reads
    parts.read(0, 2)
    assert source.reads == before + 1
    assert (count.parts, count.n_bytes) == (2, 104 + 50)


def test_a_small_blob_with_parts_of_all_files_comes_in_one_read() -> None:
    made = BlobBuilder(META, [b"shared" * 100, b"of all files"])
    made.add([b"own" * 100], n_rows=1, identity=1)
    _, data, entries = write_pack([made])
    source, count = Bytes(data), ReadCount()
    blob = Blob(source, entries[0])
    assert source.reads == 1
    assert blob.shared(count).read(0, 2) == [b"shared" * 100, b"of all files"]
    own = blob.payload(0, count)
    assert own is not None
    assert own[0] == b"own" * 100
    assert source.reads == 1
    assert (count.parts, count.n_bytes) == (3, 600 + 12 + 300)
    assert blob.n_bytes > 900, "what it holds of them counts"


def test_parts_of_a_small_blob_are_checked_after_its_only_read() -> None:
    made = BlobBuilder(META, [b"shared" * 100])
    made.add([], n_rows=1, identity=1)
    _, data, entries = write_pack([made])
    damaged = data.replace(b"shared", b"Shared", 1)
    parts = Blob(Bytes(damaged), entries[0]).shared(ReadCount())
    with pytest.raises(CorruptIndexError, match="part 0 fails its crc32c"):
        parts[0]


def test_a_file_of_more_rows_than_32_bits_can_number() -> None:
    """A bloom filter takes it; the directory keeps the count modulo 2^32."""
    made, n_rows = BlobBuilder(META), (1 << 32) + 5
    made.add([b"bloom"], n_rows=n_rows, identity=1)
    _, data, entries = write_pack([made])
    blob = Blob(Bytes(data), entries[0])
    blob.check_identity(0, n_rows=n_rows, footer_crc=1)
    with pytest.raises(CorruptIndexError):
        blob.check_identity(0, n_rows=n_rows + 1, footer_crc=1)


# Bitmaps of stored bytes: the same rows, in containers that are fast to combine


def stored(n_runs: int, longest: int, first: int, seed: int) -> bytes:
    """A bitmap of runs, as an index has it."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, 2 * n_runs)
    is_in = np.repeat(np.arange(2 * n_runs) % 2 == 1, lengths)
    rows = BitMap((first + np.flatnonzero(is_in)).tolist())
    rows.run_optimize()
    return bytes(rows.serialize())


@examples(200)
@given(
    st.integers(0, 9_000),
    st.integers(1, 90),
    st.sampled_from([0, 1, 65_535, 65_536, 200_000, 1 << 24]),
    st.integers(0, 1 << 30),
)
def test_the_rows_are_those_that_were_stored(
    n_runs: int, longest: int, first: int, seed: int
) -> None:
    raw = stored(n_runs, longest, first, seed)
    found = bitmap_of(memoryview(raw))
    assert isinstance(found, FrozenBitMap)
    assert found == BitMap.deserialize(raw)
    assert memory_of(raw) >= len(raw)


def test_many_runs_are_bits_and_few_stay_runs() -> None:
    for n_runs, longest, n_bits in ((1_500, 60, 2), (100, 600, 0)):
        raw = stored(n_runs, longest, 0, 1)
        assert BitMap.deserialize(raw).get_statistics()["n_run_containers"]
        found = bitmap_of(raw).get_statistics()
        assert found["n_bitset_containers"] == n_bits
        assert bool(found["n_run_containers"]) == (not n_bits)
        assert memory_of(raw) == (8192 * n_bits or len(raw))


def test_bytes_of_no_bitmap_are_refused() -> None:
    raw = stored(1_500, 60, 0, 1)
    for damaged in (raw[:-1], raw[:1_030], b"?" * 5_000):
        with pytest.raises(CorruptIndexError, match="no roaring bitmap"):
            bitmap_of(damaged)


@examples(60)
@given(
    st.lists(
        st.lists(st.lists(st.integers(0, 4), max_size=5), min_size=3, max_size=3),
        min_size=1,
        max_size=4,
    )
)
def test_a_part_of_several_blobs_is_written_once(blobs: list[list[list[int]]]) -> None:
    lengths = (5, SHARED_FROM, SHARED_FROM + 3, 0, 17)
    kinds = [bytes([i]) * n for i, n in enumerate(lengths)]
    payloads = [[[kinds[i] for i in file] for file in blob] for blob in blobs]
    metas = [BlobMeta("bitmap", 1, f"c{i}", "int", {}) for i in range(len(blobs))]
    made = [builder(one, meta) for one, meta in zip(payloads, metas, strict=True)]
    _, data, entries = write_pack(made)
    source = Bytes(data)
    seen: set[bytes] = set()
    for entry, expected in zip(entries, payloads, strict=True):
        assert read_all(data, entry, 3) == expected
        blob = Blob(source, entry)
        own = [p for file in expected for p in file if p not in seen]
        once = [*{p for p in own if len(p) > 16}, *(p for p in own if len(p) <= 16)]
        assert int(blob.payload_bytes().sum()) == sum(map(len, once))
        assert entry.length < sum(len(p) + 7 for p in once) + 24 * len(own) + 400
        ranges = [one for _, one in blob.ranges_of(range(3))]
        assert all(start >= 0 and start + n <= len(data) for start, n in ranges)
        seen.update(part for part in own if len(part) >= SHARED_FROM)


def test_a_part_before_the_pack_is_refused() -> None:
    part = bytes(SHARED_FROM)
    first, second = builder([[part]]), builder([[part]])
    _, data, (_, entry) = write_pack([first, second])
    assert read_all(data, entry, 1) == [[part]]
    moved = data[entry.offset :]
    with pytest.raises(CorruptIndexError, match="begins before the pack"):
        Blob(Bytes(moved), replace(entry, offset=0))


def test_equal_places_are_of_equal_parts() -> None:
    """An empty part begins where the next one does."""
    payloads = [[b"", b"x" * 20, b"y"], [b"x" * 20, b"", b"y"]]
    data, entry = pack_of(payloads)
    blob = Blob(Bytes(data), entry)
    places = {}
    for slot, parts in enumerate(payloads):
        payload = blob.payload(slot, ReadCount())
        assert payload is not None
        for i, part in enumerate(parts):
            assert places.setdefault(payload.places(i, i + 1), part) == part
