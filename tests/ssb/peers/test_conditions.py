from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow.dataset as pads
import pytest

from ssb.peers.adapters.arrow import ArrowTerms
from ssb.peers.conditions import translated
from ssb.queries import LOOKUPS, QUERIES


@pytest.mark.parametrize(
    "where",
    [
        "lo_quantity = 7",
        "7 > lo_quantity",
        "lo_quantity <> 7 AND lo_quantity <= 9",
        "lo_quantity >= 7 AND lo_quantity < 9 OR c_city = 'UNITED KI3'",
        "NOT (lo_quantity BETWEEN 5 AND 40)",
        "lo_quantity NOT IN (1, 2, 3) AND c_city LIKE 'UNITED%'",
        "c_city IN ('UNITED KI1', 'CHINA    4') AND lo_orderdate > 19970120",
        "lo_quantity > -1 AND c_city NOT LIKE '%4'",
    ],
)
def test_a_condition_means_the_same_in_other_terms(
    where: str, files: list[Path]
) -> None:
    flat = pads.dataset([str(file) for file in files])
    found = flat.to_table(filter=translated(where, ArrowTerms()))
    names = [str(file) for file in files]
    expected = duckdb.connect().read_parquet(names).filter(where).fetchall()
    assert sorted(map(tuple, (row.values() for row in found.to_pylist()))) == sorted(
        expected
    )
    assert 0 < len(expected) < 1800


def test_all_conditions_of_the_benchmark_have_terms() -> None:
    for query in (*QUERIES, *LOOKUPS):
        assert translated(query.where, ArrowTerms()) is not None
