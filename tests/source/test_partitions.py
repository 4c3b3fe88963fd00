"""Partition columns out of paths, without Spark."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from skipindex.errors import TableError
from skipindex.source.partitions.hive import partition_columns, partition_domain
from skipindex.source.partitions.inference import INSTANT, infer_type
from tests.tables import kept, put

INT, LONG, DATE, TEXT = pa.int32(), pa.int64(), pa.date32(), pa.string()
DOUBLE = pa.float64()


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (["1", "2"], INT),
        (["01", "+5", "-0"], INT),  # trap C-30
        (["2147483647", "-2147483648"], INT),
        (["2147483648"], LONG),
        (["-9223372036854775808"], LONG),
        (["9223372036854775808"], pa.decimal128(19, 0)),
        (["2020-01-01", "0001-12-31"], DATE),
        (["a", "b c", "é", "x=y", ""], TEXT),
        ([], None),
        (["1", "a"], TEXT),
        (["01", "2020-01-01", "k"], TEXT),
        (["1k", "2q"], TEXT),
        (["2020w31", "2020"], TEXT),
        (["1d", "2f"], DOUBLE),
        (["1", "99999999999999999999"], pa.decimal128(20, 0)),
        (["3000000000", "1e5"], pa.decimal128(20, 0)),
        (["1", "1.5e1", "5."], pa.decimal128(10, 0)),
        (["9" * 38], pa.decimal128(38, 0)),
        (["9" * 39, "1e40"], DOUBLE),
        (["1", "1.5"], DOUBLE),
        (["3000000000", "1.5"], TEXT),
        (["1e5", "1.5"], TEXT),
        (["1", "2020-01-01"], TEXT),
        (["%31"], TEXT),
        (["0x10", "1", "2020-01-01"], TEXT),  # whatever the first one is
        (["0e7"], None),
        (["1a", "0xAB"], None),
        (["12T10", "1Z"], None),
        (["1-k"], None),
        (["1\u0137"], None),
        (["1.5"], DOUBLE),
        ([".5", "-.5", "1E-2"], DOUBLE),
        (["NaN"], DOUBLE),
        (["-Infinity"], DOUBLE),
        ([" 1.5"], DOUBLE),
        (["2020-02-30"], None),
        (["2020-01-01 00:00:00", "2020-01-01 10%3A00%3A00.5"], INSTANT),
        (["2020-01-01 00:00:00", "2020-01-01"], INSTANT),
        (["2020-01-01 00:00:00.25"], None),
        (["2020-01-01 24:00:00"], None),
        (["2020-1-1"], None),
        (["0x10"], None),
        (["\u0661", "\u0662"], None),  # Java's parseInt reads any digits
        (["\uff11"], None),
        (["-"], TEXT),
        (["Nan", "infinity"], TEXT),
    ],
    ids=repr,
)
def test_types_are_inferred_or_left_to_spark(
    values: list[str], dtype: pa.DataType | None
) -> None:
    assert infer_type(set(values)) == dtype


def columns_of(
    *paths: str, **declared: pa.DataType
) -> dict[str, tuple[str | None, ...]]:
    return {c.name: c.values for c in partition_columns(paths, declared)}


def test_names_and_values_stand_in_the_folders() -> None:
    found = columns_of("year=2022/month=01/f", "year=2023/month=12/g=h")
    assert found == {"year": ("2022", "2023"), "month": ("01", "12")}
    assert columns_of("f", "x/y/f") == {}
    assert columns_of() == {}


def test_trap_c40_the_default_partition_is_null() -> None:
    found = columns_of("p=__HIVE_DEFAULT_PARTITION__/f", "p=x/f")
    assert found == {"p": (None, "x")}


@pytest.mark.parametrize(
    ("folder", "value"),
    [
        ("p=a%2Fb", "a/b"),
        ("p=a b", "a b"),
        ("p=é", "é"),
        ("p=%C3%A9", "Ã©"),  # one character an escape, as Hive does
        ("p=%FF", "ÿ"),
        ("p=%", "%"),
        ("p=%2", "%2"),
        ("p=%zz", "%zz"),
        ("p=%2525", "%25"),
        ("p=x=y", "x=y"),
        ("%70=1", "1"),
    ],
)
def test_trap_c38_values_are_unescaped_as_spark_does(folder: str, value: str) -> None:
    assert columns_of(f"{folder}/f") == {"p": (value,)}


def test_a_plain_folder_hides_the_partitions_above_it() -> None:
    assert columns_of("x=1/plain/y=2/f") == {"y": ("2",)}
    assert columns_of("x=1/y=2/plain/deep/f") == {"x": ("1",), "y": ("2",)}


def test_paths_of_different_columns_are_refused() -> None:
    with pytest.raises(TableError, match=r"'b=1' are \['b'\], those of 'a=1'"):
        columns_of("a=1/f", "b=1/f")
    with pytest.raises(TableError, match="expected the same for all files"):
        columns_of("f", "a=1/f")


def test_declared_types_win() -> None:
    (column,) = partition_columns(["p=01/f"], {"p": pa.string()})
    domain = partition_domain(column)
    assert domain is not None
    assert column.typed(domain) == [b"01"]


@pytest.mark.parametrize(
    ("dtype", "value", "judged"),
    [
        (pa.int8(), "127", True),
        (pa.int8(), "128", False),
        (pa.int64(), "128", True),
        (pa.int32(), "x", False),
        (pa.date32(), "2020-01-31", True),
        (pa.date32(), "2020-1-31", False),
        (pa.float64(), "1", True),
        (pa.timestamp("us"), "2020-01-31", False),
        (pa.bool_(), "true", True),
        (pa.bool_(), "TRUE", False),
        (pa.decimal128(5, 2), "1", False),
    ],
)
def test_a_declared_type_counts_if_every_value_is_one_of_it(
    dtype: pa.DataType, value: str, *, judged: bool
) -> None:
    (column,) = partition_columns([f"p={value}/f"], {"p": dtype})
    assert (partition_domain(column) is not None) == judged


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=5))
def test_integers_are_read_as_they_are_written(numbers: list[int]) -> None:
    (column,) = partition_columns([f"p={n}/f" for n in numbers], {})
    domain = partition_domain(column)
    assert domain is not None
    assert column.typed(domain) == numbers


def table_of(folder: Path, *values: str) -> sx.Table:
    for value in values:
        put(folder / f"p={value}" / "f.parquet", {"a": [1]})
    return sx.open_table(folder)


def test_trap_c30_month_01_is_the_number_one(tmp_path: Path) -> None:
    table = table_of(tmp_path, "01", "02", "12")
    assert kept(table, "p = 1") == kept(table, "p = '1'") == ["p=01/f.parquet"]
    assert kept(table, "p < 12") == ["p=01/f.parquet", "p=02/f.parquet"]
    assert kept(table, "p IN (2, 12)") == ["p=02/f.parquet", "p=12/f.parquet"]


def test_partition_values_decide_without_any_index(tmp_path: Path) -> None:
    table = table_of(tmp_path, "a", "b", "__HIVE_DEFAULT_PARTITION__")
    assert kept(table, "p = 'a'") == ["p=a/f.parquet"]
    assert kept(table, "p != 'a'") == ["p=b/f.parquet"]
    assert kept(table, "p IS NULL") == ["p=__HIVE_DEFAULT_PARTITION__/f.parquet"]
    assert kept(table, "p IS NOT NULL") == ["p=a/f.parquet", "p=b/f.parquet"]
    assert kept(table, "NOT (p <=> 'a')") == [
        "p=__HIVE_DEFAULT_PARTITION__/f.parquet",
        "p=b/f.parquet",
    ]
    assert kept(table, "p LIKE 'b%'") == ["p=b/f.parquet"]


def test_dates_in_paths_are_dates(tmp_path: Path) -> None:
    table = table_of(tmp_path, "2020-01-31", "2020-02-01")
    assert kept(table, "p = DATE '2020-01-31'") == ["p=2020-01-31/f.parquet"]
    assert kept(table, "p >= '2020-02-01'") == ["p=2020-02-01/f.parquet"]


def test_a_column_that_only_spark_can_type_prunes_nothing(tmp_path: Path) -> None:
    table = table_of(tmp_path, "0x10", "2")
    assert len(kept(table, "p = 7")) == 2
    assert len(kept(table, "p IS NULL")) == 2
    assert "only Spark knows the type" in table.plan("p = 7").explain()


def test_a_partition_column_has_no_index_to_build(tmp_path: Path) -> None:
    table = table_of(tmp_path, "1")
    with pytest.raises(sx.UnsupportedTypeError, match="it is a partition column"):
        sx.build_indexes(table, {"p": "bitmap"}, workers=1)
    assert sx.build_indexes(table, {"*": "minmax"}, workers=1).files == 1


@pytest.mark.parametrize(
    ("names", "conditions"),
    [
        (
            [b"k=\xff/0", b"k=a/0", b"k=b/0"],
            ["k = 'a'", "k IS NULL", "k = 'b' OR x = 1"],
        ),
        ([b"k=\xff/0", b"k=1/0", b"k=2/0"], ["k = 1", "k < 5", "k IN (1, 3)"]),
        ([b"\xff", b"\xfe", b"a"], []),
    ],
    ids=["texts", "numbers", "flat"],
)
def test_paths_that_are_no_utf8_are_read_and_have_no_index(
    tmp_path: Path, names: list[bytes], conditions: list[str]
) -> None:
    """Such as of an old archive; a partition of such a value is left to Spark."""
    for i, name in enumerate(names):
        file = put(tmp_path / "new.parquet", {"x": [i]})
        target = tmp_path / os.fsdecode(name + b".parquet")
        try:
            target.parent.mkdir(exist_ok=True)
            file.rename(target)
        except OSError:
            pytest.skip("the file system has no such names")
    every = {os.fsdecode(name + b".parquet") for name in names}
    odd = {path for path in every if not path.isascii()}
    assert {*kept(tmp_path, "x = 5")} == every
    report = sx.build_indexes(tmp_path, {"x": "bitmap"}, workers=1)
    assert f"{len(odd)} files: not indexed: the path is not UTF-8" in str(report)
    assert (report.files, report.unchanged) == (len(every - odd), 0)
    str(report).encode()  # it can be printed
    again = sx.open_table(tmp_path).refresh_indexes(workers=1)
    assert (again.files, again.unchanged) == (0, len(every - odd))
    for table in (report.table, sx.open_table(tmp_path)):
        assert {*kept(table, "x = 5")} == odd
        for condition in conditions:
            assert {*kept(table, condition)} == every, condition
