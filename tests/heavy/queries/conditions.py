"""Random conditions, as trees that can be made smaller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from tests.heavy.queries.forms import ALWAYS, FORMS, OF_INTEGERS, names_of
from tests.heavy.queries.values import KINDS, Kind

COMPARISONS: Final = ("=", "=", "=", "<", "<=", ">", ">=", "<>", "<=>", "!=")


@dataclass(frozen=True)
class Ref:
    """A column as a query writes it, some values that it has, and how often it is
    asked."""

    text: str
    kind: Kind
    samples: Sequence[Any]
    weight: int = 1

    def of(self, alias: str) -> Ref:
        """The same column of a relation that has a name."""
        return replace(self, text=f"{alias}.{self.text}")


@dataclass(frozen=True)
class Tree:
    """A condition: a leaf, or the sides of AND, OR or NOT."""

    text: str
    sides: tuple[Tree, ...] = ()

    def sql(self) -> str:
        """The condition as SQL."""
        match self.text, self.sides:
            case text, ():
                return text
            case "NOT", (side,):
                return f"NOT ({side.sql()})"
            case word, sides:
                return "(" + f" {word} ".join(side.sql() for side in sides) + ")"

    def smaller(self) -> Iterator[Tree]:
        """Conditions that are a step simpler."""
        yield from self.sides
        for i, side in enumerate(self.sides):
            for simpler in side.smaller():
                yield Tree(self.text, (*self.sides[:i], simpler, *self.sides[i + 1 :]))


TRUE: Final = Tree("TRUE")


@dataclass
class Asker:
    """Draws conditions on some columns.

    Args:
        rng: what is drawn from.
        refs: the columns by their role, such as ``i``.
        variables: names of parameters or session variables, which are filled with the
            text of their values.
    """

    rng: Random
    refs: Mapping[str, Ref]
    variables: dict[str, str] | None = None

    def tree(self, depth: int = 2) -> Tree:
        """A condition of AND, OR and NOT above leaves."""
        odds = self.rng.random()
        if depth == 0 or odds < 0.45:
            return self.leaf()
        if odds < 0.75:
            return Tree("AND", (self.tree(depth - 1), self.tree(depth - 1)))
        if odds < 0.92:
            return Tree("OR", (self.tree(depth - 1), self.tree(depth - 1)))
        return Tree("NOT", (self.tree(depth - 1),))

    def leaf(self) -> Tree:
        """A condition on one column or two."""
        refs = [ref for ref in self.refs.values() if ref.kind.family != "array"]
        (ref,) = self.rng.choices(refs, [ref.weight for ref in refs])
        odds = self.rng.random()
        if odds < 0.60:
            return Tree(self.plain(ref))
        if odds < 0.85:
            return Tree(self.special(ref))
        if odds < 0.90:
            return Tree(self.pair())
        return Tree(self.odd())

    def value(self, ref: Ref) -> Any:
        """A value of the column, or one near."""
        if self.rng.random() < 0.75 and ref.samples:
            return self.rng.choice(ref.samples)
        return ref.kind.draw(self.rng, self.rng.randrange(-1, 22))

    def literal(self, ref: Ref) -> str:
        """A value as SQL, or the name of a variable that has it."""
        if ref.kind.family == "struct":
            return "null"
        text = ref.kind.text(self.rng, self.value(ref))
        if self.variables is not None and self.rng.random() < 0.5:
            name = f"v{len(self.variables)}"
            self.variables[name] = text
            return f"§{name}§"
        return "null" if self.rng.random() < 0.01 else text

    def plain(self, ref: Ref) -> str:
        """A comparison with constants."""
        rng, x = self.rng, ref.text
        if ref.kind.family == "struct":
            return self.struct(ref)
        odds = rng.random()
        if odds < 0.55:
            op, v = rng.choice(COMPARISONS), self.literal(ref)
            return f"{v} {op} {x}" if rng.random() < 0.15 else f"{x} {op} {v}"
        no = rng.choice(["", "", "NOT "])
        if odds < 0.72:
            values = [self.literal(ref) for _ in range(rng.choice([1, 2, 3, 14]))]
            values += ["null"] * (rng.random() < 0.1)
            return f"{x} {no}IN ({', '.join(values)})"
        if odds < 0.85:
            return f"{x} {no}BETWEEN {self.literal(ref)} AND {self.literal(ref)}"
        return f"{x} IS {no}NULL"

    def struct(self, ref: Ref) -> str:
        """A condition on a field of a struct."""
        name = self.rng.choice(["a", "b"])
        samples = [value[name] for value in ref.samples if value]
        kind = KINDS["i" if name == "a" else "s"]
        within = Ref(
            f"{ref.text}.{name}",
            kind,
            [value for value in samples if value is not None],
        )
        if self.rng.random() < 0.1:
            return f"{ref.text} IS NULL"
        return self.plain(within)

    def special(self, ref: Ref) -> str:
        """What only columns of its type are asked."""
        family = (
            "calendar" if ref.kind.family in ("date", "moment") else ref.kind.family
        )
        if family == "struct":
            return self.struct(ref)
        names = names_of(family, self.value(ref))
        return self.rng.choice(FORMS[family]).format(x=ref.text, **names)

    def pair(self) -> str:
        """Two columns of one family."""
        names = list(self.refs)
        self.rng.shuffle(names)
        for name in names:
            family = self.refs[name].kind.family
            others = [n for n in names if self.refs[n].kind.family == family]
            if len(others) > 1 and family not in ("array", "struct"):
                one, other = self.refs[others[0]], self.refs[others[1]]
                return f"{one.text} {self.rng.choice(COMPARISONS)} {other.text}"
        return "1 = 1"

    def odd(self) -> str:
        """A condition that no index answers, or a constant one."""
        refs = list(self.refs.values())
        numbers = [ref for ref in refs if ref.kind.family == "integer"]
        if numbers and self.rng.random() < 0.5:
            one = self.rng.choice(numbers)
            form = self.rng.choice(OF_INTEGERS)
            return form.format(x=one.text, v=self.value(one))
        several = ", ".join(ref.text for ref in refs)
        form = self.rng.choice(ALWAYS)
        return form.format(any=self.rng.choice(refs).text, all=several)
