"""Lives with ``maintain`` among the writers: it is killed, and another runs at once."""

from __future__ import annotations

import itertools
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import skipindex as sx
from tests.heavy.maintained import (
    begin,
    ids,
    life,
    maintain,
    without_spark,
)
from tests.rewrite.killing import Killed, killed_at


@pytest.fixture(autouse=True)
def no_spark() -> Iterator[None]:
    with without_spark():
        yield


@pytest.mark.parametrize("every", [50, pytest.param(1, marks=pytest.mark.slow)])
def test_a_run_that_is_killed_loses_no_row_and_the_next_one_ends(
    tmp_path: Path, every: int
) -> None:
    begin(tmp_path / "t")
    wanted = ids(tmp_path / "t")
    copy, is_dead, step = tmp_path / "copy", True, 0
    while is_dead:
        for after in (False, True):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(tmp_path / "t", copy)
            is_dead = False
            with killed_at(step, after=after):
                try:
                    maintain(copy)
                except Killed:
                    is_dead = True
            assert ids(copy) == wanted, (step, after)
            runs = iter(lambda: maintain(copy), [])
            taken = list(itertools.islice(runs, 6))
            assert len(taken) < 6, (step, after, taken)
            assert ids(copy) == wanted, (step, after)
            assert sx.open_table(copy).status().fresh
        step += every
    assert step > 20, "it is killed at its changes"


@pytest.mark.parametrize("n", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_two_runs_at_once_lose_no_row(tmp_path: Path, n: int) -> None:
    for i in range(n):
        folder = tmp_path / str(i)
        begin(folder)
        wanted = ids(folder)
        errors: list[BaseException] = []

        def run(folder: Path = folder, errors: Any = errors) -> None:
            try:
                maintain(folder)
            except BaseException as error:  # noqa: BLE001
                errors.append(error)

        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert ids(folder) == wanted
        maintain(folder)
        assert sx.open_table(folder).status().fresh
        assert ids(folder) == wanted


def test_random_lives(tmp_path: Path) -> None:
    """The sweep ``maintain`` has more."""
    assert [problem for problem in life(tmp_path / "t", 0) if problem] == []
