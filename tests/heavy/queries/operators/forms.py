"""The forms of cases: each is an operator that evaluates a scan in a way of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

import pyspark

from tests.heavy.queries.operators.cases import Case, Step, drawn_settings
from tests.heavy.queries.operators.joins import Joiner
from tests.heavy.queries.operators.world import World

Version = tuple[int, ...]
VERSION: Final[Version] = tuple(map(int, pyspark.__version__.split(".")[:2]))
_TOTALS: Final = "count(*), sum(v), min(id), max(id)"


class Drawer:
    """Draws one case.

    Args:
        rng: what is drawn from.
        world: the tables.
    """

    def __init__(self, rng: Random, world: World) -> None:
        """Begin with no steps."""
        self.rng = rng
        self.joins = Joiner(rng, world)
        self.steps: list[Step] = []
        self.settings: dict[str, str] = {}
        self.copied = ""

    def draw(self, form: str) -> Case:
        """A case of a form."""
        settings = drawn_settings(self.rng)
        on_first = self.rng.random() < 0.5
        FORMS[form][1](self)
        steps, settings = tuple(self.steps), {**settings, **self.settings}
        return Case(form, steps, settings, on_first, self.copied)

    def add(self, kind: str, text: str, name: str = "", **more: bool | str) -> None:
        """A step of a text, with the conditions that were marked for it."""
        self.steps.append(Step(kind, text, self.joins.taken(), name, **more))

    def ask(self, text: str) -> None:
        """A query whose rows are compared."""
        self.add("ask", text)

    def filtered(self, alias: str = "a", *, odds: float = 1) -> str:
        """A table under a condition."""
        return self.joins.source(self.joins.table(), alias, odds)


def recursion(d: Drawer) -> None:
    """WITH RECURSIVE, whose step is planned anew for each level."""
    rng, depth = d.rng, d.rng.choice([3, 6, 12])
    base = rng.choice(
        ["SELECT 3L AS id, 0 AS lvl", "SELECT * FROM VALUES (3L, 0), (10L, 0)",
         "SELECT id, 0 FROM tree WHERE parent = 2",
         "SELECT id, 0 FROM t0 WHERE id < 9",
         "SELECT key, 0 FROM customers WHERE g = 1"]
    )  # fmt: skip
    extra = rng.choice(["", "", " AND tree.w <> 3", " AND tree.id < 40"])
    more = rng.choice(["", "", " JOIN customers c ON c.key = tree.id"])
    on = rng.choice(["tree.parent = r.id"] * 3 + ["tree.id = r.id + 1"])
    sides = rng.choice([f"tree JOIN r ON {on}", f"r JOIN tree ON {on}"])
    after = rng.choice(
        ["SELECT * FROM r", "SELECT lvl, count(*) FROM r GROUP BY lvl",
         "SELECT r.id, t1.v FROM r JOIN t1 ON r.id = t1.id",
         "SELECT a.id FROM r a JOIN r b ON a.id = b.id + 1"]
    )  # fmt: skip
    word = rng.choice(["UNION ALL"] * 3 + ["UNION"])
    d.ask(
        f"WITH RECURSIVE r(id, lvl) AS ({base} {word} SELECT tree.id, r.lvl + 1 "
        f"FROM {sides}{more} WHERE r.lvl < {depth}{extra}) {after}"
    )


def chain(d: Drawer) -> None:
    """Joins of two to four tables."""
    d.ask(d.joins.chained())


def star(d: Drawer) -> None:
    """A fact and its dimensions."""
    d.ask(d.joins.star())


def folders(d: Drawer) -> None:
    """A fact whose folders a dimension chooses: dynamic partition pruning."""
    d.ask(d.joins.star(by_folders=True))


def bucketed(d: Drawer) -> None:
    """Bucketed tables, which are listed while Spark plans."""
    b0, b1 = d.joins.world.bucketed
    text, seen = d.joins.chain(d.rng.choice([2, 3]), d.rng.choice([b0, b1]), b0)
    if d.rng.random() < 0.5:
        d.settings["spark.sql.legacy.bucketedTableScan.outputOrdering"] = "true"
    d.ask(f"{d.joins.rows(seen)} {text}")


def cached(d: Drawer) -> None:
    """A cached frame or table, asked and joined more than once."""
    rng = d.rng
    text, seen = d.joins.chain(rng.choice([1, 2]))
    of = f"SELECT {seen[-1]}.* FROM {text}"
    if rng.random() < 0.5:
        d.add("frame", of, "x")
        d.steps.append(Step("cache", name="x"))
    else:
        lazy = rng.choice(["", "LAZY "])
        d.add("do", f"CACHE {lazy}TABLE x AS {of}")
    for _ in range(rng.choice([1, 2])):
        _ask_of(d, "x")
    if rng.random() < 0.3:
        d.steps.append(Step("do", "UNCACHE TABLE IF EXISTS x"))
        _ask_of(d, "x")
    d.ask(d.joins.chained())


def _ask_of(d: Drawer, name: str) -> None:
    """A query of a frame, joined with itself or with tables."""
    where = f" WHERE {d.joins.mark(d.joins.condition('x', d.joins.world.chain[0]))}"
    where = where.replace(".p ", ".v ")
    other = d.filtered("y")
    on = d.joins.on("x", "y", wide=False)
    d.ask(
        d.rng.choice(
            [
                f"SELECT count(*), sum(x.v) FROM {name} x JOIN {other} ON {on}{where}",
                f"SELECT x.id, y.v FROM {other} JOIN {name} x ON {on}{where}",
                (
                    f"SELECT x.id, z.id FROM {name} x JOIN {name} z ON x.id = z.k JOIN "
                    f"{other} ON {on}{where}"
                ),
                f"SELECT g, count(*) FROM {name} x{where} GROUP BY g",
                f"SELECT x.id FROM {name} x LEFT SEMI JOIN {other} ON {on}{where}",
            ]
        )
    )


def reused(d: Drawer) -> None:
    """A DataFrame that is collected twice, and joined with other tables each time."""
    text, seen = d.joins.chain(d.rng.choice([1, 2, 3]))
    d.add("frame", f"SELECT {seen[0]}.* FROM {text}", "x")
    for _ in range(d.rng.choice([2, 3])):
        if d.rng.random() < 0.4:
            d.steps.append(Step("again", name="x"))
        else:
            _ask_of(d, "x")


def replanned(d: Drawer) -> None:
    """A DataFrame of a plan that the optimizer has seen, joined anew."""
    text, seen = d.joins.chain(d.rng.choice([2, 2, 3]))
    d.add("frame", f"SELECT {seen[0]}.* FROM {text}", "x")
    if d.rng.random() < 0.5:
        d.steps.append(Step("again", name="x"))
    d.steps.append(Step("replan", name="x"))
    for _ in range(2):
        _ask_of(d, "x")


def common(d: Drawer) -> None:
    """A common table expression that is inlined twice, or that is not."""
    text, seen = d.joins.chain(d.rng.choice([1, 2, 2]))
    drawn = d.rng.choice(["", "", ", rand() AS r"])
    star = d.joins.star()
    body = f"SELECT {seen[0]}.*{drawn} FROM {text}"
    asked = [
        "SELECT count(*), sum(m.v) FROM x m JOIN x n ON m.id = n.id",
        "SELECT m.id, n.id FROM x m JOIN x n ON m.id = n.k WHERE n.g < 5",
        "SELECT id FROM x WHERE g = 1 UNION ALL SELECT k FROM x WHERE g = 2",
        "SELECT id FROM x WHERE v = (SELECT max(v) FROM x)",
    ]
    if d.rng.random() < 0.4:
        body = star
        asked = ["SELECT count(*), sum(m.v) FROM x m JOIN x n ON m.x = n.x"]
    elif d.rng.random() < 0.3:  # in a plan with a join, and in one without
        body = f"SELECT g, count(*) AS n FROM {d.filtered('a')} GROUP BY g"
        asked = [
            (
                "SELECT x.g, x.n, y.v FROM x LEFT JOIN t1 y ON x.g = y.id "
                "WHERE x.n >= (SELECT max(n) / 9 FROM x)"
            )
        ]
    d.ask(f"WITH x AS ({body}) {d.rng.choice(asked)}")


def subquery(d: Drawer) -> None:
    """Subqueries: scalar, IN, NOT IN, EXISTS, correlated."""
    a, b = d.filtered("a", odds=0.4), d.filtered("b")
    on = d.joins.on("a", "b", wide=True)
    no = d.rng.choice(["", "", "NOT "])
    texts = [
        f"SELECT a.id FROM {a} WHERE a.id {no}IN (SELECT b.id FROM {b})",
        f"SELECT a.id FROM {a} WHERE a.k IN (SELECT b.k FROM {b}) OR a.g = 3",
        f"SELECT a.id FROM {a} WHERE {no}EXISTS (SELECT 1 FROM {b} WHERE {on})",
        f"SELECT a.id, (SELECT max(b.v) FROM {b} WHERE a.id = b.id) FROM {a}",
        f"SELECT a.id, (SELECT count(*) FROM {b} WHERE a.k = b.id) n FROM {a}",
        f"SELECT a.id FROM {a} WHERE a.id > (SELECT max(b.id) - 90 FROM {b})",
        (
            f"SELECT a.id FROM {a} JOIN t2 ON a.id = t2.id WHERE t2.id IN (SELECT k "
            f"FROM {b})"
        ),
        f"SELECT a.id, EXISTS (SELECT 1 FROM {b} WHERE b.id = a.id) x FROM {a}",
    ]
    d.ask(d.rng.choice(texts))


def lateral(d: Drawer) -> None:
    """Lateral joins."""
    a, b = d.filtered("a"), d.filtered("b")
    texts = [
        (
            f"SELECT a.id, n FROM {a}, LATERAL (SELECT count(*) n FROM {b} "
            "WHERE a.id = b.id)"
        ),
        (
            f"SELECT a.id, y FROM {a} LEFT JOIN LATERAL (SELECT b.id y FROM {b} "
            "WHERE a.k = b.id) ON true"
        ),
        (
            f"SELECT a.id, y FROM {a}, LATERAL (SELECT b.id y FROM {b} WHERE a.id = "
            "b.k ORDER BY b.id LIMIT 1)"
        ),
        (
            f"SELECT a.id, y, z FROM {a}, LATERAL (SELECT b.k y FROM {b} WHERE a.id = "
            "b.id), LATERAL (SELECT max(v) z FROM t3 WHERE t3.id = y)"
        ),
    ]
    d.ask(d.rng.choice(texts))


def merged(d: Drawer) -> None:
    """Scalar subqueries of one table, which Spark merges into one plan."""
    table = d.joins.table()
    marks = [d.joins.mark(d.joins.condition("", table)) for _ in range(2)]
    of = table.name
    texts = [
        (
            f"SELECT (SELECT min(id) FROM {of}), (SELECT max(k) FROM {of}), "
            f"(SELECT count(*) FROM {of} WHERE {marks[0]})"
        ),
        (
            f"SELECT (SELECT min(id) FROM {of} WHERE {marks[0]}), (SELECT max(v) FROM "
            f"{of} WHERE {marks[0]}), (SELECT sum(v) FROM {of} WHERE {marks[1]})"
        ),
        (
            f"SELECT (SELECT sum(a.v) FROM {of} a JOIN t1 b ON a.id = b.id), "
            f"(SELECT count(*) FROM {of} a JOIN t1 b ON a.id = b.id)"
        ),
        (
            f"SELECT id FROM {of} WHERE {marks[0]} AND v > (SELECT avg(v) FROM {of}) "
            f"AND id < (SELECT max(id) FROM {of})"
        ),
    ]
    d.ask(d.rng.choice(texts))


def sets(d: Drawer) -> None:
    """UNION, INTERSECT and EXCEPT of joins."""
    rng = d.rng
    words = ["UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"]
    parts = []
    for _ in range(rng.choice([2, 2, 3])):
        text, seen = d.joins.chain(rng.choice([1, 2]))
        parts.append(f"(SELECT {rng.choice(seen)}.id FROM {text})")
    text = f" {rng.choice(words)} ".join(parts)
    if rng.random() < 0.4:
        table = d.joins.table().name
        text = (
            f"SELECT count(*), sum(x.id) FROM ({text}) x JOIN {table} y ON x.id = y.id"
        )
        text += rng.choice(["", " WHERE y.g = 3", " WHERE id < 60"])
    d.ask(text)


def window(d: Drawer) -> None:
    """Window functions above and below joins, and aggregates of joins."""
    text, seen = d.joins.chain(d.rng.choice([1, 2]))
    a, b = seen[0], d.filtered("y")
    texts = [
        f"SELECT {a}.id, count(*) OVER (PARTITION BY {a}.g) n FROM {text}",
        (
            f"SELECT x.id, n FROM (SELECT {a}.id, sum({a}.v) OVER (PARTITION BY "
            f"{a}.id) n FROM {text}) x JOIN {b} ON x.id = y.id"
        ),
        (
            f"SELECT id FROM (SELECT {a}.id, row_number() OVER (PARTITION BY {a}.g "
            f"ORDER BY {a}.id) n FROM {text}) WHERE n <= 2 AND id IN (SELECT y.k FROM "
            f"{b})"
        ),
        (
            f"SELECT x.id, n FROM (SELECT {a}.id, max({a}.v) n FROM {text} GROUP BY "
            f"{a}.id) x JOIN {b} ON x.id = y.id"
        ),
    ]
    d.ask(d.rng.choice(texts))


def top(d: Drawer) -> None:
    """The first rows of an order, above and below joins, with OFFSET."""
    rng = d.rng
    n, skip = rng.choice([1, 3, 20]), rng.choice(["", "", " OFFSET 2"])
    text, seen = d.joins.chain(rng.choice([1, 2, 2]))
    a, way = seen[0], rng.choice(["", " DESC", " DESC NULLS FIRST"])
    inner, other = d.filtered("t"), d.filtered("y")
    texts = [
        f"SELECT DISTINCT {a}.id x FROM {text} ORDER BY x{way} LIMIT {n}{skip}",
        (
            f"SELECT x.id FROM (SELECT id, k, v FROM {inner} ORDER BY id{way} LIMIT {n}"
            f"{skip}) x JOIN {other} ON x.id = y.id"
        ),
        (
            f"SELECT x.id FROM {other} JOIN (SELECT id, k FROM {inner} ORDER BY "
            f"k{way}, id LIMIT {n}) x ON y.id = x.k"
        ),
    ]
    d.ask(rng.choice(texts))


def limit(d: Drawer) -> None:
    """LIMIT without an order: how many rows, and which there may be."""
    text, seen = d.joins.chain(d.rng.choice([1, 2, 2]))
    within = f"SELECT {seen[0]}.id FROM {text}"
    d.add("ask", f"{within} LIMIT {d.rng.choice([1, 5, 50])}", within=within)


def runtime(d: Drawer) -> None:
    """Runtime Bloom filters and semi joins, which run a copy of a side."""
    prefix = "spark.sql.optimizer.runtime"
    d.settings |= {
        f"{prefix}.bloomFilter.enabled": "true",
        f"{prefix}.bloomFilter.applicationSideScanSizeThreshold": "0",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    if VERSION < (4,) and d.rng.random() < 0.5:  # it is gone since
        d.settings[f"{prefix}Filter.semiJoinReduction.enabled"] = "true"
    d.ask(d.joins.star() if d.rng.random() < 0.5 else d.joins.chained())


def script(d: Drawer) -> None:
    """EXECUTE IMMEDIATE, and scripts whose statements run again and again."""
    rng = d.rng
    table = d.joins.table()
    asked = d.joins.chained()
    if rng.random() < 0.4:
        quoted = asked.replace("'", "''")  # the conditions are quoted when they stand
        conditions = tuple(one.replace("'", "''") for one in d.joins.taken())
        d.steps.append(Step("ask", f"EXECUTE IMMEDIATE '{quoted}'", conditions))
        return
    d.settings["spark.sql.scripting.enabled"] = "true"
    mark = d.joins.mark(d.joins.condition("a", table))
    query = (
        f"SELECT max(b.id) FROM {table.name} a JOIN t1 b ON a.id = b.id WHERE {mark}"
    )
    loops = rng.choice(
        [
            (
                f"WHILE i < 3 DO SET total = total + coalesce(({query} AND b.g >= i), "
                "0); SET i = i + 1; END WHILE;"
            ),
            (
                f"FOR one AS (SELECT id FROM t2 WHERE id < 40 ORDER BY id LIMIT 3) DO "
                f"SET total = total + coalesce(({query} AND b.id > one.id), 0); END "
                "FOR;"
            ),
        ]
    )
    d.ask(
        f"BEGIN DECLARE i INT DEFAULT 0; DECLARE total BIGINT DEFAULT 0; {loops} "
        f"SELECT total AS x, y.n FROM (SELECT count(*) n FROM ({asked})) y; END"
    )


def function(d: Drawer) -> None:
    """Functions of SQL text, which stand for a subquery or a lateral join."""
    table = d.joins.table()
    mark = d.joins.mark(d.joins.condition("", table))
    rows = d.rng.random() < 0.5
    given = "TABLE(y BIGINT)" if rows else "BIGINT"
    what = "k" if rows else "max(k)"
    d.add(
        "do",
        f"CREATE OR REPLACE TEMPORARY FUNCTION of_key(x BIGINT) RETURNS {given} RETURN "
        f"SELECT {what} FROM {table.name} WHERE id = x AND {mark}",
    )
    a = d.filtered("a")
    with_rows = f"SELECT a.id, f.y FROM {a}, LATERAL of_key(a.id) f"
    d.ask(with_rows if rows else f"SELECT a.id, of_key(a.k) FROM {a}")


def stream(d: Drawer) -> None:
    """Batches of a stream that are joined with tables."""
    other = d.filtered("y")
    on = d.joins.on("x", "y", wide=False)
    text = f"SELECT x.id, y.v FROM batch x JOIN {other} ON {on}"
    d.add("stream", text, d.rng.choice(["each", "static"]))


def overwrite(d: Drawer) -> None:
    """Writes into the table that is read."""
    rng = d.rng
    d.settings["spark.sql.sources.partitionOverwriteMode"] = "dynamic"
    d.copied = rng.choice(d.joins.world.chain).name
    table = d.joins.table()
    where = d.joins.mark(d.joins.condition("a", table).replace("a.p ", "a.g "))
    columns = "a.id, a.k, a.g, a.s, a.d, a.v, a.pad, a.p"
    join = f"{d.joins.source(table, 'b')} ON {d.joins.on('a', 'b', wide=False)}"
    kind = rng.choice(["OVERWRITE", "OVERWRITE", "INTO"])
    d.add(
        "do",
        f"INSERT {kind} copied SELECT {columns} FROM copied a LEFT SEMI JOIN {join} "
        f"WHERE {where}",
    )
    for _ in range(2):
        other = d.filtered("b")
        on = d.joins.on("a", "b", wide=False)
        d.ask(f"SELECT a.id, a.p, b.v FROM copied a JOIN {other} ON {on}")


def grown(d: Drawer) -> None:
    """A folder that has grown since a frame of it was listed, and perhaps cached.

    Optimized, one side of the join looks as the cached frame does.
    """
    rng = d.rng
    table, other = rng.sample(d.joins.world.chain, 2)
    d.copied = table.name
    key, few = rng.choice(["id", "k"]), rng.randrange(10)
    same = f"g = {few}"
    where = rng.choice([same, same, f"s = 's{few}'", f"id < {30 * few}"])
    column = where.partition(" ")[0]
    optimized = f"{column} IS NOT NULL AND {where} AND {key} IS NOT NULL"
    if rng.random() < 0.7:
        d.steps.append(Step("bare"))
    d.steps.append(Step("list", name="older"))
    d.steps.append(Step("grow", name=other.name))
    d.steps.append(Step("list", name="newer"))
    indexed = [one for one in d.joins.world.chain if f"'{key}'" in one.told]
    fact = d.joins.source(rng.choice(indexed or [other]), "a", 0.4)
    on = f"a.{key} = n.{key}"
    side = f"(SELECT * FROM newer WHERE {where}) n"
    texts = [
        f"SELECT a.id, a.v, n.v w FROM {fact} JOIN {side} ON {on}",
        f"SELECT a.id FROM {fact} WHERE a.{key} IN (SELECT {key} FROM {side})",
    ]
    d.add("frame", rng.choice(texts), "asked")
    d.steps.append(Step("where", rng.choice([optimized, optimized, ""]), name="older"))
    d.steps.append(Step("cache", name="older"))
    d.ask("SELECT count(*), sum(id) FROM older")
    d.steps.append(Step("again", name="asked"))
    d.ask("SELECT count(*), sum(id) FROM asked")


def asof(d: Drawer) -> None:
    """The row of another table with the next smaller or larger key."""
    rng = d.rng
    keyed = rng.random() < 0.7
    if VERSION >= (4, 3) and rng.random() < 0.7:
        d.settings["spark.sql.join.asofJoin.enabled"] = "true"
        a, b, sign = d.filtered("a", odds=0.7), d.filtered("b", odds=0.7), ">= > <= <"
        condition = f"a.id {rng.choice(sign.split())} b.id"
        on = " ON a.k = b.k" if keyed else ""
        kind = rng.choice(["", "LEFT "])
        where = rng.choice(["", " WHERE b.id < 90", " WHERE a.g = 3"])
        d.ask(
            f"SELECT a.id, b.id y FROM {a} {kind}ASOF JOIN {b} "
            f"MATCH_CONDITION ({condition}){on}{where}"
        )
        return
    d.add("frame", f"SELECT id, k, g FROM {d.filtered('a', odds=0.7)}", "x")
    d.add("frame", f"SELECT id y, k z FROM {d.filtered('b', odds=0.7)}", "older")
    how = rng.choice(["inner", "left"])
    direction = rng.choice(["backward", "forward", "nearest"])
    on = "k z" if keyed else ""
    d.steps.append(Step("asof", f"{how} {direction} {on}", name="asked"))
    where = rng.choice(["", " WHERE y < 90", " WHERE g = 3"])
    # Of two rows that are as near, any is taken.
    what = "abs(id - y)" if direction == "nearest" else "y"
    d.ask(f"SELECT id, {what} AS n FROM asked{where}")


def nearest(d: Drawer) -> None:
    """The rows of another table that are nearest by a figure of both."""
    rng = d.rng
    a, b = d.filtered("a", odds=0.7), d.filtered("b", odds=0.7)
    # No two keys of the other table are as near.
    by = rng.choice(
        ["DISTANCE 2 * abs(a.id - b.id) + int(b.id > a.id)", "SIMILARITY b.id + a.k"]
    )
    kind, mode = rng.choice(["", "LEFT "]), rng.choice(["EXACT", "APPROX"])
    where = rng.choice(["", " WHERE b.id < 90", " WHERE a.g = 3"])
    d.ask(
        f"SELECT a.id, b.id y FROM {a} {kind}JOIN {b} {mode} NEAREST "
        f"{rng.choice([1, 2, 5])} BY {by}{where}"
    )


def bins(d: Drawer) -> None:
    """Rows with a range that are split at the borders of bins."""
    rng = d.rng
    d.settings["spark.sql.binByRelationOperator.enabled"] = "true"
    rows = (
        "(SELECT id, g, timestamp_seconds(id) AS b, timestamp_seconds(id + pmod(v, 50))"
        f" AS e, double(v) AS w FROM {d.filtered('a', odds=0.7)}) BIN BY (RANGE b TO e "
        f"BIN WIDTH INTERVAL '{rng.choice([7, 30, 90])}' SECOND DISTRIBUTE UNIFORM (w))"
    )
    where = rng.choice(
        ["", " WHERE g = 3", " WHERE id < 60", " WHERE bin_start < '1970-01-01 00:01'",
         " WHERE w > 9"]
    )  # fmt: skip
    d.ask(f"SELECT * FROM {rows} x{where}")


FORMS: Final[Mapping[str, tuple[Version, Callable[[Drawer], None], int]]] = {
    "recursion": ((4, 1), recursion, 3),
    "chain": ((3, 5), chain, 8),
    "star": ((3, 5), star, 4),
    "folders": ((3, 5), folders, 4),
    "bucketed": ((3, 5), bucketed, 2),
    "cached": ((3, 5), cached, 3),
    "reused": ((3, 5), reused, 3),
    "replanned": ((3, 5), replanned, 2),
    "common": ((3, 5), common, 4),
    "subquery": ((3, 5), subquery, 4),
    "lateral": ((3, 5), lateral, 2),
    "merged": ((3, 5), merged, 2),
    "sets": ((3, 5), sets, 2),
    "window": ((3, 5), window, 2),
    "top": ((3, 5), top, 2),
    "limit": ((3, 5), limit, 1),
    "runtime": ((3, 5), runtime, 3),
    "script": ((4, 0), script, 1),
    "function": ((4, 0), function, 1),
    "stream": ((3, 5), stream, 1),
    "overwrite": ((3, 5), overwrite, 1),
    "grown": ((3, 5), grown, 2),
    "asof": ((3, 5), asof, 1),
    "nearest": ((4, 3), nearest, 1),
    "bins": ((4, 3), bins, 1),
}
"""By name: the first version of Spark that has it, how it is drawn, and its weight."""


def forms_here() -> list[str]:
    """The forms that this version of Spark has."""
    return [name for name, (first, _, _) in FORMS.items() if first <= VERSION]
