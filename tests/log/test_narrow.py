"""A manifest in memory is narrow, and says what its file says."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks._manifests import manifest_of
from skipindex.expressions.domain import Domain
from skipindex.log import narrow as narrow_module
from skipindex.log import read_snapshot
from skipindex.log.manifest import Manifest, StatsColumn, joined
from skipindex.log.narrow import narrowed, shared
from skipindex.log.properties import NO_PROPERTIES
from skipindex.source import commit
from skipindex.storage.file_system.location import location_of
from skipindex.table.summaries import Summary, summaries_to_arrow

EDGES = [0, 1, -1, 127, 128, -128, -129, 32767, 32768, -32769, 2**31 - 1, 2**31]
EDGES += [-(2**31), -(2**31) - 1, 2**63 - 1, -(2**63)]
NUMBERS = st.one_of(st.sampled_from(EDGES), st.integers(-(2**63), 2**63 - 1))
COUNTS = st.one_of(st.none(), st.sampled_from([0, 1, 127, 128, 32768, 2**31, 2**40]))


def summaries(value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    end, flag = st.one_of(st.none(), value), st.booleans()
    made = st.builds(Summary, COUNTS, COUNTS, end, end, flag, flag)
    return st.lists(st.one_of(st.none(), made), min_size=1, max_size=6)


COLUMNS = st.one_of(
    summaries(NUMBERS).map(lambda s: summaries_to_arrow(s, Domain("int"))),
    summaries(st.binary(max_size=9)).map(
        lambda s: summaries_to_arrow(s, Domain("string"))
    ),
)


def held(values: pa.StructArray) -> Manifest:
    paths = [f"part-{i}" for i in range(len(values))]
    domain = "int" if values.type.field("low").type == pa.int64() else "string"
    return Manifest(
        manifest_of(paths, {}).files, {"c": StatsColumn(domain, values)}, ()
    )


@given(COLUMNS)
def test_narrow_statistics_are_the_same_ones(values: pa.StructArray) -> None:
    manifest = held(values)
    narrow = shared(narrowed(manifest))
    column = narrow.stats["c"]
    assert column.plain.equals(values)
    assert column.values.to_pylist() == values.to_pylist()
    assert column.is_like(manifest.stats["c"])
    assert narrow.files.equals(manifest.files)
    assert narrow.to_bytes() == manifest.to_bytes(), "the file is that of the format"


@given(COLUMNS.flatmap(lambda one: st.tuples(st.just(one), COLUMNS)))
def test_columns_of_different_widths_are_joined(pair: tuple[Any, Any]) -> None:
    one, other = pair
    if one.type != other.type:
        return
    first, second = (narrowed(held(v)).stats["c"].values for v in pair)
    expected = one.to_pylist() + other.to_pylist()
    assert joined([first, second]).to_pylist() == expected
    assert joined([second, one, first]).to_pylist() == (
        other.to_pylist() + one.to_pylist() + one.to_pylist()
    )


@given(st.lists(COLUMNS, min_size=2, max_size=4))
@settings(deadline=None)
def test_merged_manifests_are_those_of_wide_ones(pieces: list[Any]) -> None:
    kinds = {piece.type for piece in pieces}
    if len(kinds) > 1:
        return
    wide, narrow = held(pieces[0]), narrowed(held(pieces[0]))
    for piece in pieces[1:]:
        wide, narrow = wide.merge(held(piece)), narrow.merge(narrowed(held(piece)))
        assert narrow.stats["c"].plain.equals(wide.stats["c"].plain)
        assert narrow.files.equals(wide.files)


@pytest.mark.parametrize("wider", [0, 300, 70_000, 2**40])
def test_a_later_segment_with_wider_numbers_is_read_right(
    tmp_path: Path, wider: int
) -> None:
    location = location_of(tmp_path)
    ends = [(pa.array(np.arange(50)), pa.array(np.arange(50) + 1))]
    ends.append((pa.array([wider]), pa.array([wider + 1])))
    for i, end in enumerate(ends):
        paths = [f"{i}-{n}" for n in range(len(end[0]))]
        new = manifest_of(paths, {"x": end})
        commit(
            location, lambda b, new=new: (b.manifest.merge(new), NO_PROPERTIES),
            operation="t",
        )  # fmt: skip
    snapshot = read_snapshot(location)
    assert len(snapshot.segments) == 2
    column = snapshot.manifest.stats["x"].values
    assert [row["low"] for row in column.to_pylist()] == [*range(50), wider]


def test_equal_columns_are_held_once_and_numbers_in_few_bytes() -> None:
    n = 4096
    ends = pa.array(np.arange(n)), pa.array(np.arange(n) + 5)
    manifest = manifest_of([f"p{i:05}" for i in range(n)], {"x": ends, "y": ends})
    narrow = shared(narrowed(manifest))
    x, y = (narrow.stats[name].values for name in "xy")
    assert x.type.field("low").type == pa.int16()
    assert x.type.field("null_count").type == pa.int8()
    for i in range(x.type.num_fields):
        mine, theirs = (values.field(i).buffers()[-1] for values in (x, y))
        assert mine.address == theirs.address
    assert x.nbytes < manifest.stats["x"].values.nbytes // 4


def test_buffers_of_one_checksum_are_compared() -> None:
    ends = pa.array([1, 2, 3]), pa.array([4, 5, 6])
    manifest = manifest_of(["a", "b", "c"], {"x": ends})
    with mock.patch.object(narrow_module, "crc32c", return_value=0):
        held_once = shared(narrowed(manifest))
    assert held_once.stats["x"].plain.equals(manifest.stats["x"].values)
    assert held_once.files.equals(manifest.files)
