"""The forms of predicates: each makes one at random over one column and ``w``."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pyarrow as pa

from skipindex.expressions import (
    And,
    Column,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    Predicate,
    Reference,
    Unsupported,
)
from tests.heavy.soundness.pools import SECOND, Pool

OPAQUE: Final = "opaque(w)"
"""A condition that no index can judge."""

Form: TypeAlias = Callable[[random.Random, Pool, Reference], Predicate | None]


def _compare(operator: Operator) -> Form:
    def make(rng: random.Random, pool: Pool, v: Reference) -> Predicate:
        return Comparison(v, operator, rng.choice(pool.literals))

    return make


def _between(rng: random.Random, pool: Pool, v: Reference) -> Predicate:
    return Column(v).between(rng.choice(pool.literals), rng.choice(pool.literals))


def _list(rng: random.Random, pool: Pool, *, null: bool, size: int) -> tuple[Any, ...]:
    some = [rng.choice(pool.values) for _ in range(size)]
    return (*some, None) if null else tuple(some)


def _in(*, negated: bool, null: bool = False, long: bool = False) -> Form:
    def make(rng: random.Random, pool: Pool, v: Reference) -> Predicate:
        size = 40 if long else rng.randint(1, 4)
        return In(v, _list(rng, pool, null=null, size=size), negated)

    return make


def _not(form: Form) -> Form:
    def make(rng: random.Random, pool: Pool, v: Reference) -> Predicate | None:
        inner = form(rng, pool, v)
        return None if inner is None else Not(inner)

    return make


def _like(shape: str, *, negated: bool = False, escape: str = "\\") -> Form:
    def make(rng: random.Random, pool: Pool, v: Reference) -> Predicate | None:
        if not pa.types.is_string(pool.dtype):
            return None
        text = rng.choice([t for t in pool.values if t])
        bit = text[: rng.choice([1, 2, 65, 400])]
        safe = "".join(escape + c if c in {"%", "_", escape} else c for c in bit)
        return Like(v, shape.format(safe), escape, negated)

    return make


def _atom(rng: random.Random, pool: Pool, v: Reference) -> Predicate:
    """Any leaf, over either column."""
    if rng.random() < 0.35:
        w = Reference(("w",))
        match rng.randrange(4):
            case 0:
                return IsNull(w, rng.random() < 0.5)
            case 1:
                values = tuple(rng.choices(SECOND, k=rng.randint(1, 3)))
                return In(w, values, rng.random() < 0.5)
            case _:
                value = rng.choice([*SECOND, 3, -5])
                return Comparison(w, rng.choice(list(Operator)), value)
    simple = [form for name, form in FORMS.items() if name not in _TREES]
    made = None
    while made is None:
        made = rng.choice(simple)(rng, pool, v)
    return made


def _tree(*, leaves: int, opaque: bool = False) -> Form:
    def node(rng: random.Random, pool: Pool, v: Reference, n: int) -> Predicate:
        if n == 1:
            if opaque and rng.random() < 0.4:
                return Unsupported(OPAQUE, "a function that nobody knows")
            if rng.random() < 0.05:
                return Constant(rng.choice([True, False, None]))
            return _atom(rng, pool, v)
        left = rng.randint(1, n - 1)
        children = (node(rng, pool, v, left), node(rng, pool, v, n - left))
        made: Predicate = And(children) if rng.random() < 0.5 else Or(children)
        return Not(made) if rng.random() < 0.3 else made

    def make(rng: random.Random, pool: Pool, v: Reference) -> Predicate:
        return node(rng, pool, v, rng.randint(2, leaves))

    return make


FORMS: Final[dict[str, Form]] = {
    **{f"v {op.value} x": _compare(op) for op in Operator},
    **{f"NOT (v {op.value} x)": _not(_compare(op)) for op in Operator},
    "BETWEEN": _between,
    "NOT BETWEEN": _not(_between),
    "IN": _in(negated=False),
    "IN, with NULL": _in(negated=False, null=True),
    "IN, 40 values": _in(negated=False, long=True),
    "IN ()": lambda rng, pool, v: In(v, (), rng.random() < 0.5),
    "NOT IN": _in(negated=True),
    "NOT IN, with NULL": _in(negated=True, null=True),
    "NOT IN, 40 values": _in(negated=True, long=True),
    "NOT (IN)": _not(_in(negated=False)),
    "NOT (IN, with NULL)": _not(_in(negated=False, null=True)),
    "IS NULL": lambda rng, pool, v: IsNull(v),
    "IS NOT NULL": lambda rng, pool, v: IsNull(v, negated=True),
    "NOT (IS NULL)": lambda rng, pool, v: Not(IsNull(v)),
    "LIKE 'x'": _like("{}"),
    "LIKE 'x%'": _like("{}%"),
    "LIKE '%x'": _like("%{}"),
    "LIKE '%x%'": _like("%{}%"),
    "LIKE 'x_%'": _like("{}_%"),
    "LIKE 'x%' ESCAPE '/'": _like("{}%", escape="/"),
    "NOT LIKE 'x'": _like("{}", negated=True),
    "NOT LIKE 'x%'": _like("{}%", negated=True),
    "NOT (LIKE '%x')": _not(_like("%{}")),
    "two conditions": _tree(leaves=2),
    "a tree": _tree(leaves=7),
    "a tree, in part opaque": _tree(leaves=6, opaque=True),
}
"""Every form by its name in the matrix."""

_TREES: Final = frozenset({"two conditions", "a tree", "a tree, in part opaque"})
