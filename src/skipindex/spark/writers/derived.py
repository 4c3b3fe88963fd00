"""Partition columns that are computed as rows are written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as sf

from skipindex.errors import LayoutError, PredicateError, TableError
from skipindex.planner.stages.derived_partitions import derivation
from skipindex.spark.columns import column
from skipindex.spark.pruning.verdicts import ZONE
from skipindex.spark.settings import setting
from skipindex.spark.ship import has_driver
from skipindex.spark.writers.writing import own_session, rebound
from skipindex.table import Derived, TableState

_PARSER: Final = "spark.sql.legacy.timeParserPolicy"
_BY_PATTERN: Final = re.compile(
    r"\b(date_format|(to_)?unix_timestamp|to_date|to_timestamp(_ntz)?)\s*\(.*['\"]",
    re.IGNORECASE | re.DOTALL,
)
_CONTRADICTION: Final = "cannot append a row whose partition column"
_REFUSED: Final = re.compile(
    rf"{_CONTRADICTION} .*? \(accepted: the same value, or no column '.*?'\)", re.DOTALL
)
_ZONED: Final = (types.TimestampType, types.StringType)
"""Types of which a function may depend on the session's time zone."""


def in_session(df: DataFrame, columns: Mapping[str, str]) -> Derived:
    """The declaration that the session of these rows computed the columns."""
    return Derived(dict(columns), setting(df.sparkSession, ZONE))


def computed(df: DataFrame, table: TableState) -> DataFrame:
    """The rows with the partition columns that the table declares."""
    columns = table.derived.columns
    there = {name.lower(): name for name in df.columns}
    for name, text in columns.items():
        if name.lower() in there:
            raise LayoutError(
                f"cannot compute the partition column {name!r}: the rows have a column "
                f"{there[name.lower()]!r} (accepted: another name, or a list of "
                "columns to partition by)"
            )
        derivation(table, name, text)
        _check_parser(df, name, text)
    return df.withColumns({name: sf.expr(text) for name, text in columns.items()})


def completed(df: DataFrame, table: TableState) -> DataFrame:
    """The rows with the partition columns that a table declares.

    Those that the rows lack are computed, in the time zone that was declared.  Those
    that they have are compared: a row that contradicts the declaration is an error
    when it is written (``refusing_contradictions``), as no condition would find it.
    """
    names = {partition.name.lower(): partition.name for partition in table.partitions}
    there = {name.lower(): name for name in df.columns}
    columns: dict[str, Column] = {}
    for declared, text in table.derived.columns.items():
        given = there.get(declared.lower())
        name = names.get(declared.lower(), declared)
        try:
            source = derivation(table, name, text).source.name
            _check_zone(df, table, name, source, text)
        except (PredicateError, TableError):
            if given is None:
                raise
            continue  # no plan goes by an exact value of it
        _check_parser(df, name, text)
        made = sf.expr(text)
        columns[given or name] = made if given is None else _same(given, made, text)
    if not columns:
        return df
    spark, zone = df.sparkSession, table.derived.timezone
    if zone is None or zone == setting(spark, ZONE):
        return df.withColumns(columns)
    own = own_session(spark)
    own.conf.set(ZONE, zone)
    return rebound(rebound(df, own).withColumns(columns), spark)


def _same(name: str, made: Column, text: str) -> Column:
    """The column of this name, which fails where it is not what a table declares."""
    given = column(name)
    texts = given.cast("string"), made.cast("string")
    shown, computed = (sf.coalesce(text, sf.lit("NULL")) for text in texts)
    why = sf.concat(
        sf.lit(f"{_CONTRADICTION} {name!r} is "),
        shown,
        sf.lit(f" where {text} is "),
        computed,
        sf.lit(f" (accepted: the same value, or no column {name!r})"),
    )
    return sf.when(texts[0].eqNullSafe(texts[1]), given).otherwise(sf.raise_error(why))


@contextmanager
def refusing_contradictions() -> Iterator[None]:
    """Raise ``TableError`` where a row that is written contradicts a declaration."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:  # the latter in Spark 3.5
        match = _REFUSED.search(str(error))
        if match is None:
            raise
        raise TableError(match[0]) from error


def _check_parser(df: DataFrame, name: str, text: str) -> None:
    """Refuse to compute by a pattern what plans take for the work of another parser."""
    policy = setting(df.sparkSession, _PARSER)
    if policy.upper() == "LEGACY" and _BY_PATTERN.search(text):
        raise TableError(
            f"cannot compute the partition column {name!r} as {text!r}: the session "
            f"has {_PARSER}={policy} (accepted: CORRECTED, EXCEPTION)"
        )


def _check_zone(
    df: DataFrame, table: TableState, name: str, source: str, text: str
) -> None:
    """Refuse to compute a column in another time zone than its folders were made in."""
    kinds = {field.name: field.dataType for field in df.schema}
    is_zoneless = not isinstance(kinds.get(source, types.StringType()), _ZONED)
    own, zone = setting(df.sparkSession, ZONE), table.derived.timezone
    can_change = zone is not None and has_driver(df.sparkSession)
    if (
        own != zone
        and not can_change
        and not is_zoneless
        and "to_timestamp_ntz(" not in text.lower()
    ):
        raise TableError(
            f"cannot compute the partition column {name!r} as {text!r}: it was "
            f"declared for the time zone {zone}, and the session has {own} (accepted: "
            "a session of that zone, declare_derived(…, timezone=…), or a column "
            f"{name!r} in the rows)"
        )
