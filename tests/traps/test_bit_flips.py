"""Every single bit: a flip is refused by a checksum, and the file is kept.

37 % of single-bit flips in roaring arrays are accepted by ``deserialize`` and give
other rows, and a Bloom filter has no check at all.  So nothing of a payload is
looked at before its crc32c is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from skipindex.errors import CorruptIndexError
from skipindex.indexes import index_types
from skipindex.storage.pack import Blob, BlobBuilder, BlobEntry, BlobMeta, write_pack
from skipindex.storage.parts import ReadCount
from tests.indexes.test_golden import GOLDEN, read_golden
from tests.tables import build, forget_open_packs, packs, put_all


@pytest.fixture(autouse=True)
def no_open_packs() -> Iterator[None]:
    forget_open_packs()
    yield
    forget_open_packs()


class Memory:
    """The bytes of a pack, one of whose bits may be flipped."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)

    def __len__(self) -> int:
        return len(self.data)

    def flip(self, bit: int) -> None:
        self.data[bit >> 3] ^= 1 << (bit & 7)

    def read(self, start: int, length: int) -> memoryview:
        return memoryview(bytes(self.data[start : start + length]))


def read_all(source: Memory, entry: BlobEntry) -> list[bytes]:
    """All parts of the only payload, through every check that a plan makes."""
    blob = Blob(source, entry)
    payload = blob.payload(0, ReadCount())
    assert payload is not None
    blob.check_identity(0, n_rows=9, footer_crc=7)
    return [bytes(part) for part in payload.read(0, len(payload))]


def check_every_flip(kind: str, parts: list[bytes]) -> None:
    """Whatever is not refused leaves the payload as it was: it is padding."""
    builder = BlobBuilder(BlobMeta(kind, 1, "c", "int", {"kind": kind}))
    builder.add(parts, n_rows=9, identity=7)
    _, data, (entry,) = write_pack([builder])
    source = Memory(data)
    assert read_all(source, entry) == parts
    refused = 0
    for bit in range(8 * entry.offset, 8 * (entry.offset + entry.length)):
        source.flip(bit)
        try:
            assert read_all(source, entry) == parts, bit
        except CorruptIndexError:
            refused += 1
        source.flip(bit)
    # Long parts with the same bytes are written once.
    written = [p for i, p in enumerate(parts) if len(p) <= 16 or p not in parts[:i]]
    padding = sum(-len(part) % 8 for part in written)
    assert refused == 8 * (entry.length - padding)


def read_shared(source: Memory, entry: BlobEntry) -> list[bytes]:
    """All parts that are of all data files."""
    shared = Blob(source, entry).shared(ReadCount())
    return [bytes(part) for part in shared.read(0, len(shared))]


@pytest.mark.parametrize("path", sorted((GOLDEN / "pack").glob("v*/*.bin")), ids=str)
def test_a_flipped_bit_of_what_a_pack_shares_is_refused(path: Path) -> None:
    """Every bit of the header and the directory, and bits all over the rest."""
    _, parts = read_golden(path)
    builder = BlobBuilder(BlobMeta("file_map", 1, "c", "int", {}), shared=parts)
    for i in range(12):
        builder.add([], n_rows=9, identity=i)
    _, data, (entry,) = write_pack([builder])
    source = Memory(data)
    assert read_shared(source, entry) == parts
    n_head = 8 * (16 + len(parts[0]))
    places = {*range(n_head), *range(n_head, 8 * entry.length, 211)}
    refused = 0
    for bit in sorted(places):
        source.flip(8 * entry.offset + bit)
        try:
            assert read_shared(source, entry) == parts, bit
        except CorruptIndexError:
            refused += 1
        source.flip(8 * entry.offset + bit)
    assert refused > 0.98 * len(places), "the rest is padding"


def golden_payloads(kind: str) -> Iterator[list[bytes]]:
    for path in sorted((GOLDEN / kind).glob("v*/*.bin")):
        if path.stat().st_size < 1500:
            yield read_golden(path)[1]


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", index_types())
def test_every_flipped_bit_of_a_payload_is_refused(kind: str) -> None:
    payloads = list(golden_payloads(kind))
    assert len(payloads) > 1
    check_every_flip(kind, payloads[0])
    check_every_flip(kind, max(payloads, key=len))


@pytest.mark.slow
@pytest.mark.parametrize("kind", index_types())
def test_every_flipped_bit_of_every_small_golden_payload_is_refused(kind: str) -> None:
    for parts in golden_payloads(kind):
        check_every_flip(kind, parts)


FILES = [
    {"s": ["a", "x", "z"], "t": ["argon", "iron, xenon", "zinc"], "k": [1, 77, 99]},
    {"s": ["a", "y", "z"], "t": ["argon", "neon, silver", "zinc"], "k": [1, 78, 99]},
]
"""File 0 has an x; of file 1 only an index knows that it has none."""

QUESTIONS = {
    "ngram_bloom": "t LIKE '%xeno%'",
    "token_bloom": "t LIKE '%, xenon'",
}
"""Of kinds that do not answer ``=`` on a letter."""


def check_every_plan(folder: Path, kind: str, step: int) -> None:
    put_all(folder, FILES)
    question = QUESTIONS.get(kind, "s = 'x'")
    table = build(folder, {question.partition(" ")[0]: kind})
    asked = [kind, "minmax"]
    assert table.plan(question, kinds=asked).paths == ["0.parquet"]
    damaged = 0
    for path in packs(folder):
        whole = path.read_bytes()
        for bit in range(0, 8 * len(whole), step):
            flipped = bytearray(whole)
            flipped[bit >> 3] ^= 1 << (bit & 7)
            path.write_bytes(bytes(flipped))
            forget_open_packs()
            plan = table.plan(question, kinds=asked)
            assert "0.parquet" in plan.paths, (path.name, bit)
            if plan.paths != ["0.parquet"]:
                damaged += 1
                assert plan.notes, "a file that is kept for damage is said to be"
        path.write_bytes(whole)
    assert damaged


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", index_types())
def test_a_flipped_bit_of_a_pack_keeps_the_file(tmp_path: Path, kind: str) -> None:
    check_every_plan(tmp_path, kind, step=61)


@pytest.mark.slow
@pytest.mark.parametrize("kind", index_types())
def test_every_flipped_bit_of_a_pack_keeps_the_file(tmp_path: Path, kind: str) -> None:
    check_every_plan(tmp_path, kind, step=1)
