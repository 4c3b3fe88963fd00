"""Mutants of ``expressions``."""

from __future__ import annotations

from typing import Final

from tests.heavy.mutants.mutant import Mutant

_TREES: Final = (
    "tests/expressions/test_predicate.py",
    "tests/planner/test_soundness.py",
)
_BIND: Final = (
    "tests/conditions/binding/test_binder.py",
    "tests/planner/test_soundness.py",
)
_PLANS: Final = ("tests/planner/test_plan.py", "tests/planner/test_soundness.py")
_DOMAIN: Final = ("tests/expressions/test_domain.py", "tests/planner/test_soundness.py")

EXPRESSIONS: Final = (
    Mutant(
        "like-of-short-values",
        "expressions.patterns._in_bulk",
        "n_needed -= pattern.count(Wildcard.ANY_TEXT)",
        "pass",
        "a value that is as long as the pattern needs is taken for too short",
        ("tests/expressions/test_patterns.py",),
    ),
    Mutant(
        "place-in-a-list",
        "expressions.atoms._is_at",
        "bisect_left(values, value)",
        "max(bisect_left(values, value) - 1, 0)",
        "a value is looked for beside its place in a list",
        ("tests/expressions/test_atoms.py",),
    ),
    Mutant(
        "slice-backwards",
        "expressions.atoms.IntegerSet",
        "i.step is None or i.step > 0",
        "True",
        "a set that descends is taken for one that ascends",
        ("tests/expressions/test_atoms.py",),
    ),
    Mutant(
        "one-side-is-known",
        "expressions.bounds.Bounds.__or__",
        "self.lower is self.upper and other.lower is other.upper",
        "self.lower is self.upper or other.lower is other.upper",
        "rows that may match one side of an OR are taken for sure",
        ("tests/indexes/test_contract.py",),
    ),
    Mutant(
        "de-morgan",
        "expressions.predicate.push_not",
        "return disjunction(parts) if negate else conjunction(parts)",
        "return conjunction(parts)",
        "NOT of an AND keeps the AND",
        _TREES,
    ),
    Mutant(
        "de-morgan-or",
        "expressions.predicate.push_not",
        "return conjunction(parts) if negate else disjunction(parts)",
        "return disjunction(parts)",
        "NOT of an OR keeps the OR",
        _TREES,
    ),
    Mutant(
        "not-less",
        "expressions.operators.NEGATED",
        "Operator.LT: Operator.GE",
        "Operator.LT: Operator.GT",
        "NOT (v < x) taken for v > x",
        _TREES,
    ),
    Mutant(
        "not-in-stays-in",
        "expressions.predicate.push_not",
        "return replace(tree, negated=not tree.negated)",
        "return tree",
        "NOT above IN, LIKE and IS NULL is dropped",
        _TREES,
    ),
    Mutant(
        "or-of-lowers",
        "expressions.bounds.Bounds.__or__",
        "return Bounds(self.lower | other.lower, self.upper | other.upper)",
        "return Bounds(self.lower & other.lower, self.upper | other.upper)",
        "OR takes the AND of the certain rows: sound, and no longer tight",
        _PLANS,
    ),
    Mutant(
        "or-of-uppers",
        "expressions.bounds.Bounds.__or__",
        "return Bounds(self.lower | other.lower, self.upper | other.upper)",
        "return Bounds(self.lower | other.lower, self.upper & other.upper)",
        "OR keeps what both sides may match: ClickHouse 119528",
        _PLANS,
    ),
    Mutant(
        "and-of-lowers",
        "expressions.bounds.Bounds.__and__",
        "return Bounds(self.lower & other.lower, self.upper & other.upper)",
        "return Bounds(self.lower | other.lower, self.upper & other.upper)",
        "AND is certain where one side is",
        _PLANS,
    ),
    Mutant(
        "refine-lowers",
        "expressions.bounds.Bounds.refine",
        "return Bounds(self.lower | other.lower, self.upper & other.upper)",
        "return Bounds(self.lower & other.lower, self.upper & other.upper)",
        "two sources agree on what is certain: sound, and no longer tight",
        _PLANS,
    ),
    Mutant(
        "prefix-end",
        "expressions.atoms.after_prefix",
        "return stem[:-1] + bytes([stem[-1] + 1]) if stem else None",
        "return stem if stem else None",
        "the end of a prefix is the prefix: C-7 for LIKE",
        _BIND,
    ),
    Mutant(
        "negative-zero",
        "expressions.domain._float_keys",
        "doubles = wide.fill_null(0.0).to_numpy() + 0.0",
        "doubles = wide.fill_null(0.0).to_numpy().copy()",
        "-0.0 is another value than 0.0: trap C-4",
        _DOMAIN,
    ),
    Mutant(
        "nan-below",
        "expressions.domain._float_keys",
        "keys[nan] = NAN",
        "keys[nan] = -NAN",
        "NaN is the least value: trap C-1",
        _DOMAIN,
    ),
    Mutant(
        "decimal-sign",
        "expressions.domain._sortable_decimals",
        "keys[:, 0] = words[:, 1].view(np.uint64) ^ np.uint64(1 << 63)",
        "keys[:, 0] = words[:, 1].view(np.uint64)",
        "large negative decimals are above the positive ones: trap C-15",
        _DOMAIN,
    ),
    Mutant(
        "scale-in-tag",
        "expressions.domain.Domain.tag",
        'return f"{self.name}:{self.scale}" if "decimal" in self.name else self.name',
        "return self.name",
        "an index of another scale is of the same domain: traps C-15, C-20",
        _DOMAIN,
    ),
    Mutant(
        "decimal-low-word",
        "expressions.domain._unscaled",
        "np.where(high == low >> 63, low, np.where(high < 0, INT64_MIN, INT64_MAX))",
        "low",
        "of a decimal longer than its table's type only the low 64 bits are taken",
        ("tests/expressions/test_domain.py",),
    ),
)
