"""Settings of the session that give a judged condition another meaning.

A plan is made without a session: it is right under every value of a setting, or the
setting is one that it is told or that is checked before it is read.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.errors import PlanError
from tests.conditions.catalogue.by_spark import frame_of, truths
from tests.conditions.catalogue.entries import FAILS, entries
from tests.conditions.catalogue.judges import plan_of, plan_wrong
from tests.spark.reading.whole import INTERPRETED, ZONE, check_law_1, settings
from tests.tables import build, kept, put_all

pytestmark = pytest.mark.spark

LEGACY = {"spark.sql.legacy.timeParserPolicy": "LEGACY"}
RULES = "org.apache.spark.sql.catalyst.optimizer."
OTHERS = {
    "spark.sql.legacy.timeParserPolicy": ["LEGACY", "CORRECTED"],
    "spark.sql.legacy.interval.enabled": ["true"],
    "spark.sql.legacy.bangEqualsNot": ["true"],
    "spark.sql.legacy.allowNegativeScaleOfDecimal": ["true"],
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": ["true"],
    "spark.sql.decimalOperations.allowPrecisionLoss": ["false"],
    "spark.sql.legacy.lpadRpadAlwaysReturnString": ["true"],
    "spark.sql.legacy.nullInEmptyListBehavior": ["true", "false"],
    "spark.sql.legacy.duplicateBetweenInput": ["true"],
    "spark.sql.legacy.castComplexTypesToString.enabled": ["true"],
    "spark.sql.legacy.statisticalAggregate": ["true"],
    "spark.sql.legacy.consecutiveStringLiterals.enabled": ["true"],
    "spark.sql.legacy.charVarcharAsString": ["true"],
    "spark.sql.legacy.codingErrorAction": ["true"],
    "spark.sql.legacy.javaCharsets": ["true"],
    "spark.sql.function.concatBinaryAsString": ["true"],
    "spark.sql.icu.caseMappings.enabled": ["false"],
    "spark.sql.datetime.java8API.enabled": ["true"],
    "spark.sql.optimizer.inSetConversionThreshold": ["0"],
    "spark.sql.optimizer.excludedRules": [
        ",".join(
            RULES + rule
            for rule in (
                *("LikeSimplification", "UnwrapCastInBinaryComparison", "OptimizeIn"),
                *("ConstantFolding", "NullPropagation", "BooleanSimplification"),
                *("SimplifyConditionals", "SimplifyCasts", "SimplifyBinaryComparison"),
            )
        )
    ],
}
"""Other values than the default of whatever might touch a condition."""


def test_the_old_formatter_shows_days_before_1582_otherwise(
    spark: SparkSession, tmp_path: Path
) -> None:
    days = [date(1582, 10, day) for day in (4, 5, 10, 14, 15, 16)] + [date(2020, 1, 2)]
    table = build(put_all(tmp_path, [{"d": [day]} for day in days]), {"d": "bitmap"})
    texts = [
        f"{term} {comparison}"
        for term in (
            *("CAST(d AS STRING)", "left(d, 9)", "date_format(d, 'yyyyMMdd')"),
        )
        for comparison in (
            *("= '1582-10-15'", "= '1582-10-10'", "> '1582-10-05'", "< '1582-10-15'"),
            *("!= '1582-10-10'", "LIKE '1582-10-1%'", "= '15821015'", "IS NULL"),
        )
    ]
    for policy in ("LEGACY", "CORRECTED"):
        wanted = {"spark__sql__legacy__timeParserPolicy": policy}
        zone = {ZONE.replace(".", "__"): "UTC"}
        check_law_1(spark, table, texts, **wanted, **zone, **_names(INTERPRETED))
    plan = table.plan("CAST(d AS STRING) = '2020-01-02'")
    assert plan.count_bounds == (1, 1 + 4)
    assert table.plan("CAST(d AS STRING) >= '2020'").row_counts.lower.sum() == 1


D = datetime.fromisoformat
LISTED = [
    (pa.float64(), [1.0, 2.5], ["1", "1.0", "2.5", "2.50"]),
    (pa.float32(), [1.0, 2.5], ["1", "1.0", "2.5"]),
    (pa.decimal128(9, 2), [Decimal("1.00"), Decimal("2.50")], ["1", "1.00", "2.5"]),
    (pa.decimal128(25, 2), [Decimal("1.00"), Decimal("2.50")], ["1", "1.00"]),
    (pa.int32(), [1, -7], ["1", "01", "+1", "-7", "1.0"]),
    (pa.int64(), [1, -7], ["1", "-7"]),
    (pa.date32(), [date(2020, 1, 1), date(1582, 10, 10)], ["2020-01-01", "2020-1-1"]),
    (pa.date32(), [date(1582, 10, 15), date(1582, 10, 5)], ["1582-10-15"]),
    (pa.date32(), [date(1582, 10, 24), date(1582, 10, 14)], ["1582-10-24"]),
    (pa.date32(), [date(1582, 10, 4), date(1, 1, 1)], ["1582-10-04", "0001-01-01"]),
    (pa.timestamp("us"), [D("2020-01-01"), D("2021-01-01 01:02:03")], ["2020-01-01"]),
    (
        pa.timestamp("us", "UTC"),
        [D("2020-01-01T00:00:00Z"), D("2021-01-01T01:02:03Z")],
        ["2020-01-01", "2020-01-01 00:00:00"],
    ),
    (pa.string(), ["1", "1.0"], ["1", "1.0", "01"]),
]
"""A type, a value for each of two files, and texts in a list."""


@pytest.mark.slow
def test_texts_in_lists_and_rows_may_make_spark_cast_the_column(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Rows are compared if their fields have one name, which a literal's do: col1."""
    files, conditions = [], []
    for n in (0, 1):
        fields = {
            f"x{i}": pa.StructArray.from_arrays(
                [pa.array([values[n], None], dtype)], ["col1"]
            )
            for i, (dtype, values, _) in enumerate(LISTED)
        }
        files.append({**fields, "col2": [5, 5]})
    for i, (_, _, texts) in enumerate(LISTED):
        conditions += [
            form.format(f"x{i}.col1", text)
            for text in texts
            for form in (
                *("{0} IN ('{1}')", "{0} NOT IN ('{1}', '1')", "{0} = '{1}'"),
                *("({0}, col2) IN (('{1}', 5))", "({0}, col2) NOT IN (('{1}', 5))"),
                *("({0}, col2) IN (('{1}', 5), (NULL, 5))", "{0} IN ('{1}', '1')"),
                "({0}, col2) NOT IN (('{1}', 5), ('1', 5), (NULL, 6))",
            )
        ]
    names = [f"x{i}.col1" for i in range(len(LISTED))]
    table = build(put_all(tmp_path, files), dict.fromkeys([*names, "col2"], "bitmap"))
    for policy in ("LEGACY", "CORRECTED"):
        wanted = {
            **INTERPRETED,
            ZONE: "UTC",
            "spark.sql.legacy.timeParserPolicy": policy,
            "spark.sql.ansi.enabled": "false",
        }
        check_law_1(spark, table, conditions, **_names(wanted))


