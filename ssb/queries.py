"""The 13 queries of the benchmark, and look-ups that only good indexes answer.

In the flat form they ask one table, so that each condition stands on columns of the
table that is skipped.  In the star form, in which O'Neil et al. published them, they
join the fact table with its dimensions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

FACT: Final = "lineorder"
DIMENSIONS: Final[Mapping[str, tuple[str, str, str]]] = {
    "d": ("date", "lo_orderdate", "d_datekey"),
    "c": ("customer", "lo_custkey", "c_custkey"),
    "s": ("supplier", "lo_suppkey", "s_suppkey"),
    "p": ("part", "lo_partkey", "p_partkey"),
}
"""By the prefix of its columns: a dimension, and the columns that it is joined by."""
_COLUMN: Final = re.compile(r"\b(?:lo|c|s|p|d)_\w+")


@dataclass(frozen=True, slots=True)
class Query:
    """A query of the benchmark.

    ``model`` is the share of the rows that match where columns are uniform and
    independent; None where no model was worked out.  ``why`` says what the query
    is there to show.
    """

    name: str
    where: str
    select: str
    group_by: str = ""
    order_by: str = ""
    model: float | None = None
    why: str = ""

    def sql(self, table: str) -> str:
        """The text of the query on ``table``, which is put in as it is."""
        return self._text(table, self.where)

    def of_rows(self, table: str) -> str:
        """The text of the query on a ``table`` of the rows that match."""
        return self._text(table, "TRUE")

    @property
    def result_columns(self) -> list[str]:
        """The columns of SSB that the query takes of the rows that match.

        >>> QUERIES[0].result_columns
        ['lo_discount', 'lo_extendedprice']
        """
        return sorted(set(_COLUMN.findall(self.select)))

    def star_sql(self) -> str:
        """The text of the query on ``lineorder`` and the dimensions it needs.

        >>> print(QUERIES[0].star_sql())
        SELECT sum(lo_extendedprice * lo_discount) AS revenue
        FROM lineorder, date
        WHERE lo_orderdate = d_datekey AND d_year = 1993 AND ...
        """
        joined = self.dimensions
        keys = [f"{key} = {of} AND " for _, key, of in joined]
        tables = ", ".join([FACT, *(name for name, _, _ in joined)])
        return self._text(tables, "".join(keys) + self.where)

    @property
    def dimensions(self) -> tuple[tuple[str, str, str], ...]:
        """What of ``DIMENSIONS`` it takes a column from."""
        words = f"{self.select} {self.where}"
        prefixes = set(re.findall(r"\b([dcsp])_", words))
        return tuple(of for prefix, of in DIMENSIONS.items() if prefix in prefixes)

    def _text(self, tables: str, where: str) -> str:
        clauses = [f"SELECT {self.select}", f"FROM {tables}", f"WHERE {where}"]
        if self.group_by:
            clauses.append(f"GROUP BY {self.group_by}")
        if self.order_by:
            clauses.append(f"ORDER BY {self.order_by}")
        return "\n".join(clauses)


def columns_of(queries: Iterable[Query]) -> tuple[str, ...]:
    """The columns of SSB that the conditions of queries name, sorted.

    >>> columns_of([Query("q", "lo_tax = 1 OR NOT c_city = 'x'", "count(*)")])
    ('c_city', 'lo_tax')
    """
    return tuple(sorted({word for q in queries for word in _COLUMN.findall(q.where)}))


def wide_sums(text: str) -> str:
    """A query whose sums are those of 64-bit numbers: Polars lets others overflow.

    >>> wide_sums("SELECT sum(a * b) AS n FROM t")
    'SELECT sum(CAST(a AS BIGINT) * b) AS n FROM t'
    """
    return re.sub(r"sum\((\w+)", r"sum(CAST(\1 AS BIGINT)", text)


_Q1: Final = "sum(lo_extendedprice * lo_discount) AS revenue"
_Q2: Final = "sum(lo_revenue) AS revenue, d_year, p_brand1"
_PROFIT: Final = "sum(lo_revenue - lo_supplycost) AS profit"
_UK_CITIES: Final = (
    "(c_city = 'UNITED KI1' OR c_city = 'UNITED KI5') "
    "AND (s_city = 'UNITED KI1' OR s_city = 'UNITED KI5')"
)
_1992_TO_1997: Final = "d_year >= 1992 AND d_year <= 1997"
_1997_OR_1998: Final = "(d_year = 1997 OR d_year = 1998)"
_MFGR_1_OR_2: Final = "(p_mfgr = 'MFGR#1' OR p_mfgr = 'MFGR#2')"

# The days that the model divides by: orders stop on 1998-08-02.
_N_DAYS: Final = 2406
_1992_TO_1997_SHARE: Final = 2192 / _N_DAYS
_1997_OR_1998_SHARE: Final = (365 + 214) / _N_DAYS


def _q3(name: str, by: str, where: str, model: float) -> Query:
    return Query(
        name,
        where,
        select=f"c_{by}, s_{by}, d_year, sum(lo_revenue) AS revenue",
        group_by=f"c_{by}, s_{by}, d_year",
        order_by=f"d_year, revenue DESC, c_{by}, s_{by}",
        model=model,
    )


def _grouped(name: str, where: str, by: str, total: str, model: float) -> Query:
    return Query(name, where, total, group_by=by, order_by=by, model=model)


QUERIES: Final = (
    Query(
        "Q1.1",
        "d_year = 1993 AND lo_discount BETWEEN 1 AND 3 AND lo_quantity < 25",
        _Q1,
        model=365 / _N_DAYS * 3 / 11 * 24 / 50,
    ),
    Query(
        "Q1.2",
        "d_yearmonthnum = 199401 AND lo_discount BETWEEN 4 AND 6 "
        "AND lo_quantity BETWEEN 26 AND 35",
        _Q1,
        model=31 / _N_DAYS * 3 / 11 * 10 / 50,
    ),
    Query(
        "Q1.3",
        "d_weeknuminyear = 6 AND d_year = 1994 AND lo_discount BETWEEN 5 AND 7 "
        "AND lo_quantity BETWEEN 26 AND 35",
        _Q1,
        model=7 / _N_DAYS * 3 / 11 * 10 / 50,
    ),
    _grouped(
        "Q2.1",
        "p_category = 'MFGR#12' AND s_region = 'AMERICA'",
        "d_year, p_brand1",
        _Q2,
        1 / 25 / 5,
    ),
    _grouped(
        "Q2.2",
        "p_brand1 BETWEEN 'MFGR#2221' AND 'MFGR#2228' AND s_region = 'ASIA'",
        "d_year, p_brand1",
        _Q2,
        8 / 1000 / 5,
    ),
    _grouped(
        "Q2.3",
        "p_brand1 = 'MFGR#2221' AND s_region = 'EUROPE'",
        "d_year, p_brand1",
        _Q2,
        1 / 1000 / 5,
    ),
    _q3(
        "Q3.1",
        "nation",
        f"c_region = 'ASIA' AND s_region = 'ASIA' AND {_1992_TO_1997}",
        _1992_TO_1997_SHARE / 25,
    ),
    _q3(
        "Q3.2",
        "city",
        "c_nation = 'UNITED STATES' AND s_nation = 'UNITED STATES' "
        f"AND {_1992_TO_1997}",
        _1992_TO_1997_SHARE / 625,
    ),
    _q3(
        "Q3.3",
        "city",
        f"{_UK_CITIES} AND {_1992_TO_1997}",
        _1992_TO_1997_SHARE / 125**2,
    ),
    _q3(
        "Q3.4",
        "city",
        f"{_UK_CITIES} AND d_yearmonth = 'Dec1997'",
        31 / _N_DAYS / 125**2,
    ),
    _grouped(
        "Q4.1",
        f"c_region = 'AMERICA' AND s_region = 'AMERICA' AND {_MFGR_1_OR_2}",
        "d_year, c_nation",
        f"d_year, c_nation, {_PROFIT}",
        2 / 5**3,
    ),
    _grouped(
        "Q4.2",
        "c_region = 'AMERICA' AND s_region = 'AMERICA' "
        f"AND {_1997_OR_1998} AND {_MFGR_1_OR_2}",
        "d_year, s_nation, p_category",
        f"d_year, s_nation, p_category, {_PROFIT}",
        _1997_OR_1998_SHARE * 2 / 5**3,
    ),
    _grouped(
        "Q4.3",
        "c_region = 'AMERICA' AND s_nation = 'UNITED STATES' "
        f"AND {_1997_OR_1998} AND p_category = 'MFGR#14'",
        "d_year, s_city, p_brand1",
        f"d_year, s_city, p_brand1, {_PROFIT}",
        _1997_OR_1998_SHARE / 5 / 25 / 25,
    ),
)
"""The 13 queries, in their order, with their literals."""


def _look_up(name: str, where: str, why: str) -> Query:
    total = "count(*) AS n_rows, sum(lo_revenue) AS revenue"
    return Query(name, where, total, why=why)


LOOKUPS: Final = (
    _look_up(
        "equal",
        "lo_ordtotalprice = 19663963",
        "one order, so one file, at scale 0.1 and at scale 1; every file's range "
        "holds the value, and a bloom filter is enough",
    ),
    _look_up(
        "absent",
        "lo_ordtotalprice = 19665277",
        "no order has it at either scale, yet it is within every file's range; a "
        "bloom filter can only err on the side of reading",
    ),
    _look_up(
        "range",
        "lo_ordtotalprice BETWEEN 19665277 AND 19665776",
        "a gap in most files, which neither minimum and maximum nor a bloom filter "
        "can show",
    ),
    _look_up(
        "edge",
        "lo_ordtotalprice >= 93565 AND lo_ordtotalprice < 93909",
        "below the minimum of most files, so that minimum and maximum help too",
    ),
    _look_up(
        "and-equal",
        "lo_ordtotalprice = 19663963 AND lo_revenue = 3208900",
        "at both scales one file holds both values and no row does: only row "
        "positions can tell",
    ),
    _look_up(
        "and-range",
        "lo_ordtotalprice < 200000 AND c_city = 'UNITED ST5'",
        "every file has such totals and such a city, few have both in one row",
    ),
    _look_up(
        "and-customer",
        "lo_custkey = 1999 AND lo_revenue >= 8000000",
        "the customer is in all files at scale 0.1 and in half of them at scale 1, "
        "the high revenue is in all",
    ),
    _look_up(
        "or",
        "(lo_ordtotalprice < 200000 AND c_city = 'UNITED ST5') "
        "OR (lo_custkey = 1999 AND lo_revenue >= 8000000)",
        "four columns: a file is skipped only if both sides are empty row by row",
    ),
)
"""Look-ups of a few rows or none, on columns that no layout sorts all at once.

Totals and revenues are TPC-H's, so these literals are there with every seed; the
cities move with the seed.
"""
