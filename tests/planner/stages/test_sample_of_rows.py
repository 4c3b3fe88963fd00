"""Where asking for rows takes longer than it is expected to spare, files are not asked.

``Price`` decides by what the files hold that were asked first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.planner.stages import cost
from skipindex.planner.stages.cost import ENGINES, SPARK, Price
from tests.tables import build, put_all

N_FILES = 300
CONDITION = "a = 1 AND b = 1"


def rows(n_matches: int) -> dict[str, list[int]]:
    """Every value of both columns, and so many rows that match."""
    return {"a": [0, 1] + [1] * n_matches, "b": [1, 0] + [1] * n_matches}


def table_of(
    folder: Path, matches: dict[int, int], others: int, n_files: int = N_FILES
) -> sx.Table:
    """A table of which the file in place ``i`` holds ``matches[i]`` matching rows."""
    paths = sorted(f"{i}.parquet" for i in range(n_files))
    number = {int(path.partition(".")[0]): i for i, path in enumerate(paths)}
    files = [rows(matches.get(number[i], others)) for i in range(n_files)]
    return build(put_all(folder, files), {"a": "bitmap", "b": "bitmap"})


@pytest.fixture
def dear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for rows takes a quarter of reading files, and no loss is too small."""
    one_of_two = ENGINES.seconds_per_file / 8
    monkeypatch.setitem(cost.SECONDS_PER_QUESTION, True, one_of_two)
    monkeypatch.setitem(cost._MOST_LOST, False, 0.0)


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> sx.Table:
    """The file in the second place holds no match, and is not asked at first."""
    return table_of(tmp_path_factory.mktemp("dense"), {1: 0}, 80)


def test_files_of_a_few_milliseconds_are_all_asked(tmp_path: Path) -> None:
    plan = table_of(tmp_path, {1: 0}, 80, n_files=90).plan(CONDITION)
    assert len(plan.paths) == 89
    assert plan.notes == []


@pytest.mark.usefixtures("dear")
def test_the_rows_of_the_others_are_counted_when_that_is_asked(dense: sx.Table) -> None:
    plan = dense.plan(CONDITION)
    assert len(plan.paths) == N_FILES
    assert plan.stages[-1].read.bitmaps < N_FILES / 10
    assert plan.count_bounds == (80 * (N_FILES - 1),) * 2
    assert len(plan.paths) == N_FILES, "a plan stays as it is"
    assert plan.verify(sample=20).is_right
    (note,) = plan.notes
    assert "the rows of 296 files were not probed: of 4 files that were, each " in note
    assert "has 80 or more" in note
    assert note in plan.explain()


@pytest.mark.usefixtures("dear")
def test_kinds_that_are_named_are_asked_everywhere(dense: sx.Table) -> None:
    plan = dense.plan(CONDITION, kinds=["minmax", "bitmap"])
    assert len(plan.paths) == N_FILES - 1
    assert plan.notes == []


@pytest.mark.usefixtures("dear")
@pytest.mark.parametrize(("step", "is_asked"), [(2, True), (40, False)])
def test_files_are_asked_where_enough_of_the_first_hold_no_match(
    tmp_path: Path, step: int, *, is_asked: bool
) -> None:
    empty = range(1, N_FILES, step)
    table = table_of(tmp_path, dict.fromkeys(empty, 0), 7)
    plan = table.plan(CONDITION)
    if is_asked:
        assert len(plan.paths) == N_FILES - len(empty)
        assert plan.notes == []
    else:
        assert len(plan.paths) > N_FILES - len(empty)
        assert "reading the files takes less time" in "".join(plan.notes)
    assert plan.count_bounds == (7 * (N_FILES - len(empty)),) * 2
    assert plan.verify(sample=20).is_right


@pytest.mark.usefixtures("dear")
def test_asking_pays_where_it_spares_row_groups(tmp_path: Path) -> None:
    """Seven matching rows are in the last of many row groups."""
    for i in range(40):
        some = {"a": [0, 1] * 30 + [1] * 7, "b": [1, 0] * 30 + [1] * 7}
        pq.write_table(pa.table(some), tmp_path / f"{i}.parquet", row_group_size=4)
    plan = build(tmp_path, {"a": "bitmap", "b": "bitmap"}).plan(CONDITION)
    assert plan.notes == []
    assert plan.stages[-1].read.bitmaps >= 2 * 40


def reason(
    matches: list[int], *, asking: float = 0.1, rows: int = 1000, groups: int = 1
) -> str:
    """Why 1,000 files of a second each are not asked, of which some were."""
    price = Price(asking, 1.0, in_store=False)
    price.add(matches, np.full(len(matches), rows), [groups] * len(matches))
    return price.too_high(1000)


