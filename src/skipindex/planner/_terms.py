"""Functions over columns: questions to their values become questions to the columns.

A function that rises or falls with its column is inverted: ``year(d) = 1993`` holds
for one range of ``d``, which every index kind answers, and so does ``floor(x) > 3`` or
``CAST(t AS DATE) <= …``.  The ends of the range are found by bisection over the
column's domain, so there is one definition of every function and no second one of its
inverse.  Where the function may be unsure (an overflow), the rows are kept.

Any other function of one column stays ``Computed``: a value of the column answers it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, Final, Protocol, assert_never

from skipindex.atoms import (
    Atom,
    IsNotNull,
    IsNull,
    Matches,
    NoneOf,
    OneOf,
    Range,
    Value,
    successor,
)
from skipindex.domain import Domain
from skipindex.patterns import matches
from skipindex.planner._functions import (
    Argument,
    Function,
    Plain,
    UnsureError,
    from_plain,
    to_plain,
    whole,
)
from skipindex.planner.bound import (
    AllOf,
    AnyOf,
    Bound,
    Computed,
    Known,
    Leaf,
    Unknown,
)

_MANY: Final = 64
"""More listed values than this are not inverted one by one."""
_REMEMBERED: Final = 1 << 16

Interval = tuple[Value | None, Value | None]
"""``low <= value < high``; None is "no bound on this side"."""


class Image(Protocol):
    """What a term is, for every row of a table."""

    @property
    def domain(self) -> Domain | None:
        """Of its values; None for the literal NULL."""

    @property
    def expression(self) -> str:
        """The term in SQL."""

    @property
    def columns(self) -> tuple[ColumnImage, ...]:
        """The columns that it takes, each once."""

    def value(self, value: Value | None) -> Plain | None:
        """For a row whose only column of ``columns`` has this value.

        Raises:
            UnsureError: only Spark can tell.
        """

    def pull(self, question: Atom, text: str) -> Bound:
        """TRUE for the rows whose value answers ``question`` with TRUE."""


@dataclass(frozen=True)
class ColumnImage:
    """A column as it is."""

    name: str
    domain: Domain
    expression: str

    @property
    def columns(self) -> tuple[ColumnImage, ...]:
        """Itself."""
        return (self,)

    def value(self, value: Value | None) -> Plain | None:
        """The value as functions take it."""
        return None if value is None else to_plain(self.domain, value)

    def pull(self, question: Atom, text: str) -> Bound:
        """The question itself, to this column."""
        match question:
            case Range(_, low, high):
                return _ranged(self, low, high, text)
            case OneOf(_, values):
                return Leaf(OneOf(self.name, values), text)
            case NoneOf(_, values):
                return Leaf(NoneOf(self.name, values), text)
            case IsNull():
                return Leaf(IsNull(self.name), text)
            case IsNotNull():
                return Leaf(IsNotNull(self.name), text)
            case Matches(_, pattern, negated):
                return Leaf(Matches(self.name, pattern, negated), text)
            case _:
                assert_never(question)


@dataclass(frozen=True)
class ConstantImage:
    """A literal."""

    domain: Domain | None
    plain: Plain | None
    expression: str
    columns: tuple[ColumnImage, ...] = ()

    def value(self, _value: Value | None) -> Plain | None:
        """The literal."""
        return self.plain

    def pull(self, question: Atom, text: str) -> Bound:
        """The answer of the literal."""
        return _settled(question, self.domain, self.plain, text)


@dataclass(frozen=True)
class CallImage:
    """A function of images."""

    function: Function
    arguments: tuple[Image, ...]
    expression: str

    @property
    def domain(self) -> Domain:
        """Of the function's values."""
        return self.function.domain

    @cached_property
    def columns(self) -> tuple[ColumnImage, ...]:
        """Those of the arguments."""
        return merged_columns(self.arguments)

    def value(self, value: Value | None) -> Plain | None:
        """The function of the arguments' values."""
        found = [argument.value(value) for argument in self.arguments]
        if None in found:
            return None
        return self.function.apply(*found)

    def pull(self, question: Atom, text: str) -> Bound:
        """Through the function, if it can be inverted."""
        varying = [argument for argument in self.arguments if argument.columns]
        if len(varying) != 1:
            return computed(self, question, text)
        (child,) = varying
        function = self.function
        if function.slack:
            return self._pull_nearly(child, question, text)
        if not function.direction or isinstance(question, Matches):
            return computed(self, question, text)
        if isinstance(question, IsNull | IsNotNull):
            known: Bound = child.pull(question, text)
            beyond = [
                child.pull(Range("", *interval), text) for interval in self._beyond
            ]
            if not beyond:
                return known
            unknown = Unknown(text, "the function may overflow")
            if isinstance(question, IsNull):
                return AnyOf((known, AllOf((AnyOf(tuple(beyond)), unknown))))
            inside = child.pull(Range("", *self._sure), text)
            return AnyOf((inside, AllOf((AnyOf(tuple(beyond)), unknown))))
        return self._pull_range(child, question, text)

    def _pull_range(self, child: Image, question: Atom, text: str) -> Bound:
        match question:
            case OneOf(_, values) | NoneOf(_, values) if len(values) > _MANY:
                hull: Bound = child.pull(IsNotNull(""), text)
                if isinstance(question, OneOf):
                    span = Range("", values[0], successor(values[-1]))
                    hull = self._pull_range(child, span, text)
                return AllOf((hull, computed(self, question, text)))
            case Range(_, low, high):
                wanted: list[Interval] = [(low, high)]
            case OneOf(_, values):
                wanted = [(v, successor(v)) for v in values]
            case NoneOf(_, values):
                edges = [None, *chain(*((v, successor(v)) for v in values)), None]
                wanted = list(zip(edges[::2], edges[1::2], strict=True))
            case _:
                raise AssertionError("a question about NULL is answered before")
        intervals = [self._preimage(interval) for interval in wanted]
        pieces = list(_question_of([i for i in intervals if i is not None]))
        parts = [child.pull(piece, text) for piece in pieces]
        unknown = Unknown(text, "the function may overflow")
        for interval in self._beyond:
            beyond = child.pull(Range("", *interval), text)
            parts.append(AllOf((beyond, unknown)))
        return AnyOf(tuple(parts)) if parts else Known(value=False)

    def _pull_nearly(self, child: Image, question: Atom, text: str) -> Bound:
        unknown = Unknown(text, self.function.reason)
        slack = self.function.slack
        match question:
            case IsNull() | IsNotNull():
                return child.pull(question, text)
            case Range(_, low, high):
                pass
            case OneOf(_, values):
                low, high = values[0], successor(values[-1])
            case _:
                return unknown
        least, most = whole(self.domain)
        if isinstance(low, int):
            low = low - slack if low - slack > least else None
        if isinstance(high, int):
            high = high + slack if high + slack <= most else None
        return AllOf((child.pull(Range("", low, high), text), unknown))

    @cached_property
    def _sure(self) -> Interval:
        """Where the function is sure, as an interval of its argument."""
        (child,) = (a for a in self.arguments if a.columns)
        assert child.domain is not None
        if self.function.span is None:
            return None, None
        low, high = self.function.span
        least, most = whole(child.domain)
        return (low if low > least else None), (high + 1 if high < most else None)

    @cached_property
    def _beyond(self) -> list[Interval]:
        """Where it is not."""
        low, high = self._sure
        below: list[Interval] = [(None, low)] if low is not None else []
        return below + ([(high, None)] if high is not None else [])

    def _preimage(self, wanted: Interval) -> Interval | None:
        """The argument's values whose result is wanted, None if there is none."""
        low, high = wanted
        if self.function.direction > 0:
            start = None if low is None else self._first(low)
            stop = None if high is None else self._first(high)
            if low is not None and start is None:
                return None  # nothing is that large
        else:
            start = None if high is None else self._first(high)
            stop = None if low is None else self._first(low)
            if high is not None and start is None:
                return None
        begin, end = self._sure
        start = start if start is not None else begin
        stop = stop if stop is not None else end
        if start is not None and start == begin:
            start = begin
        if start is not None and stop is not None and start >= stop:  # type: ignore[operator]
            return None
        return start, stop

    def _first(self, bound: Value) -> Value | None:
        """The least argument on the far side of ``bound``, None if there is none.

        Rising: the first whose result is at least it; falling: the first below it.
        """
        function = self.function
        at, child = next((i, a) for i, a in enumerate(self.arguments) if a.columns)
        if function.least is not None:
            assert isinstance(bound, bytes)
            return function.least(bound)
        assert child.domain is not None
        low, high = function.span or whole(child.domain)
        constants = [a.value(None) if not a.columns else None for a in self.arguments]

        def reached(value: int) -> bool:
            constants[at] = to_plain(child_domain, value)
            result = from_plain(function.domain, function.apply(*constants))
            at_least: bool = result >= bound  # type: ignore[operator]
            return at_least == (function.direction > 0)

        child_domain = child.domain
        stop = high + 1
        while low < stop:
            middle = (low + stop) // 2
            if reached(middle):
                stop = middle
            else:
                low = middle + 1
        return low if low <= high else None


