"""Conditions by which other systems lost rows: lists, constants, casts, computed sides.

No Spark here: what is right is known from the rows, which are written out.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import skipindex as sx
from tests.tables import build, kept, put_all

EVERY_KIND = ["bitmap", "bloom", "range_bitmap", "bit_sliced"]


def test_trap_c12_a_filter_holds_bytes_not_their_display(tmp_path: Path) -> None:
    r"""The byte 0x41 and the text ``\x41`` are two values."""
    put_all(tmp_path, [{"b": [b"A", b"\x00\xff"]}, {"b": [b"\\x41", b""]}])
    table = build(tmp_path, {"b": "bloom"})
    assert kept(table, "b = X'41'") == ["0.parquet"]
    assert kept(table, "b = X'00FF'") == ["0.parquet"]
    assert kept(table, "b = X''") == ["1.parquet"]


@pytest.mark.parametrize(
    "condition", ["reverse(s) = 'ba'", "concat(s, 'x') = 'abx'", "s || '' = 'ab'"]
)
@pytest.mark.parametrize("kind", EVERY_KIND)
def test_trap_c12_an_index_of_the_raw_column_does_not_judge_a_computed_one(
    tmp_path: Path, kind: str, condition: str
) -> None:
    put_all(tmp_path, [{"s": ["ab", "cd"]}, {"s": ["ef", "ef"]}])
    assert "0.parquet" in kept(build(tmp_path, {"s": kind}), condition)


@pytest.mark.parametrize("kind", ["minmax", *EVERY_KIND])
def test_trap_c18_microseconds_are_not_cut_to_milliseconds(
    tmp_path: Path, kind: str
) -> None:
    moment = datetime(2020, 1, 1, 0, 0, 0, 999_999, UTC)
    dtype = pa.timestamp("us", "UTC")
    put_all(tmp_path, [{"t": pa.array([moment], dtype)}])
    table = build(tmp_path, {"t": kind})
    late = "TIMESTAMP '2020-01-01 00:00:00.999999Z'"
    early = "TIMESTAMP '2020-01-01 00:00:00.999Z'"
    for condition in (f"t = {late}", f"t > {early}", f"t <> {early}", f"t >= {late}"):
        assert kept(table, condition) == ["0.parquet"], condition
    for condition in (f"t <= {early}", f"t > {late}", f"t <> {late}"):
        assert kept(table, condition) == [], condition


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_trap_c21_text_is_not_compared_with_a_number_as_text(
    tmp_path: Path, kind: str
) -> None:
    """Spark casts the column: '01' and ' 1' are equal to 1."""
    put_all(tmp_path, [{"s": ["01"]}, {"s": [" 1"]}, {"s": ["2"]}])
    table = build(tmp_path, {"s": kind})
    for condition in ("s = 1", "s IN (1)", "s IN (1, 7)", "NOT (s <> 1)", "s < 2"):
        assert {"0.parquet", "1.parquet"} <= set(kept(table, condition)), condition


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_trap_c25_not_in_a_list_with_null_is_never_true(
    tmp_path: Path, kind: str
) -> None:
    put_all(tmp_path, [{"v": [1, None]}, {"v": [2, 3]}])
    table = build(tmp_path, {"v": kind})
    assert kept(table, "v NOT IN (1, NULL)") == []
    assert kept(table, "v IN (1, NULL)") == ["0.parquet"]
    assert kept(table, "NOT (v IN (1, NULL)) OR v = 3") == ["1.parquet"]


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_trap_c28_constants_beside_two_indexed_columns(
    tmp_path: Path, kind: str
) -> None:
    put_all(tmp_path, [{"a": [1, 2], "b": [5, 6]}, {"a": [3, 4], "b": [7, 8]}])
    table = build(tmp_path, {"a": kind, "b": kind})
    both, first = ["0.parquet", "1.parquet"], ["0.parquet"]
    for condition, expected in {
        "FALSE OR a = 1": first,
        "a = 1 OR FALSE": first,
        "FALSE OR (a = 1 AND b = 5)": first,
        "a = 1 OR b = 8 OR FALSE": both,
        "NULL OR a = 1": first,
        "TRUE OR a = 1": both,
        "TRUE AND (a = 1 OR b = 5)": first,
        "NOT (NULL AND a = 1)": both,  # by a = 2 in the first
        "a IN (1, 9)": first,
        "a IN (9, 1) OR b IN (10, 8)": both,
    }.items():
        assert kept(table, condition) == expected, condition


@pytest.mark.parametrize("kind", ["minmax", *EVERY_KIND])
def test_trap_c29_null_of_a_computed_value_is_not_null_of_the_column(
    tmp_path: Path, kind: str
) -> None:
    """No ``a`` is NULL, and both conditions are TRUE of a row all the same."""
    put_all(tmp_path, [{"a": [1, 2]}])
    table = build(tmp_path, {"a": kind})
    for condition in (
        "CASE WHEN a = 1 THEN NULL ELSE a END IS NULL",
        "nullif(a, 1) IS NULL",
    ):
        assert kept(table, condition) == ["0.parquet"], condition
    assert kept(table, "a IS NULL") == []


def test_trap_c47_a_kind_that_was_dropped_answers_no_more(tmp_path: Path) -> None:
    """Statistics stay; what is built anew is of the file as it is now."""
    put_all(tmp_path, [{"a": [1, 9]}, {"a": [2, 8]}])
    build(tmp_path, {"a": ["bloom", "bitmap"]})
    table = sx.drop_indexes(tmp_path, kinds=["bitmap"])
    assert kept(table, "a > 2 AND a < 8") == ["0.parquet", "1.parquet"]
    put_all(tmp_path, [{"a": [5, 5]}])
    assert kept(build(tmp_path, {"a": "bit_sliced"}), "a = 5") == ["0.parquet"]
    assert kept(tmp_path, "a = 1") == []
