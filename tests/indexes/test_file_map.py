"""File maps: for every slot, "no row", "some row" or nothing, and never a wrong one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.errors import CorruptIndexError, IndexVersionError
from skipindex.expressions.atoms import Atom, NoneOf, NullAtom, OneOf, Range, Value
from skipindex.expressions.domain import Domain, domain_of
from skipindex.indexes import file_map
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.file_map import FileMap, ValueSpans, build_file_map
from skipindex.storage.parts import MemoryParts
from tests.tables import holds

Files = Sequence[Sequence[Value | None] | None]


def column(values: Sequence[Value | None], dtype: pa.DataType) -> EncodedColumn:
    return EncodedColumn("c", pa.array(list(values), dtype), domain_of(dtype))


def parts_of(files: Files, dtype: pa.DataType) -> list[bytes] | None:
    spans = [None if v is None else ValueSpans.of(column(v, dtype)) for v in files]
    return build_file_map(spans, domain_of(dtype), n_index_bytes=0)


def opened(parts: list[bytes], domain: Domain, n_files: int) -> FileMap:
    return FileMap.open(MemoryParts(parts), domain, n_files)


def unlike(values: Sequence[Value | None], atoms: Sequence[Atom]) -> list[Value | None]:
    """Of values that no comparison of the atoms tells apart, one each."""
    points: set[Value] = set()
    for atom in atoms:
        if isinstance(atom, Range):
            points |= {end for end in (atom.low, atom.high) if end is not None}
        else:
            assert isinstance(atom, OneOf)
            points.update(atom.values)
    ordered = sorted(points)
    found: dict[object, Value | None] = {}
    for value in values:
        place = None if value is None else bisect_left(ordered, value)
        found[place, value in points] = value
    return list(found.values())


def check(files: Files, dtype: pa.DataType, atoms: Sequence[Atom]) -> FileMap | None:
    """What the map says against the values themselves."""
    parts = parts_of(files, dtype)
    if parts is None:
        return None
    found = opened(parts, domain_of(dtype), len(files))
    assert found.covered.tolist() == [values is not None for values in files]
    spread = [unlike(values or (), atoms) for values in files]
    for atom in atoms:
        answer = found.ask(atom)
        assert answer is not None
        for slot, values in enumerate(files):
            truth = any(holds(atom, value) for value in spread[slot])
            possible, sure = bool(answer[0][slot]), bool(answer[1][slot])
            if values is not None:
                assert sure <= truth <= possible, (atom, slot)
                if not found.binned:
                    assert possible == truth, "single values are answered exactly"
    return found


def ranges(points: Sequence[Value]) -> list[Atom]:
    ends = [None, *points]
    atoms: list[Atom] = [Range("c", low, high) for low in ends for high in ends]
    return atoms + [OneOf("c", (p,)) for p in points] + [OneOf("c", tuple(points))]


@given(
    st.lists(
        st.none() | st.lists(st.none() | st.integers(-9, 60), max_size=12), max_size=9
    ),
    st.lists(st.integers(-12, 63), min_size=1, max_size=4, unique=True),
)
def test_integers_are_answered_exactly(files: Files, points: list[int]) -> None:
    check(files, pa.int64(), ranges(sorted(points)))


@given(
    st.lists(st.lists(st.none() | st.text("ab", max_size=4), max_size=9), max_size=6),
    st.lists(st.text("abc", max_size=4), min_size=1, max_size=3, unique=True),
)
def test_strings_are_answered_exactly(files: Files, points: list[str]) -> None:
    check_texts = sorted(p.encode() for p in points)
    values = [[v if v is None else v.encode() for v in own] for own in files or []]
    check(values, pa.binary(), ranges(check_texts))


@pytest.mark.parametrize("dtype", [pa.int64(), pa.binary()], ids=str)
def test_many_values_are_put_into_bins(
    dtype: pa.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of random values, of one cluster, and of two far from each other."""
    monkeypatch.setattr(file_map, "_LEAST_BYTES", 2000)
    monkeypatch.setattr(file_map, "_BYTES_PER_FILE", 0)
    monkeypatch.setattr(file_map, "MAX_PER_FILE", 50)
    monkeypatch.setattr(file_map, "_BINS_TRIED", (40,))
    rng = np.random.default_rng(5)
    ints = [
        [*range(1000 * i, 1000 * i + 300), *range(90_000 - 999 * i, 90_020 - 999 * i)]
        for i in range(30)
    ]
    ints[7] = rng.integers(0, 90_000, 200).tolist()
    points = [-5, 0, 299, 300, 7_150, 29_300, 45_000, 89_000, 90_019, 90_020, 100_000]

    def value(number: int) -> Value:
        return number if dtype == pa.int64() else b"%07d" % (number + 10)

    found = check(
        [[*map(value, own)] for own in ints], dtype, ranges([*map(value, points)])
    )
    assert found is not None
    assert found.binned
    answer = found.ask(OneOf("c", (value(45_000),)))
    assert answer is not None
    if dtype == pa.int64():
        assert answer[0].sum() <= 2, "between clusters there is only the random file"


