"""The quick run stays quick: a test that is slow twice in a row fails the run.

Once may be the machine.  Which tests were slow is kept in pytest's cache, so a fresh
clone does not fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pytest
from hypothesis import settings

MOST_SECONDS: Final = 10.0
"""The slowest take 5 s on a quiet machine of two cores, and some machines are slow."""
EXAMPLES: Final = 20
"""Examples that Hypothesis draws for a test of 100."""
_GOLDEN: Final = 0.6180339887498949
"""Its multiples are spread evenly between 0 and 1, however many are taken."""
_KEY: Final = "skipindex/slow"
NO_CODEGEN: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Queries of a few rows take a sixth less if no Java is made and compiled for each of
them.  Long runs and sweeps have Spark's default, as users do."""


def is_quick(config: pytest.Config) -> bool:
    """Whether slow tests are left out, as ``make test`` does."""
    return bool(config.getoption("markexpr") == "not slow")


@dataclass
class Reach:
    """What a run reaches.

    Args:
        is_whole: whether slow tests run too.
    """

    is_whole: bool = False


RUN: Final = Reach()


def examples(n: int, *, whole: int = 0) -> settings:
    """``n`` examples for a test of Hypothesis; a quick run draws fewer of them.

    Where slow tests run too it draws ``whole``, if that is more.
    """
    n = max(n, whole) if RUN.is_whole else n
    return settings(max_examples=max(1, n * settings.default.max_examples // 100))


def spread(n: int, few: int) -> list[int]:
    """``few`` of the numbers below ``n``, 0 among them, with no common step.

    Cases of several parameters, which follow one another, so differ in each of them.

    >>> spread(9, 3)
    [0, 2, 5]
    """
    return sorted(sorted(range(n), key=lambda i: i * _GOLDEN % 1)[:few])


def mark_slow(items: Sequence[pytest.Item]) -> None:
    """Mark cases slow of tests that want ``few`` of their cases in a quick run.

    Those that are slow anyway do not count.
    """
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("few") and not item.get_closest_marker("slow"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for same in cases.values():
        mark = same[0].get_closest_marker("few")
        assert mark is not None
        quick = {same[i] for i in spread(len(same), mark.args[0])}
        for item in same:
            if item not in quick:
                item.add_marker(pytest.mark.slow)


class QuickRun:
    """Watches how long the tests of a quick run take.

    Args:
        config: of the run, in the process that gathers the reports.
    """

    def __init__(self, config: pytest.Config) -> None:
        """Begin with what was slow in the last run."""
        # It is not there with ``-p no:cacheprovider``.
        self._cache: pytest.Cache | None = getattr(config, "cache", None)
        before = [] if self._cache is None else self._cache.get(_KEY, [])
        self._before = set(before)
        self._slow: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of a test; what it shares with others is made in its setup."""
        if report.when == "call" and report.duration > MOST_SECONDS:
            self._slow[report.nodeid] = report.duration

    @property
    def again(self) -> list[str]:
        """The tests that were slow in the last run, and in this one."""
        return sorted(self._before & self._slow.keys())

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run that would have passed."""
        if self._cache is not None:
            self._cache.set(_KEY, sorted(self._slow))
        if self.again and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        """Name the tests that were slow twice."""
        for name in self.again:
            terminalreporter.line(
                f"SLOW {name}: {self._slow[name]:.1f} s, and more than "
                f"{MOST_SECONDS:g} s in the run before (make it quicker, or mark it "
                "slow and leave a quick one)",
                red=True,
            )
