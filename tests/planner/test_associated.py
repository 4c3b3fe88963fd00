"""Plans over associated columns against the row oracle of the joined rows.

Keys are NULL, missing in the dimension, integers or strings; predicates have NOT, IN
and IS NULL, and the fact's own columns beside the associated ones.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from skipindex.expressions import Predicate
from skipindex.planner.bound_predicate import unknowns
from tests import oracle
from tests.quick_run import examples
from tests.strategies import ColumnData, integers_of, predicates, tables, to_arrow
from tests.tables import kept, put, put_all

EXACT = (sx.Bitmap(), sx.RangeBitmap(), sx.BitSliced(), sx.Exact())
OTHERS = (sx.Bloom(), sx.MinMax(), sx.RangeBitmap(max_bitmaps=2))
KEYS: Mapping[str, tuple[pa.DataType, Sequence[Any]]] = {
    "int": (pa.int32(), [-(2**31), -1, 0, 1, 7, 2**31 - 1]),
    "bigint": (pa.int64(), [-(2**63), -1, 0, 1, 2**63 - 1]),
    "string": (pa.string(), ["", "a", "A", "é", "\U0010ffff"]),
}


def joined(
    keys: Sequence[Any], table_keys: Sequence[Any], attributes: Sequence[Any]
) -> tuple[Any, ...]:
    """Of every key the attribute, NULL where there is none."""
    pairs = zip(table_keys, attributes, strict=True)
    known = {key: value for key, value in pairs if key is not None}
    return tuple(None if key is None else known.get(key) for key in keys)


def write(folder: Path, columns: pa.Table, n_files: int) -> Path:
    """The rows dealt out to files in turn; some may be empty."""
    for i in range(n_files):
        rows = [row for row in range(len(columns)) if row % n_files == i]
        put(folder / f"{i}.parquet", columns.take(pa.array(rows, pa.int64())))
    return folder


def check_joined(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(KEYS)))
    dtype, values = KEYS[kind]
    attributes = data.draw(tables(max_columns=2, min_rows=1, max_rows=5))
    n = len(attributes["a"].values)
    some = st.lists(st.sampled_from(values), min_size=n, max_size=n, unique=True)
    table_keys: list[Any] = data.draw(some)
    if data.draw(st.booleans()):
        table_keys[0] = None
    keys = data.draw(st.lists(st.sampled_from([*values, None]), max_size=12))
    own = data.draw(st.lists(st.integers(0, 3), min_size=len(keys), max_size=len(keys)))
    virtual = {
        name: ColumnData(column.dtype, joined(keys, table_keys, column.values))
        for name, column in attributes.items()
    }
    virtual["own"] = ColumnData(pa.int64(), tuple(own))
    tree = data.draw(predicates(virtual))
    n_files = data.draw(st.integers(1, 3))
    exact = data.draw(st.booleans())
    specs = EXACT if exact else OTHERS
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        dimension = to_arrow(attributes).append_column("k", pa.array(table_keys, dtype))
        cut = data.draw(st.integers(0, n))
        put(root / "d" / "0.parquet", dimension.slice(0, cut))
        put(root / "d" / "1.parquet", dimension.slice(cut))
        fact = pa.table(
            {"key": pa.array(keys, dtype), "own": pa.array(own, pa.int64())}
        )
        write(root / "f", fact, n_files)
        indexes: dict[str, Any] = {
            name: data.draw(st.sampled_from(specs)) for name in attributes
        }
        indexes["own"] = sx.Bitmap()
        given_columns = {
            name: sx.via("key", root / "d", "k", name) for name in attributes
        }
        built = sx.build_indexes(
            root / "f", indexes, associated=given_columns, workers=1
        )
        assert built.notes == ()
        table = built.table
        plan = sx.plan_files(tree, table=table, timezone="UTC")
        hits = _matches(tree, virtual, n_files)
        needed = {f"{i}.parquet" for i, found in enumerate(hits) if found}
        assert needed <= set(plan.paths)
        counts = plan.row_counts
        for i, found in enumerate(hits):
            assert counts.lower[i] <= found
            assert not 0 <= counts.upper[i] < found
            if exact and not list(unknowns(plan.tree)):
                assert counts.lower[i] == counts.upper[i] == found


@examples(40)
@given(st.data())
def test_plans_over_associated_columns_agree_with_the_oracle(
    data: st.DataObject,
) -> None:
    check_joined(data)


@pytest.mark.slow
@given(st.data())
def test_many_plans_over_associated_columns_agree_with_the_oracle(
    data: st.DataObject,
) -> None:
    check_joined(data)


def _matches(
    tree: Predicate, columns: Mapping[str, ColumnData], n_files: int
) -> list[int]:
    values = {name: column.values for name, column in columns.items()}
    hits = oracle.matching(tree, values, integers=integers_of(columns))
    found = [0] * n_files
    for row in hits:
        found[row % n_files] += 1
    return found


@pytest.fixture
def star(tmp_path: Path) -> Path:
    """A dimension of regions, and a fact of four files with two keys."""
    return write_star(tmp_path)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> sx.Table:
    """The same fact with indexes; for reading only."""
    folder = write_star(tmp_path_factory.mktemp("star"))
    return associated(folder, {"x": "bitmap", "c_size": "bit_sliced"})


def write_star(folder: Path) -> Path:
    put(
        folder / "customer" / "0.parquet",
        {
            "c_custkey": pa.array([1, 2, 3, 4, None], pa.int32()),
            "c_region": ["ASIA", "ASIA", "EUROPE", None, "AFRICA"],
            "c_size": pa.array([10, 20, 30, 40, 50], pa.int16()),
        },
    )
    put(
        folder / "date" / "0.parquet",
        {"d_datekey": [100, 200, 300], "d_year": [1997, 1998, 1999]},
    )
    put_all(
        folder / "fact",
        [
            {"lo_custkey": [1, 3], "lo_orderdate": [100, 200], "x": [1, 2]},
            {"lo_custkey": [1, 3], "lo_orderdate": [200, 100], "x": [1, 2]},
            {"lo_custkey": [4, 9], "lo_orderdate": [100, None], "x": [1, 2]},
            {"lo_custkey": [None, 2], "lo_orderdate": [100, 900], "x": [1, 2]},
        ],
    )
    return folder


def associated(star: Path, indexes: Any = None) -> sx.Table:
    customer, dates = star / "customer", star / "date"
    return sx.build_indexes(
        star / "fact",
        {} if indexes is None else indexes,
        associated={
            "c_region": sx.via("lo_custkey", customer, "c_custkey", "c_region"),
            "c_size": sx.via("lo_custkey", customer, "c_custkey", "c_size"),
            "d_year": sx.via("lo_orderdate", dates, "d_datekey", "d_year"),
        },
        workers=1,
    ).table


@pytest.mark.parametrize(
    ("predicate", "files"),
    [
        ("c_region = 'ASIA'", [0, 1, 3]),
        ("c_region = 'ASIA' AND d_year = 1997", [0]),
        ("c_region = 'EUROPE' AND d_year = 1997", [1]),
        ("NOT (c_region = 'ASIA')", [0, 1]),
        ("c_region IS NULL", [2, 3]),
        ("c_region IS NULL AND d_year IS NOT NULL", [2, 3]),
        ("d_year IS NULL", [2, 3]),
        ("c_region = 'AFRICA'", []),
        ("C_REGION = 'ASIA' AND x = 2", [3]),
        ("c_size > 25", [0, 1, 2]),
        ("c_size BETWEEN 11 AND 29", [3]),
        ("c_region LIKE 'A%' AND d_year >= 1998", [1]),
        ("length(c_region) = 6 AND d_year = 1998", [0]),
        ("c_region <=> NULL AND d_year <=> 1997", [2, 3]),
    ],
)
def test_conditions_on_several_dimensions_are_combined_row_by_row(
    indexed: sx.Table, predicate: str, files: list[int]
) -> None:
    assert kept(indexed, predicate) == [f"{i}.parquet" for i in files]
    assert kept(Path(indexed.folder), predicate) == [f"{i}.parquet" for i in files]


def test_the_indexes_of_associated_columns_are_listed(star: Path) -> None:
    table = associated(star, {"c_size": ["bit_sliced", "bloom"]})
    found = {(info.column, info.kind) for info in table.indexes}
    assert {
        ("c_region", "bitmap"),
        ("d_year", "bitmap"),
        ("c_size", "bit_sliced"),
        ("c_size", "bloom"),
        ("c_size", "minmax"),
    } <= found
    status = {column.name: column for column in table.status().columns}
    assert status["c_region"].indexes == {"bitmap": 4}
    assert table.verify().ok


def test_rows_are_not_read_by_a_column_that_is_not_stored(star: Path) -> None:
    table = associated(star)
    plan = table.plan("c_region = 'ASIA' AND d_year = 1997")
    assert plan.count() == 1
    with pytest.raises(sx.PlanError, match="'c_region' is associated"):
        plan.read(None)  # type: ignore[arg-type]
    with pytest.raises(sx.PlanError, match="'c_region' is associated"):
        plan.verify()
    with pytest.raises(sx.PlanError, match="cannot be ordered by"):
        table.plan("x = 1", limit=1, order_by="c_region")


def test_a_column_of_the_table_comes_first(star: Path) -> None:
    associated(star)
    put(star / "fact" / "4.parquet", {"lo_custkey": [1], "c_region": ["x"]})
    schema = pa.schema([("lo_custkey", pa.int64()), ("c_region", pa.string())])
    table = sx.open_table(star / "fact", schema=schema)
    assert kept(table, "c_region = 'AFRICA'") == table.paths


def test_names_are_told_apart_by_capitals_where_they_are(star: Path) -> None:
    table = associated(star)
    with pytest.raises(sx.PredicateError, match="no column 'C_REGION'"):
        table.plan("C_REGION = 'ASIA'", case_sensitive=True)
    plan = table.plan("c_region = 'ASIA' AND d_year = 1997", case_sensitive=True)
    assert plan.paths == ["0.parquet"]


def test_a_key_of_another_type_makes_the_indexes_void(star: Path) -> None:
    associated(star)
    narrow = pa.schema([("lo_custkey", pa.int8()), ("lo_orderdate", pa.int64())])
    table = sx.open_table(star / "fact", schema=narrow)
    plan = table.plan("c_region = 'AFRICA'")
    assert plan.paths == table.paths
    assert "'lo_custkey', which is joined by, has another type" in plan.explain()


def test_a_key_with_a_default_makes_the_indexes_void(star: Path) -> None:
    """A file that lacks the key has the rows of the default's dimension."""
    associated(star)
    with_default = {"EXISTS_DEFAULT": "7"}
    key = pa.field("lo_custkey", pa.int64(), metadata=with_default)
    schema = pa.schema([key, ("lo_orderdate", pa.int64())])
    plan = sx.open_table(star / "fact", schema=schema).plan("c_region = 'AFRICA'")
    assert plan.paths == plan.table.paths
    assert "'lo_custkey', which is joined by, have its default" in plan.explain()


