"""The fact table: TPC-H ``lineitem`` joined with ``orders``, row for row.

Only the supplier is another random stream.  Money is in cents, discount and tax
in per cent, dates are yyyymmdd numbers.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation

from ssb.data.dimensions import draw
from ssb.data.scale import Sizes

COLUMNS: Final = (
    "lo_orderkey", "lo_linenumber", "lo_custkey", "lo_partkey", "lo_suppkey",
    "lo_orderdate", "lo_orderpriority", "lo_shippriority", "lo_quantity",
    "lo_extendedprice", "lo_ordtotalprice", "lo_discount", "lo_revenue",
    "lo_supplycost", "lo_tax", "lo_commitdate", "lo_shipmode",
)  # fmt: skip

_LINE_TOTAL = "(lo_revenue * (100 + lo_tax)) DIV 100"


def lineorder(
    lineitem: DataFrame,
    orders: DataFrame,
    *,
    sizes: Sizes,
    seed: int,
    n_files: int,
    files: range | None = None,
    spark: SparkSession,
) -> DataFrame:
    """Return ``lineorder`` in a partition for each file, in the order of generation.

    Each partition holds the lines of equally many orders.

    Args:
        lineitem: of TPC-H, all of it.
        orders: of TPC-H, all of them.
        sizes: how many rows the tables have.
        seed: of the draws that TPC-H does not make.
        n_files: how many files the whole table has.
        files: which of them to return, without a gap; None is all.
        spark: the session of both tables.
    """
    files = range(n_files) if files is None else files
    if len(files) < n_files:
        # Both tables are in the order of their keys, so Spark reads a slice alone.
        lineitem = lineitem.where(_is_in("l_orderkey", files, sizes.n_orders, n_files))
        orders = orders.where(_is_in("o_orderkey", files, sizes.n_orders, n_files))
    number = _file_of_order(F.col("orderkey"), sizes.n_orders, n_files) - files.start
    lines = _lines(lineitem, sizes=sizes, seed=seed)
    heads = _heads(orders, sizes=sizes)
    if sizes.n_ordered_parts < sizes.n_tpch_parts:
        # Other parts, other prices: the total of the order follows from its lines.
        totals = lines.groupBy("orderkey").agg(
            F.sum(F.expr(_LINE_TOTAL)).cast("int").alias("lo_ordtotalprice")
        )
        heads = heads.drop("lo_ordtotalprice").join(totals, "orderkey")
    return (
        lines.join(heads, "orderkey")
        .repartition(
            len(files), F.element_at(_partition_keys(spark, len(files)), number + 1)
        )
        .withColumnRenamed("orderkey", "lo_orderkey")
        .sortWithinPartitions("lo_orderkey", "lo_linenumber")
        .select(*COLUMNS)
    )


def _lines(lineitem: DataFrame, *, sizes: Sizes, seed: int) -> DataFrame:
    line = ("l_orderkey", "l_linenumber")
    supplier = draw(sizes.n_suppliers, "lo_suppkey", seed, *line)
    price = F.expr("90000 + (lo_partkey DIV 10) % 20001 + 100 * (lo_partkey % 1000)")
    return (
        lineitem.select(
            F.col("l_orderkey").alias("orderkey"),
            F.col("l_linenumber").alias("lo_linenumber"),
            _partkey(sizes, seed).alias("lo_partkey"),
            (supplier + 1).alias("lo_suppkey"),
            F.col("l_quantity").cast("int").alias("lo_quantity"),
            _hundredths("l_discount").alias("lo_discount"),
            _hundredths("l_tax").alias("lo_tax"),
            _yyyymmdd("l_commitdate").alias("lo_commitdate"),
            F.col("l_shipmode").alias("lo_shipmode"),
        )
        .withColumn("price", price)
        .withColumn("lo_extendedprice", F.expr("CAST(lo_quantity * price AS INT)"))
        .withColumn("lo_supplycost", F.expr("CAST((6 * price) DIV 10 AS INT)"))
        .withColumn(
            "lo_revenue",
            F.expr("CAST((lo_extendedprice * (100 - lo_discount)) DIV 100 AS INT)"),
        )
    )


def _heads(orders: DataFrame, *, sizes: Sizes) -> DataFrame:
    # A third of the customers never orders: TPC-H spares the multiples of 3 among
    # its five times as many customers, so does SSB among its own.
    key = F.ceil(F.col("o_custkey") / 5)
    away = F.when(key == sizes.n_customers, -1).otherwise(1)
    return orders.select(
        F.col("o_orderkey").alias("orderkey"),
        F.when(key % 3 == 0, key + away).otherwise(key).cast("int").alias("lo_custkey"),
        _yyyymmdd("o_orderdate").alias("lo_orderdate"),
        F.substring("o_orderpriority", 1, 11).alias("lo_orderpriority"),
        F.col("o_shippriority").alias("lo_shippriority"),
        _hundredths("o_totalprice").alias("lo_ordtotalprice"),
    )


def _partkey(sizes: Sizes, seed: int) -> Column:
    """The TPC-H part, brought into the range that SSB orders from.

    Above scale 1 the range is narrower than TPC-H's.  Drawing from a narrower
    range is scaling the same random number down; what the division by the ratio
    of the ranges cannot tell is drawn in thousandths, so that it stays uniform.
    """
    if sizes.n_ordered_parts == sizes.n_tpch_parts:
        return F.col("l_partkey").cast("int")
    rest = draw(1000, "lo_partkey", seed, "l_orderkey", "l_linenumber")
    thousandths = (F.col("l_partkey") - 1) * 1000 + rest
    scaled = thousandths * sizes.n_ordered_parts / (1000 * sizes.n_tpch_parts)
    return (F.floor(scaled) + 1).cast("int")


def _hundredths(name: str) -> Column:
    # Exact, for a double holds 15 digits, and much faster than decimal products.
    return F.rint(F.col(name).cast("double") * 100).cast("int")


def _yyyymmdd(name: str) -> Column:
    day = F.col(name)
    return F.year(day) * 10000 + F.month(day) * 100 + F.dayofmonth(day)


def _file_of_order(key: Column, n_orders: int, n_files: int) -> Column:
    """The number of the file that takes the order, from 0, ascending with it.

    Order i = 1, 2, … has the key ``(i >> 3) << 5 | (i & 7)``.
    """
    i = F.shiftright(key, 5) * 8 + key.bitwiseAND(F.lit(7))
    return F.floor((i - 1) * n_files / n_orders).cast("int")


def _is_in(column: str, files: range, n_orders: int, n_files: int) -> Column:
    """Whether the order goes to one of the files."""
    first, after = (_first_key(f, n_orders, n_files) for f in (files.start, files.stop))
    return (F.col(column) >= first) & (F.col(column) < after)


def _first_key(file: int, n_orders: int, n_files: int) -> int:
    """The key of the first order of a file, as `_file_of_order` numbers them."""
    i = -(-file * n_orders // n_files) + 1
    return (i >> 3) << 5 | (i & 7)


def _partition_keys(spark: SparkSession, n: int) -> Column:
    """An array whose element p is a number that Spark hashes to partition p of n.

    Spark 3.5 has no way to name the partition of a row.
    """
    found: dict[int, int] = {}
    upper = 0
    while len(found) < n:
        lower, upper = upper, upper + 20 * n
        numbers = spark.range(lower, upper).withColumn("id", F.col("id").cast("int"))
        hashed = numbers.withColumn("p", F.pmod(F.hash("id"), F.lit(n)))
        found |= {row["p"]: row["id"] for row in hashed.collect()}
    return F.array(*[F.lit(found[p]) for p in range(n)])
