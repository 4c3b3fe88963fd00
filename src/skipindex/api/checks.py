"""Checks of arguments that Python itself would report late, or not at all.

Each check raises an error that names the argument, and what is accepted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final
from zoneinfo import available_timezones

import pyarrow as pa

from skipindex.errors import (
    AdviceError,
    BuildError,
    EngineError,
    PlanError,
    TableError,
    UnknownIndexError,
    did_you_mean,
    kind_of,
)
from skipindex.planner.engine import engine_type
from skipindex.planner.stages.pack_cache import CacheSession
from skipindex.table import Derived

_OFFSET: Final = re.compile(r"Z|(UTC|GMT|UT)?[+-]\d\d?(:?\d\d?){0,2}|(UTC|GMT|UT)0?")
_SHORT: Final = re.compile(
    "A[CEGR]T|AST|BET|BST|C[ANST]T|CTT|E[AC]T|EST|HST|IET|IST|JST|M[IS]T|N[ES]T|"
    "PLT|P[NRS]T|SST|VST"
)
"""Zones that only Java knows under these names."""
_DURATION: Final = re.compile(r"([0-9]{1,8}(?:\.[0-9]+)?) ?(s|min|m|h|d)|0")
_SECONDS: Final = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400}


@cache
def _known_zones() -> frozenset[str]:
    """The zones that there are; to list them reads some 600 files."""
    return frozenset(available_timezones())


def check_zone(timezone: object) -> None:
    """Raise ``PlanError`` unless it is a zone that Spark may have, or None."""
    if timezone is None:
        return
    if not isinstance(timezone, str):
        raise PlanError(
            f"timezone={timezone!r} is not a text (accepted: such as 'UTC', "
            "'Europe/Rome' or '+02:00')"
        )
    if _SHORT.fullmatch(timezone) or _OFFSET.fullmatch(timezone):
        return
    known = _known_zones()
    if not known or timezone in known:
        return
    raise PlanError(
        f"unknown time zone {timezone!r}{did_you_mean(timezone, known)} (accepted: a "
        "name such as 'UTC' or 'Europe/Rome', or an offset such as '+02:00')"
    )


def check_cache(session: object) -> None:
    """Raise ``PlanError`` unless it is a cache, or None."""
    if not (session is None or isinstance(session, CacheSession)):
        raise PlanError(
            f"session={kind_of(session)} is not a cache (accepted: a "
            "skipindex.api.CacheSession; pass a Spark session to plan.read)"
        )


def check_workers(workers: object) -> None:
    """Raise ``BuildError`` unless it is a number of processes, or None."""
    is_number = isinstance(workers, int) and not isinstance(workers, bool)
    if not (workers is None or (is_number and workers >= 1)):  # type: ignore[operator]
        raise BuildError(
            f"not a number of workers: {kind_of(workers)} (accepted: 1 or more, or "
            "None)"
        )


def check_indexes(indexes: object) -> None:
    """Raise ``UnknownIndexError`` unless it is kinds by column, or None."""
    if indexes is None or isinstance(indexes, Mapping):
        return
    named = [indexes] if isinstance(indexes, str) else indexes
    first = next(iter(named), None) if isinstance(named, Sequence) else None
    first = first if isinstance(first, str) else "city"
    raise UnknownIndexError(
        f"indexes={indexes!r} names no kinds (accepted: a mapping such as "
        f"{{{first!r}: 'bitmap'}}, or columns=[{first!r}], which lets the advisor "
        "choose)"
    )


def duration_in(value: object) -> timedelta | None:
    """The time that a timedelta or a text says; None of anything else.

    >>> duration_in("1.5 h"), duration_in("7"), duration_in("0"), duration_in(7)
    (datetime.timedelta(seconds=5400), None, datetime.timedelta(0), None)
    """
    if isinstance(value, timedelta):
        return value
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    return timedelta(seconds=float(match[1] or 0) * _SECONDS[match[2] or "s"])


def retention_in(value: object) -> timedelta | None:
    """How long superseded files stay, as an argument; None is the table's own time.

    Raises:
        TableError: the value is no time.
    """
    result = duration_in(value)
    if result is None and value is not None:
        raise TableError(
            f"not a retention: {kind_of(value)} (accepted: a timedelta, such as "
            "timedelta(days=7), or a number with its unit: '30min', '12h' or '7d')"
        )
    return result


def check_session(spark: object) -> None:
    """Raise ``EngineError`` unless it is a session of Spark."""
    if engine_type(spark) is None:
        raise EngineError(
            f"not a Spark session: {kind_of(spark)} (accepted: a SparkSession, such as "
            "SparkSession.builder.getOrCreate())"
        )


def check_frame(df: object) -> None:
    """Raise ``EngineError`` unless it is a DataFrame of Spark."""
    if engine_type(df) is None or not hasattr(df, "sparkSession"):
        raise EngineError(
            f"not a Spark DataFrame: {kind_of(df)} (accepted: a DataFrame of PySpark; "
            "spark.createDataFrame makes one of a pandas frame or an Arrow table)"
        )


def check_types(types: Mapping[str, Any] | None, derived: object) -> None:
    """Raise ``TableError`` unless partition columns are described as they must be."""
    if not (types is None or isinstance(types, Mapping)):
        raise TableError(
            f"partition_types={kind_of(types)} is not a mapping (accepted: names and "
            "Arrow types, such as {'day': pa.date32()})"
        )
    for name, dtype in (types or {}).items():
        if not isinstance(dtype, pa.DataType):
            raise TableError(
                f"partition_types: {dtype!r} is not an Arrow type for {name!r} "
                "(accepted: such as pa.int32() or pa.string())"
            )
    if not (derived is None or isinstance(derived, Derived)):
        raise TableError(
            f"derived={derived!r} is not a declaration (accepted: "
            "skipindex.Derived({'year': 'year(ts)'}))"
        )


def no_table(value: object) -> TableError:
    """The error that a value is neither a table nor the place of one."""
    accepted = "a Table, a path or a URI"
    package = type(value).__module__.partition(".")[0]
    if isinstance(value, list | tuple | set):
        accepted += " of one folder; its files are those below it"
    elif package in {"pandas", "polars", "pyarrow", "pyspark"}:
        accepted += "; data in memory are written to a folder first"
    return TableError(f"not a table: {kind_of(value)} (accepted: {accepted})")


def check_place(place: str | os.PathLike[str]) -> None:
    """Raise ``TableError`` for a pattern of names where a folder is meant."""
    text = os.fspath(place)
    folder = re.split(r"[*?\[]", text, maxsplit=1)[0].rpartition("/")[0]
    is_pattern = re.search(r"[*?\[]", text) and not re.match(r"\w\w+:", text)
    if is_pattern and not Path(text).exists():
        raise TableError(
            f"no such table: {text!r} is a pattern of names (accepted: the folder "
            f"itself, {folder or '.'!r})"
        )


def check_sidecar(sidecar: object) -> None:
    """Raise ``TableError`` if this is no folder for indexes; None is the table's."""
    is_named = isinstance(sidecar, str | os.PathLike) and bool(os.fspath(sidecar))
    if sidecar is not None and not is_named:
        raise TableError(
            f"not a sidecar: {kind_of(sidecar)} (accepted: the path or URI of a folder)"
        )


def names_of(names: Sequence[str] | None) -> Sequence[str] | None:
    """A list of names; a single name is a list of itself."""
    return [names] if isinstance(names, str) else names


def check_ratio(max_bytes_ratio: object) -> None:
    """Raise ``AdviceError`` unless it is a number; which ones, the advisor says."""
    if not isinstance(max_bytes_ratio, int | float):
        raise AdviceError(
            f"not a cap: max_bytes_ratio={kind_of(max_bytes_ratio)} (accepted: a "
            "number above 0, such as 0.1 for a tenth of the data's bytes)"
        )
