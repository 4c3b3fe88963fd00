"""Tables of figures, and what missed its limit."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import _report
from benchmarks._report import (
    Measure,
    best_seconds,
    show,
    table_of,
)


def test_every_benchmark_can_be_run() -> None:
    for name in command.names():
        tree = ast.parse((Path(command.__file__).parent / f"{name}.py").read_text())
        assert any(getattr(node, "name", "") == "main" for node in tree.body), name


@pytest.fixture(autouse=True)
def nothing_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_report, "_missed", [])


def test_a_measure_is_judged_by_its_ratio() -> None:
    slow = Measure(what="build", figure=50, unit="M rows/s", limit=100, at_least=True)
    assert (slow.ratio, slow.badness, slow.verdict) == (0.5, 2, "missed")
    quick = Measure(what="plan", figure=5, unit="ms", limit=10)
    assert (quick.ratio, quick.badness, quick.verdict) == (0.5, 0.5, "ok")
    assert Measure(what="size", figure=5).verdict == ""
    assert Measure(what="lost", figure=0, limit=0).verdict == "ok"
    assert Measure(what="lost", figure=1, limit=0).verdict == "missed"


def test_a_table_tells_figure_limit_ratio_and_verdict() -> None:
    measures = [
        Measure(what="build", figure=50, unit="M/s", limit=100, at_least=True),
        Measure(what="size", figure=1234.5, unit="B", note="one column"),
    ]
    lines = table_of("kernels", measures).splitlines()
    assert lines[0] == "kernels"
    assert lines[3].split() == [
        "build",
        "50",
        "M/s",
        ">=",
        "100",
        "M/s",
        "0.5",
        "missed",
    ]
    assert lines[4].split() == ["size", "1,234", "B", "one", "column"]


def test_every_module_without_an_underscore_is_a_benchmark(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "sizes" in command.names()
    assert not [name for name in command.names() if name.startswith("_")]
    with pytest.raises(SystemExit):
        command.main(["nope"])
    assert "no benchmark 'nope'" in capsys.readouterr().err
    monkeypatch.setattr(
        "benchmarks.sizes.main",
        lambda: show("plan", [Measure("one", 3, limit=1), Measure("two", 1, limit=1)]),
    )
    assert command.main(["sizes"]) == 0, "a slow one is told, and no error"
    assert capsys.readouterr().out.endswith("\nmissed: plan: one\n")


def test_the_first_call_is_not_counted() -> None:
    calls: list[int] = []
    assert best_seconds(lambda: calls.append(1), rounds=4) < 1
    assert len(calls) == 5
