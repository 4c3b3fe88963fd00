"""The conditions of Spark SQL that an index can judge, one at a time."""

from __future__ import annotations

from skipindex.errors import PredicateError
from skipindex.expressions import (
    Call,
    Case,
    Column,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Literal,
    Operator,
    Predicate,
    Reference,
    Unsupported,
    conjunction,
    disjunction,
    push_not,
)
from skipindex.expressions.not_judged import NotJudgedError, reason_of
from skipindex.expressions.truth import is_unknown
from skipindex.planner.sql.comparisons import (
    OPERATORS,
    choice,
    compare,
    compare_or_keep,
    is_known,
    listed,
    truth,
)
from skipindex.planner.sql.expressions import ExpressionReader
from skipindex.planner.sql.operands import Condition, Known, Operand, argument, small


class ConditionReader(ExpressionReader):
    """Reads ``a = 1``, ``a BETWEEN 1 AND 2`` and the other leaves of the tree."""

    def condition(self) -> Predicate:
        """The condition that begins here, as far as it can be judged.

        Raises:
            NotJudgedError: it is one for Spark alone.
            PredicateError: it is none.
        """
        if self._is_row():
            return self._rows()
        left = self.operand()
        while self.next.key in OPERATORS:
            operator = OPERATORS[self.next.key]
            self.at += 1
            left = Condition(small(compare(left, operator, self.operand())))
        if self.take("IS"):
            return self._is(left)
        negated = self.take("NOT")
        if self.take("BETWEEN"):
            tree = self._between(left)
        elif self.take("IN"):
            tree = self._in(left)
        elif self.take("LIKE"):
            tree = self._like(left)
        elif self.take("ILIKE"):
            tree = self._ilike(left)
        elif self.next.key in {"RLIKE", "REGEXP"}:
            raise NotJudgedError(reason_of(self.next.key))
        elif negated:
            raise self.expected("BETWEEN, IN or LIKE")
        else:
            return truth(left)
        return push_not(tree, negate=negated)

    def _is(self, left: Operand) -> Predicate:
        negated = self.take("NOT")
        word = self.next.key
        if word not in {"NULL", "UNKNOWN", "TRUE", "FALSE", "DISTINCT"}:
            raise self.expected("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")
        self.at += 1
        if word in {"NULL", "UNKNOWN"}:
            match left:
                case Known(value):
                    return Constant((value is None) != negated)
                case Condition(tree):
                    return push_not(is_unknown(tree), negate=negated)
                case _:
                    return IsNull(left, negated)
        if word in {"TRUE", "FALSE"}:
            tree = compare(left, Operator.NULL_SAFE_EQ, Known(word == "TRUE"))
            return push_not(tree, negate=negated)
        if not self.take("FROM"):
            raise self.expected("FROM")
        tree = compare(left, Operator.NULL_SAFE_EQ, self.operand())
        return push_not(tree, negate=not negated)

    def _between(self, value: Operand) -> Predicate:
        low = self.operand()
        if not self.take("AND"):
            raise NotJudgedError(reason_of(self.next.key))
        high = self.operand()
        lower = compare_or_keep(value, Operator.GE, low)
        upper = compare_or_keep(value, Operator.LE, high)
        if isinstance(lower, Unsupported) and isinstance(upper, Unsupported):
            raise NotJudgedError(upper.reason)
        return conjunction([lower, upper])

    def _in(self, left: Operand) -> Predicate:
        if self.next.key != "(":
            raise self.expected("'('")
        end = self.closing[self.at]
        values: list[Literal] = []
        while self.at < end:
            self.at += 1
            # Lists are long: most of their members are one token.
            operand = self.plain_literal() or self.operand()
            if not isinstance(operand, Known):
                raise NotJudgedError("a column in a list")
            if self.next.key != "," and self.at != end:
                raise NotJudgedError(reason_of(self.next.key))
            values.append(operand.value)
        self.at = end + 1
        if isinstance(left, Known):
            return Constant(listed(left.value, values))
        if isinstance(left, Condition):
            raise NotJudgedError("no column is compared with a literal")
        return In(left, tuple(values))

    def _is_row(self) -> bool:
        """Whether ``(a, b) [NOT] IN`` comes next."""
        if self.next.key != "(":
            return False
        end = self.closing[self.at]
        i = self.at + 1
        while i < end and self.tokens[i].key != ",":
            i = self.closing.get(i, i) + 1
        behind = [token.key for token in self.tokens[end + 1 : end + 3]]
        return i < end and (behind[0] == "IN" or behind == ["NOT", "IN"])

    def _rows(self) -> Predicate:
        """``(a, b) IN ((1, 'x'), …)``; NULL equals NULL inside of rows."""
        terms = self._row()
        negated = self.take("NOT")
        self.at += 1
        if self.next.key != "(":
            raise self.expected("'('")
        end = self.closing[self.at]
        rows: list[list[Literal]] = []
        while self.at < end:
            self.at += 1
            if self.next.key != "(":
                raise NotJudgedError("a list of other than rows")
            row = [o.value for o in self._row() if isinstance(o, Known)]
            if len(row) != len(terms) or (self.next.key != "," and self.at != end):
                raise NotJudgedError("a list of other than rows of literals")
            rows.append(row)
        self.at = end + 1
        # The list has one type, so values of several types would be cast.
        for column in zip(*rows, strict=True):
            if len({type(value) for value in column} - {type(None)}) > 1:
                raise NotJudgedError("the list makes Spark cast")
        alternatives: list[Predicate] = []
        for row in rows:
            pairs: list[Predicate] = []
            for term, value in zip(terms, row, strict=True):
                if isinstance(term, Known | Condition):
                    raise NotJudgedError("no column is compared with a literal")
                pairs.append(Comparison(term, Operator.NULL_SAFE_EQ, value))
            alternatives.append(conjunction(pairs))
        return push_not(disjunction(alternatives), negate=negated)

    def _row(self) -> list[Operand]:
        """The operands in parentheses."""
        end = self.closing[self.at]
        operands: list[Operand] = []
        while self.at < end:
            self.at += 1
            operands.append(self.operand())
            if self.next.key != "," and self.at != end:
                raise NotJudgedError(reason_of(self.next.key))
        self.at = end + 1
        return operands

    def _like(self, left: Operand) -> Predicate:
        token = self.next
        pattern, escape = self.operand(), Known("\\")
        if self.take("ESCAPE"):
            given = self.operand()
            if not isinstance(given, Known):
                raise self.error(token, "expected a string after ESCAPE")
            escape = given
        match left, pattern, escape.value:
            case Reference() | Call() | Case(), Known(str(text)), str(character):
                try:
                    return Like(left, text, character)
                except PredicateError as problem:
                    raise self.error(token, str(problem)) from None
        raise NotJudgedError("LIKE of anything but a column and a string")

    def _ilike(self, left: Operand) -> Predicate:
        """Spark's own rewrite: LIKE, with both sides in lower case."""
        match self.operand():
            case Known(str(text)) if text.isascii() and self.next.key != "ESCAPE":
                return Like(Call("lower", (argument(left),)), text.lower())
        raise NotJudgedError("ILIKE, which ignores case")

    def _named(self) -> Predicate:
        """``startswith(column, 'p')`` and the other functions that say a leaf."""
        name, end = self.next, self.closing[self.at + 1]
        self.at += 2
        operands = [self.operand()]
        while self.take(","):
            operands.append(self.operand())
        if self.at != end:
            raise NotJudgedError(reason_of(self.next.key))
        self.at += 1
        match name.key, operands:
            case "STARTSWITH", [Reference() | Call() as column, Known(str(text))]:
                return Column(column).startswith(text)
            case "ENDSWITH", [Reference() | Call() as column, Known(str(text))]:
                return Column(column).endswith(text)
            case "CONTAINS", [Reference() | Call() as column, Known(str(text))]:
                return Column(column).contains(text)
            case "ISNULL", [Reference() | Call() as column]:
                return IsNull(column)
            case "ISNOTNULL", [Reference() | Call() as column]:
                return IsNull(column, negated=True)
            case "ISNAN", [Reference() | Call() as column]:
                return Comparison(column, Operator.NULL_SAFE_EQ, float("nan"))
            case _:
                raise NotJudgedError(f"the function {name.text}")

    def chosen(self, name: str, operands: list[Operand]) -> Operand:
        """``IF``, ``COALESCE`` and their like, as the CASE that they stand for."""
        match name, operands:
            case "IF" | "IFF", [test, value, otherwise]:
                return choice([(truth(test), value)], otherwise)
            case "NVL2", [test, value, otherwise]:
                return choice([(is_known(test), value)], otherwise)
            case "NVL" | "IFNULL" | "COALESCE", [*_, last] if (
                name == "COALESCE" or len(operands) == 2
            ):
                if any(isinstance(operand, Condition) for operand in operands):
                    return choice([(is_known(o), o) for o in operands[:-1]], last)
                return self.called("coalesce", operands)
            case "NULLIF", [value, Known() as other]:
                equal = compare(value, Operator.EQ, other)
                return choice([(equal, Known(None))], value, repeats=True)
            case _:
                raise NotJudgedError(f"the function {name}")

    def _case(self) -> Operand:
        self.at += 1
        subject = None if self.next.key == "WHEN" else self.operand()
        branches: list[tuple[Predicate, Operand]] = []
        while self.take("WHEN"):
            if subject is None:
                tree = self.condition_inside()
            else:
                tree = compare(subject, Operator.EQ, self.operand())
            if not self.take("THEN"):
                raise NotJudgedError("a CASE expression")
            branches.append((tree, self._value_inside()))
        otherwise: Operand = Known(None)
        if self.take("ELSE"):
            otherwise = self._value_inside()
        if not self.take("END") or not branches:
            raise NotJudgedError("a CASE expression")
        return choice(branches, otherwise, repeats=isinstance(subject, Call | Case))

    def _value_inside(self) -> Operand:
        """A value of a CASE, which may be a condition."""
        start = self.at
        operand = self.operand()
        if self.next.key in {"WHEN", "ELSE", "END"}:
            return operand
        self.again(start)
        return Condition(self.condition_inside())
