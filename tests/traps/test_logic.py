"""Traps of logic and of values: how other planners lost rows, asked of ours.

The numbers are those of the mutants and of the soundness matrix, too.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.errors import CorruptIndexError
from skipindex.indexes import index_types
from tests.tables import build, kept, put, put_all

KINDS = (
    *("bitmap", "range_bitmap", "bit_sliced", "run_length", "exact", "bloom"),
    "minmax",
)


@pytest.mark.parametrize("kind", KINDS)
def test_trap_c9_no_byte_of_a_bound_is_lost(tmp_path: Path, kind: str) -> None:
    """apache/doris 67949: zone maps that ended at a zero byte."""
    values = [b"a\0", b"a\0\0b", b"\0", b"", b"\xff\0"]
    put_all(tmp_path, [{"v": pa.array([value], pa.binary())} for value in values])
    table = build(tmp_path, {"v": kind})
    for i, value in enumerate(values):
        found = kept(table, sx.col("v") == value, kinds=[kind, "minmax"])
        assert found == [f"{i}.parquet"]


def test_trap_c12_a_filter_holds_bytes_and_not_how_they_look(tmp_path: Path) -> None:
    """duckdb 23829: the escaped text of a BLOB, and a probe for a computed value."""
    put_all(tmp_path, [{"v": [b"\\x01"]}, {"v": [b"\x01"]}])
    table = build(tmp_path, {"v": sx.Bloom(error_rate=1e-9)})
    only = {"kinds": ["bloom"]}
    assert kept(table, sx.col("v") == b"\x01", **only) == ["1.parquet"]
    assert kept(table, sx.col("v") == b"\\x01", **only) == ["0.parquet"]
    put_all(tmp_path, [{"v": ["ab"]}, {"v": ["AB"]}])
    table = build(tmp_path, {"v": sx.Bloom(error_rate=1e-9)})
    assert len(kept(table, "concat(v, 'x') = 'ABx'", **only)) == 2
    assert "0.parquet" in kept(table, "upper(v) = 'AB'", **only)


@pytest.mark.parametrize("kind", KINDS)
def test_trap_c17_int96_is_judged_by_its_values(tmp_path: Path, kind: str) -> None:
    """Its footer has no bounds, and nanoseconds would not reach the year 9999."""
    moments = [
        datetime(1, 1, 2),
        datetime(1993, 5, 6, 7, 8, 9, 10),
        datetime(9999, 9, 9),
    ]
    for i, moment in enumerate(moments):
        column = pa.array([moment], pa.timestamp("us"))
        path = tmp_path / f"{i}.parquet"
        put(path, {"t": column}, use_deprecated_int96_timestamps=True)
        footer = pq.read_metadata(path).row_group(0).column(0)
        assert footer.physical_type == "INT96"
        assert footer.statistics is None or not footer.statistics.has_min_max
    assert kept(tmp_path, "t > TIMESTAMP '1990-01-01 00:00:00Z'") == [
        *("0.parquet", "1.parquet", "2.parquet")
    ]
    table = build(tmp_path, {"t": kind})
    for i, moment in enumerate(moments):
        text = f"t = TIMESTAMP '{moment.isoformat(sep=' ')}Z'"
        assert kept(table, text, kinds=[kind, "minmax"]) == [f"{i}.parquet"], text


def test_trap_c18_milliseconds_are_not_rounded_to(tmp_path: Path) -> None:
    """Delta's statistics: a maximum that was cut to milliseconds."""
    moments = [datetime(2020, 1, 1, 0, 0, 0, micros) for micros in (999, 1000, 1001)]
    put_all(tmp_path, [{"v": pa.array([m], pa.timestamp("us"))} for m in moments])
    table = build(tmp_path)
    assert kept(table, sx.col("v") > moments[1], timezone="UTC") == ["2.parquet"]
    put_all(tmp_path, [{"v": pa.array([m], pa.timestamp("ms"))} for m in moments[1:2]])
    coarse = build(tmp_path)
    assert "0.parquet" in kept(coarse, sx.col("v") > moments[0], timezone="UTC")
    assert "0.parquet" not in kept(coarse, sx.col("v") >= moments[2], timezone="UTC")


