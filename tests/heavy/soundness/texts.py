"""Conditions as people write them, for Spark to judge: no oracle knows them all.

They are those of the catalogue, on a column of any type alike, and what it lacks.
``{v}`` is the column under test, ``{x}`` and ``{y}`` are literals beside its values,
``w`` is the second column.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from skipindex.expressions import literal_sql, to_sql
from tests.conditions.catalogue.entries import templates
from tests.heavy.soundness.forms import OPAQUE
from tests.heavy.soundness.matrix import predicates, renamed
from tests.heavy.soundness.pools import Pool

_ANY: Final = (
    *("{x} < {v}", "{v} = {v}", "{x} >= {v}", "{x} <=> {v}", "isnull({v})"),
    *("hash({v}) % 3 = 1", "({v} > {x}) = TRUE", "{v} = {x} OR 1 > 2"),
    *("({v} = {x}) IS TRUE", "({v}, w) = ({x}, 1)", "{v} = {x} AND 1 = 1"),
    *("nvl({v}, {x}) <= {y}", "({v} >= {x}) IS FALSE", "{v} = {x} IS NOT NULL"),
    *("{v} NOT IN ({x}, {y})", "least({v}, {x}) < {y}", "({v} = {x}) IS UNKNOWN"),
    *("NOT {v} IN ({x}, NULL)", "nullif({v}, {x}) = {y}", "{x} = {y} OR {v} = {x}"),
    *("{v} BETWEEN {x} AND {y}", "({v} > {x}) <=> (w = 1)", "{v} IN ({x}, {y}, NULL)"),
    *("{v} IS DISTINCT FROM {x}", "({v} < {x}) IS NOT FALSE"),
    *("coalesce({v}, {x}) = {y}", "nullif({v}, {x}) IS NULL"),
    *("{v} <> {v} OR w <=> NULL", "{v} = {x} OR w IN (1, 7)"),
    *("greatest({v}, {x}) = {v}", "{x} < {y} AND {v} >= {x}"),
    *("NOT (({v} = {x}) IS NULL)", "cast({v} AS STRING) = '1'"),
    *("greatest({v}, {x}) >= {y}", "{v} <= {x} AND rand() >= 0"),
    *("least({v}, {x}, {y}) = {x}", "coalesce({v} = {x}, w = 1)"),
    *("{v} NOT BETWEEN {x} AND {y}", "if({v} = {x}, w > 0, w < 1)"),
    *("greatest({v}, NULL) IS NULL", "{v} IS NOT DISTINCT FROM {x}"),
    *("ifnull({v}, {x}) IS NOT NULL", "NOT ({v} > {x} AND {v} <= {y})"),
    *("isnotnull({v}) AND NOT w <=> 1", "{x} IN ({y}, NULL) OR {v} <> {x}"),
    "coalesce(nvl({v}, {x}), {y}) <> {x}",
    "{v} > {x} AND upper(cast(w AS STRING)) = '1'",
    "CASE {v} WHEN {x} THEN 1 WHEN {y} THEN w END > 0",
    "CASE WHEN {v} > {x} THEN w = 1 ELSE w IS NULL END",
    "CASE WHEN {v} IS NULL THEN TRUE WHEN {v} = {x} THEN FALSE END",
)
_WHOLE: Final = (
    *("{v} = w", "2 * {v} = 2", "{v} > w + 1", "{v} + 1 > {x}", "{v} * 1.5 > 10"),
    *("{v} + 0.5 = 7.5", "signum({v}) >= 0", "floor({v} / 2) = 3"),
    *("round({v}, -1) > {x}", "{v} BETWEEN -1 AND 2.5", "-(2 * ({v} + 1)) < {x}"),
    *("cast({v} AS BIGINT) > 3", "cast({v} AS TINYINT) = 1"),
    *("cast({v} AS DOUBLE) > 0.5", "{v} < cast('inf' AS FLOAT)"),
    *("{v} > cast('NaN' AS DOUBLE)", "{v} + 1 + 1 - 1 + 1 - 1 <= {x}"),
    "greatest({v} + 1, least({v}, 3)) = 8",
)
_FLOATS: Final = (
    *("{v} < '-inf'", "sqrt({v}) >= 0", "NOT ({v} >= '0')", "{v} IN ('1.5', '0')"),
    *("cast({v} AS FLOAT) = 1", "{v} NOT IN (0.0D, 1.0D)", "{v} = cast(0.1 AS FLOAT)"),
    *("cast({v} AS DOUBLE) > 0.1", "{v} IN (0.0D, cast('NaN' AS DOUBLE))"),
    "least({v}, cast('NaN' AS DOUBLE)) < 1",
)
_DECIMALS: Final = (
    *("{v} = w", "-{v} < 0", "{v} > 1e-2", "ceil({v}) = 1", "sign({v}) = 1"),
    *("round({v}) = 0", "{v} * -1.5 < 0", "{v} IN (1, 1e0)", "round({v}, -1) = 0"),
    *("({v} + 0.5) * 2 >= 1", "{v} IN (0.01D, 1, 2.5)", "greatest({v}, {x}) > 0"),
    *("cast({v} AS DOUBLE) = 1", "{v} < cast('NaN' AS DOUBLE)"),
    "cast({v} AS DECIMAL(38,4)) > 0",
)
_TEXTS: Final = (
    *("{v} || '' = 'ab'", "endswith({v}, 'b')", "contains({v}, 'a')"),
    *("reverse({v}) = 'ba'", "concat({v}, 'x') = 'ax'", "NOT startswith({v}, 'a')"),
    *("{v} LIKE ANY ('a%', '%b')", "{v} LIKE ALL ('a%', '%b')"),
    *("substr({v}, 1, 2) >= 'ab'", "{v} NOT LIKE ALL ('a%', '%b')"),
    *("{v} COLLATE UTF8_LCASE = 'AB'", "startswith({v}, 'a') <=> FALSE"),
    *("trim(LEADING 'ab' FROM {v}) = ''", "NOT (contains({v}, 'a') <> TRUE)"),
    "if(startswith({v}, 'a'), 1, 0) = w",
)
_BYTES: Final = (
    *("{v} <> 'ab'", "hex({v}) = '61'", "length({v}) > 64", "{v} IN ('a', 'b')"),
    *("{v} BETWEEN 'a' AND X'62'", "{v} = cast('ab' AS BINARY)"),
    "substring({v}, 1, 1) = X'61'",
)
_DAYS: Final = (
    *("{v} > '2020-02'", "date({v}) > '2020-10-31'", "{v} < current_timestamp()"),
    *("to_date({v}) <= DATE '2020-03-07'", "date_format({v}, 'yyyy') = '2020'"),
    *("date_add({v}, 1) = DATE '2020-03-01'", "{v} = TIMESTAMP '2020-03-08 02:30:00'"),
    "cast({v} AS DATE) = DATE '2020-03-08'",
    "year({v}) >= 1970 AND year({v}) < 2021",
    "{v} < TIMESTAMP '2020-03-08 07:00:00Z'",
    "{v} >= TIMESTAMP '2020-11-01 01:30:00'",
    "{v} + INTERVAL 1 DAY > DATE '2020-03-01'",
    "{v} <= TIMESTAMP_NTZ '2020-11-01 00:00:00'",
    "{v} > current_date() - INTERVAL 100000 DAY",
    "{v} > TIMESTAMP '2020-02-28 23:59:59.999999'",
    "substring(cast({v} AS STRING), 1, 4) = '2020'",
    "{v} <= TIMESTAMP '2020-03-08 07:00:00 Europe/Berlin'",
    "greatest({v}, TIMESTAMP '2020-03-08 07:00:00Z') = {v}",
    "{v} < TIMESTAMP '2020-03-08 02:30:00 America/New_York'",
    "{v} <> TIMESTAMP '2020-11-01 01:30:00 America/New_York'",
    "{v} + INTERVAL 1 DAY = TIMESTAMP '2020-03-08 07:30:00Z'",
    "{v} + INTERVAL 1 HOUR > TIMESTAMP '2020-03-08 07:30:00Z'",
    "date_trunc('year', {v}) < TIMESTAMP '2021-01-01 00:00:00'",
    "{v} - INTERVAL 2 WEEKS < TIMESTAMP '2020-10-25 06:00:00Z'",
    "{v} < TIMESTAMP '2020-03-07 12:00:00Z' + INTERVAL 36 HOURS",
    "{v} - INTERVAL 36 HOURS <= TIMESTAMP '2020-03-07 12:00:00Z'",
    "{v} >= TIMESTAMP '2020-11-01 12:00:00Z' - INTERVAL 24 HOURS",
    "cast({v} AS TIMESTAMP_NTZ) < TIMESTAMP_NTZ '2020-03-01 00:00:00'",
    "coalesce({v}, TIMESTAMP_NTZ '2020-01-01 00:00:00') > DATE '2020-02-01'",
)
_TRUTHS: Final = (
    *("{v} <=> NULL", "{v} AND w = 1", "NOT ({v} = 2)", "{v} <> ' NO '"),
    *("{v} OR w IS NULL", "NOT ({v} AND w > 0)", "greatest({v}, FALSE) = TRUE"),
    "CASE WHEN {v} THEN w = 1 ELSE NOT {v} END",
)


_LISTED: Final = 50
"""Conditions of the catalogue."""


def conditions(pool: Pool, *, n: int, seed: int) -> Iterator[str]:
    """About ``n`` conditions with ``{v}`` for the column, without repeats.

    All that fit the type and are written out above, some of the catalogue, then the
    forms of the matrix.
    """
    rng = random.Random(f"{seed} {pool.name} texts")
    literals = [literal_sql(value) for value in pool.literals]
    columns, more = _for(pool.dtype)
    seen: dict[str, None] = {}
    for _ in range(2):
        for text in (*_ANY, *more):
            x, y = rng.choice(literals), rng.choice(literals)
            seen.setdefault(text.replace("{x}", x).replace("{y}", y))
    listed = templates(*columns)
    seen |= dict.fromkeys(rng.sample(listed, min(_LISTED, len(listed))))
    each = max(1, -(-(n - len(seen)) // 35))
    made = predicates(pool, each=each, seed=seed + 1)
    for tree in (tree for _, tree in made):
        text = to_sql(renamed(tree, _MARK))
        if OPAQUE not in text:
            seen.setdefault(text.replace(f"`{_MARK}`", "{v}"))
    shuffled = list(seen)
    rng.shuffle(shuffled)
    yield from shuffled


_MARK: Final = "column under test"
"""A name that no literal holds; it is written between backticks."""


def _for(dtype: pa.DataType) -> tuple[Sequence[str], Sequence[str]]:
    """Columns of the type in the catalogue, and conditions that it does not have."""
    types = pa.types
    if types.is_boolean(dtype):
        return ("b",), _TRUTHS
    if types.is_integer(dtype):
        return ("i", "l", "y"), _WHOLE
    if types.is_floating(dtype):
        return ("f", "d"), _FLOATS
    if types.is_decimal(dtype):
        return ("dec", "big"), _DECIMALS
    if types.is_string(dtype):
        return ("s", "n"), _TEXTS
    return (
        (("bin",), _BYTES) if types.is_binary(dtype) else (("dt", "ts", "ntz"), _DAYS)
    )
