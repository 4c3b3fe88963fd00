"""The table that benchmarks print."""

from __future__ import annotations

from benchmarks._report import Table, best_seconds


def test_figures_stand_beside_their_limits() -> None:
    table = Table("title")
    table.add("fast", 3.5, "ms", limit=7.0, note="3 files")
    table.add("free", 1234.0, "us")
    title, head, fast, free = str(table).splitlines()
    assert title == "title"
    assert head.split() == ["value", "unit", "limit", "ratio"]
    assert fast.split() == ["fast", "3.5", "ms", "7", "0.50", "3", "files"]
    assert free.split() == ["free", "1,234", "us"]


def test_the_first_call_is_not_counted() -> None:
    calls: list[int] = []
    assert best_seconds(lambda: calls.append(1), rounds=4) < 1
    assert len(calls) == 5
