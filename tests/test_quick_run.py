"""A test that is slow twice in a row fails the quick run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.quick_run import MOST_SECONDS, RUN, QuickRun, examples, is_quick, spread


class Cache(dict[str, Any]):
    """That of pytest."""

    def set(self, name: str, value: object) -> None:
        """Keep a value."""
        self[name] = value


def run(cache: Cache, seconds: dict[str, float], status: int = 0) -> tuple[int, str]:
    """The exit status of a run whose tests take so long, and what it prints."""
    watch = QuickRun(SimpleNamespace(cache=cache))  # type: ignore[arg-type]
    for name, duration in seconds.items():
        for when in ("setup", "call"):
            report = SimpleNamespace(when=when, duration=duration, nodeid=name)
            watch.pytest_runtest_logreport(report)  # type: ignore[arg-type]
    session = SimpleNamespace(exitstatus=status)
    watch.pytest_sessionfinish(session)  # type: ignore[arg-type]
    lines: list[str] = []
    terminal = SimpleNamespace(line=lambda text, **_: lines.append(text))
    watch.pytest_terminal_summary(terminal)  # type: ignore[arg-type]
    return int(session.exitstatus), "\n".join(lines)


def test_once_may_be_the_machine_and_twice_fails() -> None:
    cache = Cache()
    slow = {"a": MOST_SECONDS + 1, "b": 0.1}
    assert run(cache, slow) == (pytest.ExitCode.OK, "")
    status, told = run(cache, slow)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert told.startswith("SLOW a: 11.0 s, and more than 10 s in the run before")
    assert run(cache, {"b": MOST_SECONDS + 1}) == (pytest.ExitCode.OK, "")
    assert run(cache, slow) == (pytest.ExitCode.OK, "")


def test_a_run_that_fails_otherwise_keeps_its_status() -> None:
    cache = Cache()
    run(cache, {"a": MOST_SECONDS + 1})
    status, _ = run(cache, {"a": MOST_SECONDS + 1}, status=pytest.ExitCode.INTERRUPTED)
    assert status == pytest.ExitCode.INTERRUPTED


@pytest.mark.few(3)
@pytest.mark.parametrize("x", [pytest.param(9, marks=pytest.mark.slow), 0, 1, 2, 3])
@pytest.mark.parametrize("y", [0, 1])
def test_few_cases_are_quick(request: pytest.FixtureRequest, x: int, y: int) -> None:
    """Of these cases themselves: in a quick run nobody sees the others."""
    if is_quick(request.config):
        assert (y, x) in {(0, 0), (0, 2), (1, 1)}, "3 of 8 that are not slow anyway"
    is_slow = request.node.get_closest_marker("slow") is not None
    assert is_slow == ((y, x) not in {(0, 0), (0, 2), (1, 1)})


@pytest.mark.parametrize("n", range(1, 40))
def test_few_are_spread_over_all(n: int) -> None:
    for few in range(1, n + 3):
        chosen = spread(n, few)
        assert len(set(chosen)) == min(few, n)
        assert chosen[0] == 0
        gaps = [b - a for a, b in zip(chosen, [*chosen[1:], n], strict=True)]
        assert max(gaps) <= 3 * n / few + 1


def test_a_run_with_slow_tests_draws_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(*, is_whole: bool) -> list[int]:
        monkeypatch.setattr(RUN, "is_whole", is_whole)
        some = (examples(40, whole=140), examples(40), examples(40, whole=20))
        return [100 * one.max_examples // examples(100).max_examples for one in some]

    assert drawn(is_whole=False) == [40, 40, 40]
    assert drawn(is_whole=True) == [140, 40, 40]
