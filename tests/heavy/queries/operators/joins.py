"""Random joins over the tables of a world, and conditions on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.heavy.queries.operators.world import YEARS, Relation, World

_TYPES: Final = (
    *("JOIN", "JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"),
    *("LEFT SEMI JOIN", "LEFT ANTI JOIN"),
)
_DIMENSIONS: Final = {
    "customers": ("customer", ("city = 'city {n}'", "city IN ('city {n}', 'city 3')")),
    "parts": ("part", ("brand = 'brand {n}'", "brand LIKE 'brand 1%'")),
    "days": ("day", ("month = 'month {n}'", "month IN ('month 2', 'month {n}')")),
}
"""Of the star: the column of the fact, and conditions."""


@dataclass
class Joiner:
    """Writes joins, conditions, and the text of their rows.

    Args:
        rng: what is drawn from.
        world: the tables.
        conditions: that the texts have ``«n»`` for.
    """

    rng: Random
    world: World
    conditions: list[str] = field(default_factory=list)

    def mark(self, condition: str) -> str:
        """The place of a condition in the text."""
        self.conditions.append(condition)
        return f"«{len(self.conditions) - 1}»"

    def taken(self) -> tuple[str, ...]:
        """The conditions of the text that is done."""
        found, self.conditions = tuple(self.conditions), []
        return found

    def table(self) -> Relation:
        """A table with the columns of the chain."""
        return self.rng.choice([*self.world.chain] * 3 + [*self.world.bucketed])

    def condition(self, alias: str, relation: Relation) -> str:
        """A condition on one table."""
        rng = self.rng
        a = f"{alias}." if alias else ""
        n, few = rng.randrange(320), rng.randrange(10)
        simple = [
            f"{a}g = {few}",
            f"{a}g IN ({few}, 3)",
            f"{a}id < {n}",
            f"{a}id BETWEEN {n - 40} AND {n}",
            f"{a}id IN ({n}, {n + 1}, {n + 2}, {n + 7})",
            f"{a}s = 's{n % 90}'",
            f"{a}s LIKE 's{few}%'",
            f"{a}k > {n}",
            f"{a}k % 5 = {n % 5}",
            f"{a}d >= date'2020-01-01' + {n}",
            f"{a}g IS NULL",
            f"NOT ({a}g = {few})",
            f"{a}v + {a}g < 50",
        ]
        if relation.folders:
            simple += [f"{a}p = {few % 4}", f"{a}p + {a}g = 4"] * 2
        one = rng.choice(simple)
        if rng.random() < 0.3:
            one = f"({one} {rng.choice(['AND', 'OR'])} {rng.choice(simple)})"
        return one

    def on(self, one: str, other: str, *, wide: bool) -> str:
        """What two tables are joined by; without ``wide`` a key of at least one."""
        rng = self.rng
        pairs = [
            f"{one}.k = {other}.id",
            f"{one}.id = {other}.id",
            f"{one}.id = {other}.k",
            f"{one}.id = {other}.id",
            f"{one}.id <=> {other}.k",
            f"{one}.id = {other}.id + 1",
            f"{one}.k = {other}.id AND {one}.v <= {other}.v",
            f"{one}.id = {other}.id AND {one}.s = {other}.s",
        ]
        if wide:
            pairs += [f"{one}.s = {other}.s"] * 2 + [f"{one}.g = {other}.g"]
        return rng.choice(pairs)

    def source(self, relation: Relation, alias: str, odds: float = 0.6) -> str:
        """A table in FROM, under a condition or not."""
        if self.rng.random() < odds:
            mark = self.mark(self.condition("", relation))
            return f"(SELECT * FROM {relation.name} WHERE {mark}) {alias}"
        return f"{relation.name} {alias}"

    def chain(self, n: int, *relations: Relation) -> tuple[str, list[str]]:
        """FROM and WHERE of a join of ``n`` tables, and the aliases that are seen.

        Args:
            n: how many.
            relations: the first of them.
        """
        rng = self.rng
        aliases = ["a", "b", "c", "e"][:n]
        tables = [*relations, *(self.table() for _ in range(n))][:n]
        text = self.source(tables[0], "a")
        seen = ["a"]
        for i in range(1, n):
            alias, kind = aliases[i], rng.choice(_TYPES)
            near = seen[-1] if rng.random() < 0.7 else rng.choice(seen)
            on = self.on(near, alias, wide=n == 2)
            if rng.random() < 0.2:
                on += f" AND {self.mark(self.condition(alias, tables[i]))}"
            text += f" {kind} {self.source(tables[i], alias)} ON {on}"
            if "SEMI" not in kind and "ANTI" not in kind:
                seen.append(alias)
        if rng.random() < 0.5:
            alias = rng.choice(seen)
            table = tables[aliases.index(alias)]
            text += f" WHERE {self.mark(self.condition(alias, table))}"
        return text, seen

    def rows(self, aliases: list[str]) -> str:
        """What is selected: figures of all rows, or the rows, or groups."""
        ids = ", ".join(f"{one}.id" for one in aliases)
        if self.rng.random() < 0.5:
            hints = ["", "", f"/*+ BROADCAST({aliases[-1]}) */ "]
            hint = self.rng.choice([*hints, f"/*+ MERGE({aliases[0]}) */ "])
            return f"SELECT {hint}count(*), bit_xor(xxhash64({ids})) FROM"
        return f"SELECT {', '.join(f'{one}.id AS {one}_id' for one in aliases)} FROM"

    def chained(self) -> str:
        """A query of two, three or four tables."""
        text, seen = self.chain(self.rng.choice([2, 2, 3, 3, 4]))
        return f"{self.rows(seen)} {text}"

    def of_dimension(self, name: str) -> str:
        """A condition on a dimension."""
        rng = self.rng
        ways = [*_DIMENSIONS[name][1], "key < {n}", "key IN ({n}, 7, 199{n})"]
        ways += ["year = {y}", "year > {y}"] if name == "days" else ["g = {n}"]
        return rng.choice(ways).format(n=rng.randrange(1, 10), y=rng.choice(YEARS))

    def star(self, *, by_folders: bool = False) -> str:
        """The fact with one to three dimensions.

        Args:
            by_folders: whether the folders of the fact are joined.
        """
        rng = self.rng
        names = rng.sample(list(_DIMENSIONS), rng.choice([1, 2, 2, 3]))
        if by_folders:
            names = ["days", *(name for name in names if name != "days")]
        text = "fact f"
        for i, name in enumerate(names):
            kind = rng.choice(["JOIN"] * 6 + ["LEFT JOIN", "LEFT SEMI JOIN"])
            of = f"f.{_DIMENSIONS[name][0]} = d{i}.key"
            if name == "days" and by_folders:
                of = rng.choice(["f.year = d0.year", "f.year = d0.key DIV 100"])
            source = (
                f"(SELECT * FROM {name} WHERE {self.mark(self.of_dimension(name))})"
            )
            if rng.random() < 0.2:
                source = name
            text += f" {kind} {source} d{i} ON {of}"
        where = f" WHERE f.rev > {rng.randrange(900)}" if rng.random() < 0.3 else ""
        by = rng.choice(["year", "customer", "year % 2"])
        figures = "count(*) AS n, sum(f.rev) AS v"
        return f"SELECT f.{by} AS x, {figures} FROM {text}{where} GROUP BY 1"
