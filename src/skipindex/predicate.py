"""Predicates as people write them: the tree, its builders, and ``push_not``.

    >>> from skipindex import col
    >>> print((col("a") > 3) & ~col("b").isin(1, 2))
    a > 3 AND b NOT IN (1, 2)

The tree is Spark's three-valued logic: a leaf is TRUE, FALSE or UNKNOWN, and
WHERE keeps the rows for which the whole is TRUE.  Values are plain Python ones
(``Literal``); which column and type they meet is settled later, when the tree is
bound to a table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Final, TypeAlias, assert_never

import numpy as np
from pyroaring import BitMap, BitMap64

from skipindex.atoms import IntegerSet
from skipindex.errors import PredicateError

Literal: TypeAlias = bool | int | float | Decimal | str | bytes | date | datetime | None
"""A value as written.  A datetime without a zone is a wall clock of the session."""

ManyKeys: TypeAlias = np.ndarray | BitMap | BitMap64 | IntegerSet
"""All the keys that a list of IN has, in one value."""


class Operator(Enum):
    """The comparisons of SQL; the value is how Spark writes it."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    NULL_SAFE_EQ = "<=>"


NEGATED: Final = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.LT: Operator.GE,
    Operator.GE: Operator.LT,
    Operator.GT: Operator.LE,
    Operator.LE: Operator.GT,
}
"""``NOT (a op b)`` is ``a NEGATED[op] b``, also for NULL and NaN: Spark orders all
values, so exactly one of ``<``, ``=`` and ``>`` is TRUE unless one side is NULL."""

