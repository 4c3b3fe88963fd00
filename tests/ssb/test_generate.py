from __future__ import annotations

import re
import struct
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import xxhash
from pyspark.sql import SparkSession

from ssb.data import generate
from ssb.data.generate import DEFAULT_SEED, TABLES, Dataset
from ssb.data.lineorder import lineorder
from ssb.data.scale import Sizes
from tests.spark.reading.whole import settings

DIMENSIONS = {
    "customer": ("lo_custkey", "c_custkey"),
    "supplier": ("lo_suppkey", "s_suppkey"),
    "part": ("lo_partkey", "p_partkey"),
    "date": ("lo_orderdate", "d_datekey"),
}


@pytest.fixture(scope="module")
def tables(ssb_dataset: Dataset) -> dict[str, pa.Table]:
    return {table: read(ssb_dataset, table) for table in TABLES}


@pytest.fixture(scope="module")
def tpch(ssb_dataset: Dataset, spark: SparkSession) -> dict[str, pa.Table]:
    folder = ssb_dataset.path.parent / "tpch"
    frames = generate._make_tpch(folder, scale=ssb_dataset.scale, spark=spark)
    assert "lineitem" in frames
    tables = {
        table: pq.read_table(folder / f"{table}.parquet")
        for table in ("lineitem", "orders", "customer", "part")
    }
    return {name: table.cast(plain(table.schema)) for name, table in tables.items()}


def plain(schema: pa.Schema) -> pa.Schema:
    """The schema with strings that every function of pyarrow can take."""
    views = [i for i, dtype in enumerate(schema.types) if dtype == pa.string_view()]
    for i in views:
        schema = schema.set(i, pa.field(schema.names[i], pa.string()))
    return schema


def data_files(dataset: Dataset, table: str) -> list[Path]:
    return sorted((dataset.path / table).glob("*.parquet"))


def read(dataset: Dataset, table: str) -> pa.Table:
    files = data_files(dataset, table)
    return pa.concat_tables([pq.read_table(file) for file in files])


def ints(column: pa.ChunkedArray, *, factor: int = 1) -> np.ndarray:
    return np.rint(pc.cast(column, pa.float64()).to_numpy() * factor).astype(np.int64)


# ----------------------------------------------------------------- the tables


@pytest.mark.slow
@pytest.mark.spark
def test_row_counts_follow_from_the_scale(tables: dict[str, pa.Table]) -> None:
    n_rows = {name: table.num_rows for name, table in tables.items()}
    assert n_rows["lineorder_flat"] == n_rows["lineorder"]
    assert 58_000 < n_rows.pop("lineorder_flat") < 62_000
    assert pc.count_distinct(tables["lineorder"]["lo_orderkey"]).as_py() == 15_000
    del n_rows["lineorder"]
    assert n_rows == {"customer": 300, "supplier": 20, "part": 2000, "date": 2556}


@pytest.mark.slow
@pytest.mark.spark
def test_columns_and_types(tables: dict[str, pa.Table]) -> None:
    flat = tables["lineorder_flat"]
    star = [*tables["lineorder"].column_names]
    for table in DIMENSIONS:
        star += tables[table].column_names[1:]
    assert flat.column_names == star
    assert len(star) == 54
    assert tables["lineorder"].schema.field(0).type == pa.int64()
    text = re.compile(r"[csp]_(?!size|.*key)|lo_(orderpriority|shipmode)")
    dates = ("d_date", "d_dayofweek", "d_month", "d_yearmonth", "d_sellingseason")
    for table in tables.values():
        for field in table.schema:
            is_text = bool(text.match(field.name)) or field.name in dates
            if field.name != "lo_orderkey":
                assert field.type == (pa.string() if is_text else pa.int32()), field


@pytest.mark.slow
@pytest.mark.spark
def test_there_are_no_nulls(tables: dict[str, pa.Table]) -> None:
    for table in tables.values():
        assert {table[name].null_count for name in table.column_names} == {0}


@pytest.mark.slow
@pytest.mark.spark
def test_every_foreign_key_finds_one_row(tables: dict[str, pa.Table]) -> None:
    for table, (fact_key, key) in DIMENSIONS.items():
        keys = tables[table][key]
        assert pc.count_distinct(keys).as_py() == len(keys), table
        facts = pc.unique(tables["lineorder"][fact_key])
        assert pc.all(pc.is_in(facts, keys.combine_chunks())).as_py(), table


