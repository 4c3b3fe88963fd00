"""Files cut from a curve: balance, seams, overflowing keys, groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skipindex.layout.curves import interleave
from skipindex.layout.cuts import SEAM_REACH, FileCuts

key_lists = st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 20), min_size=1)


def sizes(keys: list[int], n_files: int, **kw: object) -> list[int]:
    rows = np.array(keys, np.int64)
    cuts = FileCuts.fit(rows, n_files=n_files, **kw)  # type: ignore[arg-type]
    return np.bincount(cuts.assign(rows), minlength=n_files).tolist()


@given(key_lists, st.integers(1, 12))
@example([2**63 - 1] * 5, 3)
@example([0] * 5 + [2**63 - 1], 3)
def test_files_are_intervals_of_the_curve(keys: list[int], n_files: int) -> None:
    rows = np.array(keys, np.int64)
    cuts = FileCuts.fit(rows, n_files=n_files)
    files = cuts.assign(rows)
    assert files.dtype == np.int32
    assert files.min() >= 0
    assert files.max() < n_files
    for low in set(keys):
        for high in set(keys):
            if low < high:
                assert files[rows == low].max() <= files[rows == high].min()


@given(st.integers(1, 40), st.integers(0, 2**32))
def test_no_file_strays_further_than_the_seams_reach(n_files: int, seed: int) -> None:
    rows = np.random.default_rng(seed).integers(0, 2**63, 40 * n_files)
    left = len(rows)
    for i, size in enumerate(sizes(rows.tolist(), n_files)):
        share = left / (n_files - i)
        assert (1 - SEAM_REACH) * share <= size <= (1 + SEAM_REACH) * share
        left -= size
    assert left == 0


@given(key_lists, st.integers(1, 12))
def test_every_file_has_a_part_of_the_sample(keys: list[int], n_files: int) -> None:
    cuts = FileCuts.fit(np.array(keys), n_files=n_files)
    at = np.searchsorted(cuts.starts, np.unique(keys), side="right")
    covered = {
        int(cuts.first_file[i]) + part for i in at for part in range(cuts.files[i])
    }
    assert covered == set(range(n_files))


def test_cuts_prefer_the_seams_of_the_curve() -> None:
    # 250 cells of a 16 x 16 grid: even cuts would go through three 8 x 8 quarters.
    cuts = FileCuts.fit(np.arange(250), n_files=4)
    assert cuts.starts.tolist() == [64, 128, 192]


def test_only_seam_bits_move_a_cut() -> None:
    # The lowest 6 bits are one column, on which no place is better than another.
    column_ends = 1 << 6 | 1
    starts = FileCuts.fit(np.arange(250), n_files=4, seam_bits=column_ends).starts
    assert starts.tolist() == [64, 128, 192], "a change of the first column is near"
    starts = FileCuts.fit(np.arange(60), n_files=3, seam_bits=column_ends).starts
    assert starts.tolist() == [20, 40], "none is near, so the files are even"


def test_unsampled_keys_stay_on_their_side_of_a_seam() -> None:
    sample = np.concatenate([np.arange(0, 60), np.arange(70, 128)])
    cuts = FileCuts.fit(sample, n_files=2)
    assert cuts.starts.tolist() == [64]
    assert cuts.assign(np.array([63, 64, 69])).tolist() == [0, 1, 1]


def test_check_06_one_constant_key_fills_all_files() -> None:
    for n_files in (1, 2, 7, 24):
        found = sizes([42] * 10_000, n_files)
        assert max(found) - min(found) <= 0.02 * 10_000 / n_files + 2


def test_check_06_a_skewed_key_is_dealt_out_among_its_own_files() -> None:
    rows = [1] * 1000 + [2] * 6000 + [3] * 1000
    cuts = FileCuts.fit(np.array(rows), n_files=8)
    files = cuts.assign(np.array(rows))
    assert np.bincount(files).max() <= 1.05 * np.bincount(files).min()
    assert set(files[:1000].tolist()) == {0}
    assert set(files[1000:7000].tolist()) == {1, 2, 3, 4, 5, 6}
    assert set(files[7000:].tolist()) == {7}


def test_crumbs_beside_an_overflowing_key_get_no_file() -> None:
    assert min(sizes([0] * 5 + [7] * 990 + [9] * 5, 4)) > 200
    assert min(sizes([5] * 500 + [6] * 10 + [7] * 500, 4)) > 200


def test_few_keys_still_fill_many_files() -> None:
    found = sizes([*range(10)] * 100, 12)
    assert len(found) == 12
    assert min(found) >= 45


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-(2**63), 2**63 - 1))),
    st.integers(1, 9),
    st.randoms(),
)
def test_a_row_goes_where_its_key_and_salt_say(
    rows: list[tuple[int, int]], n_files: int, random: object
) -> None:
    cuts = FileCuts.fit(np.array([0] * 90 + [1] * 9 + [2]), n_files=n_files)
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    def place(batch: list[tuple[int, int]]) -> dict[tuple[int, int], int]:
        keys, salt = np.array(batch, np.int64).reshape(-1, 2).T
        files = cuts.assign(keys, salt=np.ascontiguousarray(salt))
        return dict(zip(batch, files.tolist(), strict=True))

    assert place(rows) == place(shuffled)
    assert all(0 <= file < n_files for file in place(rows).values())


def test_salts_spread_evenly() -> None:
    cuts = FileCuts.fit(np.zeros(100, np.int64), n_files=10)
    assert cuts.needs_salt
    salt = np.random.default_rng(0).integers(-(2**63), 2**63, 100_000)
    counts = np.bincount(cuts.assign(np.zeros(100_000, np.int64), salt=salt))
    assert counts.max() <= 1.05 * counts.min()
    assert not FileCuts.fit(np.arange(100), n_files=10).needs_salt


def test_weights_count_instead_of_rows() -> None:
    keys = np.arange(100)
    weights = np.where(keys < 10, 9.0, 1.0)
    assert FileCuts.fit(keys, n_files=2).starts.tolist() == [48]
    assert FileCuts.fit(keys, n_files=2, weights=weights).starts.tolist() == [32]


def test_check_18_one_huge_row_counts_as_many() -> None:
    keys = np.arange(12)
    weights = np.ones(12)
    weights[4] = 5.0
    cuts = FileCuts.fit(keys, n_files=4, weights=weights)
    assert cuts.assign(keys).tolist() == [0] * 4 + [1] + [2] * 3 + [3] * 4


def test_no_sample_deals_rows_out() -> None:
    cuts = FileCuts.fit(np.array([], np.int64), n_files=4)
    counts = np.bincount(cuts.assign(np.arange(400)))
    assert counts.min() >= 95
    assert len(counts) == 4


def test_groups_are_cut_only_if_they_are_larger_than_a_file() -> None:
    group_of = np.repeat([0, 1, 2, 3, 4], [30, 30, 500, 40, 400])
    keys = (group_of << 20) | np.random.default_rng(1).integers(0, 2**20, 1000)
    cuts = FileCuts.fit(keys, n_files=10, group_bits=20)
    files = cuts.assign(keys)
    held = [sorted(set(files[group_of == g].tolist())) for g in range(5)]
    assert held == [[0], [0], [1, 2, 3, 4, 5], [5], [6, 7, 8, 9]]
    assert np.bincount(files).max() <= 1.5 * 100


@pytest.mark.parametrize("n_files", [3, 10, 33])
def test_groups_keep_the_order_of_the_curve_inside(n_files: int) -> None:
    rng = np.random.default_rng(2)
    group, x, y = rng.integers(0, 3, 4000), *rng.integers(0, 64, (2, 4000))
    keys = (group << 40) | interleave([x, y], bits=6)
    files = FileCuts.fit(keys, n_files=n_files, group_bits=40).assign(keys)
    order = np.argsort(keys, kind="stable")
    assert (np.diff(files[order]) >= 0).all()
    assert np.bincount(files, minlength=n_files).min() > 0
    for file in range(n_files):
        assert len(np.unique(group[files == file])) == 1