@dataclass(frozen=True)
class Choice:
    """One branch of a CASE: its condition, and that it is not TRUE, bound."""

    condition: Bound
    otherwise: Bound
    image: Image


@dataclass(frozen=True)
class CaseImage:
    """The value of the first branch whose condition is TRUE."""

    domain: Domain
    choices: tuple[Choice, ...]
    default: Image
    columns: tuple[ColumnImage, ...]
    expression: str

    def value(self, value: Value | None) -> Plain | None:
        """That of the branch that this value takes."""
        for choice in self.choices:
            taken = judged(choice.condition, value)
            if taken is None:
                raise UnsureError
            if taken:
                return choice.image.value(value)
        return self.default.value(value)

    def pull(self, question: Atom, text: str) -> Bound:
        """Branch by branch: the conditions before it are not TRUE, and its own is."""
        parts: list[Bound] = []
        before: list[Bound] = []
        for choice in self.choices:
            found = self._branch(choice.image, question, text)
            parts.append(AllOf((*before, choice.condition, found)))
            before.append(choice.otherwise)
        parts.append(AllOf((*before, self._branch(self.default, question, text))))
        return AnyOf(tuple(parts))

    def _branch(self, image: Image, question: Atom, text: str) -> Bound:
        if isinstance(image, ConstantImage):
            return _settled(question, self.domain, image.plain, text)
        return image.pull(question, text)