@pytest.mark.slow
@pytest.mark.spark
def test_the_flat_table_is_the_star_joined(tables: dict[str, pa.Table]) -> None:
    flat = tables["lineorder_flat"]
    assert flat.select(tables["lineorder"].column_names).equals(tables["lineorder"])
    for table, (fact_key, key) in DIMENSIONS.items():
        dimension = tables[table]
        places = pc.index_in(flat[fact_key], dimension[key].combine_chunks())
        joined = dimension.take(places).drop_columns([key])
        columns = flat.select(joined.column_names)
        assert columns.equals(joined.cast(columns.schema)), table


@pytest.mark.slow
@pytest.mark.spark
def test_files_are_even_and_in_the_order_of_generation(ssb_dataset: Dataset) -> None:
    for table in ("lineorder", "lineorder_flat"):
        files = data_files(ssb_dataset, table)
        assert len(files) == ssb_dataset.n_files
        n_rows = [pq.read_metadata(file).num_rows for file in files]
        assert max(n_rows) - min(n_rows) < 0.05 * max(n_rows)
        rows = read(ssb_dataset, table)
        order = ints(rows["lo_orderkey"]) * 8 + ints(rows["lo_linenumber"])
        assert np.all(np.diff(order) > 0)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(("orders", "n_slices"), [(8_000, 2), (4_000, 4)])
def test_slices_give_the_same_files_as_the_whole(
    ssb_dataset: Dataset,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    orders: int,
    n_slices: int,
) -> None:
    """Whatever the number of files that a slice has, or of orders that a file has.

    Nor do the partitions that Spark sorts in change anything.
    """
    monkeypatch.setattr(generate, "_SLICE_ORDERS", orders)
    sizes = Sizes.of(ssb_dataset.scale)
    n_files = ssb_dataset.n_files
    slices = generate.slices(sizes, n_files)
    assert len(slices) == n_slices
    assert [f for files in slices for f in files] == list(range(n_files))

    with settings(spark, {"spark.sql.shuffle.partitions": "7"}):
        sliced = generate.generate(
            tmp_path / "data", scale=ssb_dataset.scale, files=n_files, spark=spark
        )
    for table in ("lineorder", "lineorder_flat"):
        whole = data_files(ssb_dataset, table)
        for one, other in zip(whole, data_files(sliced, table), strict=True):
            assert pq.read_table(one).equals(pq.read_table(other)), one.name


# ------------------------------------------------------- lineorder is TPC-H


@pytest.mark.slow
@pytest.mark.spark
def test_lineorder_is_tpch_row_for_row(
    tables: dict[str, pa.Table], tpch: dict[str, pa.Table]
) -> None:
    facts, lines = tables["lineorder"], tpch["lineitem"]
    for column, source, factor in (
        ("lo_orderkey", "l_orderkey", 1),
        ("lo_linenumber", "l_linenumber", 1),
        ("lo_partkey", "l_partkey", 1),
        ("lo_quantity", "l_quantity", 1),
        ("lo_extendedprice", "l_extendedprice", 100),
        ("lo_discount", "l_discount", 100),
        ("lo_tax", "l_tax", 100),
    ):
        expected = ints(lines[source], factor=factor)
        np.testing.assert_array_equal(ints(facts[column]), expected, column)
    assert facts["lo_shipmode"].to_pylist() == lines["l_shipmode"].to_pylist()
    commit = pc.cast(pc.strftime(lines["l_commitdate"], "%Y%m%d"), pa.int32())
    assert facts["lo_commitdate"].equals(commit)

    places = pc.index_in(
        facts["lo_orderkey"], tpch["orders"]["o_orderkey"].combine_chunks()
    )
    heads = tpch["orders"].take(places)
    total = ints(heads["o_totalprice"], factor=100)
    np.testing.assert_array_equal(ints(facts["lo_ordtotalprice"]), total)
    day = pc.cast(pc.strftime(heads["o_orderdate"], "%Y%m%d"), pa.int32())
    assert facts["lo_orderdate"].equals(day)
    priority = [text[:11] for text in heads["o_orderpriority"].to_pylist()]
    assert facts["lo_orderpriority"].to_pylist() == priority