MIRRORED: Final = {
    Operator.LT: Operator.GT,
    Operator.GT: Operator.LT,
    Operator.LE: Operator.GE,
    Operator.GE: Operator.LE,
}
"""``a op b`` is ``b MIRRORED[op] a``; the operators that are missing stay."""


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
        raise TypeError(
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
        return ".".join(map(_quoted, self.parts))


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
"""What a literal is compared with: a column, or what is made of columns."""


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
    """``column operator value``."""

    column: Term
    operator: Operator
    value: Literal


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
        if len(self.escape) != 1:
            raise PredicateError(
                f"no escape for LIKE: {self.escape!r} (expected one character)"
            )


@dataclass(frozen=True, slots=True)
class Constant(_Logic):
    """TRUE, FALSE, or UNKNOWN (None)."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Unsupported(_Logic):
    """A condition that no index can judge: every row may match, none must.

    Args:
        text: the condition, as Spark SQL.
        reason: why it cannot be judged, for ``explain``.
    """

    text: str
    reason: str


Predicate: TypeAlias = (
    And | Or | Not | Comparison | In | IsNull | Like | Constant | Unsupported
)


class Column:
    """Builds predicates over one column: ``col("x") > 3``."""

    __slots__ = ("reference",)
    __hash__ = None  # type: ignore[assignment]  # == builds a predicate

    def __init__(self, reference: Term) -> None:
        self.reference = reference

    def _compare(self, operator: Operator, value: object) -> Predicate:
        return Comparison(self.reference, operator, _literal(value))

    def __eq__(self, value: object) -> Predicate:  # type: ignore[override]
        return self._compare(Operator.EQ, value)

    def __ne__(self, value: object) -> Predicate:  # type: ignore[override]
        return self._compare(Operator.NE, value)

    def __lt__(self, value: Literal) -> Predicate:
        return self._compare(Operator.LT, value)

    def __le__(self, value: Literal) -> Predicate:
        return self._compare(Operator.LE, value)

    def __gt__(self, value: Literal) -> Predicate:
        return self._compare(Operator.GT, value)

    def __ge__(self, value: Literal) -> Predicate:
        return self._compare(Operator.GE, value)

    def eq_null_safe(self, value: Literal) -> Predicate:
        """``column <=> value``: NULL equals NULL, and nothing is UNKNOWN."""
        return self._compare(Operator.NULL_SAFE_EQ, value)

    def between(self, low: Literal, high: Literal) -> Predicate:
        """``low <= column <= high``."""
        return And((self >= low, self <= high))

    def isin(self, *values: Literal | ManyKeys) -> Predicate:
        """``column IN (values)``, or one array or bitmap of all the keys wanted.

        A million keys in a numpy array or a roaring bitmap cost milliseconds.
        """
        if len(values) == 1 and isinstance(
            values[0], np.ndarray | BitMap | BitMap64 | IntegerSet
        ):
            return In(self.reference, _keys(values[0]))
        return In(self.reference, tuple(map(_literal, values)))

    def is_null(self) -> Predicate:
        """``column IS NULL``."""
        return IsNull(self.reference)

    def is_not_null(self) -> Predicate:
        """``column IS NOT NULL``."""
        return IsNull(self.reference, negated=True)

    def like(self, pattern: str, *, escape: str = "\\") -> Predicate:
        """``column LIKE pattern``: ``%`` is any text, ``_`` any character."""
        return Like(self.reference, pattern, escape)

    def startswith(self, prefix: str) -> Predicate:
        """The column begins with ``prefix``, which is no pattern."""
        return Like(self.reference, _no_pattern(prefix) + "%")

    def endswith(self, suffix: str) -> Predicate:
        """The column ends with ``suffix``, which is no pattern."""
        return Like(self.reference, "%" + _no_pattern(suffix))

    def contains(self, text: str) -> Predicate:
        """``text``, which is no pattern, is somewhere in the column."""
        return Like(self.reference, f"%{_no_pattern(text)}%")


def col(name: str) -> Column:
    """The column ``name``: dots reach into structs, backticks quote.

    Raises:
        PredicateError: a backtick is not closed, or a part is empty.
    """
    return Column(Reference(name_parts(name)))


def name_parts(name: str) -> tuple[str, ...]:
    """The names from the column inwards, of ``a.b`` or ```a.b`.c``.

    Raises:
        PredicateError: a backtick is not closed, or a part is empty.
    """
    parts: list[str] = []
    rest = name
    while True:
        if rest.startswith("`"):
            part, rest = _quoted_part(rest, name)
        else:
            end = rest.find(".")
            part, rest = (rest, "") if end < 0 else (rest[:end], rest[end:])
            if "`" in part:
                raise PredicateError(f"no column name: {name!r} ({_NAMES})")
        parts.append(part)
        if not rest:
            break
        if not rest.startswith("."):
            raise PredicateError(f"no column name: {name!r} ({_NAMES})")
        rest = rest[1:]
    if not all(parts):
        raise PredicateError(f"no column name: {name!r} ({_NAMES})")
    return tuple(parts)


_NAMES: Final = "expected a, a.b or `a.b`"


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
        case Comparison(column, Operator.NULL_SAFE_EQ, value):
            if value is None:
                return IsNull(column, negated=True)
            differs = Comparison(column, Operator.NE, value)
            return Or((IsNull(column), differs))
        case Comparison(column, operator, value):
            return Comparison(column, NEGATED[operator], value)
        case In() | IsNull() | Like():
            return replace(tree, negated=not tree.negated)
        case Constant(value):
            return Constant(None if value is None else not value)
        case Unsupported(text, reason):
            return Unsupported(f"NOT ({text})", reason)
        case _:
            assert_never(tree)


def to_sql(tree: Predicate) -> str:
    """``tree`` as Spark SQL that means the same."""
    match tree:
        case And(()) | Or(()):
            return literal_sql(isinstance(tree, And))
        case And(children):
            return " AND ".join(_in_parentheses(c, Or) for c in children)
        case Or(children):
            return " OR ".join(to_sql(c) for c in children)
        case Not(In() | IsNull() | Like() as child):
            return to_sql(push_not(child, negate=True))
        case Not(child):
            return f"NOT ({to_sql(child)})"
        case Comparison(column, operator, value):
            return f"{column} {operator.value} {literal_sql(value)}"
        case In(_, (), negated):
            return literal_sql(negated)
        case In(column, IntegerSet() as keys, negated):
            return f"{column}{_not(negated)} IN ({keys.listed})"
        case In(column, values, negated):
            listed = ", ".join(map(literal_sql, values))
            return f"{column}{_not(negated)} IN ({listed})"
        case IsNull(column, negated):
            return f"{column} IS{_not(negated)} NULL"
        case Like(column, pattern, escape, negated):
            ending = "" if escape == "\\" else f" ESCAPE {literal_sql(escape)}"
            return f"{column}{_not(negated)} LIKE {literal_sql(pattern)}{ending}"
        case Constant(value):
            return literal_sql(value)
        case Unsupported(text, _):
            return f"({text})"
        case _:
            assert_never(tree)


def argument_sql(argument: Term | Literal) -> str:
    """A column, a function or a literal as Spark SQL."""
    if isinstance(argument, Reference | Call | Case):
        return str(argument)
    return literal_sql(argument)


def literal_sql(value: Literal) -> str:
    """``value`` as a Spark SQL literal of the same type."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case float():
            return _double_sql(value)
        case Decimal():
            return f"{value:f}BD"
        case int():
            return str(value)
        case bytes():
            return f"X'{value.hex().upper()}'"
        case str():
            return _string_sql(value)
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            assert_never(value)


def _double_sql(value: float) -> str:
    if value != value or value in {float("inf"), float("-inf")}:  # noqa: PLR0124
        return f"CAST('{value}' AS DOUBLE)"
    return f"{value!r}D"


_ESCAPES: Final = str.maketrans(
    {
        "\\": "\\\\",
        "'": "\\'",
        "\n": "\\n",
        "\r": "\\r",
        "\0": "\\u0000",  # "\\0" and two digits are another character
    }
)


def _string_sql(value: str) -> str:
    # Spark would replace ${name}, also inside of a string.
    return "'" + value.translate(_ESCAPES).replace("${", "$\\{") + "'"


def _not(negated: bool) -> str:  # noqa: FBT001 (a word or nothing)
    return " NOT" if negated else ""


def _no_pattern(text: str) -> str:
    """The LIKE pattern that only ``text`` matches."""
    return "".join(f"\\{c}" if c in "\\%_" else c for c in text)


def _in_parentheses(tree: Predicate, kind: type) -> str:
    return f"({to_sql(tree)})" if isinstance(tree, kind) else to_sql(tree)


_RESERVED: Final = {
    *("ALL", "AND", "ANY", "AS", "BETWEEN", "CASE", "CAST", "CURRENT_DATE"),
    *("CURRENT_PATH", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER", "ELSE"),
    *("END", "ESCAPE", "EXISTS", "FALSE", "FROM", "ILIKE", "IN", "INTERVAL", "IS"),
    *("LIKE", "LOCALTIME", "MAP", "NOT", "NULL", "OR", "REDUCE", "REGEXP", "RLIKE"),
    *("SELECT", "SESSION_USER", "SOME", "TABLE", "THEN", "TRUE", "USER", "VALUES"),
    *("WHEN", "WITH"),
}
"""Words that mean something else, in Spark or to a reader, where a column may be."""


def _quoted(part: str) -> str:
    plain = part.isascii() and part.isidentifier() and part.upper() not in _RESERVED
    return part if plain else "`" + part.replace("`", "``") + "`"


def _quoted_part(text: str, name: str) -> tuple[str, str]:
    """Split `` `a``b`.c `` into ``a`b`` and ``.c``."""
    i = 1
    while (i := text.find("`", i)) >= 0:
        if text[i : i + 2] != "``":
            return text[1:i].replace("``", "`"), text[i + 1 :]
        i += 2
    raise PredicateError(f"no column name: a backtick is not closed in {name!r}")


def _keys(keys: ManyKeys) -> tuple[Literal, ...] | IntegerSet:
    """The keys of an array or bitmap; numbers beyond bigint, and no numbers, singly."""
    if isinstance(keys, IntegerSet):
        return keys
    array = keys if isinstance(keys, np.ndarray) else np.asarray(keys.to_array())
    if array.ndim != 1:
        raise PredicateError(
            f"no list of keys: an array of {array.ndim} dimensions (expected 1)"
        )
    whole = array.dtype.kind in "iu" and len(array) > 0
    if whole and int(array.max()) <= np.iinfo(np.int64).max:
        return IntegerSet(array)
    return tuple(map(_literal, array))


def _literal(value: object) -> Literal:
    item = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.datetime64) and isinstance(item, int):  # nanoseconds
        micros = value.astype("datetime64[us]")
        item = micros.item() if micros == value else value
    match item:
        case None if not isinstance(value, np.datetime64):
            return None
        case bool() | int() | float() | str() | bytes():
            return item
        case Decimal() if item.is_finite():
            return item
        case datetime() if item != item or getattr(item, "nanosecond", False):  # noqa: PLR0124
            pass  # pandas: not a time, or finer than Spark's timestamps
        case date():
            return item
    raise PredicateError(
        f"no literal: {value!r} of type {type(value).__name__} (accepted: bool, int, "
        "float, Decimal, str, bytes, date, datetime, None)"
    )


def _node(value: object) -> Predicate:
    if isinstance(
        value, And | Or | Not | Comparison | In | IsNull | Like | Constant | Unsupported
    ):
        return value
    hint = ' (a boolean column is col("x") == True)' if type(value) is Column else ""
    raise PredicateError(f"no predicate: {value!r}{hint}")
