"""Choosing: what is taken, what is given up under the cap, and what is remembered."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skipindex as sx
from skipindex import advice as advice_module
from skipindex.advice import advised_build as advice_build
from skipindex.advice.advise import measure
from skipindex.advice.sample import SMALL_SAMPLE, take_sample
from skipindex.advice.selection import choose
from skipindex.api.types import Advice
from skipindex.errors import AdviceError, PredicateError, UnsupportedTypeError
from skipindex.log.properties import TableProperties
from skipindex.table import open_state
from tests.tables import kept, put, put_all

N_ROWS = 12_000
QUERIES = ["city = 7 AND color = 'c11'", "price BETWEEN 500000 AND 500020"]


def rows(i: int) -> dict[str, Any]:
    """A file in which all values are spread over all rows, but for ``day``."""
    rng = np.random.default_rng(i)
    return {
        "city": pa.array(rng.integers(0, 400, N_ROWS), pa.int32()),
        "color": pa.array([f"c{n}" for n in rng.integers(0, 120, N_ROWS)]),
        "price": pa.array(rng.integers(0, 10**6, N_ROWS)),
        "key": pa.array(rng.integers(0, 10**12, N_ROWS)),
        "day": pa.array(np.full(N_ROWS, i), pa.int32()),
        "one": pa.array(np.full(N_ROWS, 5), pa.int16()),
        "list": pa.array([[1]] * N_ROWS),
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return put_all(tmp_path_factory.mktemp("made"), [rows(i) for i in range(5)])


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    for path in made.iterdir():
        (tmp_path / path.name).hardlink_to(path)
    return tmp_path


@pytest.fixture(scope="module")
def built_once(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table of ``made`` with what is chosen for it."""
    folder = tmp_path_factory.mktemp("built") / "t"
    shutil.copytree(made, folder)
    sx.build_indexes(folder, workers=1)
    return folder


@pytest.fixture
def built(built_once: Path, tmp_path: Path) -> Path:
    """A copy for a test that changes it."""
    return Path(shutil.copytree(built_once, tmp_path / "t"))


def chosen(advice: Advice) -> dict[str, tuple[str, ...]]:
    return {c.name: tuple(s.kind for s in c.specs) for c in advice.columns}


@pytest.mark.slow
def test_a_choice_stays_under_the_cap_when_it_is_built(folder: Path) -> None:
    for ratio in (0.3, 0.5):
        sx.open_table(folder).drop_indexes()
        report = sx.build_indexes(folder, max_bytes_ratio=ratio, workers=1)
        data = sum(path.stat().st_size for path in folder.glob("*.parquet"))
        assert 0 < report.n_bytes <= ratio * data
        assert isinstance(report, advice_build.AdvisedReport)
        assert report.advice is not None
        assert report.advice.max_bytes == int(ratio * data)
        assert report.n_bytes == pytest.approx(report.advice.n_bytes, rel=0.15), (
            "the sample's bytes should be those of the table"
        )


def test_every_ordered_column_gets_statistics(built: Path) -> None:
    table = sx.open_table(built)
    assert set(table.state.snapshot.manifest.stats) == {
        "city", "color", "price", "key", "day", "one"
    }  # fmt: skip
    assert kept(table, "day = 3") == ["3.parquet"]


def test_bytes_go_to_the_columns_that_queries_ask_for(made: Path) -> None:
    advice = sx.open_table(made).advise(queries=QUERIES, max_bytes_ratio=0.4)
    assert set(chosen(advice)) == {"city", "color", "price"}
    assert all(chosen(advice).values()), "each is of use"
    assert set(advice.unasked) == {"key", "day", "one"}
    assert {name: len(specs) for name, specs in advice.request.items()}["key"] == 1


def test_what_was_asked_for_is_not_called_never_asked_for(tmp_path: Path) -> None:
    """A timestamp that is written without a zone, and a function of no index."""
    moments = pa.array([0, 10**15], pa.timestamp("us", tz="UTC"))
    one = {"t": moments, "a": [1, 2], "s": ["x", "y"], "never": [1, 2]}
    put_all(tmp_path, [pa.table(one)] * 3)
    table = sx.open_table(tmp_path)
    queries = ["t > '2001-01-01 00:00:00' AND a = 1", "md5(s) = 'never'"]
    advice = table.advise(queries=queries)
    assert advice.unasked == ("never",)
    assert advice.not_judged.keys() == {"t", "s"}
    assert "time zone" in advice.not_judged["t"]
    text = str(advice)
    assert "in no query: never\n" in text
    assert "not judged: t (" in text
    assert set(advice.request) == {"t", "a", "s", "never"}
    for zone in ("UTC", "Europe/Berlin"):
        assert table.advise(queries=queries, timezone=zone).not_judged.keys() == {"s"}


