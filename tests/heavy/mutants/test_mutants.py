"""The mutants fit the source, and some of them are run; ``make mutants`` runs all."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from skipindex.conditions.simplify import merge_disjuncts
from tests.heavy.mutants import mutant as module
from tests.heavy.mutants.catalogue import BY_NAME, MUTANTS
from tests.heavy.mutants.mutant import ROOT, Mutant, Sort, mutated
from tests.heavy.mutants.run import applied, survives


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_fits_the_source(mutant: Mutant) -> None:
    sort = Sort.of(mutant)
    old, new = (sort.parse(text) for text in (mutant.old, mutant.new))
    assert ast.unparse(old) != ast.unparse(new)
    ast.parse(mutated(mutant))
    assert all((ROOT / test).is_file() for test in mutant.tests)


def test_mutants_have_names_of_their_own() -> None:
    assert len(BY_NAME) == len(MUTANTS)


SOURCE = '''
import math

SIGNS = {
    "less": -1,  # below
    "equal": 0, "more": 1,
}

class Scale:
    """Weighs; returns x < y."""

    def weigh(self, x, y):
        """Returns x < y."""
        # x < y
        match (
            x,
            y,
        ):
            case (int(), None) if x > 0:
                x = math.floor(
                    x
                )
                return "größer", x < y
        return x > y

def weigh(x, y):
    return x < y
'''


@pytest.mark.parametrize(
    ("function", "old", "new", "line"),
    [
        (
            "scale.Scale.weigh",
            "x<y",
            "x <= y",
            '                return "größer", (x <= y)',
        ),
        ("scale.weigh", "x < y", "y", "    return (y)"),
        ("scale.weigh", "return x < y", "return y", "    return y"),
        (
            "scale.Scale.weigh",
            "x = math.floor(x)\nreturn ('größer', x < y)",
            "x = y\nreturn y",
            "                x = y\n                return y",
        ),
        (
            "scale.Scale.weigh",
            "case int(), None if x > 0:",
            "case int(), y:",
            "            case int(), y:",
        ),
        ("scale.SIGNS", '"less": -1', '"less": 1', '    "less": 1,  # below'),
        ("scale", "{'less': -1, 'equal': 0, 'more': 1}", "{}", "SIGNS = ({})"),
    ],
)
def test_what_is_replaced_is_found_by_its_syntax(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
    old: str,
    new: str,
    line: str,
) -> None:
    (tmp_path / "scale.py").write_text(SOURCE)
    monkeypatch.setattr(module, "PACKAGE", tmp_path)
    text = mutated(Mutant("m", function, old, new, "", ()))
    assert f"\n{line}\n" in text
    compile(text, "scale.py", "exec")


@pytest.mark.parametrize(
    ("function", "old", "complaint"),
    [
        ("expressions.bounds.Bounds.__or__", "no_such_text", "stands 0 times"),
        ("expressions.bounds.Bounds", "self.lower | other.lower", "stands 2 times"),
        ("expressions.bounds.Bounds.xor", "self.lower", "0 definitions"),
        ("expressions.no_such_module.f", "x", "no module"),
    ],
)
def test_a_mutant_that_does_not_fit_is_out_of_date(
    function: str, old: str, complaint: str
) -> None:
    gone = Mutant("gone", function, old, "other", "", ())
    with pytest.raises(ValueError, match=f"'gone' is out of date: .*{complaint}"):
        mutated(gone)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["merge-or-as-and", "hive-null", "decimal-rounded"])
def test_mutants_are_caught(name: str) -> None:
    assert survives(BY_NAME[name]) == ""


def test_a_mutant_in_this_process_is_there_while_it_is_applied() -> None:
    before = merge_disjuncts.__code__
    with applied(BY_NAME["merge-or-as-and"]):
        assert merge_disjuncts.__code__ != before
    assert merge_disjuncts.__code__ is before


@pytest.mark.slow
def test_a_harmless_change_survives() -> None:
    same = Mutant(
        "same",
        "conditions.simplify.unwrap",
        "dict.fromkeys(node.children)",
        "dict.fromkeys(list(node.children))",
        "nothing is wrong",
        ("tests/conditions/test_simplify.py",),
    )
    assert "passed" in survives(same)
