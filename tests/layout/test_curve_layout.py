"""A whole clustering, and the worked examples of the sources on small grids."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Mapping
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.errors import LayoutError
from skipindex.layout import CURVES, Boundaries, CurveLayout, n_files_for
from skipindex.layout.curve_layout import cells_by_weight
from skipindex.layout.curves import interleave
from tests.quick_run import examples

Integers = npt.NDArray[np.int64]


def grid(*sides: int) -> list[Integers]:
    """The coordinates of every cell, in no useful order."""
    cells = np.stack(np.meshgrid(*map(np.arange, sides), indexing="ij"))
    flat = cells.reshape(len(sides), -1)
    return list(flat[:, np.random.default_rng(7).permutation(flat.shape[1])])


def table(*columns: npt.ArrayLike) -> pa.Table:
    """Columns a, b, c and so on."""
    names = "abcdefghij"[: len(columns)]
    return pa.table({n: np.asarray(c) for n, c in zip(names, columns, strict=True)})


def files_of(
    rows: pa.Table, curve: str, n_files: int, *, max_ranges: int | None = None
) -> npt.NDArray[np.int32]:
    """The file of every row, clustered by all columns and fitted to all."""
    names = rows.column_names
    ranges = None if max_ranges is None else dict.fromkeys(names, max_ranges)
    fitted = CurveLayout.fit(
        rows, names, curve=curve, n_files=n_files, max_ranges=ranges
    )
    return fitted.assign(rows.columns).files


def kept(
    files: npt.NDArray[np.int32],
    rows: pa.Table,
    *,
    any_of: bool = False,
    **ranges: tuple[int, int],
) -> int:
    """How many files min/max cannot skip for a range on each column.

    The ranges are closed; they are joined by OR if ``any_of``, else by AND.
    """
    n_files = int(files.max()) + 1
    columns: Mapping[str, Integers] = {n: rows[n].to_numpy() for n in ranges}
    hits = []
    for name, (low, high) in ranges.items():
        lowest = np.full(n_files, np.iinfo(np.int64).max)
        highest = np.full(n_files, np.iinfo(np.int64).min)
        np.minimum.at(lowest, files, columns[name])
        np.maximum.at(highest, files, columns[name])
        hits.append((lowest <= high) & (low <= highest))
    return int((np.any if any_of else np.all)(hits, axis=0).sum())


def ranks(values: npt.ArrayLike | list[str]) -> npt.NDArray[np.uint16]:
    array = pa.array(values)
    return Boundaries.fit(array, column="c").rank(array).astype(np.uint16)


def test_check_02_files_scanned_by_linear_and_z_order() -> None:
    rows = table(*grid(8, 8))
    scanned: dict[str, dict[str, list[int]]] = {}
    for curve in ("linear", "zorder"):
        files = files_of(rows, curve, 16)
        assert np.bincount(files).tolist() == [4] * 16
        scanned[curve] = {"a": [], "b": [], "or": [], "and": []}
        for x, y in itertools.product(range(8), repeat=2):
            both = {"a": (x, x), "b": (y, y)}
            scanned[curve]["a"].append(kept(files, rows, a=(x, x)))
            scanned[curve]["b"].append(kept(files, rows, b=(y, y)))
            scanned[curve]["or"].append(kept(files, rows, any_of=True, **both))
            scanned[curve]["and"].append(kept(files, rows, **both))
    at_2_2 = 2 * 8 + 2
    assert {k: v[at_2_2] for k, v in scanned["linear"].items()} == {
        "a": 2, "b": 8, "or": 9, "and": 1,
    }  # fmt: skip
    assert {k: v[at_2_2] for k, v in scanned["zorder"].items()} == {
        "a": 4, "b": 4, "or": 7, "and": 1,
    }  # fmt: skip
    assert fmean(scanned["linear"]["or"]) == 9.0
    assert fmean(scanned["zorder"]["or"]) == 7.0


def test_check_03_linear_order_loses_the_third_column() -> None:
    rows = table(*grid(8, 8, 8))
    linear, z_order = files_of(rows, "linear", 64), files_of(rows, "zorder", 64)
    assert kept(linear, rows, a=(4, 4)) == 8
    assert kept(linear, rows, c=(4, 4)) == 64
    for name in "abc":
        assert kept(z_order, rows, **{name: (4, 4)}) == 16


def test_check_06_constant_columns_still_fill_all_files() -> None:
    for curve in CURVES:
        files = files_of(table([1] * 5000, [7] * 5000), curve, 10)
        counts = np.bincount(files)
        assert len(counts) == 10
        assert counts.max() <= 1.05 * counts.min()


@pytest.mark.parametrize("curve", list(CURVES))
def test_a_constant_column_costs_the_others_nothing(curve: str) -> None:
    x, y = grid(16, 16)
    alone = files_of(table(x, y), curve, 16)
    beside = files_of(table(x, np.zeros(256), y), curve, 16)
    assert alone.tolist() == beside.tolist()


def test_check_13_more_columns_cluster_each_one_less() -> None:
    columns = np.random.default_rng(0).integers(0, 1000, (4, 20_000))
    shares = []
    for n_columns in (1, 2, 3, 4):
        rows = table(*columns[:n_columns])
        files = files_of(rows, "hilbert", 64)
        shares.append(fmean(kept(files, rows, a=(v, v)) for v in range(0, 1000, 50)))
    assert shares == sorted(shares)
    assert shares[0] <= 2
    assert shares[3] >= 8 * shares[0]


def test_check_15_grid_of_125_sub_tables() -> None:
    # Three columns of 25 values in 5 ranges each: b2 and c3 lie in a1 .. a5.
    rows = table(*grid(25, 25, 25))
    for curve in CURVES:
        files = files_of(rows, curve, 125, max_ranges=5)
        assert np.bincount(files).tolist() == [125] * 125
        assert kept(files, rows, b=(5, 9), c=(10, 14)) == 5
        assert kept(files, rows, b=(7, 7), c=(12, 12)) == 5


def test_check_16_linear_order_needs_the_leftmost_columns() -> None:
    rows = table(*grid(25, 25, 25))
    files = files_of(rows, "linear", 125)
    assert kept(files, rows, a=(7, 7), b=(7, 7)) <= 2, "the prefix is enough"
    assert kept(files, rows, b=(7, 7), c=(12, 12)) >= 5 * 5, "the rest is not"


def test_check_17_the_shape_of_a_query_matters() -> None:
    # 16 ranges each way, 16 files; both queries cover 16 of the 256 cells.
    rows = table(*grid(16, 16))
    cost = {
        curve: (
            kept(files_of(rows, curve, 16), rows, a=(0, 0)),
            kept(files_of(rows, curve, 16), rows, a=(0, 3), b=(0, 3)),
            kept(files_of(rows, curve, 16), rows, b=(0, 0)),
        )
        for curve in CURVES
    }
    assert min(cost.pop("hash")) >= 8
    assert cost == {"linear": (1, 4, 16), "zorder": (4, 1, 4), "hilbert": (4, 1, 4)}


def test_hilbert_stays_flat_where_files_are_no_power_of_four() -> None:
    # 32 x 32 grid, rectangles with sides 1, 2, 4 or 8: mean files touched.
    rows = table(*grid(32, 32))
    rng = np.random.default_rng(3)
    sides, corners = 1 << rng.integers(0, 4, (300, 2)), rng.random((300, 2))
    low = (corners * (33 - sides)).astype(int)
    boxes = np.stack([low, low + sides - 1], axis=2).tolist()
    for n_files, bound in ((28, 2.8), (43, 2.9), (52, 3.1), (64, 2.9)):
        mean = {
            curve: fmean(
                kept(files, rows, a=tuple(box[0]), b=tuple(box[1])) for box in boxes
            )
            for curve in CURVES
            for files in [files_of(rows, curve, n_files)]
        }
        assert mean["hilbert"] <= mean["zorder"] < mean["linear"]
        assert mean["hilbert"] <= bound


def test_check_24_age_17_is_in_one_of_four_sorted_files() -> None:
    ages = np.array([5, 41, 17, 33, 62, 11, 25, 16, 70, 29, 48, 19])
    rows = table(ages)
    files = files_of(rows, "linear", 4)
    assert sorted(ages[files == 1]) == [17, 19, 25]
    assert kept(files, rows, a=(17, 17)) == 1


def test_check_25_raw_values_of_other_scales_make_z_order_a_plain_sort() -> None:
    x, y = (c.ravel() for c in np.meshgrid(np.arange(8), [8, 16, 24, 32]))
    by_y_then_x = np.lexsort((x, y)).tolist()
    assert np.argsort(interleave([x, y], bits=6)).tolist() == by_y_then_x
    assert np.argsort(interleave([y, x], bits=6)).tolist() == by_y_then_x

    range_numbers = interleave([ranks(x), ranks(y)], bits=[3, 2])
    assert np.argsort(range_numbers).tolist() != by_y_then_x
    rows = table(x, y)
    assert kept(files_of(rows, "zorder", 8), rows, a=(0, 0)) < 8, "x is clustered too"


def test_check_26_keys_of_city_and_age_begin_at_0_without_gaps() -> None:
    city = np.repeat(["Bern", "Oslo", "Rome", "Ulm"], 4)
    age = np.tile([18, 30, 45, 90], 4)
    keys = interleave([ranks(city), ranks(age)], bits=2)
    assert sorted(keys.tolist()) == list(range(16))


def test_check_27_three_columns_skip_more_than_80_percent() -> None:
    rng = np.random.default_rng(5)
    rows = table(*rng.integers(0, 10_000, (3, 60_000)))
    files = files_of(rows, "zorder", 600)
    for name in "abc":
        mean = fmean(
            kept(files, rows, **{name: (v, v)}) for v in range(50, 10_000, 500)
        )
        assert mean < 0.2 * 600


def test_low_cardinality_beside_high_cardinality_gets_its_share() -> None:
    rng = np.random.default_rng(6)
    rows = table(rng.integers(0, 3, 50_000), rng.integers(0, 10**9, 50_000))
    files = files_of(rows, "hilbert", 48)
    assert fmean(kept(files, rows, a=(v, v)) for v in range(3)) <= 24
    assert kept(files, rows, b=(5 * 10**8, 5 * 10**8)) <= 12


def test_skewed_columns_cluster_as_well_as_even_ones() -> None:
    rng = np.random.default_rng(8)

    def zipf(n_values: int) -> npt.NDArray[np.int64]:
        weights = 1 / np.arange(1, n_values + 1) ** 1.3
        return rng.choice(n_values, 40_000, p=weights / weights.sum())

    rows = table(zipf(250), zipf(20), rng.integers(0, 1000, 40_000))
    files = files_of(rows, "hilbert", 64)
    # A perfect cube of 4 x 4 x 4 files would keep 16 for each column.
    for name, values in (("a", range(10)), ("b", range(10)), ("c", range(0, 1000, 50))):
        assert fmean(kept(files, rows, **{name: (v, v)}) for v in values) <= 20


@given(
    st.lists(st.floats(0, 1000), min_size=1, max_size=40),
    st.integers(0, 3),
)
def test_cells_keep_the_order_of_ranges_and_tell_them_apart(
    weights: list[float], spare: int
) -> None:
    n_ranges = len(weights)
    bits = (n_ranges - 1).bit_length() + spare
    cells = cells_by_weight(np.array(weights), bits=bits).tolist()
    assert cells == sorted(set(cells))
    assert len(cells) == n_ranges
    assert cells[-1] < 1 << bits
    narrow = cells_by_weight(np.array(weights), bits=bits // 2).tolist()
    assert narrow == sorted(narrow)
    assert narrow[-1] < 1 << bits // 2


@examples(50)
@given(
    st.lists(
        st.tuples(
            st.integers(-5, 5) | st.none(),
            st.floats(width=16) | st.none(),
            st.text("ab", max_size=2) | st.none(),
        ),
        max_size=40,
    ),
    st.integers(1, 6),
    st.sampled_from(list(CURVES)),
    st.booleans(),
)
def test_every_row_gets_a_file_and_equal_rows_the_same_key(
    rows: list[tuple[Any, Any, Any]], n_files: int, curve: str, partitioned: bool
) -> None:
    types = (pa.int32(), pa.float64(), pa.string())
    columns = zip(*rows, strict=True) if rows else [(), (), ()]
    data = pa.table(
        {n: pa.array(c, t) for n, c, t in zip("abc", columns, types, strict=True)}
    )
    parts = ["c"] if partitioned else []
    by = ["a", "b"] if partitioned else ["a", "b", "c"]
    fitted = CurveLayout.fit(
        data.slice(0, len(rows) // 2),
        by,
        n_files=n_files,
        curve=curve,
        partition_by=parts,
    )
    assert fitted.columns == (*parts, *by)
    found = fitted.assign([data[name] for name in fitted.columns])
    assert len(found.keys) == len(found.files) == len(rows)
    assert ((found.files >= 0) & (found.files < n_files)).all()
    assert (found.keys >= 0).all()
    again = pickle.loads(pickle.dumps(fitted)).assign(
        [data[name] for name in fitted.columns]
    )
    assert found.keys.tolist() == again.keys.tolist()
    key_of: dict[str, int] = {}
    for row, key in zip(rows, found.keys.tolist(), strict=True):
        assert key_of.setdefault(repr(row), key) == key


def test_partition_values_share_a_file_only_if_they_are_small() -> None:
    rng = np.random.default_rng(9)
    part = rng.choice([3, 1, 2, 7], 20_000, p=[0.5, 0.4, 0.06, 0.04])
    rows = pa.table(
        {"p": part, **dict(zip("xy", rng.random((2, 20_000)), strict=True))}
    )
    fitted = CurveLayout.fit(rows, ["x", "y"], n_files=10, partition_by=["p"])
    files = fitted.assign([rows[name] for name in fitted.columns]).files
    held = {int(p): set(files[part == p].tolist()) for p in (1, 2, 3, 7)}
    assert len(held[1]) == 4
    assert 4 <= len(held[3]) <= 5
    assert len(held[2]) == len(held[7]) == 1
    assert not held[1] & held[3], "no file holds rows of both large values"
    assert np.bincount(files, minlength=10).max() <= 1.5 * 2_000


def test_many_wide_columns_fit_in_one_key() -> None:
    columns = np.random.default_rng(4).integers(0, 10**9, (10, 5_000))
    rows = table(*columns)
    for curve in CURVES:
        fitted = CurveLayout.fit(rows, rows.column_names, n_files=4, curve=curve)
        found = fitted.assign(rows.columns)
        assert (found.keys >= 0).all()
        assert len(np.unique(found.files)) == 4
        assert sum(axis.bits for axis in fitted.axes) <= 63


def test_files_of_a_sample_fit_the_whole_table() -> None:
    rng = np.random.default_rng(10)
    rows = table(rng.zipf(1.3, 200_000) % 10_000, rng.normal(size=200_000))
    sample = rows.take(rng.choice(200_000, 20_000, replace=False))
    for curve in CURVES:
        fitted = CurveLayout.fit(sample, ["a", "b"], n_files=20, curve=curve)
        counts = np.bincount(fitted.assign(rows.columns).files, minlength=20)
        assert counts.max() <= 1.5 * 10_000
        assert counts.min() >= 0.6 * 10_000


def test_row_sizes_give_files_of_equal_size() -> None:
    rng = np.random.default_rng(11)
    x, size = rng.random(20_000), rng.lognormal(sigma=1.5, size=20_000)
    size[x < 0.2] *= 20
    rows = table(x)
    fitted = CurveLayout.fit(rows, ["a"], n_files=10, weights=size)
    volumes = np.bincount(fitted.assign(rows.columns).files, size)
    assert volumes.max() <= 1.7 * volumes.min()
    counts = np.bincount(fitted.assign(rows.columns).files)
    assert counts.max() > 3 * counts.min()


def test_check_05_number_of_files() -> None:
    assert n_files_for(0, 100) == 1
    assert n_files_for(99, 100) == n_files_for(100, 100) == 1
    assert n_files_for(101, 100) == 2
    with pytest.raises(LayoutError, match="files of 0 rows"):
        n_files_for(10, 0)


def test_impossible_clusterings_are_refused_in_one_sentence() -> None:
    rows = table([1, 2], [3, 4])
    with pytest.raises(LayoutError, match="into 0 files"):
        CurveLayout.fit(rows, ["a"], n_files=0)
    with pytest.raises(LayoutError, match="by no columns"):
        CurveLayout.fit(rows, [], n_files=1)
    with pytest.raises(LayoutError, match=r"by 'z': the sample has \['a', 'b'\]"):
        CurveLayout.fit(rows, ["a", "z"], n_files=1)
    with pytest.raises(LayoutError, match="no curve is named 'peano'"):
        CurveLayout.fit(rows, ["a"], n_files=1, curve="peano")