def _settled(
    question: Atom, domain: Domain | None, plain: Plain | None, text: str
) -> Bound:
    found = answer(question, domain, plain)
    return Unknown(text, "text that is no UTF-8") if found is None else Known(found)


def computed(image: Image, question: Atom, text: str) -> Bound:
    """The question as a test of the one column that ``image`` takes."""
    if len(image.columns) != 1:
        return Unknown(text, "a function of several columns")
    (column,) = image.columns

    def test(value: Value | None) -> bool | None:
        try:
            return answer(question, image.domain, image.value(value))
        except (UnsureError, ArithmeticError):
            return None

    remembered = Remembered(test)
    return Computed(column.name, image.expression, question, text, remembered)


class Remembered:
    """A test of a value that remembers its answers, and is pickled without them."""

    def __init__(self, test: Callable[[Value | None], bool | None]) -> None:
        self._test = test
        self._remembered = lru_cache(_REMEMBERED)(test)

    def __call__(self, value: Value | None) -> bool | None:
        """The answer of the test."""
        return self._remembered(value)

    def __reduce__(self) -> tuple[Any, ...]:
        return Remembered, (self._test,)


def answer(question: Atom, domain: Domain | None, plain: Plain | None) -> bool | None:
    """Whether ``question`` is TRUE for one value; None is "may be"."""
    if plain is None or domain is None:
        return isinstance(question, IsNull)
    value = from_plain(domain, plain)
    match question:
        case Matches(_, pattern, negated):
            assert isinstance(value, bytes)
            return matches(pattern, value, negated=negated)
        case Range(_, low, high):
            return _between(value, low, high)
        case OneOf(_, values):
            return value in values
        case NoneOf(_, values):
            return value not in values
        case IsNull():
            return False
        case IsNotNull():
            return True
        case _:
            assert_never(question)


