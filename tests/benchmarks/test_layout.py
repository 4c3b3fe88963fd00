"""The parts of the layout benchmark that need no Spark."""

from __future__ import annotations

import pytest

from benchmarks.layout import ANSWERS, Result, other_queries, table_of, verdict
from skipindex.planner.sql.parser import parse
from ssb.queries import QUERIES


def result(name: str, kept: int, matching: tuple[int, int] = (400, 500)) -> Result:
    own, others = matching
    return Result(
        name, 100, (50_000, 70_000), (kept,) * 13, 12.5, own, 900, others, 3.25
    )


def test_other_literals_ask_the_same_shapes_of_other_values() -> None:
    digits = str.maketrans("", "", "0123456789")
    for query, other in zip(QUERIES, other_queries(), strict=True):
        parse(other.where)
        assert other.where != query.where
        assert other.where.count(" AND ") == query.where.count(" AND ")
        shape = [text.translate(digits) for text in query.where.split("'")[::2]]
        assert shape == [text.translate(digits) for text in other.where.split("'")[::2]]


def test_the_table_has_a_line_for_each_layout_and_its_sums() -> None:
    lines = table_of([result("linear", 40), result("Hilbert", 30)]).splitlines()
    assert len(lines) == 4
    assert lines[1].split()[-4:] == ["400", "900", "500", "3.2"]
    assert lines[1].startswith("linear")
    assert " 520 " in lines[1]
    assert len(lines[0]) == len(lines[1]) == len(lines[2])


def test_the_verdict_names_each_target_that_is_missed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    met = {"linear": 50, "Z-order": 40, "Hilbert": 30, "workload, curve": 15}
    results = [result(name, kept) for name, kept in met.items()]
    answers = result(ANSWERS, 60, (35, 200))
    results.append(answers)
    assert verdict(results, 1.3) == 0
    assert "MISSED" not in capsys.readouterr().out
    assert verdict(results, 1.6) == 1
    assert "Hilbert costs 1.60 of a range partition: MISSED" in capsys.readouterr().out
    results.append(result("delta-rs z_order", 35))
    assert verdict(results, 1.3) == 1
    assert "0.86 of delta-rs: MISSED" in capsys.readouterr().out
    assert verdict([*results[:3], result("workload, curve", 16), answers], 1.3) == 1
    for missed in ((36, 200), (35, 201)):
        capsys.readouterr()
        assert verdict([*results[:4], result(ANSWERS, 60, missed)], 1.3) == 1
        assert capsys.readouterr().out.count("MISSED") == 1
