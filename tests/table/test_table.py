"""Tables: which files they have, what their columns are, what is known of them."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.errors import PredicateError, TableError
from skipindex.source import footer_schema
from skipindex.storage.file_system.location import location_of
from skipindex.storage.file_system.names import is_data_file
from tests.tables import build, put, put_all, set_mtime


def one_sentence(error: pytest.ExceptionInfo[Exception]) -> str:
    text = str(error.value)
    assert "\n" not in text
    assert not text.endswith(".")
    return text


def test_a_wrong_path_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"no such table: '.*nowhere' does not exist"):
        sx.open_table(tmp_path / "nowhere")


def test_a_folder_without_parquet_files_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").write_bytes(b"x")
    (tmp_path / "empty.parquet").write_bytes(b"")
    with pytest.raises(TableError, match="no Parquet files in") as error:
        sx.open_table(tmp_path)
    assert "names that begin with _ or . are ignored" in one_sentence(error)


def test_a_file_instead_of_a_folder_is_one_sentence(tmp_path: Path) -> None:
    path = put(tmp_path / "f.parquet", {"a": [1]})
    with pytest.raises(TableError, match="is a file") as error:
        sx.open_table(path)
    assert str(path) in one_sentence(error)


def test_files_that_are_no_parquet_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match="is not a readable Parquet file") as error:
        sx.open_table(tmp_path)
    assert "a.csv" in one_sentence(error)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list everything")
def test_a_folder_that_may_not_be_listed_is_one_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0)
    try:
        with pytest.raises(TableError, match="cannot list"):
            sx.open_table(tmp_path)
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("form", [str, Path, location_of, "file:{}".format])
def test_a_table_is_opened_by_its_path(tmp_path: Path, form: Any) -> None:
    put(tmp_path / "f.parquet", {"a": [1]})
    table = sx.open_table(form(tmp_path))
    assert table.paths == ["f.parquet"]
    assert sx.open_table(table) is table
    assert len(table) == 1
    assert repr(table) == f"Table({str(tmp_path)!r}, 1 files)"


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("a.parquet", True),
        ("a", True),
        ("a.csv", True),
        ("p=1/q=x/a.parquet", True),
        ("_p=1/a.parquet", True),
        ("_a=b.parquet", True),
        ("_SUCCESS", False),
        ("_metadata", False),
        ("_temporary/0/a.parquet", False),
        ("_skipindex/packs/a.puffin", False),
        ("p=1/.a.parquet.crc", False),
        (".hidden/a.parquet", False),
        (".p=1/a.parquet", False),
        ("a.parquet._COPYING_", False),
    ],
)
def test_trap_c37_hidden_names_are_no_data_files(path: str, *, seen: bool) -> None:
    assert is_data_file(path) == seen


def test_files_are_listed_by_path_with_their_identity(tmp_path: Path) -> None:
    for name in ("b.parquet", "a.parquet", "a-.parquet", "_h.parquet"):
        put(tmp_path / name, {"a": [1, 2]})
    (tmp_path / "0.parquet").write_bytes(b"")
    table = sx.open_table(tmp_path)
    assert table.paths == ["a-.parquet", "a.parquet", "b.parquet"]
    for file in table.files:
        stat = (tmp_path / file.path).stat()
        assert (file.size, file.mtime) == (stat.st_size, stat.st_mtime_ns)
        assert file.n_rows is None, "nothing is known before a build"
    built = build(tmp_path)
    assert [file.n_rows for file in built.files] == [2, 2, 2]


def test_a_root_below_a_hidden_folder_is_a_table_like_any_other(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "_tmp" / ".x"
    put(folder / "f.parquet", {"a": [1]})
    assert build(folder).plan("a = 2").paths == []


def test_an_empty_file_is_not_the_one_that_gives_the_schema(tmp_path: Path) -> None:
    (tmp_path / "0.parquet").write_bytes(b"")
    put(tmp_path / "1.parquet", {"a": [1]})
    assert sx.open_table(tmp_path).schema.names == ["a"]


def test_the_schema_is_of_the_first_file_by_path(tmp_path: Path) -> None:
    put(tmp_path / "p=1" / "0.parquet", {"late": [1]})
    put(tmp_path / "p=0" / "1.parquet", {"early": [1]})
    table = sx.open_table(tmp_path)
    assert table.state.schema_path == "p=0/1.parquet"
    assert [column.name for column in table.columns] == ["early", "p"]


def test_summaries_give_the_schema_before_any_data_file(tmp_path: Path) -> None:
    """As Spark reads it; pandas and dask leave such files."""
    put(tmp_path / "p=1" / "f.parquet", {"a": [1]})
    put(tmp_path / "p=1" / "_metadata", {"a": [1], "b": [1]})
    assert sx.open_table(tmp_path).state.schema_path == "p=1/_metadata"
    put(tmp_path / "_common_metadata", {"a": [1], "c": [1]})
    assert sx.open_table(tmp_path).schema.names == ["a", "c"]
    put(tmp_path / "_old" / "_common_metadata", {"z": [1]})
    put(tmp_path / "_old" / "_metadata", {"z": [1]})
    assert sx.open_table(tmp_path).state.schema_path == "_common_metadata"


def test_columns_say_why_they_have_no_index(tmp_path: Path) -> None:
    columns = {
        "i": pa.array([1], pa.int16()),
        "u": pa.array([np.float16(1)], pa.float16()),
        "l": pa.array([[1]]),
        "s": pa.array([{"x": 1}]),
        "t": pa.array([1], pa.time64("us")),
    }
    put(tmp_path / "f.parquet", columns)
    table = sx.open_table(tmp_path)
    reasons = {c.name: c.reason for c in table.columns}
    assert reasons.pop("i") == ""
    assert reasons.pop("t").startswith("Spark has no type for Parquet's INT64 Time(")
    assert reasons.pop("u") == (
        "Spark has no type for Parquet's FIXED_LEN_BYTE_ARRAY Float16"
    )
    for name, reason in reasons.items():
        assert reason.endswith("cannot be indexed"), name
        with pytest.raises(sx.UnsupportedTypeError, match=f"column '{name}'.*accepted"):
            sx.build_indexes(tmp_path, {name: "minmax"}, workers=1)


def test_resolve_finds_columns_as_spark_does(tmp_path: Path) -> None:
    put(tmp_path / "f.parquet", {"Age": [1], "a.b": [1], "x`y": [1]})
    table = sx.open_table(tmp_path)
    assert table.state.resolve("AGE").name == "Age"
    assert table.state.resolve("Age", case_sensitive=True).name == "Age"
    assert table.state.resolve("A.B").name == "`a.b`"
    assert table.state.resolve("A.B").own_name == "a.b"
    assert table.state.resolve("x`y").own_name == "x`y"
    assert table.state.find("a.b") == table.state.stored("`a.b`")
    with pytest.raises(PredicateError, match=r"no column 'age' in .*\(columns: Age"):
        table.state.resolve("age", case_sensitive=True)


NESTED = pa.array([{"b": 1, "c.d": 2}])
FOUND = [
    ({"a.b": [1]}, "a.b", "`a.b`"),
    ({"a.b": [1]}, "A.B", "`a.b`"),
    ({"a": NESTED, "a.b": [1]}, "a.b", "a.b"),
    ({"a": NESTED, "a.b": [1]}, "A.B", "a.b"),
    ({"a": NESTED, "a.b": [1]}, "`A`.`B`", "a.b"),
    ({"a": NESTED, "a.b": [1]}, "`a.b`", "`a.b`"),
    ({"a": NESTED, "a.b": [1]}, "`A.B`", "`a.b`"),
    ({"a": NESTED, "A.B": [1]}, "a.b", "a.b"),
    ({"a": NESTED, "A.B": [1]}, "`a.b`", "`A.B`"),
    ({"a": NESTED, "a.x": [1]}, "a.x", "`a.x`"),
    ({"a": NESTED, "a.c.d": [1]}, "A.`C.D`", "a.`c.d`"),
    ({"a": NESTED, "a.c.d": [1]}, "a.c.d", "`a.c.d`"),
    ({"x": [1], "`x`": [1]}, "`X`", "x"),
    ({"x": [1], "`x`": [1]}, "```X```", "```x```"),
    ({"x": [1], "X": [1]}, "X", "X"),
    ({"a.b": [1], "A.b": [1]}, "A.b", "`A.b`"),
]


@pytest.mark.parametrize(("columns", "text", "stored"), FOUND)
def test_a_request_finds_a_column_as_sql_does_and_else_by_its_own_name(
    tmp_path: Path, columns: dict[str, Any], text: str, stored: str
) -> None:
    put(tmp_path / "f.parquet", columns)
    assert sx.open_table(tmp_path).state.find(text).name == stored


@pytest.mark.parametrize(
    ("text", "problem"),
    [("a.zz", "no field 'zz' of column 'a'"), ("`a", "not a column name: '`a'")],
)
def test_a_request_for_no_column_says_what_is_missing(
    tmp_path: Path, text: str, problem: str
) -> None:
    put(tmp_path / "f.parquet", {"a": NESTED, "a.b": [1]})
    with pytest.raises(PredicateError, match=problem):
        sx.open_table(tmp_path).state.find(text)


def test_trap_c41_a_name_in_two_cases_is_ambiguous(tmp_path: Path) -> None:
    put(tmp_path / "f.parquet", {"a": [1], "A": [2]})
    table = build(tmp_path)
    with pytest.raises(PredicateError, match=r"ambiguous: \['a', 'A'\]"):
        table.plan("a = 1")
    assert table.plan("A = 1", case_sensitive=True).paths == []
    assert table.plan("a = 1", case_sensitive=True).paths == ["f.parquet"]


def test_a_partition_column_hides_the_files_column_of_its_name(
    tmp_path: Path,
) -> None:
    put(tmp_path / "p=3" / "f.parquet", {"a": [1], "p": [8]})
    table = build(tmp_path)
    assert [c.name for c in table.columns] == ["a", "p"]
    assert table.plan("p = 3").paths == ["p=3/f.parquet"]
    assert table.plan("p = 8").paths == []


def test_a_partition_column_in_other_letters_hides_it_too(tmp_path: Path) -> None:
    put(tmp_path / "p=3" / "f.parquet", {"a": [1], "P": [8]})
    table = build(tmp_path)
    assert table.plan("P = 3").paths == ["p=3/f.parquet"]
    assert table.plan("P = 8").paths == []
    assert table.plan("P = 3", case_sensitive=True).paths == []
    assert table.plan("P = 8", case_sensitive=True).paths == ["p=3/f.parquet"]


def test_freshness_says_why_a_file_has_no_index(tmp_path: Path) -> None:
    put_all(tmp_path, [{"a": [i]} for i in range(3)])
    assert set(sx.open_table(tmp_path).state.freshness) == {"the table has no index"}
    build(tmp_path)
    put(tmp_path / "3.parquet", {"a": [3]})
    set_mtime(tmp_path / "1.parquet", 1e9)
    table = sx.open_table(tmp_path)
    changed = "changed since it was indexed"
    assert table.state.freshness == ["", changed, "", "never indexed"]
    assert table.state.index_gaps == {changed: 1, "never indexed": 1}


def test_int96_is_an_instant(tmp_path: Path) -> None:
    """Trap C-17."""
    moments = pa.array([0, 1_600_000_000_000_000], pa.timestamp("us"))
    path = tmp_path / "f.parquet"
    put(path, {"ts": moments}, use_deprecated_int96_timestamps=True)
    table = build(tmp_path)
    assert table.schema.field("ts").type == pa.timestamp("us", "UTC")
    condition = "ts = TIMESTAMP '1970-01-01 00:00:00'"
    assert table.plan(condition, timezone="UTC").paths == ["f.parquet"]
    condition = "ts = TIMESTAMP '2050-01-01 00:00:00'"
    assert table.plan(condition, timezone="UTC").paths == []


def with_metadata(path: Path, metadata: dict[bytes, bytes], **columns: Any) -> None:
    table = pa.table(columns).replace_schema_metadata(metadata)
    put(path, table)


CHAR = "__CHAR_VARCHAR_TYPE_STRING"


def spark_schema(*fields: dict[str, Any]) -> dict[bytes, bytes]:
    complete = [{"nullable": True, "metadata": {}, **field} for field in fields]
    text = json.dumps({"type": "struct", "fields": complete})
    return {b"org.apache.spark.sql.parquet.row.metadata": text.encode()}


def test_trap_c11_collated_columns_are_not_indexed(tmp_path: Path) -> None:
    plain = {"name": "p", "type": "string", "nullable": True, "metadata": {}}
    collated = {
        **plain,
        "name": "c",
        "metadata": {"__COLLATIONS": {"c": "icu.UNICODE"}},
    }
    spelled = {**plain, "name": "s", "type": "string collate UTF8_LCASE"}
    metadata = spark_schema(plain, collated, spelled)
    with_metadata(tmp_path / "f.parquet", metadata, p=["x"], c=["A"], s=["A"])
    table = build(tmp_path)
    assert {c.name: c.reason for c in table.columns} == {
        "p": "",
        "c": "the column has a collation",
        "s": "the column has a collation",
    }
    assert table.plan("c = 'a'").paths == ["f.parquet"]
    assert table.plan("p = 'a'").paths == []
    with pytest.raises(
        sx.UnsupportedTypeError, match="'c': the column has a collation"
    ):
        sx.build_indexes(tmp_path, {"c": "bloom"}, workers=1)


def test_trap_c11_the_first_file_says_whether_a_column_is_collated(
    tmp_path: Path,
) -> None:
    """Spark reads every file under the types of the first."""
    put(tmp_path / "0.parquet", {"c": ["x"]})
    collated = {"name": "c", "type": "string", "metadata": {"__COLLATIONS": {"c": "u"}}}
    with_metadata(tmp_path / "1.parquet", spark_schema(collated), c=["A"])
    assert build(tmp_path, {"c": "bitmap"}).plan("c = 'a'").paths == []
    (tmp_path / "0.parquet").rename(tmp_path / "2.parquet")
    table = sx.open_table(tmp_path)
    assert table.plan("c = 'a'").paths == ["1.parquet", "2.parquet"]


@pytest.mark.parametrize(
    ("field", "refused"),
    [
        ({"type": "string", "metadata": {CHAR: "char(5)"}}, True),
        ({"type": "char(5)", "metadata": {}}, True),
        ({"type": "string", "metadata": {CHAR: "varchar(5)"}}, False),
        ({"type": "string", "metadata": {}}, False),
    ],
    ids=str,
)
def test_trap_c10_char_columns_that_spark_pads_are_not_indexed(
    tmp_path: Path, field: dict[str, Any], *, refused: bool
) -> None:
    metadata = spark_schema({"name": "c", **field})
    with_metadata(tmp_path / "f.parquet", metadata, c=["ab   "])
    table = build(tmp_path)
    assert ("CHAR" in table.state.resolve("c").reason) == refused
    assert (table.plan("c = 'ab'").paths == ["f.parquet"]) == refused


@pytest.mark.parametrize(
    "text",
    [b"", b"no json", b"[]", b"{}", b'{"fields": [{}]}', b'{"fields": 7}', b"\xff"],
)
def test_a_schema_that_spark_cannot_read_either_is_left_out(
    tmp_path: Path, text: bytes
) -> None:
    key = b"org.apache.spark.sql.parquet.row.metadata"
    with_metadata(tmp_path / "f.parquet", {key: text}, a=[1])
    assert build(tmp_path).plan("a = 2").paths == []


@pytest.mark.parametrize(
    "metadata",
    [
        {b"org.apache.spark.legacyDateTime": b""},
        {b"org.apache.spark.legacyINT96": b"", b"org.apache.spark.version": b"3.4.1"},
        {b"org.apache.spark.version": b"2.4.8"},
        {b"org.apache.spark.version": b"3.0.3"},
    ],
    ids=str,
)
def test_dates_of_the_hybrid_calendar_are_not_indexed(
    tmp_path: Path, metadata: dict[bytes, bytes]
) -> None:
    """Spark shifts them when it reads, so what the file stores is another day."""
    dates = pa.array([-200_000], pa.date32())
    with_metadata(tmp_path / "f.parquet", metadata, d=dates, a=[1])
    put(tmp_path / "g.parquet", {"d": dates, "a": [1]})
    table = build(tmp_path, {"d": "bitmap", "a": "bitmap"})
    assert any("calendar" in gap for gap in table.state.index_gaps)
    assert table.plan("d = DATE '2000-01-01'").paths == ["f.parquet"]
    assert table.plan("a = 2").paths == []


def test_dates_of_todays_spark_are_indexed(tmp_path: Path) -> None:
    metadata = {b"org.apache.spark.version": b"4.3.0"}
    with_metadata(tmp_path / "f.parquet", metadata, d=pa.array([1], pa.date32()))
    assert build(tmp_path).plan("d = DATE '1970-01-03'").paths == []


def test_arrow_types_of_the_table_are_those_of_spark(tmp_path: Path) -> None:
    columns = {
        "dict": pa.array(["x"]).dictionary_encode(),
        "dec": pa.array([Decimal("1.5")], pa.decimal128(10, 2)),
        "ltz": pa.array([1], pa.timestamp("ms", "Europe/Paris")),
    }
    path = put(tmp_path / "f.parquet", columns)
    schema, refused = footer_schema(pq.ParquetFile(path))
    assert not refused
    domains = {
        c.name: c.domain and c.domain.tag for c in sx.open_table(tmp_path).columns
    }
    assert domains == {"dict": "string", "dec": "decimal:2", "ltz": "timestamp"}
    assert schema.names == list(columns)


def test_refresh_sees_what_has_changed(tmp_path: Path) -> None:
    put(tmp_path / "0.parquet", {"a": [1]})
    table = sx.open_table(tmp_path)
    put(tmp_path / "1.parquet", {"a": [2]})
    build(tmp_path)
    assert (len(table), table.state.snapshot.version) == (1, -1), "a table is immutable"
    again = table.refresh()
    assert (len(again), again.state.snapshot.version) == (2, 0)


def test_partition_types_are_kept_by_refresh(tmp_path: Path) -> None:
    put(tmp_path / "p=01" / "f.parquet", {"a": [1]})
    table = sx.open_table(tmp_path, partition_types={"p": pa.string()})
    assert table.refresh().plan("p = '1'").paths == []
    assert sx.open_table(tmp_path).plan("p = '1'").paths == ["p=01/f.parquet"]


def test_files_in_a_plain_folder_are_not_the_tables(tmp_path: Path) -> None:
    put(tmp_path / "f.parquet", {"a": [1]})
    put(tmp_path / "backup" / "f.parquet", {"a": [2]})
    table = build(tmp_path)
    assert table.paths == table.state.snapshot.manifest.paths == ["f.parquet"]
    assert table.plan("a > 0").count_bounds == (1, 1)


def test_a_table_of_plain_folders_alone_says_so(tmp_path: Path) -> None:
    put(tmp_path / "2020" / "f.parquet", {"a": [1]})
    with pytest.raises(TableError, match=r"'2020/f\.parquet' is in a folder") as error:
        sx.open_table(tmp_path)
    assert "k=v" in one_sentence(error)


def test_a_table_below_a_plain_folder_is_found(tmp_path: Path) -> None:
    put(tmp_path / "inner" / "p=1" / "f.parquet", {"a": [1]})
    table = build(tmp_path)
    assert table.plan("p = 1").paths == ["inner/p=1/f.parquet"]
    assert table.plan("p = 2").paths == []


def test_a_stray_file_gives_the_schema_and_no_rows(tmp_path: Path) -> None:
    put(tmp_path / "0.parquet", {"a": [1], "b": [2]})
    put(tmp_path / "p=1" / "f.parquet", {"a": [1]})
    table = build(tmp_path)
    assert table.paths == ["p=1/f.parquet"]
    assert [column.name for column in table.columns] == ["a", "b", "p"]
    assert table.plan("b = 2").paths == []


def test_empty_files_count_for_the_types_of_partitions(tmp_path: Path) -> None:
    put(tmp_path / "p=1" / "f.parquet", {"a": [1]})
    (tmp_path / "p=x").mkdir()
    (tmp_path / "p=x" / "empty.parquet").write_bytes(b"")
    table = sx.open_table(tmp_path)
    assert table.state.partitions[0].dtype == pa.string()
    assert table.state.over([]).partitions[0].dtype == pa.string()


def test_a_table_may_have_no_file_that_is_read(tmp_path: Path) -> None:
    put(tmp_path / "stray.parquet", {"a": [1]})
    (tmp_path / "p=1").mkdir()
    (tmp_path / "p=1" / "empty.parquet").write_bytes(b"")
    table = build(tmp_path, {"a": "bitmap"})
    assert [column.name for column in table.columns] == ["a", "p"]
    plan = table.plan("a = 1 AND p = 1")
    assert plan.paths == []
    assert plan.count_bounds == (0, 0)


@pytest.mark.parametrize(
    ("folders", "problem"),
    [
        (["p=1", "sub"], "do not begin in one folder"),
        (["a/p=1", "b/p=1"], "do not begin in one folder"),
        (["p=1", "q=1"], r"the partition columns of 'q=1' are \['q'\]"),
        (["p=1", "p=1/q=1"], r"are \['p', 'q'\], those of 'p=1' are \['p'\]"),
        (["p="], "has no name or no value"),
        (["=1"], "has no name or no value"),
        (["p=1/p=2"], "two of one name"),
    ],
    ids=str,
)
def test_folders_that_spark_refuses_are_one_sentence(
    tmp_path: Path, folders: list[str], problem: str
) -> None:
    for folder in folders:
        put(tmp_path / folder / "f.parquet", {"a": [1]})
    with pytest.raises(TableError, match=problem) as error:
        sx.open_table(tmp_path)
    one_sentence(error)


def test_declared_types_tell_partitions_that_differ_in_capitals_apart(
    tmp_path: Path,
) -> None:
    put(tmp_path / "P=01" / "p=1" / "f.parquet", {"a": [1]})
    table = sx.open_table(tmp_path, partition_types={"P": pa.string()})
    assert [p.dtype for p in table.state.partitions] == [pa.string(), pa.int32()]
    table = sx.open_table(tmp_path, partition_types={"x": pa.string()})
    assert [p.dtype for p in table.state.partitions] == [pa.int32(), pa.int32()]


def test_verify_checks_fields_and_leaves_times_of_folders_alone(tmp_path: Path) -> None:
    folder = tmp_path / "p=2020-01-01 10%3A30%3A00"
    put(folder / "f.parquet", {"s": pa.array([{"x": 1}]), "a": [1]})
    table = build(tmp_path, {"s.x": "bitmap", "a": "minmax"})
    later = "p = TIMESTAMP '2021-01-01 00:00:00'"
    for condition, unchecked in (("s.x = 2", False), (later, True)):
        report = table.plan(condition, timezone="UTC").verify()
        assert not report.violations
        assert bool(report.unchecked) == unchecked