@pytest.mark.parametrize(
    ("matches", "options", "is_asked"),
    [
        ([40] * 4, {}, True),  # one in six may have no match
        ([40] * 20, {}, False),
        ([40] * 20, {"asking": 0.04}, True),
        ([40] * 18 + [0, 0], {}, True),
        ([40] * 84 + [0], {}, False),
        ([2] * 64, {}, True),  # one of seven has none, if they are drawn at random
        ([3] * 64, {}, False),
        ([3] * 63 + [90], {}, True),  # numbers that differ much have none more often
        ([40] * 20, {"groups": 20}, True),
        ([400] * 20, {"groups": 20}, False),
        ([40] * 20, {"rows": 10_000_000}, True),  # a few of its pages are read
        ([400] * 20, {"rows": 10_000_000}, False),
        ([0] * 4, {"asking": 0.99}, True),
        ([0] * 4, {"asking": 1.01}, False),
    ],
)
def test_the_price_is_compared_with_what_is_spared(
    matches: list[int], options: dict[str, float], *, is_asked: bool
) -> None:
    assert (reason(matches, **options) == "") is is_asked  # type: ignore[arg-type]


def test_a_loss_of_milliseconds_is_none() -> None:
    for in_store, n_files, is_asked in (
        *((False, 4, True), (False, 9, False)),
        *((True, 100, True), (True, 150, False)),
    ):
        price = Price(1e-3, 0.0, in_store=in_store)
        price.add([40], np.array([1000]), [1])
        assert (price.too_high(n_files) == "") is is_asked
        files = np.arange(n_files)
        assert (len(price.turn(files)) == n_files) is is_asked


@pytest.mark.parametrize(
    ("n_files", "lost", "is_asked"),
    [(100, 1.5e-4, True), (100, 4e-4, False), (1000, 1e-5, True), (1000, 3e-5, False)],
)
def test_a_small_part_of_reading_may_be_lost(
    n_files: int, lost: float, *, is_asked: bool
) -> None:
    """Of reading each file for 10 ms, which takes 1 s and 10 s, but at most 20 ms."""
    reading = 1e-2
    price = Price(reading / 3 + lost, reading, in_store=False)
    price.add([40], np.array([1000]), [1])  # one of three may have no match
    assert (price.too_high(n_files) == "") is is_asked


def test_about_four_times_as_many_as_before_are_asked_in_the_next_turn() -> None:
    some = [40, 40, 40, 0]
    assert turns(Price(0.12, 1.0, in_store=False), some) == [4, 16, 81, 899]
    assert turns(Price(0.1, 1.0, in_store=True), some) == [32, 968]


def test_where_it_pays_for_certain_all_others_are_asked_in_one_turn() -> None:
    assert turns(Price(0.3, 1.0, in_store=False), [0]) == [4, 996]
    assert turns(Price(0.4, 1.0, in_store=False), [0]) == [4, 16, 980]
    assert turns(Price(0.03, 1.0, in_store=False), [40]) == [1000]


def turns(price: Price, matches: list[int]) -> list[int]:
    """How many of 1,000 files are asked in each turn, if they hold ``matches``."""
    files, result = np.arange(1000), []
    while len(files):
        turn = price.turn(files)
        result.append(len(turn))
        files = np.setdiff1d(files, turn)
        some = (matches * len(turn))[: len(turn)]
        price.add(some, np.full(len(turn), 10), [1] * len(turn))
    return result


def test_the_first_files_are_of_all_writers_that_take_turns() -> None:
    price = Price(1.0, 1.0, in_store=False)
    price.add([1] * 16, np.full(16, 10), [1] * 16)
    for n_writers, n_files, n_together in itertools.product(
        range(2, 9), (256, 300, 512, 1000, 1024, 4096), (1, 2)
    ):
        turns = price.turn(np.arange(n_files)) // n_together % n_writers
        shares = np.bincount(turns, minlength=n_writers) / len(turns)
        assert shares.min() > 0.2 / n_writers, (n_writers, n_files, n_together)


@pytest.mark.parametrize(
    "dearer",
    [
        lambda of: of(cold=1e6),
        lambda of: of(cold=1e6, in_store=True),
        lambda of: of(cold=1e5, is_kept=False),
        lambda of: of(read_by=ENGINES),
    ],
)
def test_cold_indexes_and_fast_readers_make_asking_dearer(
    dense: sx.Table, dearer: Callable[[Callable[..., Price]], Price]
) -> None:
    found = dense.plan(CONDITION).evaluation

    def of(
        *,
        cold: float = 0.0,
        is_kept: bool = True,
        in_store: bool = False,
        read_by: cost.Reader = SPARK,
    ) -> Price:
        files = np.arange(N_FILES)
        return Price.of(
            [*found.leaves],
            found.table,
            files,
            cold=cold,
            is_kept=is_kept,
            reader=read_by,
            in_store=in_store,
        )

    def share(price: Price) -> float:
        return price._asking / price._reading

    assert share(dearer(of)) > 1.5 * share(of())
