"""The conditions that judge candidate indexes: a workload, or random likely ones.

Without a workload, questions are drawn that such a table may be asked.  Each column is
asked alone, for ``=`` and for a range, and together with one or two others.  All
literals of a question are those of one row of the sample, so that values occur
together, such as a city and its nation.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from skipindex.advice.sample import Sample, SampledColumn
from skipindex.conditions.binding.binder import Binder
from skipindex.conditions.bound_predicate import (
    AllOf,
    BoundPredicate,
    Computed,
    Leaf,
    leaves,
    text_of,
    unknowns,
    with_leaves,
)
from skipindex.conditions.functions.zones import ZoneRules, offsets_here, relying_on
from skipindex.conditions.simplify import simplify
from skipindex.conditions.sql.parser import parse as parse_condition
from skipindex.errors import AdviceError, PredicateError, first_line
from skipindex.expressions.atoms import Atom, OneOf, Range, successor
from skipindex.indexes.encoding.column import NULL_CODE
from skipindex.table import TableState

_SEED: Final = 1994
_TOGETHER: Final = 16
"""Number of sample conditions over several columns, for each column."""
_VARIANTS: Final = 3
_VARIANT_WEIGHT: Final = 0.3
"""How many variants each question of a workload has, and what they count together."""

_PLACES: Final = 64
"""Rows that literals are taken from."""

_KEY_VALUES: Final = 1000
"""A column with more distinct values in a file is taken for a key or a measure.  It is
asked for less often than a column that rows are grouped by."""

_GROUPED_OFTEN: Final = 8
"""How many times more often a column with fewer values is drawn."""

_SHARES: Final = (0.003, 0.03, 0.1)
"""What parts of the rows a drawn range takes."""

_QUOTED: Final = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"")
_WORDS: Final = re.compile(r"(?:`[^`]+`|[^\W\d]\w*)(?:\.(?:`[^`]+`|\w+))*")
_SELECT: Final = re.compile(r"\s*(?:SELECT|WITH|FROM)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Question:
    """One question: a bound tree, and how much it counts."""

    text: str
    tree: BoundPredicate
    weight: float = 1.0


def conditions_of(sql: str) -> list[str]:
    """The conditions of a text: statements between ``;``, each a SELECT or a WHERE.

    The condition of a SELECT is the WHERE of its outermost query, without the names of
    tables before columns.  A SELECT without a WHERE is omitted.
    """
    wheres = (_where_of(s) if _SELECT.match(s) else s for s in _statements(sql))
    return [where for where in wheres if where is not None]


def _where_of(statement: str) -> str | None:
    """The condition of a SELECT; None if it has no WHERE."""
    try:
        from sqlglot import errors, exp, parse_one  # noqa: PLC0415 (an extra)
    except ImportError as error:
        reason = "sqlglot is not installed (type: pip install 'skipindex[sql]')"
        raise AdviceError(f"cannot read {statement!r}: {reason}") from error
    try:
        tree = parse_one(statement, read="spark")
    except (errors.SqlglotError, ValueError) as error:
        reason = first_line(error)
        raise PredicateError(f"cannot read {statement!r}: {reason}") from error
    where = tree.args.get("where")
    tables = {t.alias_or_name.lower() for t in tree.find_all(exp.Table)}
    for column in where.find_all(exp.Column) if where else ():
        if column.table.lower() in tables:
            column.set("table", None)
    return where and where.this.sql(dialect="spark")


def _statements(sql: str) -> list[str]:
    """The texts between ``;`` that stand neither in quotes nor in comments."""
    pieces, start = [], 0
    skip = r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|/\*.*?\*/"
    cleaned = []
    for match in re.finditer(rf"{skip}|;", sql, re.DOTALL):
        mark = match.group()
        if mark.startswith(("--", "/*")):
            cleaned.append(sql[start : match.start()] + " ")
        elif mark == ";":
            pieces.append("".join([*cleaned, sql[start : match.start()]]))
            cleaned = []
        else:
            continue
        start = match.end()
    pieces.append("".join([*cleaned, sql[start:]]))
    return [text for piece in pieces if (text := piece.strip())]


@dataclass(slots=True)
class BoundWorkload:
    """The questions of a workload.

    Args:
        questions: that can be asked of the table.
        notes: on those that cannot.
        not_judged: columns that conditions name which no index can judge, and why.
    """

    questions: list[Question] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    not_judged: dict[str, str] = field(default_factory=dict)


def bind_workload(
    table: TableState, queries: Iterable[str], *, timezone: str | None
) -> BoundWorkload:
    """The questions of a workload, and what of it cannot be asked here."""
    binder = Binder(table.resolve, timezone)
    result = BoundWorkload()
    for query in queries:
        for text in conditions_of(query):
            try:
                with relying_on(ZoneRules(offsets_here)):
                    tree = simplify(binder.bind(parse_condition(text)))
            except PredicateError as error:
                reason = first_line(error)
                result.notes.append(f"query {text!r} ignored: {reason}")
                for name in names_in(table, text):
                    result.not_judged.setdefault(name, "its query was ignored")
                continue
            result.questions.append(Question(text, tree))
            for one in unknowns(tree):
                for name in names_in(table, one.text):
                    result.not_judged.setdefault(name, one.reason)
    return result


def names_in(table: TableState, text: str) -> Iterator[str]:
    """The columns of the table that a condition names, as far as its words tell."""
    for word in _WORDS.findall(_QUOTED.sub(" ", text)):
        with suppress(PredicateError):
            yield table.find(word).name


def columns_of(questions: Iterable[Question]) -> set[str]:
    """The columns that the questions ask an index about."""
    return {leaf.column for q in questions for leaf in leaves(q.tree)}


def sample_questions(sample: Sample) -> list[Question]:
    """Likely questions; the same ones for the same sample."""
    chooser = random.Random(_SEED)
    columns = [c for c in sample.columns.values() if c.n_distinct > 1]
    if not columns:
        return []
    places = []
    for i in range(_PLACES):
        file = i % len(sample.files)
        places.append((file, chooser.randrange(sample.n_rows[file])))
    questions = []
    for column in columns:
        for ranged in (False, True):  # a key is looked up
            leaf = _leaf(column, *chooser.choice(places), chooser, ranged=ranged)
            if leaf is not None:
                weight = 2.0 if column.n_distinct > _KEY_VALUES and not ranged else 1.0
                questions.append(Question(leaf.text, leaf, weight))
    often = [_GROUPED_OFTEN if c.n_distinct <= _KEY_VALUES else 1 for c in columns]
    for _ in range(_TOGETHER * len(columns)):
        together = set(chooser.choices(range(len(columns)), often, k=3))
        # Values of one row, or of two: each is then in many files, and together in few.
        rows = chooser.choices(places, k=chooser.choice((1, 2)))
        result = [
            _leaf(
                columns[i],
                *chooser.choice(rows),
                chooser,
                ranged=_is_ranged(columns[i], chooser),
            )
            for i in sorted(together)
        ]
        conditions = tuple(leaf for leaf in result if leaf is not None)
        if len(conditions) > 1:
            tree = AllOf(conditions)
            questions.append(Question(text_of(tree), tree, weight=4 / _TOGETHER))
    return questions


def vary_literals(
    questions: Sequence[Question], sample: Sample, seed: int = _SEED
) -> list[Question]:
    """Questions of the same shapes as ``questions``, with literals of the sample.

    They count little, and make a choice that also serves tomorrow's literals.
    """
    chooser = random.Random(seed)
    result = []
    for question in questions if sample.columns else ():
        for _ in range(_VARIANTS):
            place = _place(sample, chooser)

            def varied(
                leaf: Leaf | Computed, place: tuple[int, int] = place
            ) -> BoundPredicate:
                if isinstance(leaf, Leaf) and leaf.column in sample.columns:
                    return _like(leaf, sample, place, chooser)
                return leaf

            tree = simplify(with_leaves(question.tree, varied))
            weight = _VARIANT_WEIGHT * question.weight / _VARIANTS
            result.append(Question(text_of(tree), tree, weight))
    return result


def _place(sample: Sample, chooser: random.Random) -> tuple[int, int]:
    file = chooser.randrange(len(sample.files))
    return file, chooser.randrange(sample.n_rows[file])


def _like(
    leaf: Leaf, sample: Sample, place: tuple[int, int], chooser: random.Random
) -> Leaf:
    """The same question about other values; the first is that of the row ``place``."""
    column = sample.columns[leaf.atom.column]
    file, row = place
    values = column.files[file]
    code = int(values.codes[row])
    if code == NULL_CODE:
        return leaf
    value = column.value(values, code)
    atom: Atom
    match leaf.atom:
        case OneOf(values=old):
            others = chooser.choices(range(values.n_distinct), k=len(old) - 1)
            new = {value, *(column.value(values, other) for other in others)}
            atom = OneOf(column.name, tuple(sorted(new)))
        case Range(low=None, high=high) if high is not None:
            atom = Range(column.name, None, successor(value))
        case Range(low=low, high=None) if low is not None:
            atom = Range(column.name, value, None)
        case Range(low=low, high=high) if low is not None and high is not None:
            width = column.rank(values, high) - column.rank(values, low)
            last = min(code + max(1, width), values.n_distinct) - 1
            atom = Range(column.name, value, successor(column.value(values, last)))
        case _:
            return leaf
    return Leaf(atom, f"{column.name} as in {leaf.text}")


def _is_ranged(column: SampledColumn, chooser: random.Random) -> bool:
    """Whether to ask for a range: of a measure as often as not, else rarely."""
    return chooser.random() < (0.5 if column.n_distinct > _KEY_VALUES else 0.15)


def _leaf(
    column: SampledColumn, file: int, row: int, chooser: random.Random, *, ranged: bool
) -> Leaf | None:
    """A question that one row answers; None where the row is NULL."""
    values = column.files[file]
    code = int(values.codes[row])
    if code == NULL_CODE:
        return None
    value = column.value(values, code)
    show = column.domain.show
    if not ranged:
        return Leaf(OneOf(column.name, (value,)), f"{column.name} = {show(value)}")
    step = int(chooser.choice(_SHARES) * values.n_distinct)
    last = column.value(values, min(code + step, values.n_distinct - 1))
    atom = Range(column.name, value, successor(last))
    return Leaf(atom, f"{column.name} BETWEEN {show(value)} AND {show(last)}")