def test_trap_c21_a_cast_of_the_column_is_no_comparison_of_it(tmp_path: Path) -> None:
    """``string_column = 1`` is ``cast(string_column AS BIGINT) = 1``: '01' matches."""
    put_all(tmp_path, [{"v": ["01"]}, {"v": ["1"]}])
    table = build(tmp_path, {"v": ["bitmap", "bloom"]})
    assert len(kept(table, "v = 1")) == 2
    assert len(kept(table, "v IN (1, 2)")) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_trap_c25_not_in_with_a_null_is_never_true(tmp_path: Path, kind: str) -> None:
    put(tmp_path / "f.parquet", {"v": pa.array([1, 2, None])})
    table = build(tmp_path, {"v": kind})
    for condition in ("v NOT IN (1, NULL)", "NOT v IN (NULL, 5)", "NOT (v = NULL)"):
        plan = table.plan(condition)
        assert (plan.paths, plan.count_bounds) == ([], (0, 0)), condition
    assert table.plan("v IN (1, NULL)", kinds=[kind]).paths == ["f.parquet"]


@pytest.fixture(scope="module")
def of_each_kind(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two files, whose two columns have an index of the kind."""
    folders = {kind: tmp_path_factory.mktemp(kind) for kind in KINDS}
    for kind, folder in folders.items():
        put_all(folder, [{"a": [1], "b": [2]}, {"a": [3], "b": [9]}])
        build(folder, {"a": kind, "b": kind})
    return folders


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("FALSE OR a = 1", ["0.parquet"]),
        ("a = 1 OR 1 = 0", ["0.parquet"]),
        ("NULL OR a = 1 OR b = 9", ["0.parquet", "1.parquet"]),
        ("a = 1 OR NOT (NULL)", ["0.parquet"]),
        ("TRUE OR a = 1", ["0.parquet", "1.parquet"]),
        ("a IN (1, 77) OR b IN (9, 78)", ["0.parquet", "1.parquet"]),
    ],
)
def test_trap_c28_constants_and_lists_in_an_or(
    of_each_kind: dict[str, Path], condition: str, expected: list[str]
) -> None:
    """ClickHouse 119528: ``0 OR …`` over two indexes gave no rows."""
    for kind, folder in of_each_kind.items():
        assert kept(folder, condition) == expected, kind


@pytest.mark.parametrize(
    "beyond",
    [
        *("v < 9223372036854775807.5", "v <= 9223372036854775808"),
        *("v > -9223372036854775808.5", "v >= -9223372036854775809"),
    ],
)
@pytest.mark.parametrize(
    "test", ["IS TRUE", "IS NOT UNKNOWN", "IS NOT FALSE", "<=> TRUE"]
)
def test_no_null_is_lost_where_spark_puts_true_for_a_comparison(
    tmp_path: Path, beyond: str, test: str
) -> None:
    """Spark's analyzer makes TRUE of it, of NULL too, also between two integers."""
    put_all(tmp_path, [{"v": pa.array([value], pa.int64())} for value in (None, 7)])
    table = build(tmp_path, {"v": ["minmax", "bitmap"]})
    assert kept(table, f"({beyond}) {test}") == ["0.parquet", "1.parquet"]


@pytest.mark.parametrize(
    "condition",
    [
        "CASE WHEN v > 5 THEN NULL ELSE v END IS NULL",
        "(v > NULL) IS NULL",
        "nullif(v, 9) IS NULL",
        "if(v = 9, NULL, v) IS NULL",
    ],
)
def test_trap_c29_is_null_of_an_expression_is_not_of_the_column(
    tmp_path: Path, condition: str
) -> None:
    """duckdb-iceberg 464: a computed NULL taken for a stored one."""
    put(tmp_path / "f.parquet", {"v": [9]})
    assert kept(build(tmp_path, {"v": "bitmap"}), condition) == ["f.parquet"]


def test_trap_c47_an_old_index_beside_a_new_one(tmp_path: Path) -> None:
    """paimon 9085: the old kind answered for rows that only the new one knew."""
    put(tmp_path / "f.parquet", {"v": [1]})
    build(tmp_path, {"v": ["bitmap", "bloom"]})
    put(tmp_path / "f.parquet", {"v": [2, 2]})
    table = build(tmp_path, {"v": "bit_sliced"})
    for kinds in (None, *[[name] for name in index_types()]):
        assert kept(table, "v = 2", kinds=kinds) == ["f.parquet"]
    assert table.plan("v = 2").count_bounds == (2, 2)
    assert kept(table, "v = 1") == []


def test_trap_c49_rows_that_are_gone_do_not_count_for_a_limit(tmp_path: Path) -> None:
    """ClickHouse 107309: a top-k that believed the statistics of deleted rows."""
    put(tmp_path / "0.parquet", {"v": [1, 2, 3]})
    put(tmp_path / "1.parquet", {"v": [10, 20, 30]})
    build(tmp_path)
    put(tmp_path / "0.parquet", {"v": [99]})
    plan = sx.plan_files("v > 0", table=tmp_path, limit=2, order_by="v")
    assert plan.paths == ["0.parquet", "1.parquet"]


def test_trap_c50_a_tie_is_no_reason_to_leave_a_file_out(tmp_path: Path) -> None:
    """DataFusion 24352: the second column would have decided."""
    put_all(tmp_path, [{"v": [5, 5], "w": [9, 9]}, {"v": [5], "w": [1]}, {"v": [6]}])
    put(tmp_path / "2.parquet", {"v": [6], "w": [0]})
    plan = build(tmp_path).plan("TRUE", limit=1, order_by=["v", "w"])
    assert plan.paths == ["0.parquet", "1.parquet"]


def test_trap_c53_no_error_of_an_index_leaves_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Iceberg 15311: fall back, and never prune on an error."""
    put_all(tmp_path, [{"v": [1, 9]}, {"v": [2, 8]}])
    kinds = [
        kind for kind in index_types() if kind not in {"ngram_bloom", "token_bloom"}
    ]
    table = build(tmp_path, {"v": kinds})

    def fail(*_args: object) -> None:
        raise CorruptIndexError("nothing is there")

    for kind in index_types().values():
        monkeypatch.setattr(type(kind), "open", fail)
    plan = table.plan("v = 5", without="file_map")
    assert plan.paths == ["0.parquet", "1.parquet"]
    assert any("nothing is there" in note for note in plan.notes)


def test_trap_c54_null_counts_of_nested_columns_are_not_believed(
    tmp_path: Path,
) -> None:
    """Iceberg 11261: a field is NULL where its struct is, and is counted so."""
    values = pa.array([None, {"x": None}, {"x": 1}])
    put(tmp_path / "f.parquet", {"s": values, "a": [1, 2, 3]})
    table = build(tmp_path)
    for condition, n_rows in {
        "s.x IS NULL": 2,
        "s.x IS NOT NULL": 1,
        "s IS NULL": 1,
        "s.x = 1": 1,
    }.items():
        plan = table.plan(condition)
        assert plan.paths == ["f.parquet"]
        least, most = plan.count_bounds
        assert most is not None
        assert least <= n_rows <= most, condition


@pytest.mark.parametrize("pattern", ["🌼%", "%🌼", "_🌼%", "%a🌼b%", "a%🌼b", "🌼"])
def test_trap_c56_where_versions_of_spark_differ_no_row_is_certain(
    tmp_path: Path, pattern: str
) -> None:
    """Spark 55453: LIKE took halves of a character for two, and matched no row."""
    put_all(
        tmp_path, [{"s": [pattern.replace("%", "").replace("_", "x")]}, {"s": ["a"]}]
    )
    table = build(tmp_path, {"s": ["bitmap", "ngram_bloom"]})
    plan = table.plan(f"s LIKE '{pattern}'")
    assert (plan.paths, plan.count_bounds) == (["0.parquet"], (0, 1))
    plan = table.plan(f"s NOT LIKE '{pattern}'")
    assert (len(plan.paths), plan.count_bounds) == (2, (1, 2))
