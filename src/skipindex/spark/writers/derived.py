"""Partition columns that are computed as rows are written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame, types
from pyspark.sql import functions as sf

from skipindex.errors import LayoutError, TableError
from skipindex.planner.stages.derived_partitions import derivation
from skipindex.spark.pruning.verdicts import ZONE
from skipindex.spark.settings import setting
from skipindex.table import Derived, TableState

_PARSER: Final = "spark.sql.legacy.timeParserPolicy"
_BY_PATTERN: Final = re.compile(
    r"\b(date_format|(to_)?unix_timestamp|to_date|to_timestamp(_ntz)?)\s*\(.*['\"]",
    re.IGNORECASE | re.DOTALL,
)
_ZONED: Final = (types.TimestampType, types.StringType)
"""Types of which a function may depend on the session's time zone."""


def in_session(df: DataFrame, columns: Mapping[str, str]) -> Derived:
    """The declaration that the session of these rows computed the columns."""
    return Derived(dict(columns), setting(df.sparkSession, ZONE))


def computed(df: DataFrame, table: TableState) -> DataFrame:
    """The rows with the partition columns that the table declares.

    Raises:
        LayoutError: a column of that name is there.
        PredicateError: the planner could not judge such a function.
    """
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
    """The rows with those partition columns that a table declares and they lack.

    Raises:
        TableError: the session would compute other values than the table declares.
        PredicateError: the planner cannot judge a function.
    """
    names = {partition.name.lower(): partition.name for partition in table.partitions}
    there = {name.lower() for name in df.columns}
    missing: dict[str, str] = {}
    for declared, text in table.derived.columns.items():
        if declared.lower() in there:
            continue
        name = names.get(declared.lower(), declared)
        source = derivation(table, name, text).source.name
        _check_zone(df, table, name, source, text)
        _check_parser(df, name, text)
        missing[name] = text
    if not missing:
        return df
    return df.withColumns({name: sf.expr(text) for name, text in missing.items()})


def _check_parser(df: DataFrame, name: str, text: str) -> None:
    """Refuse to compute by a pattern what plans take for the work of another parser."""
    policy = setting(df.sparkSession, _PARSER)
    if policy.upper() == "LEGACY" and _BY_PATTERN.search(text):
        raise TableError(
            f"cannot compute the partition column {name!r} as {text!r}: the session "
            f"has {_PARSER}={policy} (accepted: CORRECTED, EXCEPTION, or a column "
            f"{name!r} in the rows)"
        )


def _check_zone(
    df: DataFrame, table: TableState, name: str, source: str, text: str
) -> None:
    """Refuse to compute a column in another time zone than its folders were made in."""
    kinds = {field.name: field.dataType for field in df.schema}
    is_zoneless = not isinstance(kinds.get(source, types.StringType()), _ZONED)
    own, zone = setting(df.sparkSession, ZONE), table.derived.timezone
    if own != zone and not is_zoneless and "to_timestamp_ntz(" not in text.lower():
        raise TableError(
            f"cannot compute the partition column {name!r} as {text!r}: it was "
            f"declared for the time zone {zone}, and the session has {own} (accepted: "
            "a session of that zone, declare_derived(…, timezone=…), or a column "
            f"{name!r} in the rows)"
        )