def judged(tree: Bound, value: Value | None) -> bool | None:
    """Whether ``tree``, over one column alone, is TRUE where it has this value.

    None is "may be"; FALSE and UNKNOWN are both "is not TRUE".
    """
    match tree:
        case AllOf(children):
            found = [judged(child, value) for child in children]
            return False if False in found else None if None in found else True
        case AnyOf(children):
            found = [judged(child, value) for child in children]
            return True if True in found else None if None in found else False
        case Leaf(atom):
            return _atom_holds(atom, value)
        case Computed():
            return tree.test(value)
        case Known(known):
            return known
        case Unknown():
            return None
        case _:
            assert_never(tree)


def _atom_holds(atom: Atom, value: Value | None) -> bool | None:
    match atom:
        case IsNull():
            return value is None
        case IsNotNull():
            return value is not None
        case _ if value is None:
            return False
        case Range(_, low, high):
            return _between(value, low, high)
        case OneOf(_, values):
            return value in values
        case NoneOf(_, values):
            return value not in values
        case Matches(_, pattern, negated):
            assert isinstance(value, bytes)
            return matches(pattern, value, negated=negated)
        case _:
            assert_never(atom)


def merged_columns(images: Sequence[Image]) -> tuple[ColumnImage, ...]:
    """The columns of all of them, each once."""
    every = chain.from_iterable(image.columns for image in images)
    return tuple({column.name: column for column in every}.values())


def argument_of(image: Image) -> Argument:
    """What a resolver may know of ``image``."""
    if image.columns:
        return Argument(image.domain)
    return Argument(image.domain, is_constant=True, value=image.value(None))


def pulled(tree: Bound, image: Image) -> Bound:
    """``tree``, whose leaves ask about ``image``'s value, over the columns."""
    match tree:
        case AllOf(children) | AnyOf(children):
            return type(tree)(tuple(pulled(child, image) for child in children))
        case Leaf(atom, text):
            return image.pull(atom, text)
        case Computed(question=question, text=text):
            return image.pull(question, text)
        case Known() | Unknown():
            return tree
        case _:
            assert_never(tree)


def _between(value: Value, low: Value | None, high: Value | None) -> bool:
    above: bool = low is None or value >= low  # type: ignore[operator]
    return above and (high is None or value < high)  # type: ignore[operator]


def _ranged(
    column: ColumnImage, low: Value | None, high: Value | None, text: str
) -> Bound:
    if low is not None and high == successor(low):
        return Leaf(OneOf(column.name, (low,)), text)
    if low is None and high is None:
        return Leaf(IsNotNull(column.name), text)
    return Leaf(Range(column.name, low, high), text)


def _question_of(intervals: Sequence[Interval]) -> Iterator[Atom]:
    """Questions whose union is the union of the intervals."""
    single: list[Value] = []
    for low, high in sorted(intervals, key=lambda i: (i[0] is not None, i[0])):
        if low is not None and high == successor(low):
            single.append(low)
        else:
            yield Range("", low, high)
    if single:
        yield OneOf("", tuple(single))
