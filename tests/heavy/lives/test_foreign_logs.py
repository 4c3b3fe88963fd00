"""A part of the sweeps over logs of other formats; ``make sweep`` runs them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.heavy.lives import cases
from tests.heavy.lives.by_deltalake import DeltalakeWorld
from tests.heavy.lives.by_pyiceberg import PyicebergWorld
from tests.heavy.lives.cases import Step, drawn, play, told
from tests.heavy.lives.delta import DeltaWorld
from tests.heavy.lives.iceberg import IcebergWorld

pytestmark = pytest.mark.filterwarnings("ignore")

BY_HAND = {"delta": DeltaWorld, "iceberg": IcebergWorld}
WORLDS = {**BY_HAND, "deltalake": DeltalakeWorld, "pyiceberg": PyicebergWorld}

FOUND: dict[str, tuple[str, int, list[tuple[str, int]]]] = {
    "a file has no index yet": ("delta", 120, [("index", 2109), ("append", 772)]),
    "a row group has no bounds": ("delta", 62, [("append", 3801), ("optimize", 266)]),
    "a file has NaN": (
        *("delta", 137),
        [("append", 296), ("index", 1679), ("optimize", 1333)],
    ),
    "a name is given to another column": (
        *("iceberg", 4),
        [("index", 966), ("map_by_hand", 1242), ("map_by_hand", 422)],
    ),
    "a folder became a table": ("delta", 13, [("vacuum", 1060)]),
    "only some columns have ids": ("iceberg", 1, [("append", 550), ("index", 2331)]),
    "one file has several vectors": (
        *("iceberg", 14),
        [("index", 2522), ("delete", 2877)],
    ),
    "a partition column has a column's name": (
        *("delta", 2),
        [("mapped", 3535), ("swap", 5)],
    ),
    "a file is named twice": ("iceberg", 1, [("list_twice", 2331)]),
    "a derivation outlives a rename": (
        *("delta", 1090),
        [("index", 613), ("derive", 1607), ("swap", 4)],
    ),
    "a number of NULLs means nothing": ("delta", 73, [("index", 1146)]),
}
"""Lives that lost rows once: the seed of a table, and acts with theirs."""


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))]
)
@pytest.mark.parametrize("name", WORLDS)
def test_answers_are_those_of_the_rows(name: str, seed: int) -> None:
    done = told(WORLDS[name], seed)
    assert not done.failure
    assert done.n > 10


@pytest.mark.parametrize("what", FOUND)
def test_what_was_found_is_not_found_again(what: str) -> None:
    name, seed, acts = FOUND[what]
    steps = [Step(*one) for one in acts]
    assert play(BY_HAND[name], seed, steps)[1] == ""


@pytest.mark.parametrize("name", BY_HAND)
def test_a_case_is_the_same_each_time(tmp_path: Path, name: str) -> None:
    make = BY_HAND[name]
    one, other = (make(tmp_path / str(i), random.Random(5)) for i in range(2))
    assert one.columns == other.columns
    rows = [world.rows.drop_columns(["file"]) for world in (one, other)]
    assert rows[0].equals(rows[1])
    assert drawn(make, 5) == drawn(make, 5)


@pytest.mark.parametrize("name", WORLDS)
def test_every_act_leaves_a_table_that_its_own_library_reads_alike(
    tmp_path: Path, name: str
) -> None:
    world = WORLDS[name](tmp_path / "t", random.Random(4))
    for act in world.acts:
        if act not in {"list_twice", "make_again"}:
            world.acts[act]()
            assert world.unlike_reader() == ""


def test_a_failure_has_the_steps_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(DeltaWorld):
        """Its judge forgets a file that was appended."""

        def append(self) -> None:
            super().append()
            self.live.clear()

    acts = ["mapped", "append"]
    steps = [Step(act, i) for i, act in enumerate(acts)]
    monkeypatch.setattr(cases, "drawn", lambda *_: steps)
    assert told(Wrong, 1).failure.startswith("begin, append; ")


def test_a_refusal_is_a_failure_unless_the_table_allows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Absolute(DeltaWorld):
        """A table whose log names a file by an absolute path."""

        is_allowed = False

        def __init__(self, folder: Path, rng: random.Random) -> None:
            super().__init__(folder, rng)
            (one,) = self.some([1])
            one.uri = one.path
            self._commit(self._remove(one), self._add(one))
            self.allowed = ["which is no path in its folder"] * self.is_allowed

    _, failure = play(Absolute, 1, [])
    assert "open: refused: TableError: the log of" in failure
    monkeypatch.setattr(Absolute, "is_allowed", True)
    assert play(Absolute, 1, []) == (1, "")