def _names(changes: dict[str, str]) -> dict[str, str]:
    return {name.replace(".", "__"): value for name, value in changes.items()}


def test_a_zone_may_skip_a_day(spark: SparkSession, tmp_path: Path) -> None:
    """``date_format`` and ``date_trunc`` cast a day to an instant, which moves it."""
    days = [date(2011, 12, 29), date(2011, 12, 30), date(2011, 12, 31)]
    clocks = [datetime(day.year, day.month, day.day, 12) for day in days]
    files = [
        {"d": [day], "n": pa.array([clock], pa.timestamp("us"))}
        for day, clock in zip(days, clocks, strict=True)
    ]
    table = build(put_all(tmp_path, files), {"d": "bitmap", "n": "bitmap"})
    texts = [
        form.format(column)
        for column in ("d", "n")
        for form in (
            "date_format({0}, 'yyyy-MM-dd') = '2011-12-31'",
            "date_format({0}, 'yyyy-MM-dd') = '2011-12-30'",
            "date_format({0}, 'yyyy-MM-dd') != '2011-12-30'",
            "date_trunc('DAY', {0}) = TIMESTAMP '2011-12-31 00:00:00'",
            "date_trunc('MONTH', {0}) = TIMESTAMP '2011-12-01 00:00:00'",
        )
    ]
    for zone in ("Pacific/Apia", "UTC"):
        wanted = {**INTERPRETED, ZONE: zone}
        check_law_1(spark, table, texts, **_names(wanted))
    text = "date_format(d, 'yyyy-MM-dd') = '2011-12-30'"
    assert kept(table, text, timezone="UTC") == ["1.parquet"]
    assert kept(table, text, timezone="+13:00") == ["1.parquet"]


def test_another_timestamp_type_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    moment = pa.array([datetime(2020, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    table = build(put_all(tmp_path, [{"t": moment}]), {"t": "bitmap"})
    wanted = {"spark.sql.timestampType": "TIMESTAMP_NTZ", ZONE: "UTC"}
    with settings(spark, wanted):
        for text in ("CAST(t AS TIMESTAMP) IS NULL", "t = timestamp '2020-01-01'"):
            with pytest.raises(PlanError, match="timestampType=TIMESTAMP_NTZ"):
                table.plan(text).read(spark)
            with pytest.raises(PlanError, match="timestampType=TIMESTAMP_NTZ"):
                sx.read(table, text, spark=spark)


CASES = [(name, value) for name, values in OTHERS.items() for value in values]
ALL = [one.text for one in entries("functions")]
SOME = sorted({*ALL[::5], *(text for text in ALL if "INTERVAL" in text)})


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), CASES)
def test_plans_are_right_under_every_value(
    spark: SparkSession, name: str, value: str
) -> None:
    wanted = {**INTERPRETED, ZONE: "+05:30", "spark.sql.ansi.enabled": "false"}
    with settings(spark, wanted):
        before = spark.conf.get(name, None)
        spark.conf.set(name, value)
        try:
            said = truths(frame_of(spark, "functions"), SOME)
        finally:
            spark.conf.unset(name) if before is None else spark.conf.set(name, before)
    for text, truth in zip(SOME, said, strict=True):
        if truth != FAILS:
            plan = plan_of("functions", text, "+05:30")
            assert plan_wrong("functions", plan, truth) == "", text
