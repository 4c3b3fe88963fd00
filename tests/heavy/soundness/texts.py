"""Conditions as people write them, for Spark to judge: no oracle knows them all.

``{v}`` is the column under test, ``{x}`` and ``{y}`` are literals beside its values,
``w`` is the second column.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from skipindex.expressions import literal_sql, to_sql
from tests.heavy.soundness.forms import OPAQUE
from tests.heavy.soundness.matrix import predicates, renamed
from tests.heavy.soundness.pools import Pool

_ANY: Final = (
    "{x} < {v}",
    "{x} >= {v}",
    "{x} <=> {v}",
    "{v} BETWEEN {x} AND {y}",
    "{v} NOT BETWEEN {x} AND {y}",
    "NOT ({v} > {x} AND {v} <= {y})",
    "{v} IS DISTINCT FROM {x}",
    "{v} IS NOT DISTINCT FROM {x}",
    "({v} = {x}) IS TRUE",
    "({v} < {x}) IS NOT FALSE",
    "({v} >= {x}) IS FALSE",
    "({v} = {x}) IS UNKNOWN",
    "({v} > {x}) = TRUE",
    "({v} > {x}) <=> (w = 1)",
    "NOT (({v} = {x}) IS NULL)",
    "{v} = {x} IS NOT NULL",
    "coalesce({v}, {x}) = {y}",
    "nvl({v}, {x}) <= {y}",
    "ifnull({v}, {x}) IS NOT NULL",
    "nullif({v}, {x}) IS NULL",
    "CASE WHEN {v} > {x} THEN w = 1 ELSE w IS NULL END",
    "CASE WHEN {v} IS NULL THEN TRUE WHEN {v} = {x} THEN FALSE END",
    "if({v} = {x}, w > 0, w < 1)",
    "{v} = {v}",
    "{v} <> {v} OR w <=> NULL",
    "{v} IN ({x}, {y}, NULL)",
    "{v} NOT IN ({x}, {y})",
    "NOT {v} IN ({x}, NULL)",
    "{v} = {x} OR w IN (1, 7)",
    "{v} > {x} AND upper(cast(w AS STRING)) = '1'",
    "isnull({v})",
    "isnotnull({v}) AND NOT w <=> 1",
    "greatest({v}, {x}) = {v}",
    "least({v}, {x}) < {y}",
    "({v}, w) = ({x}, 1)",
    "{v} <= {x} AND rand() >= 0",
    "{v} = {x} AND 1 = 1",
    "{v} = {x} OR 1 > 2",
    "cast({v} AS STRING) = '1'",
    "hash({v}) % 3 = 1",
    "greatest({v}, {x}) >= {y}",
    "least({v}, {x}, {y}) = {x}",
    "greatest({v}, NULL) IS NULL",
    "coalesce(nvl({v}, {x}), {y}) <> {x}",
    "coalesce({v} = {x}, w = 1)",
    "CASE {v} WHEN {x} THEN 1 WHEN {y} THEN w END > 0",
    "nullif({v}, {x}) = {y}",
    "{x} = {y} OR {v} = {x}",
    "{x} < {y} AND {v} >= {x}",
    "{x} IN ({y}, NULL) OR {v} <> {x}",
)
_WHOLE: Final = (
    "{v} = '7'",
    "{v} < 1.5",
    "{v} <= -1.5",
    "{v} >= 1e2",
    "{v} = 1L",
    "{v} <> 1S",
    "{v} IN (1, 2.5)",
    "{v} IN (1, 9223372036854775808)",
    "{v} > cast('NaN' AS DOUBLE)",
    "{v} < cast('inf' AS FLOAT)",
    "{v} BETWEEN -1 AND 2.5",
    "{v} = 0x7",
    "{v} + 1 > {x}",
    "{v} - 1 = 0",
    "2 * {v} = 2",
    "-{v} < 1",
    "abs({v}) = 1",
    "{v} % 7 = 3",
    "pmod({v}, 7) = 0",
    "{v} div 2 = 0",
    "{v} & 1 = 1",
    "floor({v} / 2) = 3",
    "cast({v} AS BIGINT) > 3",
    "cast({v} AS TINYINT) = 1",
    "cast({v} AS DOUBLE) > 0.5",
    "cast({v} AS DECIMAL(38,2)) = 7",
    "cast({v} AS BOOLEAN)",
    "{v} = w",
    "{v} > w + 1",
    "round({v}) = 7",
    "round({v}, -1) > {x}",
    "sign({v}) = -1",
    "signum({v}) >= 0",
    "greatest({v}, 0) = 7",
    "{v} + 1 + 1 - 1 + 1 - 1 <= {x}",
    "-(2 * ({v} + 1)) < {x}",
    "greatest({v} + 1, least({v}, 3)) = 8",
    "{v} * 1.5 > 10",
    "{v} + 0.5 = 7.5",
)
_FLOATS: Final = (
    "isnan({v})",
    "NOT isnan({v})",
    "{v} = 'NaN'",
    "{v} > '1.5'",
    "{v} = 0",
    "{v} = -0.0D",
    "{v} > 9007199254740993",
    "{v} = cast(0.1 AS FLOAT)",
    "{v} IN (0.0D, cast('NaN' AS DOUBLE))",
    "{v} NOT IN (0.0D, 1.0D)",
    "nanvl({v}, 1) = 1",
    "{v} + 1 > 2",
    "-{v} >= 0",
    "floor({v}) = 0",
    "round({v}, 1) = 0.1",
    "cast({v} AS FLOAT) = 1",
    "cast({v} AS DOUBLE) > 0.1",
    "sqrt({v}) >= 0",
    "signum({v}) = -1",
    "{v} <> 'nan'",
    "{v} <= ' 1e0 '",
    "{v} < '-inf'",
    "{v} = '0.1'",
    "NOT ({v} >= '0')",
    "{v} IN ('1.5', '0')",
    "sign({v}) = 0",
    "round({v}) = 1",
    "round({v}, 2) > 0.1",
    "greatest({v}, 0.0D) = 0",
    "least({v}, cast('NaN' AS DOUBLE)) < 1",
)
_DECIMALS: Final = (
    "{v} = 0.01",
    "{v} > 0.005",
    "{v} <= 1",
    "{v} = 1e0",
    "{v} > '0.5'",
    "{v} IN (1, 0.01)",
    "{v} IN (1, 1e0)",
    "{v} * 2 > 1",
    "-{v} < 0",
    "round({v}) = 0",
    "floor({v}) = -1",
    "ceil({v}) = 1",
    "cast({v} AS DOUBLE) = 1",
    "cast({v} AS DECIMAL(38,4)) > 0",
    "{v} < 1.00000000000000000000001BD",
    "{v} > 1e-2",
    "{v} <> 0.01D",
    "{v} <= '1e0'",
    "{v} >= 1e30",
    "{v} < cast('NaN' AS DOUBLE)",
    "{v} IN (0.01D, 1, 2.5)",
    "{v} NOT IN (0.01D, 1D)",
    "{v} + 1 > 1.01",
    "1 - {v} <= 0.5",
    "{v} * -1.5 < 0",
    "({v} + 0.5) * 2 >= 1",
    "{v} * {v} = 1",
    "round({v}, 1) <= 0.1",
    "round({v}, -1) = 0",
    "sign({v}) = 1",
    "greatest({v}, {x}) > 0",
    "{v} = w",
)
_TEXTS: Final = (
    "startswith({v}, 'a')",
    "endswith({v}, 'b')",
    "contains({v}, 'a')",
    "NOT startswith({v}, 'a')",
    "{v} LIKE 'a%b'",
    "{v} LIKE 'a%b%'",
    "{v} LIKE 'a!_b' ESCAPE '!'",
    "{v} LIKE 'a\\\\%'",
    "{v} NOT LIKE '%\\\\\\\\%'",
    "{v} LIKE '_'",
    "{v} LIKE ANY ('a%', '%b')",
    "{v} LIKE ALL ('a%', '%b')",
    "{v} NOT LIKE ALL ('a%', '%b')",
    "{v} ILIKE 'A%'",
    "{v} RLIKE '^a'",
    "upper({v}) = 'AB'",
    "lower({v}) = 'b'",
    "substring({v}, 1, 1) = 'a'",
    "substr({v}, 1, 2) >= 'ab'",
    "left({v}, 1) = 'a'",
    "length({v}) > 3",
    "octet_length({v}) > 64",
    "trim({v}) = 'a'",
    "concat({v}, 'x') = 'ax'",
    "{v} || '' = 'ab'",
    "reverse({v}) = 'ba'",
    "{v} = 'a' 'b'",
    '{v} = "ab"',
    "{v} = r'a\\b'",
    "{v} = 1",
    "{v} < DATE '2020-01-01'",
    "{v} COLLATE UTF8_LCASE = 'AB'",
    "{v} > X'61'",
    "trim(BOTH 'a' FROM {v}) = 'b'",
    "trim(LEADING 'ab' FROM {v}) = ''",
    "trim(TRAILING FROM {v}) = 'a'",
    "btrim({v}, 'b') <= 'a'",
    "ltrim('a', {v}) >= 'b'",
    "contains({v}, 'a') = TRUE",
    "startswith({v}, 'a') <=> FALSE",
    "endswith({v}, 'b') IS NULL",
    "NOT (contains({v}, 'a') <> TRUE)",
    "if(startswith({v}, 'a'), 1, 0) = w",
    "greatest({v}, 'ab') = 'ab'",
)
_BYTES: Final = (
    "{v} = 'a'",
    "{v} >= X'61'",
    "{v} = cast('ab' AS BINARY)",
    "hex({v}) = '61'",
    "length({v}) > 64",
    "substring({v}, 1, 1) = X'61'",
    "startswith({v}, X'61')",
    "cast({v} AS STRING) = 'a'",
    "{v} > 'a'",
    "{v} <= ''",
    "{v} <> 'ab'",
    "{v} IN ('a', 'b')",
    "{v} BETWEEN 'a' AND X'62'",
)
_DAYS: Final = (
    "year({v}) = 2020",
    "month({v}) = 2",
    "year({v}) >= 1970 AND year({v}) < 2021",
    "day({v}) = 29",
    "dayofweek({v}) = 7",
    "quarter({v}) = 1",
    "date_trunc('MONTH', {v}) = TIMESTAMP '2020-02-01 00:00:00'",
    "date_trunc('year', {v}) < TIMESTAMP '2021-01-01 00:00:00'",
    "trunc({v}, 'MM') = DATE '2020-02-01'",
    "last_day({v}) = DATE '2020-02-29'",
    "{v} >= '2020-02-29'",
    "{v} = '2020-2-29'",
    "{v} < '2020'",
    "{v} > '2020-02'",
    "{v} > TIMESTAMP '2020-02-28 23:59:59.999999'",
    "{v} <= TIMESTAMP_NTZ '2020-11-01 00:00:00'",
    "{v} = TIMESTAMP '2020-03-08 02:30:00'",
    "{v} < TIMESTAMP '2020-03-08 07:00:00Z'",
    "{v} >= TIMESTAMP '2020-11-01 01:30:00'",
    "{v} <> TIMESTAMP '2020-11-01 01:30:00 America/New_York'",
    "cast({v} AS TIMESTAMP) >= TIMESTAMP '1970-01-01 00:00:00'",
    "cast({v} AS TIMESTAMP_NTZ) < TIMESTAMP_NTZ '2020-03-01 00:00:00'",
    "cast({v} AS DATE) = DATE '2020-03-08'",
    "to_date({v}) <= DATE '2020-03-07'",
    "date({v}) > '2020-10-31'",
    "hour({v}) = 1",
    "date_format({v}, 'yyyy') = '2020'",
    "substring(cast({v} AS STRING), 1, 4) = '2020'",
    "{v} + INTERVAL 1 DAY > DATE '2020-03-01'",
    "date_add({v}, 1) = DATE '2020-03-01'",
    "datediff({v}, DATE '2020-01-01') < 60",
    "{v} < current_timestamp()",
    "{v} > current_date() - INTERVAL 100000 DAY",
    "{v} < TIMESTAMP '2020-03-08 02:30:00 America/New_York'",
    "{v} <= TIMESTAMP '2020-03-08 07:00:00 Europe/Berlin'",
    "{v} + INTERVAL 1 HOUR > TIMESTAMP '2020-03-08 07:30:00Z'",
    "{v} - INTERVAL 36 HOURS <= TIMESTAMP '2020-03-07 12:00:00Z'",
    "{v} + INTERVAL 1 DAY = TIMESTAMP '2020-03-08 07:30:00Z'",
    "{v} - INTERVAL 2 WEEKS < TIMESTAMP '2020-10-25 06:00:00Z'",
    "{v} < TIMESTAMP '2020-03-07 12:00:00Z' + INTERVAL 36 HOURS",
    "{v} >= TIMESTAMP '2020-11-01 12:00:00Z' - INTERVAL 24 HOURS",
    "coalesce({v}, TIMESTAMP '2020-01-01 00:00:00Z') > DATE '2020-02-01'",
    "coalesce({v}, TIMESTAMP_NTZ '2020-01-01 00:00:00') > DATE '2020-02-01'",
    "greatest({v}, TIMESTAMP '2020-03-08 07:00:00Z') = {v}",
)
_TRUTHS: Final = (
    "{v}",
    "NOT {v}",
    "{v} IS TRUE",
    "{v} IS NOT FALSE",
    "{v} AND w = 1",
    "{v} OR w IS NULL",
    "{v} > FALSE",
    "{v} = 'true'",
    "{v} = 1",
    "NOT ({v} AND w > 0)",
    "CASE WHEN {v} THEN w = 1 ELSE NOT {v} END",
    "cast({v} AS INT) = 1",
    "{v} <=> NULL",
    "{v} = 0",
    "{v} <> 1.0",
    "NOT ({v} = 2)",
    "{v} <=> 1e0",
    "{v} > 'f'",
    "{v} <> ' NO '",
    "{v} = 'x'",
    "greatest({v}, FALSE) = TRUE",
)


def conditions(pool: Pool, *, n: int, seed: int) -> Iterator[str]:
    """About ``n`` conditions with ``{v}`` for the column, without repeats.

    All that fit the type and are written out above, then the forms of the matrix.
    """
    rng = random.Random(f"{seed} {pool.name} texts")
    literals = [literal_sql(value) for value in pool.literals]
    written = [*_ANY, *_for(pool.dtype)]
    seen: dict[str, None] = {}
    for _ in range(2):
        for text in written:
            x, y = rng.choice(literals), rng.choice(literals)
            seen.setdefault(text.replace("{x}", x).replace("{y}", y))
    each = max(1, -(-(n - len(seen)) // 35))
    made = predicates(pool, each=each, seed=seed + 1)
    for tree in (tree for _, tree in made):
        text = to_sql(renamed(tree, _MARK))
        if OPAQUE not in text:
            seen.setdefault(text.replace(f"`{_MARK}`", "{v}"))
    listed = list(seen)
    rng.shuffle(listed)
    yield from listed


_MARK: Final = "column under test"
"""A name that no literal holds; it is written between backticks."""


def _for(dtype: pa.DataType) -> Sequence[str]:
    types = pa.types
    if types.is_boolean(dtype):
        return _TRUTHS
    if types.is_integer(dtype):
        return _WHOLE
    if types.is_floating(dtype):
        return _FLOATS
    if types.is_decimal(dtype):
        return _DECIMALS
    if types.is_string(dtype):
        return _TEXTS
    return _BYTES if types.is_binary(dtype) else _DAYS