def test_a_file_that_spells_the_key_otherwise_is_read(star: Path) -> None:
    rows = pq.read_table(star / "fact" / "1.parquet")
    rows = rows.rename_columns(["LO_CUSTKEY", "lo_orderdate", "x"])
    pq.write_table(rows, star / "fact" / "1.parquet")
    table = associated(star)
    assert kept(table, "c_region = 'AFRICA'") == ["1.parquet"]


def test_a_key_that_does_not_fit_the_type_of_the_table_is_not_looked_up(
    star: Path,
) -> None:
    put(star / "fact" / "4.parquet", {"lo_custkey": [2**40], "lo_orderdate": [100]})
    schema = pa.schema([("lo_custkey", pa.int32()), ("lo_orderdate", pa.int64())])
    table = sx.open_table(star / "fact", schema=schema)
    via = sx.via("lo_custkey", star / "customer", "c_custkey", "c_region")
    table = table.build_indexes({}, associated={"c_region": via}, workers=1).table
    assert kept(table, "c_region = 'AFRICA'") == ["4.parquet"]


def test_files_without_the_key_column_have_no_match(star: Path) -> None:
    put(star / "fact" / "4.parquet", {"x": [1]})
    table = associated(star)
    assert kept(table, "c_region IS NULL") == ["2.parquet", "3.parquet", "4.parquet"]
    assert kept(table, "c_region IS NOT NULL AND d_year = 1999") == []


def test_a_row_of_the_dimension_without_a_key_moves_no_attribute(
    tmp_path: Path,
) -> None:
    """Its attribute goes with it, and those after it stay beside their own keys."""
    put(tmp_path / "d" / "0.parquet", {"k": [1, None, 2], "name": ["a", "b", "c"]})
    for key in (1, 2):
        put(tmp_path / "f" / f"{key}.parquet", {"key": [key]})
    given_columns = {"name": sx.via("key", tmp_path / "d", "k", "name")}
    table = sx.build_indexes(
        tmp_path / "f", {"name": "bitmap"}, associated=given_columns, workers=1
    ).table
    assert kept(table, "name = 'a'") == ["1.parquet"]
    assert kept(table, "name = 'c'") == ["2.parquet"]
    assert kept(table, "name = 'b'") == []
