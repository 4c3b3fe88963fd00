"""The mutants fit the source, and some of them are run; ``make mutants`` runs all."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from skipindex.conditions.simplify import merge_disjuncts
from tests.heavy.mutants import mutant as module
from tests.heavy.mutants.catalogue import BY_NAME, MUTANTS, of
from tests.heavy.mutants.mutant import ROOT, Mutant, mutated
from tests.heavy.mutants.run import applied, survives


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_fits_the_source(mutant: Mutant) -> None:
    compile(mutated(mutant), mutant.module, "exec")
    assert mutant.tests
    assert all((ROOT / test).is_file() for test in mutant.tests)


def test_mutants_have_names_of_their_own() -> None:
    assert len(BY_NAME) == len(MUTANTS)
    assert {len(of(name)) for name in BY_NAME} == {1}
    assert len(of("conditions.simplify")) > len(
        of("conditions.simplify.fold_constants")
    )
    assert of("conditions.simp") == []


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
    if x and y and not isinstance(x, str):
        weigh(y, "it is of no weight")
    return x < y
'''


@pytest.mark.parametrize(
    ("function", "change", "line"),
    [
        ("Scale.weigh", "x<y -> x <= y", "                return ('größer', x <= y)"),
        ("weigh", "x < y -> y", "    return y"),
        ("weigh", "return x < y -> x = y; return y", "    x = y\n    return y"),
        ("weigh", "never x < y", "    return False"),
        ("weigh", "always x < y", "    return True"),
        ("weigh", "drop not isinstance(x, ...)", "    if x and y and True:"),
        ("weigh", "drop weigh(y, ...)", "        pass"),
        ("weigh", "weigh(..., ...) -> weigh(...)", "        weigh(y)"),
        ("weigh", "weigh(..., ...) -> return ...", "        return y"),
        (
            "Scale.weigh",
            "case (int(), None) if x > 0 -> case int(), y",
            "            case [int(), y]:",
        ),
        (
            "SIGNS",
            "{'less': -1, ...: 0, 'more': 1} -> {...: 2}",
            "SIGNS = {'equal': 2}",
        ),
    ],
)
def test_what_is_changed_is_found_by_its_syntax(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
    change: str,
    line: str,
) -> None:
    (tmp_path / "scale.py").write_text(SOURCE)
    monkeypatch.setattr(module, "PACKAGE", tmp_path)
    text = ast.unparse(mutated(Mutant(f"scale.{function}", change, "", ())))
    assert f"\n{line}\n" in f"{text}\n"
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
    gone = Mutant(function, f"drop {old}", "", ())
    with pytest.raises(ValueError, match=f"{function}.* is out of date: .*{complaint}"):
        mutated(gone)


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [
        "conditions.simplify.merge_disjuncts",
        "source.partitions.hive._split",
        "conditions.binding.literal_cuts._decimal",
    ],
)
def test_mutants_are_caught(function: str) -> None:
    assert [survives(mutant) for mutant in of(function)] == [""]


def test_a_mutant_in_this_process_is_there_while_it_is_applied() -> None:
    before = merge_disjuncts.__code__
    [mutant] = of("conditions.simplify.merge_disjuncts")
    with applied(mutant):
        assert merge_disjuncts.__code__ != before
    assert merge_disjuncts.__code__ is before


@pytest.mark.slow
def test_a_harmless_change_survives() -> None:
    same = Mutant(
        "conditions.simplify.unwrap",
        "dict.fromkeys(node.children) -> dict.fromkeys(list(node.children))",
        "nothing is wrong",
        ("tests/conditions/test_simplify.py",),
    )
    assert "passed" in survives(same)
