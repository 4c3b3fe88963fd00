"""The tree of a predicate, ``push_not``, and the tree as Spark SQL.

Nodes are values: two trees of the same conditions in the same order are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from skipindex.errors import PredicateError, kind_of
from skipindex.expressions.atoms import IntegerSet
from skipindex.expressions.literals import Literal, literal_sql, literals_sql
from skipindex.expressions.names import quoted
from skipindex.expressions.operators import NEGATED, Operator


class _Logic:
    """``&``, ``|`` and ``~`` for every node of the tree."""

    __slots__ = ()

    def __and__(self, other: Predicate) -> Predicate:
        return conjunction([_node(self), _node(other)])

    def __or__(self, other: Predicate) -> Predicate:
        return disjunction([_node(self), _node(other)])

    def __invert__(self) -> Predicate:
        return Not(_node(self))

    def __bool__(self) -> bool:
        raise PredicateError(
            "a predicate has no truth value; combine with & | ~ (not: and or not), "
            "and write a range as col.between(low, high)"
        )

    def __str__(self) -> str:
        return to_sql(_node(self))


@dataclass(frozen=True, slots=True)
class Reference:
    """A column by the parts of its name: ``a.b`` has two, `` `a.b` `` has one."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(map(quoted, self.parts))


@dataclass(frozen=True, slots=True)
class Call:
    """A built-in function or operator of Spark, with columns and literals.

    Args:
        name: in lower case; an operator by its sign, a cast as ``cast`` with the name
            of the type as its second argument, an interval as ``interval`` with a
            number and a unit.
        arguments: as Spark takes them.
    """

    name: str
    arguments: tuple[Term | Literal, ...]

    def __str__(self) -> str:
        match self.name, [argument_sql(argument) for argument in self.arguments]:
            case "cast", [value, _]:
                return f"CAST({value} AS {self.arguments[1]})"
            case "timestamp_ntz", [text]:
                return text.replace("TIMESTAMP", "TIMESTAMP_NTZ", 1)
            case "interval", [number, _]:
                return f"INTERVAL '{number}' {self.arguments[1]}"
            case name, [left, right] if not name[0].isalpha() or name == "div":
                return f"({left} {name.upper()} {right})"
            case name, texts:
                return f"{name}({', '.join(texts)})"


@dataclass(frozen=True, slots=True)
class Case:
    """``CASE WHEN condition THEN value … ELSE otherwise END``."""

    branches: tuple[tuple[Predicate, Term | Literal], ...]
    otherwise: Term | Literal = None

    def __str__(self) -> str:
        whens = [f"WHEN {to_sql(c)} THEN {argument_sql(v)}" for c, v in self.branches]
        return f"CASE {' '.join(whens)} ELSE {argument_sql(self.otherwise)} END"


Term: TypeAlias = Reference | Call | Case
"""What a literal is compared with: a column, or a function of columns."""


@dataclass(frozen=True, slots=True)
class And(_Logic):
    """TRUE if all of ``children`` are."""

    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or(_Logic):
    """TRUE if one of ``children`` is."""

    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not(_Logic):
    """TRUE if ``child`` is FALSE; UNKNOWN stays UNKNOWN."""

    child: Predicate


@dataclass(frozen=True, slots=True)
class Comparison(_Logic):
    """``column operator value``; before it is bound, ``value`` may be a ``Call``."""

    column: Term
    operator: Operator
    value: Literal


@dataclass(frozen=True, slots=True)
class ColumnComparison(_Logic):
    """``left operator right``, of two columns, or of casts of them."""

    left: Term
    operator: Operator
    right: Term


@dataclass(frozen=True, slots=True)
class In(_Logic):
    """``column [NOT] IN (values)``; a NULL among the values counts as SQL says."""

    column: Term
    values: tuple[Literal, ...] | IntegerSet
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull(_Logic):
    """``column IS [NOT] NULL``; never UNKNOWN."""

    column: Term
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Like(_Logic):
    """``column [NOT] LIKE pattern ESCAPE escape``, the pattern as written."""

    column: Term
    pattern: str
    escape: str = "\\"
    negated: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, str | Call):
            raise PredicateError(
                f"not a LIKE pattern: {kind_of(self.pattern)} (expected text)"
            )
        if len(self.escape) != 1:
            raise PredicateError(
                f"not a LIKE escape: {self.escape!r} (expected one character)"
            )


