"""The parts of the layout benchmark that need no Spark."""

from __future__ import annotations

from benchmarks.layout import ANSWERS, Result, other_queries, verdict
from skipindex.conditions.sql.parser import parse
from ssb.queries import QUERIES


def result(name: str, kept: int, matching: tuple[int, int] = (400, 500)) -> Result:
    own, others = matching
    return Result(name, 100, (50_000, 70_000), kept * 13, 12.5, own, 900, others, 3.25)


def test_other_literals_ask_the_same_shapes_of_other_values() -> None:
    digits = str.maketrans("", "", "0123456789")
    for query, other in zip(QUERIES, other_queries(), strict=True):
        parse(other.where)
        assert other.where != query.where
        assert other.where.count(" AND ") == query.where.count(" AND ")
        shape = [text.translate(digits) for text in query.where.split("'")[::2]]
        assert shape == [text.translate(digits) for text in other.where.split("'")[::2]]


def test_each_target_that_is_missed_is_told() -> None:
    met = {"linear": 50, "Z-order": 40, "Hilbert": 30, "workload, curve": 15}
    results = [result(name, kept) for name, kept in met.items()]
    answers = result(ANSWERS, 60, (35, 200))
    assert missed([*results, answers], 1.3) == []
    assert missed([*results, answers], 1.6) == ["Hilbert to a range partition, seconds"]
    delta = result("delta-rs z_order", 35)
    assert missed([*results, answers, delta], 1.3) == ["files of the best curve"]
    wide = [*results[:3], result("workload, curve", 16), answers]
    assert missed(wide, 1.3) == ["files of the workload's curve"]
    for counts, what in (
        ((36, 200), "files of answers together"),
        ((35, 201), "and for other literals"),
    ):
        assert missed([*results, result(ANSWERS, 60, counts)], 1.3) == [what]


def missed(results: list[Result], cost: float) -> list[str]:
    return [one.what for one in verdict(results, cost) if one.verdict == "missed"]
