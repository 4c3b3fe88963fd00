"""Curves: keys bit by bit, bijections, unit steps, and keys of too many bits."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.errors import LayoutError
from skipindex.layout.curves import (
    CURVES,
    curve_named,
    hash_curve,
    hilbert,
    interleave,
    linear,
)

ORDERED = [name for name in CURVES if name != "hash"]
"""The curves that keep neighbours together."""

widths = st.lists(st.integers(0, 17), min_size=1, max_size=6).filter(
    lambda bits: sum(bits) <= 63
)


@st.composite
def ranks_and_bits(draw: st.DrawFn) -> tuple[list[list[int]], list[int]]:
    bits = draw(widths)
    n_rows = draw(st.integers(1, 5))
    ranks = [
        draw(st.lists(st.integers(0, 2**b - 1), min_size=n_rows, max_size=n_rows))
        for b in bits
    ]
    return ranks, bits


def interleaved_bit_by_bit(ranks: list[int], bits: list[int]) -> int:
    key = 0
    for level in range(max(bits)):
        for rank, width in zip(ranks, bits, strict=True):
            if width > level:
                key = key << 1 | rank >> (width - 1 - level) & 1
    return key


def full_grid(*bits: int) -> npt.NDArray[np.int64]:
    """Every cell of the grid, one a row."""
    return np.array(list(itertools.product(*(range(2**b) for b in bits))))


def test_check_01_interleave_begins_with_the_first_column() -> None:
    assert interleave([214, 97], bits=8) == 46633 == 0b1011011000101001
    assert interleave([97, 214], bits=8) == 30998


def test_check_08_geohash_example() -> None:
    # x in [2, 3], y in [4, 5], y first: the four cells are one run of the curve.
    cells = [int(interleave([y, x], bits=3)) for y in (4, 5) for x in (2, 3)]
    assert sorted(cells) == [36, 37, 38, 39]
    assert interleave([4, 2], bits=3) == 0b100100
    assert interleave([5, 3], bits=3) == 0b100111


def test_check_09_faults_inside_a_range_of_the_curve() -> None:
    # x in [1, 3], y in [3, 4], y first: 6 cells in a run of 27, so 21 faults.
    cells = {int(interleave([y, x], bits=3)) for y in (3, 4) for x in (1, 2, 3)}
    run = range(min(cells), max(cells) + 1)
    assert (run.start, run.stop - 1) == (11, 37)
    assert len(run) == 27
    assert len(set(run) - cells) == 21


def test_check_10_number_of_a_pair_of_range_numbers() -> None:
    assert interleave([68, 102], bits=16) == 13364 == 0b0011010000110100
    assert interleave([102, 68], bits=16) == 14392


def test_check_17_order_of_the_quarters() -> None:
    top, bottom, left, right = 0, 1, 0, 1
    quarters = {
        "TL": interleave([top, left], bits=1),
        "TR": interleave([top, right], bits=1),
        "BL": interleave([bottom, left], bits=1),
        "BR": interleave([bottom, right], bits=1),
    }
    assert sorted(quarters, key=quarters.__getitem__) == ["TL", "TR", "BL", "BR"]
    low, high = 0, 1
    quarters = {
        "BL": hilbert([left, low], bits=1),
        "TL": hilbert([left, high], bits=1),
        "TR": hilbert([right, high], bits=1),
        "BR": hilbert([right, low], bits=1),
    }
    assert sorted(quarters, key=quarters.__getitem__) == ["BL", "TL", "TR", "BR"]


@given(ranks_and_bits())
def test_interleave_equals_the_bit_by_bit_definition(
    case: tuple[list[list[int]], list[int]],
) -> None:
    ranks, bits = case
    expected = [interleaved_bit_by_bit(list(r), bits) for r in zip(*ranks, strict=True)]
    assert interleave(ranks, bits=bits).tolist() == expected


@given(ranks_and_bits())
def test_linear_keys_sort_like_tuples(
    case: tuple[list[list[int]], list[int]],
) -> None:
    ranks, bits = case
    rows = list(zip(*ranks, strict=True))
    keys = linear(ranks, bits=bits).tolist()
    for i, j in itertools.combinations(range(len(rows)), 2):
        assert (keys[i] < keys[j]) == (rows[i] < rows[j])
        assert (keys[i] == keys[j]) == (rows[i] == rows[j])


@pytest.mark.parametrize(
    ("n_axes", "bits"),
    [(1, 5), (2, 1), (2, 2), (2, 5), (3, 1), (3, 3), (4, 1), (4, 3), (5, 2)],
)
def test_hilbert_visits_every_cell_in_unit_steps(n_axes: int, bits: int) -> None:
    cells = full_grid(*[bits] * n_axes)
    keys = hilbert(list(cells.T), bits=bits)
    assert sorted(keys.tolist()) == list(range(2 ** (bits * n_axes)))
    path = cells[np.argsort(keys)]
    assert (np.abs(np.diff(path, axis=0)).sum(axis=1) == 1).all()
    assert not path[0].any(), "the curve begins at the origin"


@pytest.mark.parametrize("bits", [(3, 3), (4, 1), (1, 4), (2, 0, 3), (3, 1, 2, 2)])
@pytest.mark.parametrize("name", list(CURVES))
def test_every_cell_has_its_own_key(name: str, bits: tuple[int, ...]) -> None:
    cells = full_grid(*bits)
    keys = curve_named(name)(list(cells.T), bits=bits)
    assert len(np.unique(keys)) == len(cells)
    assert keys.dtype == np.int64
    assert keys.min() >= 0


def test_hilbert_splits_a_narrow_axis_as_early_as_a_wide_one() -> None:
    # 64 x 2 cells: the first half of the curve is one value of the narrow axis or
    # one half of the wide one, and each quarter is a box of a half by a value.
    cells = full_grid(6, 1)
    path = cells[np.argsort(hilbert(list(cells.T), bits=(6, 1)))]
    for quarter in np.split(path, 4):
        assert len(np.unique(quarter[:, 1])) == 1
        assert len(np.unique(quarter[:, 0] // 32)) == 1


@given(
    st.integers(1, 4).flatmap(
        lambda n: st.lists(
            st.tuples(*[st.integers(0, 2**9 - 1)] * n), min_size=2, max_size=20
        )
    ),
    st.integers(1, 8),
)
def test_cutting_a_hilbert_key_makes_larger_cells(
    rows: list[tuple[int, ...]], cut: int
) -> None:
    cells = np.array(rows)
    fine = hilbert(list(cells.T), bits=9) >> (cut * cells.shape[1])
    coarse = [tuple(row) for row in (cells >> cut).tolist()]
    for i, j in itertools.combinations(range(len(rows)), 2):
        assert (fine[i] == fine[j]) == (coarse[i] == coarse[j])


@given(
    st.sampled_from(ORDERED),
    st.lists(st.integers(0, 12), min_size=1, max_size=5),
    st.integers(5, 63),
    st.data(),
)
def test_shared_bits_give_the_high_end_of_the_full_key(
    name: str, wanted: list[int], total: int, data: st.DataObject
) -> None:
    shape = curve_named(name)
    if name == "hilbert":  # its full key must be possible
        wanted = [min(bits, 63 // len(wanted)) for bits in wanted]
    given_bits = shape.share_bits(wanted, total=total)
    assert all(0 <= g <= w for g, w in zip(given_bits, wanted, strict=True))
    assert sum(given_bits) <= total

    rows = [
        data.draw(st.lists(st.integers(0, 2**w - 1), min_size=4, max_size=4))
        for w in wanted
    ]
    full = shape(rows, bits=wanted)
    cut = [
        np.array(row) >> (w - g)
        for row, w, g in zip(rows, wanted, given_bits, strict=True)
    ]
    if name == "hilbert":
        n_used = sum(bits > 0 for bits in wanted)
        dropped = n_used * (max(wanted) - max(given_bits))
    else:
        dropped = sum(wanted) - sum(given_bits)
    assert (full >> dropped).tolist() == shape(cut, bits=given_bits).tolist()


def test_shared_bits_are_cut_from_the_low_end() -> None:
    assert curve_named("zorder").share_bits([16, 2, 16], total=20) == (9, 2, 9)
    assert curve_named("zorder").share_bits([16, 2, 16], total=21) == (10, 2, 9)
    assert curve_named("hilbert").share_bits([16, 2, 16, 0], total=20) == (6, 2, 6, 0)
    assert curve_named("linear").share_bits([16, 2, 16], total=20) == (16, 2, 2)
    assert curve_named("zorder").share_bits([16] * 5) == (13, 13, 13, 12, 12)


def test_seams_are_boxes_of_a_grid_or_changes_of_a_column() -> None:
    assert curve_named("linear").seam_bits([3, 0, 2]) == 0b00101
    for name in ("hilbert", "zorder"):
        assert curve_named(name).seam_bits([3, 2]) == 2**63 - 1


@pytest.mark.parametrize("name", ORDERED)
def test_keys_of_one_column_are_its_ranks(name: str) -> None:
    ranks = np.arange(1 << 16, dtype=np.uint16)
    assert (curve_named(name)([ranks], bits=16) == ranks).all()


@pytest.mark.parametrize("name", list(CURVES))
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.int64, np.uint64])
def test_keys_do_not_depend_on_the_type_of_the_ranks(
    name: str, dtype: type[np.integer]
) -> None:
    ranks = [np.array([0, 1, 200, 255]), np.array([255, 3, 7, 0])]
    expected = curve_named(name)(ranks, bits=(20, 9))
    found = curve_named(name)([r.astype(dtype) for r in ranks], bits=(20, 9))
    assert found.tolist() == expected.tolist()
    assert ranks[0].tolist() == [0, 1, 200, 255], "the ranks are left alone"


@pytest.mark.parametrize("name", list(CURVES))
def test_the_widest_key_is_not_negative(name: str) -> None:
    ranks = [np.array([0, 2**21 - 1])] * 3
    keys = curve_named(name)(ranks, bits=21)
    assert keys.min() == 0
    assert len(set(keys.tolist())) == 2


@pytest.mark.parametrize("name", list(CURVES))
def test_no_rows_and_no_bits(name: str) -> None:
    nothing = np.array([], np.uint16)
    assert curve_named(name)([nothing, nothing], bits=3).shape == (0,)
    zeros = np.zeros(4, np.uint16)
    assert curve_named(name)([zeros, zeros], bits=0).tolist() == [0] * 4


def test_an_unknown_curve_names_the_known_ones() -> None:
    with pytest.raises(LayoutError, match=r"'peano' .*'hilbert', 'zorder', 'linear'"):
        curve_named("peano")


@pytest.mark.parametrize("name", list(CURVES))
def test_ranks_that_do_not_fit_are_refused(name: str) -> None:
    shape = curve_named(name)
    with pytest.raises(LayoutError, match="rank 4 of axis 1 does not fit in 2 bits"):
        shape([[3], [4]], bits=2)
    with pytest.raises(LayoutError, match="rank -1 of axis 0"):
        shape([[-1], [3]], bits=2)
    with pytest.raises(LayoutError, match="must be integers, not float64"):
        shape([[0.5], [3]], bits=2)
    with pytest.raises(LayoutError, match=r"64 bits .accepted: 0 to 63."):
        shape([[0], [0]], bits=32)
    with pytest.raises(LayoutError, match="2 axes with bits for 3"):
        shape([[0], [0]], bits=[1, 2, 3])
    with pytest.raises(LayoutError, match="0 axes"):
        shape([], bits=3)


def test_hilbert_refuses_a_cube_that_is_too_wide() -> None:
    with pytest.raises(LayoutError, match="80 bits"):
        hilbert([[0], [0]], bits=[40, 2])


@pytest.mark.parametrize("name", list(CURVES))
def test_more_columns_than_bits_are_refused(name: str) -> None:
    with pytest.raises(LayoutError, match="cannot cluster by 64 columns"):
        curve_named(name).share_bits([1] * 64)


def test_the_hash_curve_scatters_neighbours_evenly() -> None:
    """Files are runs of keys: 64 neighbours are in nearly all of 8 files."""
    ranks = np.arange(4096)
    keys = hash_curve([ranks], bits=12)
    assert sorted(keys.tolist()) == list(range(4096))
    files = keys >> 9
    for run in np.split(files, 64):
        assert len(set(run.tolist())) >= 7
