"""What a log of Delta may say of a file, by the protocol ("Per-file Statistics")."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from tests.heavy.lives.rows import (
    Column,
    Kind,
    Names,
    Stored,
    cut,
    flat,
    order,
)

NO_BOUNDS: Final = ("boolean",)
"""Types without the least and the greatest value."""
_STYLES: Final = (
    *("absent", "rows", "some", "all", "all", "all", "wide", "wide", "nulls", "low"),
)
"""Of statistics."""


@dataclass
class Statistics:
    """Statistics of a file, by the path of a column's names in files.

    Args:
        n: how many rows the file has, deleted ones too; None is not said.
        is_tight: ``tightBounds``; None where the log does not say it.
    """

    n: int | None
    is_tight: bool | None
    nulls: dict[Names, int] = field(default_factory=dict)
    low: dict[Names, Any] = field(default_factory=dict)
    high: dict[Names, Any] = field(default_factory=dict)

    def as_json(self) -> str:
        """As an action has them."""
        told = {
            "numRecords": self.n,
            "tightBounds": self.is_tight,
            "nullCount": _nested(self.nulls),
            "minValues": _nested(self.low, _in_json),
            "maxValues": _nested(self.high, _in_json),
        }
        return json.dumps({k: v for k, v in told.items() if v is not None and v != {}})

    def as_struct(self) -> dict[str, Any]:
        """As the column ``stats_parsed`` of a checkpoint has them."""
        return {
            "numRecords": self.n,
            "tightBounds": self.is_tight,
            "nullCount": _nested(self.nulls),
            "minValues": _nested(self.low),
            "maxValues": _nested(self.high),
        }


def _nested(
    values: Mapping[Names, Any], how: Callable[[Any], Any] = lambda value: value
) -> dict[str, Any]:
    """Values by name, those of fields of structs inside."""
    result: dict[str, Any] = {}
    for names, value in values.items():
        inside = result
        for name in names[:-1]:
            inside = inside.setdefault(name, {})
        inside[names[-1]] = how(value)
    return result


def _in_json(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return float_text(value)
        case datetime():
            zone = "" if value.tzinfo is None else "Z"
            plain = value.replace(tzinfo=None)
            return plain.isoformat(timespec="milliseconds") + zone
        case date():
            return value.isoformat()
        case Decimal():
            return float(value)
    return value


def float_text(value: float) -> str:
    """A number in Delta's texts."""
    special = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
    return special.get(str(value), str(value))


def described(
    rng: random.Random, columns: Iterable[Column], file: Stored
) -> Statistics | None:
    """What a writer may say of a file; nothing only if no row is deleted."""
    style = rng.choice(_STYLES[1:] if file.gone else _STYLES)
    if style == "absent":
        return None
    is_wide = style == "wide" or (bool(file.gone) and rng.random() < 0.7)
    # A log must say how many rows a file has only if some are deleted.
    is_said = bool(file.gone) or random.Random(Path(file.path).name).random() < 0.6
    n = file.n if is_said else None
    result = Statistics(n, False if is_wide else rng.choice([True, None]))
    share = {"rows": 0.0, "some": 0.5}.get(style, 1.0)
    for one in columns:
        if one.is_partition or rng.random() >= share:
            continue
        stored = file.rows.get(one.number, [None] * file.n)
        for place, leaf, values in flat(one, [stored[i] for i in file.valid]):
            assert leaf.kind is not None
            result.nulls[place] = _null_count(rng, values, file.n, is_wide=is_wide)
            known = [value for value in values if value is not None]
            if not known or style == "nulls" or leaf.kind.name in NO_BOUNDS:
                continue
            if is_wide:  # they need not be tight, and may be
                known += rng.choices(leaf.kind.pool, k=rng.choice([0, 2]))
            low, high = _bounds(rng, known)
            if low is not None:
                result.low[place] = low
            if high is not None and style != "low":
                result.high[place] = high
    return result


def _null_count(rng: random.Random, valid: list[Any], n: int, *, is_wide: bool) -> int:
    n_null = sum(value is None for value in valid)
    if not is_wide:
        return n_null
    # Only 0 and the number of rows say something, and any other number nothing.
    some = [*range(1, n)]
    some += [0] * (n_null == 0) + [n] * (n_null == len(valid))
    return rng.choice(some or [n_null])


def _bounds(rng: random.Random, known: list[Any]) -> tuple[Any, Any]:
    """The least and the greatest of values; NaN is the greatest, or is not seen."""
    numbers = [v for v in known if not (isinstance(v, float) and math.isnan(v))]
    if not numbers:
        return None, rng.choice([None, math.nan])
    seen = known if rng.random() < 0.4 else numbers
    low, high = min(numbers, key=order), max(seen, key=order)
    return _cut(rng, low, up=False), _cut(rng, high, up=True)


def _cut(rng: random.Random, value: Any, *, up: bool) -> Any:
    match value:
        case str():
            return cut(rng, value, up=up)
        case datetime():  # both bounds are cut down to milliseconds
            return value.replace(microsecond=value.microsecond // 1000 * 1000)
    return value


def untrue(text: str, columns: Iterable[Column], file: Stored) -> str:
    """What statistics say of a file without deletes that is not so; empty if all is."""
    stats = json.loads(text, parse_float=Decimal)
    if stats.get("numRecords", file.n) != file.n:
        return f"{stats['numRecords']} rows of {file.n}"
    for one in columns:
        for place, leaf, values in flat(one, file.rows.get(one.number, [])):
            assert leaf.kind is not None
            names = ("nullCount", "minValues", "maxValues")
            nulls, low, high = (_inside(stats.get(name), place) for name in names)
            n_null = sum(value is None for value in values)
            if nulls is not None and nulls != n_null:
                return f"{nulls} NULLs in {place}, and it has {n_null}"
            for value in values:
                if value is None:
                    continue
                if low is not None and order(value) < _read(leaf.kind, low):
                    return f"{low!r} is the least in {place}, and it has {value!r}"
                if high is not None and order(value) > _read(leaf.kind, high, up=True):
                    return f"{high!r} is the greatest in {place}, and it has {value!r}"
    return ""


def _inside(values: Any, place: Names) -> Any:
    for name in place:
        values = values.get(name) if isinstance(values, Mapping) else None
    return values


def _read(kind: Kind, bound: Any, *, up: bool = False) -> Any:
    """The order of a bound in JSON; a greatest time may have been cut."""
    match kind.name:
        case "date":
            bound = date.fromisoformat(bound)
        case "timestamp" | "timestamp_ntz":
            bound = datetime.fromisoformat(bound) + timedelta(microseconds=999 * up)
            bound = bound.replace(tzinfo=UTC if kind.arrow.tz else None)
        case "double" | "float":
            bound = float(bound)
    return order(bound)
