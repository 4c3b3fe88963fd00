"""Threads that ask for one table at once share what one of them finds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from skipindex.errors import TableError
from skipindex.spark.pruning.tables import ScannedTable, Tables, scanned_location
from skipindex.storage.deadline import Deadline, PlanCancelledError, running_until
from skipindex.storage.file_system.location import Location
from skipindex.table import NEWEST, AtVersion

TIMEOUT = 30


class Looks(Tables):
    """Tables of which each look ends when the test lets it.

    Attributes:
        ends: by look, what ends it; a problem is raised, and None is a table.
        found: the tables by look.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[Future[BaseException | None]] = []
        self.found: list[ScannedTable] = []
        self._begun = threading.Condition()

    def current(self, location: Location, at: AtVersion = NEWEST) -> ScannedTable:
        end: Future[BaseException | None] = Future()
        table = ScannedTable(super().current(location, at).state)
        with self._begun:
            self.ends.append(end)
            self.found.append(table)
            self._begun.notify_all()
        problem = end.result(TIMEOUT)
        if problem is not None:
            raise problem
        return table

    def end(self, number: int, problem: BaseException | None = None) -> None:
        """Wait until a look has begun, and end it."""
        self.wait_for(number)
        self.ends[number].set_result(problem)

    def wait_for(self, number: int) -> None:
        """Wait until a look has begun."""
        with self._begun:
            assert self._begun.wait_for(lambda: len(self.ends) > number, TIMEOUT)


@pytest.fixture
def looks() -> Looks:
    return Looks()


Ask = Callable[..., "Future[ScannedTable]"]


@pytest.fixture
def ask(looks: Looks, table: Path) -> Iterator[Ask]:
    """Asks for the table in a thread, as of now."""
    location = scanned_location("file", None, str(table))
    with ThreadPoolExecutor(16) as threads:

        def asked(
            seconds: float | None = None, moment: float | None = None
        ) -> Future[ScannedTable]:
            since = time.monotonic() if moment is None else moment

            def call() -> ScannedTable:
                with running_until(Deadline(seconds)):
                    return looks.since(location, since)

            return threads.submit(call)

        yield asked


def test_all_that_ask_at_once_share_a_look(looks: Looks, ask: Ask) -> None:
    first = ask()
    looks.wait_for(0)
    moment = time.monotonic()
    others = [ask(moment=moment) for _ in range(8)]
    looks.end(1)
    looks.end(0)
    assert first.result(TIMEOUT) is looks.found[0]
    assert [one.result(TIMEOUT) for one in others] == [looks.found[1]] * 8
    assert len(looks.ends) == 2


def test_three_look_at_a_time_and_the_next_wait_for_one_of_them(
    looks: Looks, ask: Ask
) -> None:
    """A store that takes half of the limit for a listing answers all the time."""
    running = []
    for i in range(3):
        running.append(ask())
        looks.wait_for(i)
    moment = time.monotonic()
    others = [ask(moment=moment) for _ in range(4)]
    with pytest.raises(PlanCancelledError):
        ask(seconds=0.05).result(TIMEOUT)
    assert len(looks.ends) == 3
    looks.end(1)
    assert running[1].result(TIMEOUT) is looks.found[1]
    looks.end(3)
    assert [one.result(TIMEOUT) for one in others] == [looks.found[3]] * 4
    for i in (0, 2):  # what began earlier does not become the newest
        looks.end(i)
        assert running[i].result(TIMEOUT) is looks.found[i]
    assert ask(moment=moment).result(TIMEOUT) is looks.found[3]
    assert len(looks.ends) == 4


def test_no_table_is_older_than_its_question(looks: Looks, ask: Ask) -> None:
    for i in range(3):
        asked = ask()
        looks.end(i)
        assert asked.result(TIMEOUT) is looks.found[i]


def test_a_failure_is_shared_by_those_that_waited_for_it_alone(
    looks: Looks, ask: Ask
) -> None:
    first = ask()
    looks.wait_for(0)
    moment = time.monotonic()
    others = [ask(moment=moment) for _ in range(4)]
    looks.end(1, OSError("the store is gone"))
    looks.end(0)
    assert first.result(TIMEOUT) is looks.found[0]
    problems = [one.exception(TIMEOUT) for one in others]
    assert sum(isinstance(problem, OSError) for problem in problems) == 1
    assert sum(isinstance(problem, TableError) for problem in problems) == 3
    assert all("the store is gone" in str(problem) for problem in problems)
    later = ask()
    looks.end(2)
    assert later.result(TIMEOUT) is looks.found[2]


def test_a_look_that_is_cancelled_counts_for_nobody_else(
    looks: Looks, ask: Ask
) -> None:
    moment = time.monotonic()
    first = ask(moment=moment)
    looks.end(0, PlanCancelledError("the plan took longer than it may"))
    assert isinstance(first.exception(TIMEOUT), PlanCancelledError)
    second = ask(moment=moment)
    looks.end(1)
    assert second.result(TIMEOUT) is looks.found[1]


def test_a_thread_waits_for_the_look_of_another_until_its_own_deadline(
    looks: Looks, ask: Ask
) -> None:
    moment = time.monotonic()
    first = ask()
    looks.wait_for(0)
    with pytest.raises(PlanCancelledError):
        ask(seconds=0.05, moment=moment).result(TIMEOUT)
    looks.end(0)
    assert first.result(TIMEOUT) is looks.found[0]
    assert len(looks.ends) == 1


def test_a_look_that_hangs_keeps_nobody_from_another(looks: Looks, ask: Ask) -> None:
    moment = time.monotonic()
    first = ask(seconds=0.05, moment=moment)
    looks.wait_for(0)
    second = ask()
    looks.end(1)
    assert second.result(TIMEOUT) is looks.found[1]
    looks.end(0)  # it is the older one, whenever it ends
    assert first.result(TIMEOUT) is looks.found[0]
    assert ask(moment=moment).result(TIMEOUT) is looks.found[1]
