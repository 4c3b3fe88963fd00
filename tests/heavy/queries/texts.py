"""Random queries as SQL text."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from tests.heavy.queries.conditions import COMPARISONS, Asker, Ref, Tree
from tests.heavy.queries.values import KINDS, quoted


@dataclass(frozen=True)
class Source:
    """What can stand in FROM.

    Args:
        text: its name, or a query in brackets.
        refs: its columns, of which ``id`` numbers the rows.
    """

    text: str
    refs: Mapping[str, Ref]

    def of(self, alias: str) -> dict[str, Ref]:
        """Its columns where it has an alias."""
        return {name: ref.of(alias) for name, ref in self.refs.items()}


@dataclass(frozen=True)
class Draft:
    """A query.

    Args:
        text: of the query, with ``«0»`` for the first condition.
        conditions: of the query.
        ordered: whether its rows have one order.
        within: a query that has the rows among which LIMIT may choose.
    """

    text: str
    conditions: tuple[Tree, ...] = ()
    ordered: bool = False
    within: str = ""

    def sql(self, text: str | None = None) -> str:
        """The query as SQL."""
        text = self.text if text is None else text
        for i, condition in enumerate(self.conditions):
            text = text.replace(f"«{i}»", condition.sql())
        return text


_TOTALS: Final = "count(*), sum(id), min(id), max(id)"
_AGGREGATES: Final = (
    f"SELECT {_TOTALS} FROM {{source}} WHERE «0»",
    f"SELECT {{by}}, {_TOTALS} FROM {{source}} WHERE «0» GROUP BY {{by}}",
    "SELECT {by}, count(*) c FROM {source} WHERE «0» GROUP BY {by} HAVING c > 2",
    "SELECT count(*), count(DISTINCT {by}) FROM {source} WHERE «0»",
    "SELECT min({by}), max({by}), count({by}) FROM {source} WHERE «0»",
    "SELECT {by}, count(*) FROM {source} WHERE «0» GROUP BY ROLLUP({by})",
    "SELECT count(*) FILTER (WHERE «0») FROM {source}",
    "SELECT bit_xor(xxhash64({by}, id)) FROM {source} WHERE «0»",
)
_JOINS: Final = ("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
_HALVES: Final = ("LEFT SEMI JOIN", "LEFT ANTI JOIN")
_NUMBERINGS: Final = (
    ("monotonically_increasing_id()", "n % 3 = 0"),
    ("monotonically_increasing_id()", "n BETWEEN 5 AND 60"),
    ("spark_partition_id()", "n = 0"),
    ("rand(7)", "n < 0.3"),
    ("regexp_extract(input_file_name(), '[^/]*$', 0)", "n LIKE '%1%'"),
    ("row_number() OVER (ORDER BY id)", "n % 3 = 0"),
)
"""Functions of all the rows that are read before, and conditions on what they give."""


ARRIVALS: Final = 1_000_000
"""The first number of rows that come while a script is played."""


def _exact(value: Any) -> str:
    """An integer, a text or a day, in its own type."""
    if isinstance(value, str):
        return quoted(value)
    return f"date'{value}'" if isinstance(value, dt.date) else str(value)


@dataclass
class Writer:
    """Writes queries on some sources.

    Args:
        rng: what is drawn from.
        sources: the relations.
        variables: as for ``Asker``.
    """

    rng: Random
    sources: Sequence[Source]
    variables: dict[str, str] | None = None

    def draw(self) -> Draft:
        """One query."""
        forms = [self.rows] * 5 + [self.totals] * 5 + [self.top] * 3
        forms += [self.join] * 9 + [self.half_join, self.self_join] * 3
        forms += [self.union] * 2 + [self.inside, self.scalar, self.exists] * 2
        forms += [self.window, self.common, self.limit, self.correlated, self.nested]
        forms += [self.aggregated, self.values_join, self.lateral, self.numbered]
        return self.rng.choice(forms)()

    def source(self) -> Source:
        """The first source most of the time."""
        if self.rng.random() < 0.8:
            return self.sources[0]
        return self.rng.choice(self.sources)

    def ask(self, refs: Mapping[str, Ref], depth: int = 2) -> Tree:
        """A condition on the columns."""
        return Asker(self.rng, refs, self.variables).tree(depth)

    def columns(self, refs: Mapping[str, Ref], n: int = 3) -> str:
        """Some columns, ``id`` first."""
        if self.rng.random() < 0.15:
            return "*"
        names = [name for name in refs if name != "id"]
        chosen = ["id", *self.rng.sample(names, min(n, len(names)))]
        return ", ".join(refs[name].text for name in chosen)

    def simple(self, source: Source, *families: str) -> Ref:
        """A column of one of the families, if there is any."""
        refs = list(source.refs.values())
        wanted = [ref for ref in refs if not families or ref.kind.family in families]
        return self.rng.choice(wanted or refs)

    def rows(self) -> Draft:
        """Rows under a condition."""
        source = self.source()
        columns = self.columns(source.refs)
        extra = self.rng.choice(["", "", "", "DISTINCT "])
        if extra and any(r.kind.family == "map" for r in source.refs.values()):
            extra = ""
        text = f"SELECT {extra}{columns} FROM {source.text} WHERE «0»"
        if self.rng.random() < 0.1:
            text = text.replace(" FROM", ", _metadata.file_name FROM")
            text = text if not extra else text.replace("DISTINCT ", "")
        return Draft(text, (self.ask(source.refs),))

    def totals(self) -> Draft:
        """Aggregates under a condition."""
        source = self.source()
        by = self.simple(source, "integer", "string", "date", "boolean").text
        text = self.rng.choice(_AGGREGATES).format(by=by, source=source.text)
        return Draft(text, (self.ask(source.refs),))

    def aggregated(self) -> Draft:
        """A condition on a query that aggregates, which Spark pushes down."""
        source = self.source()
        by = self.simple(source, "integer", "string", "date")
        refs = {"by": Ref("g", by.kind, by.samples)}
        x = by.text
        inner = f"SELECT {x} AS g, count(*) AS n FROM {source.text} GROUP BY {x}"
        return Draft(
            f"SELECT * FROM ({inner}) WHERE «0» AND n > 0", (self.ask(refs, 1),)
        )

    def top(self) -> Draft:
        """The first rows of a total order."""
        source = self.source()
        by = self.simple(
            source, *{ref.kind.family for ref in source.refs.values()} - {"array"}
        )
        way = self.rng.choice(["", " DESC", " NULLS LAST", " DESC NULLS FIRST"])
        n = self.rng.choice([1, 3, 10, 50])
        skip = f" OFFSET {self.rng.randrange(5)}" if self.rng.random() < 0.2 else ""
        where = "WHERE «0» " if self.rng.random() < 0.8 else ""
        limit = f" LIMIT {n}{skip}" if self.rng.random() < 0.85 else ""
        return Draft(
            f"SELECT id, {by.text} FROM {source.text} {where}"
            f"ORDER BY {by.text}{way}, id{limit}",
            (self.ask(source.refs),) if where else (),
            ordered=True,
        )

    def limit(self) -> Draft:
        """Any rows: how many is all that is sure."""
        source = self.source()
        text = f"SELECT {self.columns(source.refs)} FROM {source.text} WHERE «0»"
        n = self.rng.choice([1, 5, 20, 1000])
        return Draft(f"{text} LIMIT {n}", (self.ask(source.refs),), within=text)

    def union(self) -> Draft:
        """Two queries in one, and a condition over both."""
        one, other = self.source(), self.source()
        word = self.rng.choice(
            ["UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"]
        )
        common = [
            n for n in one.refs if n in other.refs and n not in ("id", "arr", "st")
        ]
        name = self.rng.choice(common or ["id"])
        left, right = one.refs[name].text, other.refs[name].text
        conditions = (self.ask(one.refs), self.ask(other.refs))
        text = (
            f"SELECT id, {left} AS x FROM {one.text} WHERE «0» {word} "
            f"SELECT id, {right} AS x FROM {other.text} WHERE «1»"
        )
        if self.rng.random() < 0.4:
            x = Ref("x", one.refs[name].kind, one.refs[name].samples)
            text = f"SELECT * FROM ({text}) WHERE «2»"
            conditions += (self.ask({"x": x}, 1),)
        return Draft(text, conditions)

    def _on(self, one: Mapping[str, Ref], other: Mapping[str, Ref]) -> str:
        names = [
            n for n in ("i", "l", "s", "dt", "sh", "dec") if n in one and n in other
        ]
        name = self.rng.choice(["id", *names])
        op = "<=>" if self.rng.random() < 0.1 else "="
        return f"{one[name].text} {op} {other[name].text}"

    def join(self) -> Draft:
        """Two relations, conditions on either, in WHERE or in ON."""
        a, b = self.source(), self.source()
        left, right = a.of("a"), b.of("b")
        on = self._on(left, right)
        conditions = [self.ask(left, 1), self.ask(right, 1)]
        inside = self.rng.random() < 0.4
        extra = " AND «1»" if inside else ""
        where = "«0»" if inside else self.rng.choice(["«0» AND «1»", "«0»", "«1»"])
        hint = self.rng.choice(["", "", "", "/*+ BROADCAST(b) */ ", "/*+ MERGE(a) */ "])
        text = (
            f"SELECT {hint}count(*), sum(a.id), sum(b.id), bit_xor(hash(a.id, b.id)) "
            f"FROM {a.text} a {self.rng.choice(_JOINS)} {b.text} b ON {on}{extra} "
            f"WHERE {where}"
        )
        return Draft(text, tuple(conditions))

    def self_join(self) -> Draft:
        """A relation with itself, other rows on either side."""
        a = self.source()
        conditions = (self.ask(a.of("a"), 1), self.ask(a.of("b"), 1))
        on = self._on(a.of("a"), a.of("b"))
        text = (
            f"SELECT a.id, b.id FROM {a.text} a JOIN {a.text} b ON {on} "
            "WHERE «0» AND «1» ORDER BY a.id, b.id LIMIT 200"
        )
        return Draft(text, conditions, ordered=True)

    def half_join(self) -> Draft:
        """A semi or anti join."""
        a, b = self.source(), self.source()
        on = self._on(a.of("a"), b.of("b"))
        conditions = (self.ask(a.of("a"), 1), self.ask(b.of("b"), 1))
        word = self.rng.choice(_HALVES)
        text = (
            f"SELECT {self.columns(a.of('a'), 2)} FROM {a.text} a {word} {b.text} b "
            f"ON {on} AND «1» WHERE «0»"
        )
        return Draft(text, conditions)

    def values_join(self) -> Draft:
        """A join with a few values, from which Spark may infer a condition."""
        a = self.source()
        ref = self.simple(a, "integer", "string", "date")
        values = {_exact(v) for v in ref.samples[:40:7]} or {"null"}
        rows = ", ".join(f"({value})" for value in sorted(values))
        of = ref.of("a").text
        condition = self.ask({"k": Ref("d.k", ref.kind, ref.samples)}, 1)
        return Draft(
            f"SELECT a.id, d.k FROM {a.text} a {self.rng.choice(_JOINS)} "
            f"(VALUES {rows}) AS d(k) ON {of} = d.k WHERE «0»",
            (condition,),
        )

    def inside(self) -> Draft:
        """IN or NOT IN a subquery."""
        a, b = self.source(), self.source()
        names = [n for n in ("id", "i", "s", "dt") if n in a.refs and n in b.refs]
        name = self.rng.choice(names)
        no = self.rng.choice(["", "", "NOT "])
        inner = f"SELECT {b.refs[name].text} FROM {b.text} WHERE «1»"
        return Draft(
            f"SELECT {self.columns(a.refs, 2)} FROM {a.text} "
            f"WHERE «0» AND {a.refs[name].text} {no}IN ({inner})",
            (self.ask(a.refs, 1), self.ask(b.refs, 1)),
        )

    def scalar(self) -> Draft:
        """A comparison with a scalar subquery."""
        a, b = self.source(), self.source()
        names = [n for n in ("id", "i", "s", "dt", "l") if n in a.refs and n in b.refs]
        name = self.rng.choice(names)
        total = self.rng.choice(["max", "min"])
        op = self.rng.choice(COMPARISONS)
        return Draft(
            f"SELECT {_TOTALS} FROM {a.text} WHERE «0» AND {a.refs[name].text} {op} "
            f"(SELECT {total}({b.refs[name].text}) FROM {b.text} WHERE «1»)",
            (self.ask(a.refs, 1), self.ask(b.refs, 1)),
        )

    def exists(self) -> Draft:
        """A correlated EXISTS."""
        a, b = self.source(), self.source()
        left, right = a.of("a"), b.of("b")
        no = self.rng.choice(["", "NOT "])
        return Draft(
            f"SELECT {self.columns(left, 2)} FROM {a.text} a WHERE «0» AND {no}EXISTS "
            f"(SELECT 1 FROM {b.text} b WHERE {self._on(left, right)} AND «1»)",
            (self.ask(left, 1), self.ask(right, 1)),
        )

    def correlated(self) -> Draft:
        """A correlated scalar subquery among the columns."""
        a, b = self.source(), self.source()
        left, right = a.of("a"), b.of("b")
        return Draft(
            f"SELECT a.id, (SELECT max(b.id) FROM {b.text} b "
            f"WHERE {self._on(left, right)} AND «1») AS m FROM {a.text} a WHERE «0»",
            (self.ask(left, 1), self.ask(right, 1)),
        )

    def window(self) -> Draft:
        """A window function, and perhaps a condition on it."""
        a = self.source()
        by = self.simple(a, "integer", "string", "boolean").text
        function = self.rng.choice(
            ["row_number()", "sum(id)", "lag(id)", "count(*)", "rank()", "max(id)"]
        )
        over = f"OVER (PARTITION BY {by} ORDER BY id)"
        conditions: tuple[Tree, ...] = (self.ask(a.refs),)
        text = f"SELECT id, {by} AS g, {function} {over} AS w FROM {a.text} WHERE «0»"
        odds = self.rng.random()
        if odds < 0.3:
            text = f"SELECT * FROM ({text}) WHERE w <= 2"
        elif odds < 0.6:
            group = next(r for r in a.refs.values() if r.text == by)
            conditions += (self.ask({"g": replace(group, text="g")}, 1),)
            text = f"SELECT * FROM ({text}) WHERE «1»"
        return Draft(text, conditions)

    def common(self) -> Draft:
        """A CTE that is used twice."""
        a = self.source()
        name = self.rng.choice([n for n in a.refs if n not in ("arr", "st")])
        x = replace(a.refs[name], text="x")
        conditions = (self.ask(a.refs), self.ask({"x": x}, 1), self.ask({"x": x}, 1))
        return Draft(
            f"WITH c AS (SELECT id, {a.refs[name].text} AS x FROM {a.text} WHERE «0») "
            "SELECT * FROM c WHERE «1» UNION ALL SELECT * FROM c WHERE «2»",
            conditions,
        )

    def nested(self) -> Draft:
        """A condition on computed columns of a subquery."""
        a = self.source()
        number = self.simple(a, "integer")
        text = self.simple(a, "string")
        y = Ref("y", KINDS["l"], [v + 1 for v in number.samples if isinstance(v, int)])
        z = replace(text, text="z")
        return Draft(
            f"SELECT * FROM (SELECT id, {number.text} + 1 AS y, {text.text} AS z "
            f"FROM {a.text} WHERE «0») WHERE «1» AND «2»",
            (self.ask(a.refs, 1), self.ask({"y": y}, 1), self.ask({"z": z}, 1)),
        )

    def numbered(self) -> Draft:
        """Rows that are numbered, and then left out by a condition or a join."""
        a, b = self.source(), self.source()
        number, condition = self.rng.choice(_NUMBERINGS)
        inner = f"SELECT *, {number} AS n FROM {a.text}"
        left, right = a.of("a"), b.of("b")
        if self.rng.random() < 0.4:
            text = f"SELECT id, n FROM ({inner}) a WHERE {condition} AND «0»"
            return Draft(text, (self.ask(left),))
        word = self.rng.choice(["JOIN", "LEFT SEMI JOIN"])
        text = (
            f"SELECT count(*), sum(a.id) FROM ({inner}) a {word} {b.text} b "
            f"ON {self._on(left, right)} AND «1» WHERE {condition} AND «0»"
        )
        return Draft(text, (self.ask(left, 1), self.ask(right, 1)))

    def mixed(self, column: str) -> Draft:
        """A column of folders beside one of files, which Spark does not split."""
        source = self.source()
        ref = source.refs[column]
        known = sorted({_exact(v) for v in ref.samples if v is not None}) or ["NULL"]
        values = ", ".join(self.rng.sample(known, min(len(known), 3)))
        other = self.rng.choice(["id < 0", "id IN (-1, -2)", "i > 100000000"])
        where = f"{ref.text} IN ({values}) OR {other}"
        return Draft(f"SELECT {_TOTALS} FROM {source.text} WHERE {where}")

    def arrivals(self) -> Draft:
        """Rows that only files have which others write later."""
        source = self.source()
        return Draft(f"SELECT {_TOTALS} FROM {source.text} WHERE id >= {ARRIVALS}")

    def lateral(self) -> Draft:
        """A table function beside the rows."""
        a = self.source()
        if "arr" not in a.refs:
            return self.rows()
        word = self.rng.choice(["LATERAL VIEW", "LATERAL VIEW OUTER"])
        e = Ref("e", KINDS["i"], list(range(20)))
        return Draft(
            f"SELECT id, e FROM {a.text} {word} explode({a.refs['arr'].text}) AS e "
            "WHERE «0» AND «1»",
            (self.ask(a.refs, 1), self.ask({"e": e}, 1)),
        )
