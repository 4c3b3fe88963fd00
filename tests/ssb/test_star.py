"""The star form: the text of its queries, and its run on a small data set."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from ssb.data.generate import Dataset
from ssb.layouts import layouts
from ssb.queries import QUERIES, Query
from ssb.report.text import star_verdict_of
from ssb.star_form import (
    FACT_INDEXES,
    StarOutcome,
    define_views,
    fact_layouts,
    run_star,
)

OUTCOME = StarOutcome(
    query="Q", files=10, read=(10, 4), oracle=3, seconds=(1.0, 0.5), equal=True
)
"""How many tables the queries of a flight join, as published."""


def test_the_text_is_the_published_one() -> None:
    assert QUERIES[3].star_sql() == (
        "SELECT sum(lo_revenue) AS revenue, d_year, p_brand1\n"
        "FROM lineorder, date, supplier, part\n"
        "WHERE lo_orderdate = d_datekey AND lo_suppkey = s_suppkey "
        "AND lo_partkey = p_partkey AND p_category = 'MFGR#12' "
        "AND s_region = 'AMERICA'\n"
        "GROUP BY d_year, p_brand1\n"
        "ORDER BY d_year, p_brand1"
    )


def test_what_is_wrong_is_named() -> None:
    assert star_verdict_of([OUTCOME]).startswith("all 1 answers")
    lost = dataclasses.replace(OUTCOME, read=(10, 2))
    other = dataclasses.replace(OUTCOME, equal=False)
    assert not lost.is_right
    assert not other.is_right
    assert "2 files read, 3 hold a row" in star_verdict_of([lost])
    assert "answers differ" in star_verdict_of([other])


@pytest.fixture(scope="module")
def dataset(ssb_dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A copy, to which layouts may be added."""
    folder = tmp_path_factory.mktemp("star")
    shutil.copytree(ssb_dataset.path, folder, dirs_exist_ok=True)
    return dataclasses.replace(ssb_dataset, path=folder)


@pytest.mark.slow
@pytest.mark.spark
def test_star_and_flat_have_the_same_answers(
    spark: SparkSession, ssb_dataset: Dataset
) -> None:
    check_answers(spark, ssb_dataset, QUERIES)


def check_answers(
    spark: SparkSession, ssb_dataset: Dataset, queries: Sequence[Query]
) -> None:
    session = spark.newSession()
    define_views(session, ssb_dataset, ssb_dataset.tables["lineorder"])
    session.read.parquet(str(ssb_dataset.flat)).createOrReplaceTempView("flat")
    for query in queries:
        star = session.sql(query.star_sql()).collect()
        assert star == session.sql(query.sql("flat")).collect(), query.name


@pytest.mark.slow
@pytest.mark.spark
def test_unchanged_sql_gives_the_same_rows(
    spark: SparkSession, dataset: Dataset
) -> None:
    session = spark.newSession()
    flat: list[sx.Table] = list(layouts(dataset, session, log=print).values())
    for fact in fact_layouts(session, dataset, flat[-1]).values():
        sx.build_indexes(fact, FACT_INDEXES, workers=1)
        outcomes = run_star(session, dataset, fact, QUERIES[::4], repeat=1, log=print)
        assert star_verdict_of(outcomes).startswith("all 4 answers")
        assert all(outcome.is_tight for outcome in outcomes)