def test_the_advice_is_six_lines_that_are_true(made: Path, tmp_path: Path) -> None:
    """What it reads now is what plans read, and then about what they will read."""
    folder = Path(shutil.copytree(made, tmp_path / "t"))
    table = sx.open_table(folder)
    advice = table.advise(queries=QUERIES, max_bytes_ratio=0.4)
    text = str(advice)
    assert text.count("\n") <= 5
    assert text.startswith(f"your {len(QUERIES)} queries read 5 of 5 files on average")
    assert "to build: table.build_indexes(advice.request)" in text
    table = table.build_indexes(advice.request, workers=1).table
    read = [len(table.plan(query).paths) for query in QUERIES]
    again = table.advise(queries=QUERIES, max_bytes_ratio=0.4)
    assert [query.files_now for query in again.queries] == read
    assert [query.files_then for query in advice.queries] == read
    n = sum(len(column.specs) for column in advice.columns)
    assert f"; with these {n} indexes about " in text
    drawn = str(table.advise())
    assert "sample conditions read" in drawn
    one = str(table.advise(queries=QUERIES[:1], max_bytes_ratio=1e-9))
    assert one.startswith("your query reads ")
    assert "with min/max only, because no index pays for its bytes" in one


def test_a_look_up_of_a_key_is_worth_no_row(made: Path) -> None:
    advice = sx.open_table(made).advise(
        queries=["key = 123456789"], max_bytes_ratio=0.1
    )
    assert chosen(advice)["key"] == ("bloom",)
    assert 0 < advice.n_bytes < advice.data_bytes * 0.1
    assert advice.kept[0] > advice.kept[1] == 0
    assert "cut to fit" not in advice.columns[0].reason, "a larger one keeps no fewer"


def test_a_range_is_never_served_by_a_bloom_filter(made: Path) -> None:
    advice = sx.open_table(made).advise(queries=[QUERIES[1]], max_bytes_ratio=0.4)
    (price,) = chosen(advice)["price"]
    assert price in {"bitmap", "bit_sliced", "exact", "run_length"}


def test_min_max_is_enough_where_it_skips_by_itself(made: Path) -> None:
    advice = sx.open_table(made).advise(queries=["day = 3", "one = 4"])
    assert chosen(advice) == {"day": (), "one": ()}
    (day, _) = advice.columns
    assert day.overlap < 0.5
    assert "clustered over files" in day.reason


def test_under_a_cap_the_top_slices_are_kept(made: Path) -> None:
    queries = ["city = 7 AND price < 1000"]
    full = sx.open_table(made).advise(queries=queries, max_bytes_ratio=1)
    n_slices, reasons = [], []
    for part in (0.9, 0.6, 0.5, 0.2):
        ratio = part * full.n_bytes / full.data_bytes
        cut = sx.open_table(made).advise(queries=queries, max_bytes_ratio=ratio)
        assert full.n_bytes > cut.max_bytes >= cut.n_bytes
        reasons += [column.reason for column in cut.columns]
        specs = [spec for column in cut.columns for spec in column.specs]
        n_slices += [getattr(spec, "max_slices", None) for spec in specs]
    assert any(n_slices), "some column is known up to bins"
    assert any("cut to fit under the cap" in reason for reason in reasons)


def test_what_keeps_no_file_fewer_is_not_bought(made: Path) -> None:
    """One row of the file is left instead of all: the file is read all the same."""
    advice = sx.open_table(made).advise(
        queries=["city < 200", "color > 'c5'"], max_bytes_ratio=9
    )
    assert chosen(advice) == {"city": (), "color": ()}
    for column in advice.columns:
        assert "no index skips more than min/max" in column.reason


@pytest.mark.parametrize(
    "ratio",
    [0.05, *(pytest.param(own, marks=pytest.mark.slow) for own in (0.02, 0.1, 0.2))],
)
def test_under_a_cap_too_what_keeps_no_file_fewer_is_not_bought(
    made: Path, ratio: float
) -> None:
    cut = sx.open_table(made).advise(max_bytes_ratio=ratio)
    has_kept_fewer = cut.kept[1] < cut.kept[0]
    assert any(chosen(cut).values()) == has_kept_fewer


