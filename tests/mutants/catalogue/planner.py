"""Mutants of ``planner``."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_TREES: Final = (
    "tests/expressions/test_predicate.py",
    "tests/planner/test_soundness.py",
)
_BIND: Final = (
    "tests/planner/binding/test_binder.py",
    "tests/planner/test_soundness.py",
)
_SIMPLIFY: Final = ("tests/planner/test_simplify.py",)
_PLANS: Final = ("tests/planner/test_plan.py", "tests/planner/test_soundness.py")

PLANNER: Final = (
    Mutant(
        "not-null-safe",
        "planner.binding.comparison.ColumnBinding.comparison",
        "return AnyOf((null, self.comparison(Operator.NE, value)))",
        "return self.comparison(Operator.NE, value)",
        "NOT (v <=> x) loses the NULL rows",
        _TREES,
    ),
    Mutant(
        "unknown-as-empty",
        "planner.bound_predicate.evaluate",
        "Bounds(nothing, everything)",
        "Bounds(nothing, nothing)",
        "a condition that no index can judge is taken for FALSE: trap C-27",
        _PLANS,
    ),
    Mutant(
        "unknown-as-full",
        "planner.bound_predicate.evaluate",
        "Bounds(nothing, everything)",
        "Bounds(everything, everything)",
        "a condition that no index can judge is taken for TRUE",
        _PLANS,
    ),
    Mutant(
        "merge-or-as-and",
        "planner.simplify.merge_disjuncts",
        "_merge(node, [(atoms.OneOf,)], _either)",
        "_merge(node, [(atoms.OneOf,)], _both)",
        "alternatives are merged as if both must hold",
        _SIMPLIFY,
    ),
    Mutant(
        "fold-neutral",
        "planner.simplify.fold_constants",
        "neutral = isinstance(node, AllOf)",
        "neutral = isinstance(node, AnyOf)",
        "a constant is folded into OR as into AND: trap C-28",
        _SIMPLIFY,
    ),
    Mutant(
        "range-end",
        "planner.binding.comparison.ColumnBinding.comparison",
        "return self._range(None, at.gt)",
        "return self._range(None, at.ge)",
        "<= is asked as <",
        _BIND,
    ),
    Mutant(
        "range-start",
        "planner.binding.comparison.ColumnBinding.comparison",
        "return self._least(at.gt)",
        "return self._least(at.ge)",
        "> is asked as >=",
        _BIND,
    ),
    Mutant(
        "not-in-null",
        "planner.binding.binder.Binder._asked",
        "case ex.In(_, values, negated) if negated and _has_null(values):",
        "case ex.In(_, values, negated) if negated and len(values) < 0:",
        "NOT IN ignores a NULL in the list: trap C-25",
        _BIND,
    ),
    Mutant(
        "empty-in",
        "planner.binding.binder.Binder._asked",
        "return TruthValue(negated)",
        "return TruthValue(value=False)",
        "NOT IN () is not TRUE of NULL",
        _BIND,
    ),
    Mutant(
        "list-of-doubles",
        "planner.binding.comparison.ColumnBinding._cast_of_list",
        'return "the list makes Spark cast the column"',
        "pass",
        "a bigint column is compared exactly with a list that Spark casts to double",
        _BIND,
    ),
    Mutant(
        "not-like-infix",
        "planner.binding.comparison.ColumnBinding.like",
        "leaf = self._leaf(atoms.Matches(self.name, pattern, node.negated))",
        "leaf = self._leaf(atoms.Matches(self.name, pattern))",
        "NOT LIKE 'a%b' is asked as if it were LIKE 'a%b'",
        _BIND,
    ),
    Mutant(
        "like-as-prefix",
        "planner.binding.comparison.ColumnBinding.like",
        "case (bytes(prefix), atoms.Wildcard.ANY_TEXT):",
        "case (bytes(prefix), atoms.Wildcard.ANY_TEXT, *_):",
        "LIKE 'a%b' is certain for all that begins with a",
        _BIND,
    ),
    Mutant(
        "decimal-rounded",
        "planner.binding.literal_cuts._decimal",
        "gt = _floor(number, domain.scale) + 1",
        "gt = _floor(number, domain.scale)",
        "a decimal literal is cut one too low",
        ("tests/planner/binding/test_literal_cuts.py",),
    ),
    Mutant(
        "zone-as-utc",
        "planner.binding.literal_cuts._timestamp",
        'return Refusal("it depends on the session\'s time zone: pass timezone=…")',
        'zone = "UTC"',
        "a wall clock is read in UTC where the session's zone is not known: C-19",
        ("tests/planner/binding/test_literal_cuts.py",),
    ),
    Mutant(
        "clocks-exact",
        "planner.binding.literal_cuts._near",
        "return Cut(instant, instant + 1, slack=DAY)",
        "return Cut(instant, instant + 1)",
        "our rules of summer time are taken for those of the session's Java",
        (
            "tests/planner/binding/test_literal_cuts.py",
            "tests/planner/binding/test_binder.py",
        ),
    ),
    Mutant(
        "verify-nothing",
        "planner.verify._judge",
        "0 <= high < most",
        "0 < high < most",
        "a skipped file that holds a match is no violation",
        ("tests/planner/test_verify.py",),
    ),
)
