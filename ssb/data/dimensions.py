"""Customer, supplier and part, as SSB draws them on top of TPC-H.

What TPC-H has is kept: nation, region, customer phone, segment, part type, size
and container, the brand digit, and the words of the part's colour and name.  The
rest are uniform draws.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation

_NATION_WIDTH = 9  # a city is a nation cut or padded to this, and a digit


def draw(n: int, purpose: str, seed: int, *keys: str) -> Column:
    """A number in ``[0, n)`` that depends on nothing but the arguments.

    The same for every partitioning, processor count and Spark version: it is
    Spark's xxHash64 of the purpose, the seed and the keys, taken as 64-bit
    integers.  The remainder favours small numbers by at most n / 2**64.
    """
    columns = [F.col(key).cast("long") for key in keys]
    digest = F.xxhash64(F.lit(purpose), F.lit(seed).cast("long"), *columns)
    return F.pmod(digest, F.lit(n)).cast("int")


def customer(
    tpch: DataFrame, nation: DataFrame, *, n_rows: int, seed: int
) -> DataFrame:
    """The first ``n_rows`` TPC-H customers with a city and a new address."""
    columns = _person("Customer", "c_custkey", seed)
    return _people(tpch, nation, "c_custkey", n_rows).select(
        *columns, "c_phone", "c_mktsegment"
    )


def supplier(
    tpch: DataFrame, nation: DataFrame, *, n_rows: int, seed: int
) -> DataFrame:
    """The first ``n_rows`` TPC-H suppliers with city, address and phone."""
    phone = F.format_string(
        "%d-%d-%d-%d",
        F.col("n_nationkey") + 10,
        draw(900, "s_phone 1", seed, "s_suppkey") + 100,
        draw(900, "s_phone 2", seed, "s_suppkey") + 100,
        draw(9000, "s_phone 3", seed, "s_suppkey") + 1000,
    )
    columns = _person("Supplier", "s_suppkey", seed)
    return _people(tpch, nation, "s_suppkey", n_rows).select(
        *columns, phone.alias("s_phone")
    )


def part(tpch: DataFrame, *, n_rows: int, seed: int) -> DataFrame:
    """The first ``n_rows`` TPC-H parts with manufacturer, brand and colour.

    A TPC-H part name is five different words out of 92.  Three neighbours of them,
    from a drawn place on, are the colour and the two words of the name.
    """
    words = F.split("p_name", " ")
    start = draw(5, "p_color", seed, "p_partkey")

    def word(i: int) -> Column:
        return F.element_at(words, (start + i) % 5 + 1)

    mfgr = F.concat(F.lit("MFGR#"), draw(5, "p_mfgr", seed, "p_partkey") + 1)
    category = F.concat(mfgr, draw(5, "p_category", seed, "p_partkey") + 1)
    # TPC-H's brand digit 1..5 is the SSB brand number 1..40, divided by 8, up.
    digit = F.substring("p_brand", -1, 1).cast("int")
    number = (digit - 1) * 8 + draw(8, "p_brand1", seed, "p_partkey") + 1
    return tpch.where(F.col("p_partkey") <= n_rows).select(
        F.col("p_partkey").cast("int"),
        F.concat_ws(" ", word(1), word(2)).alias("p_name"),
        mfgr.alias("p_mfgr"),
        category.alias("p_category"),
        F.concat(category, number).alias("p_brand1"),
        word(0).alias("p_color"),
        "p_type",
        "p_size",
        "p_container",
    )


def _people(tpch: DataFrame, nation: DataFrame, key: str, n_rows: int) -> DataFrame:
    """The rows with the first keys, joined with their nations."""
    of_nation = F.col(f"{key[0]}_nationkey") == F.col("n_nationkey")
    return tpch.where(F.col(key) <= n_rows).join(F.broadcast(nation), of_nation)


def _person(title: str, key: str, seed: int) -> list[Column]:
    """The columns that customers and suppliers have, in their order."""
    letter = key[0]
    city = f"{letter}_city"
    nation = F.rpad(F.col("n_name"), _NATION_WIDTH, " ")
    return [
        F.col(key).cast("int"),
        F.format_string(f"{title}#%09d", key).alias(f"{letter}_name"),
        _address(f"{letter}_address", seed, key),
        F.concat(nation, draw(10, city, seed, key)).alias(city),
        F.col("n_name").alias(f"{letter}_nation"),
        F.col("r_name").alias(f"{letter}_region"),
    ]


def _address(name: str, seed: int, key: str) -> Column:
    """6 to 24 characters of TPC-H's alphabet: letters, digits, space and comma."""
    digest = F.sha2(F.concat_ws("/", F.lit(name), F.lit(str(seed)), F.col(key)), 256)
    text = F.translate(F.base64(F.unhex(digest)), "+/", " ,")
    length = draw(19, f"{name} length", seed, key) + 6
    return F.substr(text, F.lit(1), length).alias(name)
