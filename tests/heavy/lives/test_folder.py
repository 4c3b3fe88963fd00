"""A part of the sweep ``folder``, and what it once found."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.heavy.lives.cases import drawn, told
from tests.heavy.lives.folder import FolderWorld, Truth
from tests.heavy.slices import run_slice

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 9))]
)
def test_answers_are_those_of_the_rows(seed: int) -> None:
    done = told(FolderWorld, seed)
    assert not done.failure
    assert done.n > 10


def test_a_case_is_the_same_each_time(tmp_path: Path) -> None:
    worlds = [FolderWorld(tmp_path / str(i), random.Random(5)) for i in range(2)]
    one, other = (world.truth.may for world in worlds)
    assert one == other
    assert drawn(FolderWorld, 5) == drawn(FolderWorld, 5)


def test_each_act_leaves_a_table_that_others_read_alike(tmp_path: Path) -> None:
    world = FolderWorld(tmp_path / "t", random.Random(4))
    for act in world.acts:
        world.acts[act]()
        world.asked()
        assert world.unlike_reader() == ""


def test_rows_that_are_lost_or_doubled_are_told() -> None:
    one, other = Counter(["a", "b"]), Counter(["c"])
    truth = Truth([one], coming=[other])
    for wrong, lost in ((Counter("a"), 1), (Counter("aab"), 0), (Counter("abcc"), 0)):
        with pytest.raises(AssertionError, match=f"rows of .*, lost {lost}"):
            truth.settle(wrong)
    truth.settle(one + other)
    with pytest.raises(AssertionError, match="lost 1"):
        truth.settle(one)


@pytest.mark.slow
def test_a_long_life() -> None:
    """In a process of its own, whose descriptors are few."""
    done = run_slice("folder", seed=1, first=0, n_cases=1, parts=["long"])
    assert done.failures == []
    assert done.n > 100
