"""SQL text to the predicate tree, with the meaning that Spark gives it.

    >>> from skipindex.planner.sql.parser import parse
    >>> print(parse("5 < a AND upper(b) = 'X' AND c = d OR c IN (1, 2L)"))
    a > 5 AND upper(b) = 'X' AND (c = d) OR c IN (1, 2)

AND, OR, NOT and the conditions that an index can judge, a column or a function of
columns against a literal, are read by Spark's own grammar (``SqlBaseParser.g4``): a
rewrite on the way could skip a file.  What is made of literals alone is folded.
Everything else stays as written, one ``Unsupported`` for one condition, once sqlglot
has found it well-formed.

The settings of the session are taken to be Spark's defaults: backslash escapes in
strings, double quotes around strings, ``1e2`` a double.  A string with a doubled
quote, which Spark 3 and Spark 4 read differently, is judged for both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from skipindex.errors import PredicateError
from skipindex.expressions import (
    And,
    Not,
    Or,
    Predicate,
    Unsupported,
    conjunction,
    disjunction,
)
from skipindex.expressions.not_judged import NotJudgedError, reason_of
from skipindex.planner.sql.comparisons import OPERATORS
from skipindex.planner.sql.conditions import ConditionReader
from skipindex.planner.sql.operands import small
from skipindex.planner.sql.syntax import SyntaxMistakeError, check_syntax
from skipindex.planner.sql.tokens import Kind, Token

_QUERIES: Final = {"SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE"}
_STATEMENTS: Final = _QUERIES | {
    *("WHERE", "INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "ALTER", "DROP"),
    *("TRUNCATE", "EXPLAIN", "SHOW", "DESCRIBE", "USE", "SET"),
}


def parse(text: str) -> Predicate:
    """The tree of a WHERE condition in Spark SQL.

    Raises:
        PredicateError: the text is no condition; the message says where.
    """
    if "${" in text:
        # Spark replaces ${name} before it reads the text, by values that we lack.
        return Unsupported(text, "Spark substitutes variables in ${...}")
    return _TreeReader(text).tree()


_ENDING_VALUES: Final = {",", "WHEN", "THEN", "ELSE", "END"}
"""What ends a condition in the place of a value."""
_MAX_NESTED: Final = 10
"""Conditions inside of values inside of conditions."""


@dataclass
class _Level:
    """What was read between two parentheses so far.

    Args:
        alternatives: the conditions between the ORs.
        parts: those between the ANDs, since the last OR.
        negations: the NOTs before the next one.
    """

    alternatives: list[Predicate] = field(default_factory=list)
    parts: list[Predicate] = field(default_factory=list)
    negations: int = 0


class _TreeReader(ConditionReader):
    """Reads AND, OR, NOT and parentheses, and what they are made of."""

    def tree(self) -> Predicate:
        """The whole text.

        Raises:
            PredicateError: it is no condition.
        """
        if self.next.kind is Kind.END:
            raise PredicateError(f"expected a condition, found none in {self.text!r}")
        for token in self.tokens:
            if token.key == ";":
                raise self.error(token, "expected one condition, found ';'")
        return self._tree()

    def _tree(self) -> Predicate:
        """What comes next, up to what ends it.

        Parentheses may be as deep as they like: the open ones are on a list, and
        not on Python's stack.
        """
        levels = [_Level()]
        while True:
            if self.next.key in {"NOT", "!"} and self.after.key not in OPERATORS:
                self.at += 1
                levels[-1].negations += 1
            elif self.next.key == "(" and self._encloses_condition():
                self.at += 1
                levels.append(_Level())
            else:
                tree = self._leaf()
                while not self._goes_on(levels[-1], tree):
                    tree = disjunction(levels.pop().alternatives)
                    if not levels:
                        return tree
                    self.at += 1  # the parenthesis that closes

    def _goes_on(self, level: _Level, tree: Predicate) -> bool:
        """Add a part to what is open; whether AND or OR comes next."""
        for _ in range(level.negations):
            tree = Not(tree)
        level.negations = 0
        level.parts.append(tree)
        if self.take("AND"):
            return True
        level.alternatives.append(conjunction(level.parts))
        level.parts = []
        return self.take("OR")

    def _encloses_condition(self) -> bool:
        """Whether these parentheses hold a condition: no operand and no query."""
        if not self._ends_condition(self.tokens[self.closing[self.at] + 1]):
            return False
        behind = self.tokens[self.at + 2].key
        return self.after.key not in _QUERIES or behind in OPERATORS

    def _ends_condition(self, token: Token) -> bool:
        if token.key in {"AND", "OR", ")"} or token.kind is Kind.END:
            return True
        return self.nested > 0 and token.key in _ENDING_VALUES

    def condition_inside(self) -> Predicate:
        """A condition in the place of a value, all of it judged or none.

        Raises:
            NotJudgedError: a part of it is one for Spark alone.
        """
        if self.nested >= _MAX_NESTED:
            raise NotJudgedError("a condition as a value")
        self.nested += 1
        try:
            return small(self._tree())
        except PredicateError as error:
            raise NotJudgedError("a condition as a value") from error
        finally:
            self.nested -= 1

    def _leaf(self) -> Predicate:
        start = self.at
        if self._ends_condition(self.next):
            raise self.expected("a condition")
        if self.nested:
            tree = self.condition()
            if not self._ends_condition(self.next):
                raise NotJudgedError(reason_of(self.next.key))
            return tree
        self.saw_doubled_quote, self.retries = False, 0
        tree = self._judged(start)
        if not self.saw_doubled_quote or isinstance(tree, Unsupported):
            return tree
        self.at, self.spark_3 = start, True
        other = self._judged(start)
        self.spark_3 = False
        text = self._slice(start, self.at)
        reason = "Spark 3 and Spark 4 read a doubled quote differently"
        return And((Or((tree, other)), Unsupported(text, reason)))

    def _judged(self, start: int) -> Predicate:
        """The condition that begins here, ``Unsupported`` if it is one for Spark."""
        try:
            tree = small(self.condition())
            if self._ends_condition(self.next):
                return tree
            reason = reason_of(self.next.key)
        except NotJudgedError as not_judged:
            reason = str(not_judged)
        self.at = self._end_of_condition(start)
        self._check_syntax(start, self.at)
        return Unsupported(self._slice(start, self.at), reason)

    def _slice(self, start: int, end: int) -> str:
        return self.text[self.tokens[start].start : self.tokens[end - 1].end]

    def _end_of_condition(self, start: int) -> int:
        """The place of the first AND, OR or ``)`` that is not inside the condition.

        The ANDs of BETWEEN, and all between CASE and END, are inside.
        """
        i, cases, betweens = start, 0, 0
        while self.tokens[i].kind is not Kind.END and self.tokens[i].key != ")":
            match self.tokens[i].key:
                case "CASE":
                    cases += 1
                case "END" if cases:
                    cases -= 1
                case "BETWEEN" if not cases:
                    betweens += 1
                case "AND" if betweens and not cases:
                    betweens -= 1
                case "AND" | "OR" if not cases:
                    break
            i = self.closing.get(i, i) + 1
        return i

    def _check_syntax(self, start: int, end: int) -> None:
        """Let sqlglot look for mistakes in a condition that stays as written."""
        tokens = self.tokens[start:end]
        try:
            check_syntax(tokens)
        except SyntaxMistakeError as mistake:
            found = mistake.token
        else:
            return
        first = tokens[0]
        if first.key in _STATEMENTS and first is self.tokens[0]:
            problem = f"expected the condition alone, without {first.text!r}"
            raise self.error(first, problem)
        raise self.error(found, f"cannot read this condition near {found.text!r}")
