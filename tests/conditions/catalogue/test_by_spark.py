"""Spark is asked again for some conditions of the catalogue."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from tests.conditions.catalogue.by_spark import frame_of, said, session
from tests.conditions.catalogue.entries import ANSI, BASE, FAILS, Entry, entries
from tests.conditions.catalogue.judges import is_part, plan_of, plan_wrong
from tests.conditions.catalogue.tables import MADE, table_of
from tests.spark.catalyst.final import final_conditions, final_plan
from tests.spark.versions import FAILED, SPARK

pytestmark = pytest.mark.spark

SOME = 2
"""Conditions of each table that a quick run asks for: the sweep asks for all."""
MANY = 8
"""Of the table of every type, whose final conditions are planned too."""


def chosen(table: str, n: int = SOME) -> list[Entry]:
    """Some conditions of one time zone, spread over the file."""
    every = [one for one in entries(table) if one.known]
    mine = [one for one in every if one.zone == every[-1].zone]
    return mine[:: max(1, len(mine) // n)]


@pytest.mark.parametrize("ansi", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_spark_still_says_what_is_recorded(spark: SparkSession, ansi: bool) -> None:
    differ = []
    version = ".".join(map(str, SPARK))
    for table in MADE:
        some = chosen(table)
        if ansi:  # what fails takes long to fail
            some = [one for one in some if one.truths.get(ANSI) != FAILS]
        texts = [one.text for one in some]
        found = said(spark, table, some[0].zone, texts, ansi=ansi)
        for one in some:
            truth = found.get(one.text, FAILS)
            wanted = one.truths.get(version, one.truths[BASE])
            if ansi and version not in one.truths:
                wanted = one.truths.get(ANSI, wanted)
            if truth != wanted[: len(truth)]:
                differ.append(f"{one}\n    Spark says {truth}, recorded is {wanted}")
    assert not differ, "\n".join(differ)


def test_final_conditions_and_columns_are_planned_as_texts(
    spark: SparkSession,
) -> None:
    """What Catalyst hands over, and a ``Column`` of the text."""
    wrong = []
    for one in chosen("every", MANY):
        plan = plan_of(one.table, one.text, one.zone)
        table = table_of(one.table)
        with session(spark, one.zone, ansi=False):
            frame = frame_of(spark, one.table)
            try:
                final = final_conditions(frame.where(one.text))
            except FAILED:  # what it folds fails
                continue
            of_column = table.plan(sf.expr(one.text), timezone=one.zone)
        plans = {"the plan of a Column": of_column}
        if final is not None:
            name = f"the plan of {final.text!r}"
            plans[name] = final_plan(table, final, zone=one.zone)
        for name, other in plans.items():
            part = other is not of_column and is_part(one.text)
            trouble = plan_wrong(one.table, other, one.truths[BASE], is_part=part)
            if more := {*other.paths} - {*plan.paths}:
                trouble = trouble or f"reads {len(more)} files more"
            if trouble:
                wrong.append(f"{one}\n    {name}: {trouble}")
    assert not wrong, "\n".join(wrong)