@pytest.mark.slow
@pytest.mark.spark
def test_a_third_of_the_customers_never_orders(
    tables: dict[str, pa.Table], tpch: dict[str, pa.Table]
) -> None:
    facts, orders = tables["lineorder"], tpch["orders"]
    customers = dict(
        zip(
            orders["o_orderkey"].to_pylist(),
            orders["o_custkey"].to_pylist(),
            strict=False,
        )
    )
    moved = Counter[int]()
    for order, customer in zip(
        facts["lo_orderkey"].to_pylist(), facts["lo_custkey"].to_pylist(), strict=False
    ):
        k = -(-customers[order] // 5)
        assert customer % 3 != 0
        assert customer == k or k % 3 == 0
        moved[customer - k] += 1
        if customer < k:
            assert k == 300  # there is no customer 301
    assert set(moved) == {-1, 0, 1}


@pytest.mark.slow
@pytest.mark.spark
def test_money_follows_its_formulas(tables: dict[str, pa.Table]) -> None:
    facts = {
        name: ints(tables["lineorder"][name])
        for name in tables["lineorder"].column_names
        if pa.types.is_integer(tables["lineorder"][name].type)
    }
    check_money(facts)


def check_money(facts: dict[str, np.ndarray]) -> None:
    part = facts["lo_partkey"]
    price = 90000 + (part // 10) % 20001 + 100 * (part % 1000)
    extended = facts["lo_quantity"] * price
    revenue = extended * (100 - facts["lo_discount"]) // 100
    np.testing.assert_array_equal(facts["lo_extendedprice"], extended)
    np.testing.assert_array_equal(facts["lo_revenue"], revenue)
    np.testing.assert_array_equal(facts["lo_supplycost"], 6 * price // 10)
    _, order = np.unique(facts["lo_orderkey"], return_inverse=True)
    line_total = revenue * (100 + facts["lo_tax"]) // 100
    totals = np.bincount(order, weights=line_total).astype(np.int64)
    np.testing.assert_array_equal(facts["lo_ordtotalprice"], totals[order])


@pytest.mark.slow
@pytest.mark.spark
def test_above_scale_1_orders_name_fewer_parts_than_tpch(
    ssb_dataset: Dataset,
    tpch: dict[str, pa.Table],
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    # As at scale 2, where the range has half as many parts as TPC-H.
    folder = ssb_dataset.path.parent / "tpch"
    sizes = Sizes(
        n_customers=300,
        n_suppliers=20,
        n_parts=2000,
        n_ordered_parts=1000,
        n_tpch_parts=2000,
        n_orders=15_000,
    )
    frame = lineorder(
        spark.read.parquet(str(folder / "lineitem.parquet")),
        spark.read.parquet(str(folder / "orders.parquet")),
        sizes=sizes,
        seed=1,
        n_files=2,
        spark=spark,
    ).drop("lo_orderpriority", "lo_shipmode")
    frame.write.parquet(str(tmp_path / "facts"))
    written = pq.read_table(tmp_path / "facts")
    facts = {name: ints(written[name]) for name in written.column_names}
    check_money(facts)
    expected = (ints(tpch["lineitem"]["l_partkey"]) - 1) // 2 + 1
    np.testing.assert_array_equal(facts["lo_partkey"], expected)


# ---------------------------------------------------------- the dimensions

NATION_NAMES = {
    "ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "EGYPT", "ETHIOPIA", "FRANCE",
    "GERMANY", "INDIA", "INDONESIA", "IRAN", "IRAQ", "JAPAN", "JORDAN", "KENYA",
    "MOROCCO", "MOZAMBIQUE", "PERU", "CHINA", "ROMANIA", "SAUDI ARABIA", "VIETNAM",
    "RUSSIA", "UNITED KINGDOM", "UNITED STATES",
}  # fmt: skip
REGION_NAMES = {"AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("table", ["customer", "supplier"])
def test_people_live_in_the_cities_of_their_nation(
    tables: dict[str, pa.Table], table: str
) -> None:
    p = table[0]
    for i, row in enumerate(tables[table].to_pylist(), 1):
        assert row[f"{p}_name"] == f"{table.capitalize()}#{i:09d}"
        nation = row[f"{p}_nation"]
        assert nation in NATION_NAMES
        assert row[f"{p}_region"] in REGION_NAMES
        assert re.fullmatch(re.escape(f"{nation:9.9}") + r"\d", row[f"{p}_city"])
        assert re.fullmatch(r"[A-Za-z0-9 ,]{6,24}", row[f"{p}_address"])
        assert re.fullmatch(r"[1-3]\d-\d{3}-\d{3}-\d{4}", row[f"{p}_phone"])


@pytest.mark.slow
@pytest.mark.spark
def test_customers_keep_what_tpch_gave_them(
    tables: dict[str, pa.Table], tpch: dict[str, pa.Table]
) -> None:
    ours, theirs = tables["customer"], tpch["customer"].slice(0, 300)
    for column in ("c_phone", "c_mktsegment"):
        assert ours[column].to_pylist() == theirs[column].to_pylist()


@pytest.mark.slow
@pytest.mark.spark
def test_parts_follow_their_rules(
    tables: dict[str, pa.Table], tpch: dict[str, pa.Table]
) -> None:
    theirs = tpch["part"].to_pylist()
    words = set[str]()
    for row, source in zip(tables["part"].to_pylist(), theirs, strict=True):
        assert re.fullmatch(r"MFGR#[1-5]", row["p_mfgr"])
        assert re.fullmatch(re.escape(row["p_mfgr"]) + "[1-5]", row["p_category"])
        category, number = row["p_brand1"][:7], int(row["p_brand1"][7:])
        assert category == row["p_category"]
        assert row["p_brand1"] == f"{category}{number}"  # not padded
        assert 1 <= number <= 40
        # TPC-H's brand digit is the SSB brand number, divided by 8, up.
        assert -(-number // 8) == int(source["p_brand"][-1])
        name = row["p_name"].split(" ")
        assert len({row["p_color"], *name}) == 3
        words.update({row["p_color"], *name})
        for column in ("p_type", "p_size", "p_container"):
            assert row[column] == source[column]
    assert len(words) == 92


@pytest.mark.slow
@pytest.mark.spark
def test_draws_are_uniform(tables: dict[str, pa.Table]) -> None:
    part, customer = tables["part"], tables["customer"]
    supplier = tables["lineorder"]["lo_suppkey"]
    for values, n in (
        ([city[-1] for city in customer["c_city"].to_pylist()], 10),
        (part["p_mfgr"].to_pylist(), 5),
        ([category[-1] for category in part["p_category"].to_pylist()], 5),
        ([brand[7:] for brand in part["p_brand1"].to_pylist()], 40),
        (part["p_color"].to_pylist(), 92),
        (supplier.to_pylist(), 20),
    ):
        counts = Counter(values)
        mean = len(values) / n
        assert len(counts) == n
        # Chi square with n - 1 degrees, far beyond its 99.99 % point.
        chi_square = sum((count - mean) ** 2 / mean for count in counts.values())
        assert chi_square < n + 6 * (2 * n) ** 0.5


@pytest.mark.slow
@pytest.mark.spark
def test_draws_are_an_xxhash_chain_of_purpose_seed_and_key(
    tables: dict[str, pa.Table],
) -> None:
    # An implementation of the hash that owes nothing to Spark: the data stay what
    # they are with every version.
    def drawn(n: int, purpose: str, *numbers: int) -> int:
        state = xxhash.xxh64_intdigest(purpose.encode(), 42)
        for number in numbers:
            state = xxhash.xxh64_intdigest(struct.pack("<q", number), state)
        return (state - (state >> 63 << 64)) % n

    for row in tables["lineorder"].slice(0, 50).to_pylist():
        key = row["lo_orderkey"], row["lo_linenumber"]
        expected = drawn(20, "lo_suppkey", DEFAULT_SEED, *key) + 1
        assert row["lo_suppkey"] == expected
    for row in tables["customer"].slice(0, 50).to_pylist():
        digit = drawn(10, "c_city", DEFAULT_SEED, row["c_custkey"])
        assert row["c_city"][-1] == str(digit)


# ---------------------------------------------------------------- determinism


@pytest.mark.slow
@pytest.mark.spark
def test_neither_files_nor_partitions_change_the_rows(
    spark: SparkSession,
    ssb_dataset: Dataset,
    tables: dict[str, pa.Table],
    tmp_path: Path,
) -> None:
    with settings(spark, {"spark.sql.shuffle.partitions": "7"}):
        again = generate.generate(
            tmp_path / "a", scale=ssb_dataset.scale, files=3, spark=spark
        )
        other = generate.generate(
            tmp_path / "b", scale=ssb_dataset.scale, files=1, seed=5, spark=spark
        )
    assert len(data_files(again, "lineorder_flat")) == 3
    changed = set[str]()
    for table in TABLES:
        assert read(again, table).equals(tables[table]), table
        rows = read(other, table)
        changed.update(
            name
            for name in rows.column_names
            if not rows[name].equals(tables[table][name])
        )
    assert changed == {
        "lo_suppkey", "c_address", "c_city", "p_name", "p_mfgr", "p_category",
        "p_brand1", "p_color", "s_address", "s_city", "s_phone",
        # another supplier on the line
        "s_name", "s_nation", "s_region",
    }  # fmt: skip
