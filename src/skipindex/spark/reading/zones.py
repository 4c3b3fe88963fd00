"""The time zone rules of a driver, by which its session evaluates conditions."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from skipindex.planner.functions.zones import Offsets, OffsetsOf, no_offsets
from skipindex.spark.ship import has_driver


def offsets_in(spark: SparkSession) -> OffsetsOf:
    """The offsets of zones in the driver; none are known behind Spark Connect."""
    if not has_driver(spark):
        return no_offsets
    jvm: Any = spark._jvm  # noqa: SLF001 (no public name)
    instant = jvm.java.time.Instant
    zones = jvm.org.apache.spark.sql.catalyst.util.DateTimeUtils

    def offsets(zone: str, low: int, high: int) -> Offsets | None:
        at = instant.ofEpochSecond(low)
        try:
            rules = zones.getZoneId(zone).getRules()
        except (Py4JError, PySparkException):  # Java has no such zone
            return None
        result = [(low, int(rules.getOffset(at).getTotalSeconds()))]
        while (change := rules.nextTransition(at)) is not None:
            at = change.getInstant()
            second = int(at.getEpochSecond())
            if second > high:
                break
            result.append((second, int(change.getOffsetAfter().getTotalSeconds())))
        return tuple(result)

    return offsets