@dataclass(frozen=True, slots=True)
class Constant(_Logic):
    """TRUE, FALSE, or UNKNOWN (None)."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Unsupported(_Logic):
    """A condition that no index can judge: every row may match, none must.

    ``text`` is Spark SQL; ``reason`` is why it cannot be judged, for ``explain``.
    """

    text: str
    reason: str


Leaf: TypeAlias = (
    Comparison | ColumnComparison | In | IsNull | Like | Constant | Unsupported
)
"""A condition without AND, OR and NOT."""

Predicate: TypeAlias = And | Or | Not | Leaf


def conjunction(parts: list[Predicate]) -> Predicate:
    """``a AND (b AND c) = a AND b AND c``; one part alone is itself."""
    flat = [c for p in parts for c in (p.children if isinstance(p, And) else (p,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def disjunction(parts: list[Predicate]) -> Predicate:
    """``a OR (b OR c) = a OR b OR c``; one part alone is itself."""
    flat = [c for p in parts for c in (p.children if isinstance(p, Or) else (p,))]
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def push_not(tree: Predicate, *, negate: bool = False) -> Predicate:
    """The same predicate without any ``Not``: only AND and OR above the leaves.

    ``NOT (a AND b) = NOT a OR NOT b`` holds for UNKNOWN too (Kleene), and a leaf
    has a leaf that is TRUE exactly where it is FALSE.
    """
    match tree:
        case Not(child):
            return push_not(child, negate=not negate)
        case And(children):
            parts = [push_not(child, negate=negate) for child in children]
            return disjunction(parts) if negate else conjunction(parts)
        case Or(children):
            parts = [push_not(child, negate=negate) for child in children]
            return conjunction(parts) if negate else disjunction(parts)
        case _ if not negate:
            return tree
        case Comparison(column, Operator.NULL_SAFE_EQ, None):
            return IsNull(column, negated=True)
        case Comparison(column, operator, value):
            return Comparison(column, NEGATED[operator], value)
        case ColumnComparison(_, operator, _):
            return replace(tree, operator=NEGATED[operator])
        case In() | IsNull() | Like():
            return replace(tree, negated=not tree.negated)
        case Constant(value):
            return Constant(None if value is None else not value)
        case Unsupported(text, reason):
            return Unsupported(f"NOT ({text})", reason)
        case _:
            assert_never(tree)


def to_sql(tree: Predicate) -> str:
    """``tree`` as Spark SQL that means the same, however deep it is."""
    pieces: list[str] = []
    rest: list[Predicate | str] = [tree]
    while rest:
        node = rest.pop()
        if isinstance(node, str):
            pieces.append(node)
        elif isinstance(node, And | Or | Not):
            rest += reversed(_parts(node))
        else:
            pieces.append(_leaf_sql(node))
    return "".join(pieces)


def _parts(node: And | Or | Not) -> list[Predicate | str]:
    """The text of an inner node, with its children in their places."""
    match node:
        case And(()) | Or(()):
            return [literal_sql(isinstance(node, And))]
        case Not(In() | IsNull() | Like() as child):
            return [push_not(child, negate=True)]
        case Not(child):
            return ["NOT (", child, ")"]
    conjoined = isinstance(node, And)
    parts: list[Predicate | str] = []
    for child in node.children:
        parts.append(" AND " if conjoined else " OR ")
        if conjoined and isinstance(child, Or):
            parts += ["(", child, ")"]
        else:
            parts.append(child)
    return parts[1:]


def _leaf_sql(leaf: Leaf) -> str:
    match leaf:
        case Comparison(column, operator, value):
            return f"{column} {operator.value} {argument_sql(value)}"
        case ColumnComparison(left, operator, right):
            return f"{left} {operator.value} {right}"
        case In(_, (), negated):
            return literal_sql(negated)
        case In(column, IntegerSet() as keys, negated):
            return f"{column}{_not(negated)} IN ({keys.listed})"
        case In(column, values, negated):
            if any(isinstance(one, Call) for one in values):
                listed = ", ".join(map(argument_sql, values))
            else:
                listed = literals_sql(values)
            return f"{column}{_not(negated)} IN ({listed})"
        case IsNull(column, negated):
            return f"{column} IS{_not(negated)} NULL"
        case Like(column, pattern, escape, negated):
            ending = "" if escape == "\\" else f" ESCAPE {literal_sql(escape)}"
            return f"{column}{_not(negated)} LIKE {argument_sql(pattern)}{ending}"
        case Constant(value):
            return literal_sql(value)
        case Unsupported(text, _):
            return f"({text})"
        case _:
            assert_never(leaf)


def argument_sql(argument: Term | Literal) -> str:
    """A column, a function or a literal as Spark SQL."""
    if isinstance(argument, Reference | Call | Case):
        return str(argument)
    return literal_sql(argument)


def _not(negated: bool) -> str:  # noqa: FBT001 (a word or nothing)
    return " NOT" if negated else ""


def _node(value: object) -> Predicate:
    if isinstance(value, _Logic):
        return value  # type: ignore[return-value]  # all of them are listed
    # A ``Column`` is a builder, not a predicate.
    builds = isinstance(getattr(value, "reference", None), Reference | Call | Case)
    hint = ' (a boolean column is col("x") == True)' if builds else ""
    raise PredicateError(
        f"not a predicate: {kind_of(value)}{hint} (accepted: conditions built with "
        "skipindex.col; of SQL text, the whole condition is one text)"
    )