@pytest.mark.parametrize(
    "ratios",
    [
        (0.05, 0.5),
        pytest.param(
            (0.05, 0.07, 0.1, 0.13, 0.15, 0.2, 0.3, 0.5, 1.0), marks=pytest.mark.slow
        ),
    ],
    ids=["some", "all"],
)
def test_a_larger_cap_never_costs_more_for_the_questions_that_are_asked(
    made: Path, ratios: Sequence[float]
) -> None:
    """What is useless under a cap is given up, and its bytes go to other columns."""
    state = open_state(made)
    columns = [state.find(name) for name in ("city", "color", "price", "key", "day")]
    scores = measure(take_sample(state, columns, SMALL_SAMPLE), [], [])
    costs = []
    for ratio in ratios:
        selection = choose(scores, ratio * scores.sample.n_bytes)
        assert scores.n_bytes(selection) <= ratio * scores.sample.n_bytes
        every = [pair for pairs in scores.pairs for pair in pairs]
        costs.append(sum(scores.cost(pair, selection) for pair in every))
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > 2 * costs[-1]


def test_the_cap_is_of_the_table(folder: Path) -> None:
    """What was named before counts, and an earlier choice makes room."""
    data = sum(path.stat().st_size for path in folder.glob("*.parquet"))
    query = ["key = 123456789"]
    by_name = sx.build_indexes(folder, {"price": "bitmap"}, workers=1).table
    taken = sum(p.size for p in by_name.state.snapshot.manifest.packs) / data
    report = sx.build_indexes(folder, queries=query, max_bytes_ratio=taken, workers=1)
    assert isinstance(report, advice_build.AdvisedReport)
    assert report.advice is not None
    assert not any(chosen(report.advice).values())
    more = sx.build_indexes(
        folder, queries=query, max_bytes_ratio=taken + 0.2, workers=1
    ).table
    assert more.state.blobs(more.state.resolve("key"))
    other = sx.build_indexes(
        folder, queries=["price < 5"], max_bytes_ratio=taken + 0.2, workers=1
    ).table
    assert not other.state.blobs(other.state.resolve("key")), (
        "the earlier choice is given up"
    )
    assert other.state.blobs(other.state.resolve("price")), "it was named"


def test_law_1_a_cut_choice_keeps_every_file_with_a_match(folder: Path) -> None:
    wanted = "city < 3 AND color >= 'c9' AND price < 30000"
    expected = []
    for i in range(5):
        data = rows(i)
        match = [
            a < 3 and b >= "c9" and c < 30000
            for a, b, c in zip(
                data["city"].to_pylist(),
                data["color"].to_pylist(),
                data["price"].to_pylist(),
                strict=True,
            )
        ]
        if any(match):
            expected.append(f"{i}.parquet")
    for ratio in (0.03, 0.08, 0.2):
        sx.open_table(folder).drop_indexes()
        report = sx.build_indexes(
            folder, queries=[wanted], max_bytes_ratio=ratio, workers=1
        )
        assert set(expected) <= set(kept(report.table, wanted))


@pytest.mark.slow
def test_the_same_sample_gives_the_same_choice(made: Path) -> None:
    first, second = sx.open_table(made).advise(), sx.open_table(made).advise()
    assert first.request == second.request


def test_a_named_column_gets_the_whole_cap(made: Path) -> None:
    advice = sx.open_table(made).advise(columns=["CITY"], queries=QUERIES)
    assert set(chosen(advice)) == {"city"}
    assert advice.unasked == ()


def test_what_if_names_each_candidate_and_its_bytes(made: Path) -> None:
    advice = sx.open_table(made).advise(queries=QUERIES, max_bytes_ratio=0.4)
    query = advice.queries[0]
    assert query.text == QUERIES[0]
    assert query.with_minmax >= query.with_choice >= query.with_all
    assert query.trials["city"]["minmax"][0] == query.with_minmax
    city = next(c for c in advice.columns if c.name == "city")
    sizes = [trial.n_bytes for trial in city.trials]
    assert sizes == sorted(sizes)
    assert sizes[0] == 0
    text = advice.details()
    assert "files kept, of 5 sampled files" in text
    assert all(query in text for query in QUERIES)
    record = advice.to_dict()
    assert record["columns"][0]["trials"][0]["specs"] == []


