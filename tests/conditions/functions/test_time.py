"""Planning takes as many steps as the predicate is large, and no more: none explodes.

Steps are calls of functions, which a profiler counts; seconds would tell of the
machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from skipindex import col
from skipindex.conditions.bound_predicate import leaves
from skipindex.conditions.sql.parser import parse
from skipindex.expressions import Predicate, shallow, to_sql
from tests.quick_run import examples
from tests.tables import build, put_all


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> sx.Table:
    files = [
        {
            "v": [k, k + 1],
            "w": [k + 5, None],
            "s": ["ab", None],
            "b": [k > 0, None],
            "d": [k / 2, 1.5],
            "st": pa.array([{"x": k}, None]),
        }
        for k in range(3)
    ]
    return build(put_all(tmp_path_factory.mktemp("time"), files), {"*": "bitmap"})


def steps(run: Callable[[], object]) -> int:
    """How many functions ``run`` calls."""
    seen = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal seen
        seen += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(before)
    return seen


def whole_plan(table: sx.Table, predicate: str | Predicate) -> None:
    """A plan and all that it can say."""
    plan = table.plan(predicate, timezone="UTC")
    plan.explain()
    plan.to_dict()


def nested(opening: str, inner: str, closing: str) -> Callable[[int], str]:
    return lambda n: opening * n + inner + closing * n


GROWING: dict[str, Callable[[int], str]] = {
    "sum": lambda n: "v" + " + 1" * n + " = 7",
    "difference": lambda n: "1 - (" * n + "v" + ")" * n + " = 7",
    "product": lambda n: "v" + " * -2" * n + " IS NULL",
    "sum of doubles": lambda n: "d" + " + 0.5D" * n + " NOT IN (1D, 2D)",
    "several columns": lambda n: "v" + " + w" * n + " = 7",
    "text": lambda n: "s" + " || 'x'" * n + " = 'a'",
    "casts": lambda n: "v" + "::bigint::int" * n + " = 1",
    "negatives": lambda n: "- " * n + "v < 1",
    "functions": nested("upper(trim(", "s", "))"),
    "coalesce": nested("coalesce(", "v", ", 1)"),
    "coalesce of columns": nested("coalesce(", "v", " + 1, w)"),
    "nvl": nested("nvl(v + 1, ", "w", ")"),
    "nullif": nested("nullif(", "v", ", 3)"),
    "greatest": nested("greatest(", "v", " + 1, w)"),
    "least": nested("least(w, ", "v", " - 1)"),
    "if": nested("if(v > 1, ", "v", ", w)"),
    "case in value": nested("(CASE WHEN v > 0 THEN ", "v", " ELSE 3 END + 1)"),
    "case in else": nested("CASE WHEN v = 1 THEN 2 ELSE ", "w", " END"),
    "case in condition": nested("CASE WHEN ", "v", " = 1 THEN 1 ELSE 0 END"),
    "simple case": nested("CASE ", "v", " WHEN 1 THEN 2 WHEN 2 THEN 3 END"),
    "is null": lambda n: "(" * n + "v = 1" + " IS NULL)" * n,
    "is true": lambda n: "(" * n + "v = 1" + ") IS NOT TRUE" * n,
    "equals true": lambda n: "(" * n + "v = 1" + ") <=> TRUE" * n,
    "condition in if": nested("if(", "b", ", v > 1, w > 1)"),
    "condition in coalesce": nested("coalesce(", "v > 1", ", b)"),
    "case of branches": lambda n: (
        "CASE "
        + " ".join(f"WHEN v = {k} THEN 'n{k}'" for k in range(n))
        + " END = 'n1'"
    ),
    "case of values": lambda n: (
        "CASE " + " ".join(f"WHEN v < {k} THEN w + {k}" for k in range(n)) + " END = 7"
    ),
    "case of conditions": lambda n: (
        "CASE " + " ".join(f"WHEN v = {k} THEN w > {k}" for k in range(n)) + " END"
    ),
    "case of a term": lambda n: (
        "CASE v + 1 " + " ".join(f"WHEN {k} THEN {k}" for k in range(n)) + " END = 7"
    ),
    "coalesce of many": lambda n: f"coalesce({', '.join(['w + 1'] * n)}) = 1",
    "greatest of many": lambda n: f"greatest({', '.join(['w + 1'] * n)}) = 1",
    "or": lambda n: " OR ".join(f"v = {k}" for k in range(n)),
    "and": lambda n: " AND ".join(f"v <> {k}" for k in range(n)),
    "or of functions": lambda n: " OR ".join(f"(v + {k}) % 7 = 1" for k in range(n)),
    "and of patterns": lambda n: " AND ".join(f"s NOT LIKE '%{k}%b'" for k in range(n)),
    "ranges": lambda n: " AND ".join(f"v < {k + 5}" for k in range(n)),
    "parentheses": nested("(", "v = 1", " AND w > 1)"),
    "not": nested("NOT (", "v = 1", ")"),
    "alternating": lambda n: (
        "(" * n
        + "v = 1"
        + "".join(f" AND w > {k})" if k % 2 else f" OR w = {k})" for k in range(n))
    ),
    "unknown": lambda n: " OR ".join(f"f(v, {k}) = 1" for k in range(n)),
    "list": lambda n: f"v IN ({', '.join(map(str, range(n + 1)))})",
}
_COMPARED = {"functions": " = 'A'", "condition in if": "", "condition in coalesce": ""}


def condition(name: str, n: int) -> str:
    text = GROWING[name](n)
    is_value = text.startswith(("coalesce(", "nvl(", "nullif(", "greatest(", "least("))
    is_value |= text.startswith(("if(v", "(CASE", "CASE WHEN CASE", "CASE CASE"))
    is_value |= name in {"case in else", "case in condition", "simple case"}
    plain = name not in _COMPARED and is_value and " of many" not in name
    return text + (" = 2" if plain else _COMPARED.get(name, ""))


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "sizes",
    [(4, 16, 64), pytest.param((8, 32, 128), marks=pytest.mark.slow)],
    ids=["to 64", "to 128"],
)
@pytest.mark.parametrize("name", GROWING)
def test_steps_grow_with_the_predicate(
    table: sx.Table, name: str, sizes: tuple[int, ...]
) -> None:
    """Up to a budget: no step of growth takes more than a few thousand a character."""
    whole_plan(table, condition(name, 1))
    for n in sizes:
        text = condition(name, n)
        taken = steps(lambda text=text: whole_plan(table, text))  # type: ignore[misc]
        assert taken < 20_000 + 4_000 * len(text), (name, n)


@examples(30)
@given(st.data())
def test_drawn_functions_of_functions_take_bounded_steps(
    table: sx.Table, data: st.DataObject
) -> None:
    forms = [
        *(
            "({0} + 1)",
            "coalesce({0}, w)",
            "greatest({0}, {0})",
            "(- {0})",
            "nvl(w, {0})",
        ),
        *("CASE WHEN {0} > 1 THEN {0} ELSE w END", "if({0} = 1, w, {0})", "{0} % 7"),
        *("nullif({0}, 3)", "CASE {0} WHEN 1 THEN 2 ELSE {0} END", "abs({0})"),
        *("({0} * 3)", "(1 - {0})", "least({0}, 7)", "int({0})", "(({0} > 1) IS NULL)"),
    ]
    text = "v"
    for form in data.draw(st.lists(st.sampled_from(forms), max_size=9)):
        text = form.replace("{0}", text)
        if len(text) > 4000:
            break
    text += " = 3"
    taken = steps(lambda: whole_plan(table, text))
    # Three levels of nullif write their operand eight times in few characters.
    assert taken < 60_000 + 4_000 * len(text), text


@pytest.mark.parametrize(
    "n", [1000, *(pytest.param(n, marks=pytest.mark.slow) for n in (50, 300, 3000))]
)
def test_any_depth_is_planned(table: sx.Table, n: int) -> None:
    def builder(n: int, *, negated: bool) -> Predicate:
        found: Any = col("v") == 1
        for k in range(n):
            found = found & (col("w") < k + 50) if k % 2 else found | (col("v") == -k)
            found = ~found if negated else found
        return found

    for negated in (False, True):
        tree = builder(n, negated=negated)
        whole_plan(table, tree)
        assert to_sql(tree).count("w < ") == n // 2
        assert to_sql(parse(to_sql(tree))).count("w < ") == n // 2
    for name in ("parentheses", "not", "alternating", "is null", "sum", "coalesce"):
        whole_plan(table, condition(name, n))
    whole_plan(table, "(" * n + "v" + ")" * n + " = 1")
    whole_plan(table, "abs(" * n + "v" + ")" * n + " = 1")
    whole_plan(table, "CASE WHEN v = 1 THEN 1 ELSE " * n + "2" + " END" * n + " = 1")


def test_what_is_shallow_is_judged_as_it_is() -> None:
    tree = parse("a = 1 AND (b = 2 OR NOT (c = 3 AND d = 4))")
    assert shallow(tree) is tree
    cut = shallow(tree, 2)
    assert to_sql(cut) == "a = 1 AND (b = 2 OR NOT (c = 3 AND d = 4))"
    assert "Unsupported" in repr(cut)


def test_deep_conditions_still_skip_files(table: sx.Table) -> None:
    for n in (10, 35):
        assert table.plan(f"v{' + 1' * n} = {n}").paths == ["0.parquet"]
    assert table.plan(condition("coalesce", 20)).paths == ["1.parquet", "2.parquet"]
    assert table.plan(condition("parentheses", 300)).paths == ["1.parquet"]
    plan = table.plan(condition("case of branches", 1000))
    assert plan.paths == ["0.parquet", "1.parquet"]
    assert len(list(leaves(plan.tree))) < 3000


def test_fields_of_structs_in_functions(table: sx.Table) -> None:
    for text in (
        "coalesce(st.x, 9) = 1",
        "if(st.x = 1, 1, 0) = 1",
        "CASE WHEN st.x = 1 THEN 'a' ELSE 'b' END = 'a'",
        "CASE st.x WHEN 1 THEN v END = 1",
        "nullif(st.x, 0) = 1",
        "greatest(st.x, 1) = st.x",
    ):
        plan = table.plan(text)
        assert "1.parquet" in plan.paths
    assert table.plan("coalesce(st.x, 9) = 1").paths == ["1.parquet"]


def test_hidden_columns_keep_the_files(table: sx.Table) -> None:
    for text in ("_metadata.file_name = 'a'", "upper(_METADATA.file_path) = 'A'"):
        plan = table.plan(text)
        assert len(plan.paths) == 3
        assert "hidden column" in plan.conditions[0].reason
    assert table.plan("_metadata.row_index = 0 AND v = 3").paths == ["2.parquet"]
    assert len(table.plan("user = 'me'").paths) == 3
    with pytest.raises(sx.PredicateError):
        table.plan("metadata.file_name = 'a'")


def test_lists_sets_and_series_of_keys(table: sx.Table) -> None:
    pd = pytest.importorskip("pandas")
    wanted = table.plan("v IN (0, 1)").paths
    for keys in (
        [0, 1],
        (0, 1),
        {0, 1},
        frozenset({0, 1}),
        pd.Series([0, 1]),
        range(2),
    ):
        assert table.plan(col("v").isin(keys)).paths == wanted
        assert table.plan(~col("v").isin(keys)).paths == ["1.parquet", "2.parquet"]
    assert table.plan(col("s").isin({"ab", "zz"})).where == "s IN ('ab', 'zz')"
    assert table.plan(col("v").isin([])).paths == []
    assert table.plan(col("s").isin(pd.Series(["ab"]))).count_bounds == (3, 3)
    assert str(col("s").isin("ab")) == "s IN ('ab')"
