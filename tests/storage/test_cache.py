"""Parts in memory: never more than the limit, and never another payload's."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.errors import CorruptIndexError
from skipindex.storage.cache import Cache
from skipindex.storage.pack import Blob, BlobBuilder, BlobMeta, write_pack
from skipindex.storage.pack.reader import BlobParts
from skipindex.storage.parts import ReadCount
from tests.storage.test_pack import Bytes

META = BlobMeta("kind", 1, "c", "int", {})
PAYLOADS = [[bytes([i, k]) * 50 for k in range(6)] for i in range(8)]


def opened(cache: Cache | None) -> tuple[Blob, Bytes]:
    builder = BlobBuilder(META)
    for i, parts in enumerate(PAYLOADS):
        builder.add(parts, n_rows=10, identity=i)
    _, data, (entry,) = write_pack([builder])
    source = Bytes(data)
    return Blob(source, entry, cache), source


def payload(blob: Blob, i: int, count: ReadCount | None = None) -> BlobParts:
    found = blob.payload(i, count or ReadCount())
    assert found is not None
    return found


def read(blob: Blob, i: int, start: int, stop: int) -> tuple[list[bytes], ReadCount]:
    count = ReadCount()
    return list(map(bytes, payload(blob, i, count).read(start, stop))), count


def test_what_is_kept_is_not_read_again() -> None:
    blob, source = opened(Cache(1 << 20))
    first = read(blob, 3, 1, 5)
    before = source.reads
    again = read(blob, 3, 1, 5)
    assert source.reads == before
    assert again[0] == first[0] == PAYLOADS[3][1:5]
    assert first[1].cached_bytes == 0
    assert again[1].cached_bytes == again[1].n_bytes == first[1].n_bytes > 0
    assert again[1].parts == first[1].parts == 4


def test_only_what_is_missing_is_read_and_at_once() -> None:
    blob, source = opened(Cache(1 << 20))
    read(blob, 3, 2, 4)
    before = source.reads
    parts, count = read(blob, 3, 2, 6)
    assert source.reads == before + 1
    assert parts == PAYLOADS[3][2:6]
    assert count.n_bytes - count.cached_bytes == 104 + 100
    assert count.cached_bytes == 2 * 104
    assert read(blob, 3, 2, 6)[0] == PAYLOADS[3][2:6], "each part in its own place"
    assert source.reads == before + 1
    parts, _ = read(blob, 3, 0, 6)
    assert source.reads == before + 2
    assert parts == PAYLOADS[3]


@given(
    limit=st.integers(0, 5_000),
    asked=st.lists(
        st.tuples(st.integers(0, 7), st.integers(0, 6), st.integers(0, 6)), max_size=40
    ),
)
def test_any_questions_under_any_limit(
    limit: int, asked: list[tuple[int, int, int]]
) -> None:
    cache = Cache(limit)
    blob, _ = opened(cache)
    for i, start, stop in asked:
        if start <= stop:
            parts, count = read(blob, i, start, stop)
            assert parts == PAYLOADS[i][start:stop]
            assert 0 <= count.cached_bytes <= count.n_bytes
        assert 0 <= cache.n_bytes <= limit


def test_the_payload_that_was_asked_for_first_makes_room() -> None:
    cache = Cache(3_000)
    blob, source = opened(cache)
    for i in (0, 1, 0, 2):  # each takes 104 + 200 bytes a part, and 48
        read(blob, i, 0, 4)
    before = source.reads
    read(blob, 0, 0, 4)
    assert source.reads == before, "asked for again before 2 came"
    read(blob, 1, 0, 4)
    assert source.reads == before + 1


def test_a_smaller_limit_holds_at_once_and_nought_keeps_nothing() -> None:
    cache = Cache(1 << 20)
    blob, source = opened(cache)
    for i in range(8):
        read(blob, i, 0, 6)
    assert cache.n_bytes > 8 * 600
    cache.limit = 4_000
    assert 0 < cache.n_bytes <= 4_000
    cache.limit = 0
    assert cache.n_bytes == 0
    before = source.reads
    assert read(blob, 1, 0, 6)[1].cached_bytes == 0
    assert source.reads == before + 1
    assert cache.n_bytes == 0


def test_a_source_that_is_forgotten_takes_its_bytes_with_it() -> None:
    cache = Cache(1 << 20)
    mine, again = opened(cache)
    other, source = opened(cache)
    for blob in (mine, other):
        read(blob, 1, 0, 6)
    alone = cache.n_bytes
    cache.forget(again)
    assert cache.n_bytes == alone // 2
    assert read(mine, 1, 0, 6)[0] == PAYLOADS[1], "it may still be read"
    before = source.reads
    read(other, 1, 0, 6)
    assert source.reads == before
    for one in (source, again):
        cache.forget(one)
    assert cache.n_bytes == 0


def test_a_blob_that_is_opened_again_finds_the_parts_of_the_first() -> None:
    cache = Cache(1 << 20)
    blob, source = opened(cache)
    read(blob, 1, 0, 6)
    again = Blob(source, blob.entry, cache)
    before = source.reads
    assert read(again, 1, 0, 6)[0] == PAYLOADS[1]
    assert source.reads == before


def test_a_thing_is_in_place_of_the_one_before() -> None:
    cache = Cache(10_000)
    blob, _ = opened(cache)
    read(blob, 1, 0, 6)
    before = cache.n_bytes
    for n_bytes in (5_000, 1_000):
        made = Letters("a")
        blob.hold("letters", made, n_bytes)
        assert blob.held("letters") is made
        assert n_bytes < cache.n_bytes - before < n_bytes + 500
    blob.hold("letters", Letters("b"), 10_001)
    assert blob.held("letters") is None, "neither the old one, nor too large a one"
    assert cache.n_bytes == before


@pytest.mark.parametrize("how", ["evicted", "limit", "forgotten"])
def test_a_payload_in_use_does_not_hold_what_the_cache_lets_go(how: str) -> None:
    cache = Cache(2_000)
    blob, source = opened(cache)
    mine = payload(blob, 1)
    for _ in range(2):
        assert bytes(mine[2]) == PAYLOADS[1][2]
    before = source.reads
    assert bytes(mine[2]) == PAYLOADS[1][2]
    assert source.reads == before
    if how == "evicted":
        read(blob, 3, 0, 6)
        read(blob, 4, 0, 6)
    elif how == "limit":
        cache.limit = 0
    else:
        cache.forget(source)
    before = source.reads
    assert bytes(mine[2]) == PAYLOADS[1][2]
    assert source.reads == before + 1


def test_a_payload_finds_what_another_one_of_the_same_file_has_read() -> None:
    blob, source = opened(Cache(1 << 20))
    mine, other = (payload(blob, 1) for _ in range(2))
    assert bytes(mine[2]) == PAYLOADS[1][2]
    assert other.read(3, 5) == PAYLOADS[1][3:5]
    before = source.reads
    assert bytes(mine[4]) == PAYLOADS[1][4]
    assert other.read(2, 5) == PAYLOADS[1][2:5]
    assert source.reads == before


@pytest.mark.parametrize("i", [-1, 6])
def test_there_is_no_part_beyond_the_ends_in_the_cache_either(i: int) -> None:
    blob, _ = opened(Cache(1 << 20))
    parts = payload(blob, 1)
    parts.read(0, 6)
    for k in range(6):
        assert bytes(parts[k]) == PAYLOADS[1][k]
    with pytest.raises(CorruptIndexError, match="no part"):
        parts[i]


def test_bytes_that_fail_their_check_are_not_kept() -> None:
    cache = Cache(1 << 20)
    blob, source = opened(cache)
    at = source.data.index(PAYLOADS[2][3])
    good = source.data
    source.data = good[:at] + b"?" + good[at + 1 :]
    for _ in range(2):
        with pytest.raises(CorruptIndexError, match="crc32c"):
            read(blob, 2, 2, 5)
    source.data = good
    assert read(blob, 2, 2, 5)[0] == PAYLOADS[2][2:5]


def test_parts_that_are_no_bitmaps_are_refused_and_not_kept() -> None:
    cache = Cache(1 << 20)
    parts = payload(opened(cache)[0], 2)
    for _ in range(2):
        with pytest.raises(CorruptIndexError, match="no roaring bitmap"):
            parts.bitmaps(2, 3)
    assert parts.bitmaps(2, 2) == []
    with pytest.raises(CorruptIndexError, match="no part"):
        parts.bitmaps(5, 7)
    assert cache.n_bytes == 0


def test_threads_share_it() -> None:
    cache = Cache(6_000)
    blob, _ = opened(cache)

    def ask(seed: int) -> bool:
        rng = random.Random(seed)
        for _ in range(300):
            i, start = rng.randrange(8), rng.randrange(6)
            if read(blob, i, start, 6)[0] != PAYLOADS[i][start:]:
                return False
            if rng.random() < 0.02:
                cache.limit = rng.choice((0, 2_000, 6_000))
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(8)))
    cache.limit = 0
    assert cache.n_bytes == 0


@dataclass(frozen=True)
class Letters:
    """What a kind might make of a part."""

    text: str
    n_bytes: int = 1_000


def test_what_a_kind_makes_of_a_part_is_made_once() -> None:
    cache = Cache(2_500)
    blob, source = opened(cache)
    count = ReadCount()
    made: list[Letters] = []

    def decode(raw: memoryview) -> Letters:
        made.append(Letters(bytes(raw).hex()))
        return made[-1]

    parts = [payload(blob, i, count) for i in range(2)]
    for one in parts:
        first = one.decoded(3, decode)
        before = source.reads
        assert one.decoded(3, decode) is first
        assert source.reads == before
    assert [one.text for one in made] == [PAYLOADS[i][3].hex() for i in range(2)]
    assert 2_000 < cache.n_bytes <= 2_500, "by the size that it says"
    assert (count.parts, count.cached_bytes) == (4, count.n_bytes / 2)
    assert bytes(parts[0][3]) == PAYLOADS[0][3], "apart from its bytes"
    assert cache.n_bytes <= 2_500