def _kept_of_keys(n_files: int, n_keys: int, n_index_bytes: int) -> tuple[float, int]:
    """The share of files that have a key by the map, and the bytes of the map."""
    rng = np.random.default_rng(3)
    keys = rng.permutation(n_files * n_keys).reshape(n_files, n_keys)
    domain = domain_of(pa.int64())
    spans = [
        ValueSpans.single_values(sorted(one.tolist()), is_bytes=False) for one in keys
    ]
    parts = build_file_map(spans, domain, n_index_bytes=n_index_bytes)
    assert parts is not None
    found = opened(parts, domain, n_files)
    assert found.binned
    kept = []
    for file in range(0, n_files, 37):
        answer = found.ask(OneOf("c", (int(keys[file, 5]),)))
        assert answer is not None
        assert answer[0][file]
        kept.append(answer[0].mean())
    return float(np.mean(kept)), sum(map(len, parts))


def test_more_bins_where_a_look_up_then_reads_less() -> None:
    """Keys in any order, in many small files: the payloads that are left cost most."""
    small, small_bytes = _kept_of_keys(1500, 90, n_index_bytes=2000)
    large, large_bytes = _kept_of_keys(1500, 90, n_index_bytes=4_000_000)
    assert small > 0.06
    assert large < 0.03
    assert small_bytes < large_bytes < 64_000 + 256 * 1500


def test_bins_that_every_file_is_in_are_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_map, "_LEAST_BYTES", 1000)
    monkeypatch.setattr(file_map, "_BYTES_PER_FILE", 0)
    spans = [
        ValueSpans.of(column([*range(i, 90_000, 20)], pa.int64())) for i in range(20)
    ]
    assert build_file_map(spans, domain_of(pa.int64()), n_index_bytes=0) is None


def test_a_range_reads_few_sets() -> None:
    """Of 4,096 values, at most 30 sets a level, and not one a value."""
    files = [[*range(i, 4096, 16)] for i in range(16)]
    parts = parts_of(files, pa.int64())
    assert parts is not None
    found = opened(parts, domain_of(pa.int64()), 16)
    found.ask(Range("c", 1, 4095))
    assert 0 < found.parts.count.bitmaps <= 30 * len(found.levels)
    assert len(found.levels) == 3


def test_what_a_map_cannot_know_is_no_opinion() -> None:
    parts = parts_of([[1, None]], pa.int64())
    assert parts is not None
    found = opened(parts, domain_of(pa.int64()), 1)
    assert found.ask(NullAtom("c")) is None
    assert found.ask(NoneOf("c", (1,))) is None


def test_files_without_values_are_covered() -> None:
    found = check([[None, None], [], None], pa.int64(), ranges([0]))
    assert found is not None
    assert found.covered.tolist() == [True, True, False]


def test_no_map_without_a_file() -> None:
    assert parts_of([None, None], pa.int64()) is None


def test_maps_of_another_shape_are_refused() -> None:
    parts = parts_of([[1, 2], [3]], pa.int64())
    assert parts is not None
    int_domain = domain_of(pa.int64())
    for wrong in (
        lambda: opened([], int_domain, 2),
        lambda: opened(parts, int_domain, 3),
        lambda: opened(parts, domain_of(pa.date32()), 2),
        lambda: opened(parts, domain_of(pa.string()), 2),
        lambda: opened(parts[:-1], int_domain, 2),
        lambda: opened([parts[0][:-1], *parts[1:]], int_domain, 2),
        lambda: opened([parts[0] + b"\0", *parts[1:]], int_domain, 2),
    ):
        with pytest.raises(CorruptIndexError):
            wrong()
    with pytest.raises(IndexVersionError):
        opened([b"\x63" + parts[0][1:], *parts[1:]], int_domain, 2)


def test_noise_raises_corruption_and_nothing_else() -> None:
    files = [[*range(i, 300, 3)] for i in range(3)]
    parts = parts_of(files, pa.int64())
    assert parts is not None
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(300):
        i = int(rng.integers(len(parts)))
        noisy = bytearray(parts[i])
        noisy[int(rng.integers(len(noisy)))] ^= int(rng.integers(1, 256))
        try:
            found = opened([*parts[:i], bytes(noisy), *parts[i + 1 :]], DOMAIN, 3)
            found.ask(Range("c", 3, 200))
            found.ask(OneOf("c", (5, 9, 1000)))
        except CorruptIndexError:
            refused += 1
    assert refused > 50


DOMAIN = domain_of(pa.int64())
