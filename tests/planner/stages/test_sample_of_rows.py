"""Where every file of a sample holds many matches, the rows of others stay unasked."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.planner.stages import cost
from skipindex.planner.stages.cost import sample_of
from tests.tables import build, put_all

N_FILES = 300
CONDITION = "a = 1 AND b = 1"


def rows(n_matches: int) -> dict[str, list[int]]:
    """Every value of both columns, and so many rows that match."""
    return {"a": [0, 1] + [1] * n_matches, "b": [1, 0] + [1] * n_matches}


def table_of(
    folder: Path, matches: dict[int, int], others: int, n_files: int = N_FILES
) -> sx.Table:
    """A table of which file ``i`` holds ``matches[i]`` matching rows."""
    files = [rows(matches.get(i, others)) for i in range(n_files)]
    return build(put_all(folder, files), {"a": "bitmap", "b": "bitmap"})


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> sx.Table:
    """The file in the second place holds no match, and is in no sample."""
    folder = tmp_path_factory.mktemp("dense")
    second = sorted(f"{i}.parquet" for i in range(N_FILES))[1]
    return table_of(folder, {int(second.partition(".")[0]): 0}, 80)


def test_the_rows_of_the_others_are_counted_when_that_is_asked(dense: sx.Table) -> None:
    plan = dense.plan(CONDITION)
    assert len(plan.paths) == N_FILES
    assert plan.stages[-1].read.bitmaps < N_FILES
    assert plan.count_bounds == (80 * (N_FILES - 1),) * 2
    assert len(plan.paths) == N_FILES, "a plan stays as it is"
    assert plan.verify(sample=20).is_right
    (note,) = plan.notes
    assert "because each of 75 sampled files has at least 80 matches" in note
    assert note in plan.explain()


def test_kinds_that_are_named_are_asked_everywhere(dense: sx.Table) -> None:
    plan = dense.plan(CONDITION, kinds=["minmax", "bitmap"])
    assert len(plan.paths) == N_FILES - 1
    assert plan.notes == []


def test_a_sample_is_of_all_writers_that_take_turns() -> None:
    for n_writers, n_files, n_together in itertools.product(
        range(2, 9), (256, 300, 512, 1000, 1024, 4096), (1, 2)
    ):
        turns = sample_of(np.arange(n_files)) // n_together % n_writers
        shares = np.bincount(turns, minlength=n_writers) / len(turns)
        assert shares.min() > 0.2 / n_writers, (n_writers, n_files, n_together)


def test_files_of_one_writer_are_left_where_others_hold_many_matches(
    tmp_path: Path,
) -> None:
    paths = sorted(f"{i}.parquet" for i in range(N_FILES))
    numbers = [int(path.partition(".")[0]) for path in paths]
    table = table_of(tmp_path, dict.fromkeys(numbers[::4], 0), 80)
    assert len(table.plan(CONDITION).paths) == N_FILES - N_FILES // 4


def test_of_fewer_files_a_small_sample_is_believed_if_asking_costs_as_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where files take longer to read than to be asked, all are asked."""
    monkeypatch.setattr(cost, "SECONDS_PER_FILE", 1e-4)
    paths = sorted(f"{i}.parquet" for i in range(100))
    place = next(i for i in range(100) if i not in sample_of(np.arange(100)))
    table = table_of(tmp_path, {int(paths[place].partition(".")[0]): 0}, 80, 100)
    plan = table.plan(CONDITION)
    assert len(plan.paths) == 100
    (note,) = plan.notes
    assert "because each of 16 sampled files has at least 80 matches" in note
    monkeypatch.setattr(cost, "SECONDS_PER_FILE", 1e-2)
    plan = table.plan(CONDITION)
    assert len(plan.paths) == 99
    assert plan.notes == []


@pytest.mark.few(2)
@pytest.mark.parametrize(("others", "few"), [(80, 1), (80, 0), (5, 5)])
def test_one_file_of_the_sample_with_few_matches_has_all_asked(
    tmp_path: Path, others: int, few: int
) -> None:
    paths = sorted(f"{i}.parquet" for i in range(N_FILES))
    sample = sample_of(np.arange(N_FILES))
    places = next(i for i in range(N_FILES) if i not in sample), sample[0]
    absent, asked = (int(paths[i].partition(".")[0]) for i in places)
    table = table_of(tmp_path, {absent: 0, asked: few}, others)
    plan = table.plan(CONDITION)
    assert len(plan.paths) == N_FILES - 1 - (few == 0)
    assert plan.notes == []


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("others", "some", "is_asked"),
    [(12, 9, False), (12, 40, False), (9, 2, True), (40, 2, True), (3, 90, True)],
)
def test_few_matches_that_hardly_differ_are_enough(
    tmp_path: Path, others: int, some: int, is_asked: bool
) -> None:
    """With numbers that differ much, a file without a match is likely."""
    paths = sorted(f"{i}.parquet" for i in range(N_FILES))
    numbers = [int(path.partition(".")[0]) for path in paths]
    matches = {number: some for i, number in enumerate(numbers) if i % 8 < 4}
    table = table_of(tmp_path, {**matches, numbers[1]: 0}, others)
    plan = table.plan(CONDITION)
    assert len(plan.paths) == N_FILES - is_asked
    assert plan.count_bounds[0] == plan.count_bounds[1]
    assert (plan.notes == []) == is_asked


@pytest.mark.few(2)
@pytest.mark.parametrize(("n_empty", "is_asked"), [(3, False), (150, True)])
def test_asking_may_not_take_much_longer_than_what_it_spares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_empty: int, *, is_asked: bool
) -> None:
    paths = sorted(f"{i}.parquet" for i in range(N_FILES))
    step = N_FILES // n_empty
    empty = [int(path.partition(".")[0]) for path in paths[::step]]
    table = table_of(tmp_path, dict.fromkeys(empty, 0), 7)
    assert len(table.plan(CONDITION).paths) == N_FILES - n_empty, "it takes no time"
    monkeypatch.setattr(cost, "_MOST_LOST", 0.0)
    plan = table.plan(CONDITION)
    assert (len(plan.paths) == N_FILES - n_empty) is is_asked
    assert any("reading so many takes less time" in one for one in plan.notes) is (
        not is_asked
    )
    assert plan.count_bounds == (7 * (N_FILES - n_empty),) * 2
    assert plan.verify(sample=20).is_right
    forced = table.plan(CONDITION, kinds=["minmax", "bitmap"])
    assert len(forced.paths) == N_FILES - n_empty


@pytest.mark.parametrize(
    ("n_files", "n_empty", "group"), [(N_FILES, 5, 4), (200, 1, None)]
)
def test_asking_may_take_longer_if_it_spares_row_groups_or_files_are_few(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    n_files: int,
    n_empty: int,
    group: int | None,
) -> None:
    monkeypatch.setattr(cost, "_MOST_LOST", 0.0)
    paths = sorted(f"{i}.parquet" for i in range(n_files))
    empty = paths[1 :: n_files // n_empty]
    for i in range(n_files):
        some = pa.table(rows(0 if f"{i}.parquet" in empty else 7))
        pq.write_table(some, tmp_path / f"{i}.parquet", row_group_size=group)
    table = build(tmp_path, {"a": "bitmap", "b": "bitmap"})
    plan = table.plan(CONDITION)
    assert plan.notes == []
    assert len(plan.paths) == n_files - n_empty
