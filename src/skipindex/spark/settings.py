"""The settings of a session that give conditions and values their meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from skipindex.errors import PlanError

if TYPE_CHECKING:  # the planner of a driver without Python reads some of them
    from pyspark.sql import SparkSession

READING: Final = {
    "spark.sql.parquet.datetimeRebaseModeInRead": {"corrected", "exception"},
    "spark.sql.parquet.fieldId.read.enabled": {"false"},
    "spark.sql.parquet.int96RebaseModeInRead": {"corrected", "exception"},
    "spark.sql.parquet.int96TimestampConversion": {"false"},
}
"""Settings under which Spark reads the values that indexes are of."""
CASE: Final = "spark.sql.caseSensitive"
_REBASE: Final = READING["spark.sql.parquet.datetimeRebaseModeInRead"]
"""Values, in lower case, that a rebase option of a scan may have."""
_ASSUMED: Final = {
    **READING,
    "spark.sql.ansi.doubleQuotedIdentifiers": {"false"},
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": {"false"},
    "spark.sql.legacy.literal.pickMinimumPrecision": {"true"},
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": {"false"},
    "spark.sql.parser.escapedStringLiterals": {"false"},
    "spark.sql.timestampType": {"timestamp_ltz"},
}
"""Settings, with the values under which a plan is right; a session with another value,
all of which are for old applications, is refused.

A plan knows no session.  Of the settings below it gets the value, or it is right
under every value, because it leaves open what they decide:

==============================================  =====================================
``spark.sql.session.timeZone``                  told; else what depends on it is open
``spark.sql.caseSensitive``                     told
``spark.sql.ansi.enabled``                      all: what fails or is NULL is open
``spark.sql.legacy.timeParserPolicy``           all: text of days before 1582 is open
``spark.sql.optimizer.excludedRules``           all: LIKE of U+FFFD is open
``spark.sql.legacy.consecutiveStringLiterals``  all: a doubled quote is read both ways
``spark.sql.icu.caseMappings.enabled``          all: letters that differ are open
``spark.sql.legacy.interval.enabled``           all: only whole units of one kind
``…decimal.retainFractionDigitsOnTruncate``     all: only what fits in 38 digits
``spark.sql.legacy.nullInEmptyListBehavior``    all: an empty list is read as a constant
``spark.sql.function.concatBinaryAsString``     all: only text is joined
==============================================  =====================================
"""


def check_session(spark: SparkSession) -> None:
    """Raise ``PlanError`` if a setting gives conditions or values another meaning."""
    for name, accepted in _ASSUMED.items():
        if setting(spark, name).lower() not in accepted:
            raise PlanError(
                f"the session has {name}={setting(spark, name)}, under which a plan "
                f"may be wrong (accepted: {', '.join(sorted(accepted))})"
            )


def check_reading(
    settings: Mapping[str, str | None],
    reader: Mapping[str, str | None],
    options: Mapping[str, str],
) -> None:
    """Raise ``PlanError`` if Spark reads other values than indexes are of.

    ``settings`` are of the session that runs the query, as far as they are to be
    checked.  ``reader`` has those that are others in the session that defined the
    relation, such as a view that sessions share: Spark reads the files under them.
    """
    for name, accepted in READING.items():
        for value in (settings.get(name), reader.get(name)):
            if value is not None and value.lower() not in accepted:
                raise PlanError(
                    f"the session has {name}={value}, under which files hold other "
                    "values than their indexes (accepted: "
                    f"{', '.join(sorted(accepted))})"
                )
    if CASE in reader:
        raise PlanError(
            f"the files are read with {CASE}={reader[CASE]}, from the session of the "
            f"relation, and the query has {settings.get(CASE)} (accepted: the same)"
        )
    for name, value in options.items():
        if value.lower() not in _REBASE:
            raise PlanError(
                f"the scan has the option {name}={value}, under which files hold other "
                f"values than their indexes (accepted: {', '.join(sorted(_REBASE))})"
            )


@contextmanager
def session_settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """Other settings within a ``with``, and the former ones after it."""
    before = {name: setting(spark, name) for name in wanted}
    try:
        for name, value in wanted.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            spark.conf.set(name, old)


def is_case_sensitive(spark: SparkSession) -> bool:
    """Whether names differ by their capitals."""
    return is_true(spark, CASE)


def is_true(spark: SparkSession, name: str) -> bool:
    """Whether a setting is on."""
    return setting(spark, name).lower() == "true"


def setting(spark: SparkSession, name: str) -> str:
    """The text of a setting that Spark has a default for."""
    value = spark.conf.get(name)
    assert value is not None
    return value
