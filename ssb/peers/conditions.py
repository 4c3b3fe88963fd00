"""A condition of SQL in the terms of a peer that does not read SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import sqlglot
from sqlglot import expressions as ex

from ssb.peers.interface import CannotSayError

Term = TypeVar("Term")
Value = int | float | str

_COMPARISONS = {
    ex.EQ: "=",
    ex.NEQ: "<>",
    ex.LT: "<",
    ex.LTE: "<=",
    ex.GT: ">",
    ex.GTE: ">=",
}
_READ = {"this", "expression", "expressions", "low", "high", "negate"}
"""The parts of a tree that are translated; a tree with others has no term."""
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Terms(Protocol[Term]):
    """How a peer spells comparisons, and what combines them."""

    def compare(self, column: str, operator: str, value: Value) -> Term: ...

    def one_of(self, column: str, values: Sequence[Value]) -> Term: ...

    def like(self, column: str, pattern: str) -> Term: ...

    def both(self, left: Term, right: Term) -> Term: ...

    def either(self, left: Term, right: Term) -> Term: ...

    def negated(self, term: Term) -> Term: ...


def translated(where: str, terms: Terms[Term]) -> Term:
    """The condition in the terms of a peer.

    Raises:
        CannotSayError: it holds something that has no term.
    """
    return _translated(_parsed(where), terms)


def _parsed(where: str) -> Any:
    return sqlglot.parse_one(where, read="spark")


def _translated(tree: Any, terms: Terms[Term]) -> Term:
    if any(value and name not in _READ for name, value in tree.args.items()):
        raise _no_term(tree)
    term = _positive(tree, terms)
    # Some versions of sqlglot say NOT LIKE by a flag, others by a NOT above.
    return terms.negated(term) if tree.args.get("negate") else term


def _positive(tree: Any, terms: Terms[Term]) -> Term:
    match tree:
        case ex.Paren():
            return _translated(tree.this, terms)
        case ex.And():
            return terms.both(*_sides(tree, terms))
        case ex.Or():
            return terms.either(*_sides(tree, terms))
        case ex.Not():
            return terms.negated(_translated(tree.this, terms))
        case ex.Between():
            low, high = _value(tree.args["low"]), _value(tree.args["high"])
            column = _column(tree.this)
            return terms.both(
                terms.compare(column, ">=", low), terms.compare(column, "<=", high)
            )
        case ex.In() if tree.expressions:
            return terms.one_of(
                _column(tree.this), [_value(v) for v in tree.expressions]
            )
        case ex.Like():
            return terms.like(_column(tree.this), str(_value(tree.expression)))
    operator = _COMPARISONS.get(type(tree))
    if operator is None:
        raise _no_term(tree)
    if isinstance(tree.this, ex.Column):
        return terms.compare(tree.this.name, operator, _value(tree.expression))
    mirrored = _MIRRORED.get(operator, operator)
    return terms.compare(_column(tree.expression), mirrored, _value(tree.this))


def _sides(tree: Any, terms: Terms[Term]) -> tuple[Term, Term]:
    return _translated(tree.left, terms), _translated(tree.right, terms)


def _column(tree: Any) -> str:
    if not isinstance(tree, ex.Column):
        raise _no_term(tree)
    return str(tree.name)


def _value(tree: Any) -> Value:
    if isinstance(tree, ex.Neg):
        value = _value(tree.this)
        if not isinstance(value, str):
            return -value
    if not isinstance(tree, ex.Literal):
        raise _no_term(tree)
    literal = tree.to_py()
    return literal if isinstance(literal, (int, str)) else float(literal)


def _no_term(tree: Any) -> CannotSayError:
    return CannotSayError(f"no term for {tree.sql()!r}")