def test_a_second_build_after_an_append_builds_what_was_chosen(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = sx.build_indexes(folder, queries=QUERIES, max_bytes_ratio=0.3, workers=1)
    put(folder / "new.parquet", rows(9))
    monkeypatch.setattr(advice_build, "advise", None)  # it is not asked again
    again = sx.build_indexes(folder, queries=QUERIES, max_bytes_ratio=0.3, workers=1)
    assert (again.files, again.unchanged) == (1, 5)
    assert "chosen indexes are used" in str(again)
    names = first.table.state.snapshot.properties.to_json()["choice"]["indexes"]
    assert again.table.state.snapshot.properties.to_json()["choice"]["indexes"] == names
    third = sx.build_indexes(folder, queries=QUERIES, max_bytes_ratio=0.3, workers=1)
    assert third.table.state.snapshot.version == again.table.state.snapshot.version


@pytest.mark.parametrize("other", [{"max_bytes_ratio": 0.2}, {"columns": ["city"]}])
def test_other_arguments_choose_anew(built: Path, other: dict[str, Any]) -> None:
    report = sx.build_indexes(built, workers=1, **other)
    assert isinstance(report, advice_build.AdvisedReport)
    assert report.advice is not None


def test_dropping_indexes_forgets_the_choice(built: Path) -> None:
    table = sx.open_table(built).drop_indexes(kinds=["bloom"])
    assert table.state.snapshot.properties.choice is None


def test_a_damaged_choice_is_made_anew(built: Path) -> None:
    table = sx.open_table(built)
    criteria = advice_build.AdviceRequest()
    choice = table.state.snapshot.properties.to_json()["choice"]
    assert advice_build._remembered(table.state, criteria) is not None
    for damage in (
        {"indexes": {"gone": []}},
        {"indexes": {"city": [{"kind": "nonsense"}]}},
        {"indexes": None},
        {"wish": None},
    ):
        properties = TableProperties(choice={**choice, **damage})
        table.state.snapshot = replace(table.state.snapshot, properties=properties)
        assert advice_build._remembered(table.state, criteria) is None


def test_files_that_cannot_be_read_are_left_out_of_the_sample(tmp_path: Path) -> None:
    put_all(tmp_path, [rows(i) for i in range(2)])
    (tmp_path / "1.parquet").write_bytes(b"PAR1 no")
    put(tmp_path / "2.parquet", {**rows(2), "city": ["text"] * N_ROWS})
    put(tmp_path / "3.parquet", pa.table(rows(3)).slice(0, 0))
    advice = sx.open_table(tmp_path).advise()
    why = "no rows could be sampled"
    assert advice.not_judged["city"] == why, "a file has it in another type"
    assert "not readable" in " ".join(advice.notes)
    report = sx.build_indexes(tmp_path, workers=1)
    assert (report.files, report.unread) == (3, 1)


def test_a_table_without_rows_gets_statistics(tmp_path: Path) -> None:
    put(tmp_path / "0.parquet", pa.table(rows(0)).slice(0, 0))
    report = sx.build_indexes(tmp_path, workers=1)
    assert report.n_bytes == 0
    assert "no sampled file has a row" in str(report)


@pytest.mark.parametrize("ratio", [0, -1, float("nan"), float("inf")])
def test_a_cap_is_a_number_above_0(made: Path, ratio: float) -> None:
    with pytest.raises(AdviceError, match="accepted: a number above 0"):
        sx.open_table(made).advise(max_bytes_ratio=ratio)


def test_questions_of_other_tables_are_noted(made: Path) -> None:
    advice = sx.open_table(made).advise(queries=["nowhere = 3", *QUERIES])
    assert any("'nowhere = 3' ignored: no column" in note for note in advice.notes)
    with pytest.raises(AdviceError, match="no query can be evaluated"):
        sx.open_table(made).advise(queries=["nowhere = 3"])
    with pytest.raises(AdviceError, match="none is given"):
        sx.open_table(made).advise(queries=[])


def test_named_columns_must_exist_and_have_an_order(made: Path) -> None:
    with pytest.raises(PredicateError, match="no column 'nope'"):
        sx.open_table(made).advise(columns=["nope"])
    with pytest.raises(UnsupportedTypeError, match="cannot index column 'list'"):
        sx.open_table(made).advise(columns=["list"])


def test_criteria_and_named_indexes_exclude_each_other(
    made: Path,
) -> None:
    with pytest.raises(AdviceError, match="one of the two"):
        sx.build_indexes(made, {"city": "bitmap"}, columns=["city"], workers=1)


def test_the_default_cap_is_a_tenth() -> None:
    assert advice_module.MAX_BYTES_RATIO == 0.1
