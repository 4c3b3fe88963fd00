"""What columns of each type are asked, beside comparisons with constants.

In the texts ``{x}`` is the column; the other names are made of one of its values, by
`names_of`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final

from tests.heavy.queries.values import DAY, quoted

FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "integer": (
        *("{x} + 1 = {v}", "{x} - 3 <= {v}", "{x} * 2 >= {v}", "-{x} < {minus}"),
        *("{x} % 7 = 3", "{x} / 2 > {v}", "{x} div 10 = {tens}", "{x} & 3 = 1"),
        *("abs({x}) > {half}", "greatest({x}, 3) = {v}", "coalesce({x}, 0) = {v}"),
        *("nullif({x}, {v}) IS NULL", "if({x} > {v}, true, false)"),
        "CASE WHEN {x} < {v} THEN 1 ELSE 2 END = 1",
        *("cast({x} as string) = '{v}'", "cast({x} as double) = {v}"),
        *("cast({x} as decimal(22,2)) = {v}", "cast({x} as bigint) < {v}"),
    ),
    "float": (
        *("isnan({x})", "{x} = {x}", "{x} = 0.0D", "{x} = -0.0D", "{x} > 1e2"),
        *("-{x} < 0", "round({x}) = 3", "floor({x}) = 4", "ceil({x}) <= 6"),
        *("nanvl({x}, 1) = 1", "{x} <> double('NaN')", "{x} >= double('Infinity')"),
        *("cast({x} as decimal(9,1)) = 5", "{x} IN (0.0D, double('NaN'))"),
        "NOT ({x} < 7)",
    ),
    "decimal": (
        *("{x} * 2 > {v}", "{x} = {v}D", "{x} = {whole}", "{x} > {whole}"),
        *("{x} < 1e9", "abs({x}) <= abs({v})", "round({x}) = {whole}"),
        *("cast({x} as decimal(38,0)) = {whole}", "cast({x} as double) < {v}"),
    ),
    "string": (
        *("{x} LIKE {starts}", "{x} NOT LIKE {starts}", "{x} LIKE {ends}"),
        *("{x} LIKE {has}", "{x} NOT LIKE {has}", "{x} LIKE {hole}", "{x} LIKE {v}"),
        *("{x} LIKE {starts} ESCAPE '/'", "{x} ILIKE 'V0%'", "{x} RLIKE '^v0[1-5]'"),
        *("startswith({x}, {head})", "endswith({x}, {last})", "contains({x}, {inner})"),
        *("substring({x}, 1, 3) = {three}", "left({x}, 2) = {two}", "length({x}) > 4"),
        *("upper({x}) = {upper}", "lower({x}) = {lower}", "trim({x}) = {v}"),
        *("concat({x}, 'z') = {longer}", "{x} || '' >= {v}", "nullif({x}, '') = {v}"),
        *("instr({x}, 'é') > 0", "{x} > {head}", "{x} LIKE 'v%' AND {x} > {v}"),
    ),
    "boolean": (
        *("{x}", "NOT {x}", "{x} = false", "{x} IS TRUE", "{x} IS NOT FALSE"),
        *("{x} IS NOT TRUE", "coalesce({x}, true)", "{x} > false"),
    ),
    "calendar": (
        *("year({x}) = {year}", "month({x}) = {month}", "day({x}) < 9"),
        *("quarter({x}) = 2", "hour({x}) = 7", "{x} = '{day}'", "{x} > '{year}'"),
        *("cast({x} as date) = date'{day}'", "to_date({x}) >= '{day}'"),
        *("trunc({x}, 'MM') = date'{first}'", "{x} >= date'{epoch}' + {ahead}"),
        "date_trunc('MONTH', {x}) = timestamp'{first}'",
        *("{x} > current_date() - interval '1900' day", "{x} < current_date()"),
        *("{x} < now() - interval 30 days", "{x} > now() - interval 6 years"),
        *("date_format({x}, 'yyyy-MM') = '{ym}'", "{x} BETWEEN '{first}' AND '{day}'"),
        *("cast({x} as string) LIKE '{ym}%'", "datediff({x}, '{day}') <= 1"),
        "unix_date(cast({x} as date)) > 18300",
        "date_add(cast({x} as date), 1) = '{day}'",
        "cast({x} as timestamp) > timestamp'{day} 12:00:00'",
        "date_trunc('DAY', {x}) BETWEEN '{first}' AND '{day}'",
    ),
    "binary": ("length({x}) > 1", "hex({x}) = '{hex}'", "{x} >= x'0500'"),
}
ALWAYS: Final = (
    *("true", "false", "null", "1 < 2", "rand() < 2", "current_date() > '2001-01-01'"),
    *("hash({any}) % 3 = 0", "isnotnull({any})", "coalesce({any} IS NULL, true)"),
    *("xxhash64({all}) % 2 = 0", "{any} IS NOT NULL OR {any} IS NULL"),
)
"""Of any column, of all, or of none; and those below, of a column of integers."""
OF_INTEGERS: Final = (
    *("({x} = {v} OR {x} IS NULL)", "({x} > {v}) = true", "({x} = {v}) IS NOT NULL"),
    *("({x} > {v}) <=> null", "array_contains(array({v}, 7), {x})"),
    *("exists(array({v}, 5), e -> e = {x})", "({x}, {x}) IN (({v}, {v}), (1, 1))"),
    *("struct({x}) = struct({v})", "NOT ({x} <=> {v})", "({x} < {v}) <> ({x} > 3)"),
)


def names_of(family: str, value: Any) -> Mapping[str, Any]:
    """What the texts of a family are filled with."""
    match family:
        case "integer":
            parts = {"half": abs(value) // 2, "minus": -value, "tens": value // 10}
            return {"v": value, **parts}
        case "decimal":
            return {"v": f"{value:f}", "whole": int(value)}
        case "string":
            return _of_text(value)
        case "calendar":
            return _of_day(value.date() if isinstance(value, dt.datetime) else value)
        case "binary":
            return {"hex": value.hex().upper()}
    return {"v": value}


def _of_text(value: str) -> Mapping[str, str]:
    pieces = {
        "v": value,
        "head": value[:2],
        "two": value[:2],
        "three": value[:3],
        "inner": value[1:3],
        "last": value[-1:],
        "upper": value.upper(),
        "lower": value.lower(),
        "longer": f"{value}z",
        "starts": f"{value[:3]}%",
        "ends": f"%{value[-1:]}",
        "has": f"%{value[1:3]}%",
        "hole": f"{value[:1]}_{value[2:]}",
    }
    return {name: quoted(text) for name, text in pieces.items()}


def _of_day(day: dt.date) -> Mapping[str, Any]:
    return {
        "day": day,
        "year": day.year,
        "month": day.month,
        "first": day.replace(day=1),
        "ym": f"{day:%Y-%m}",
        "epoch": DAY,
        "ahead": (day - DAY).days,
    }
