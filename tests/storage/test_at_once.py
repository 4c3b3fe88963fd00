"""Requests to a store, several of them at a time."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from skipindex.storage.at_once import at_once
from skipindex.storage.deadline import Deadline, PlanCancelledError, running_until
from skipindex.storage.file_system.location import Location, location_of

STORE = location_of("s3://bucket/t", {"region": "r"})
PATIENCE = 20.0
"""Seconds that a call waits for another that must be under way with it."""


@pytest.fixture(params=["disk", "store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    return Location(str(tmp_path)) if request.param == "disk" else STORE


def test_results_have_the_order_of_the_items(place: Location) -> None:
    assert at_once(place, pow, range(100), [2] * 100) == [n**2 for n in range(100)]
    assert at_once(place, pow, [], []) == []
    with pytest.raises(ValueError, match="shorter"):
        at_once(place, pow, [1, 2], [3])


def test_calls_to_a_store_are_under_way_together() -> None:
    together = threading.Barrier(8)
    numbers = at_once(STORE, lambda _: together.wait(PATIENCE), range(8))
    assert sorted(numbers) == list(range(8))


def test_calls_to_a_disk_follow_one_another(tmp_path: Path) -> None:
    threads = at_once(Location(str(tmp_path)), lambda _: threading.get_ident(), "abc")
    assert set(threads) == {threading.get_ident()}


def test_the_first_error_in_the_order_of_the_items_is_raised(place: Location) -> None:
    has_failed = threading.Event()

    def call(n: int) -> None:
        if n == 1 and not place.is_local:  # the later one fails earlier
            assert has_failed.wait(PATIENCE)
        if n >= 1:
            has_failed.set()
            raise OSError(f"call {n}")

    with pytest.raises(OSError, match="call 1"):
        at_once(place, call, range(3))


def test_calls_that_have_begun_end_before_the_error_and_no_other_begins() -> None:
    together = threading.Barrier(3)
    begun, ended = [], []

    def call(n: int) -> None:
        begun.append(n)
        if n < 3:
            together.wait(PATIENCE)
        if n == 1:
            raise OSError("call 1")
        time.sleep(0.2)
        ended.append(n)

    with pytest.raises(OSError, match="call 1"):
        at_once(STORE, call, range(1000))
    assert {0, 2} <= set(ended)
    assert sorted([*ended, 1]) == sorted(begun)
    assert len(begun) <= 16


def test_nothing_is_under_way_after_ctrl_c_that_is_pressed_twice() -> None:
    code = """
import os, signal, sys, threading, time
from skipindex.storage.at_once import at_once
from skipindex.storage.file_system.location import location_of

begun, ended = [], []

def call(n):
    begun.append(n)
    if n == 0:
        for wait in (0.2, 0.2):
            time.sleep(wait)
            os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)
    ended.append(n)

try:
    at_once(location_of("s3://bucket/t", {"region": "r"}), call, range(500))
except KeyboardInterrupt:
    print(len(begun) - len(ended), len(ended) < 500)
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["0", "True"]


def test_work_stops_at_its_deadline(place: Location) -> None:
    deadline, called = Deadline(), []

    def call(n: int) -> None:
        called.append(n)
        deadline.cancel()

    with running_until(deadline), pytest.raises(PlanCancelledError):
        at_once(place, call, range(1000))
    assert len(called) < 1000
