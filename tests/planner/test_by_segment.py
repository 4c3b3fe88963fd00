"""Plans made segment by segment are those of the whole table."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skipindex as sx
from skipindex.api import plan_by_segment
from skipindex.errors import PredicateError, TableError
from skipindex.storage.file_system.location import location_of
from skipindex.storage.log import compaction, newest_head
from skipindex.table import TableState
from tests.strategies import predicates, tables, to_arrow
from tests.tables import build, flip, newest_manifest, put

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def segmented(folder: Path, columns: list[Any], names: list[str], specs: Any) -> None:
    """A table with a commit for each file, and dead rows in the first segments."""
    for i, (name, one) in enumerate(zip(names, columns, strict=True)):
        put(folder / name, one)
        build(folder, specs if i else {"*": "minmax"})
    build(folder, specs)
    sx.open_table(folder).declare_exclusive()


def same_as_whole(folder: Path, predicate: Any, **options: Any) -> list[str]:
    """The notes; asserts that the plan is the one of the whole table."""
    by_log = sx.open_table(folder, trust="log")
    expected = by_log.plan(predicate, timezone="UTC")
    found = plan_by_segment(predicate, table=folder, timezone="UTC", **options)
    assert sorted(found) == sorted(expected.paths), predicate
    assert (len(found), found.n_files) == (len(expected.paths), len(by_log))
    return list(found.notes)


@given(st.data())
@settings(max_examples=8, deadline=None)
def test_plans_are_those_of_the_whole_table(data: st.DataObject) -> None:
    drawn = data.draw(tables(min_rows=6))
    whole = to_arrow(drawn)
    kinds = data.draw(st.sampled_from(["minmax", ["bitmap"], ["bloom"]]))
    folders = data.draw(
        st.sampled_from([("", ""), ("k=01/", "k=2/"), ("k=1/", "k=x/")])
    )
    columns = [whole.slice(2 * i, 2) for i in range(3)]
    names = [f"{folders[i % 2]}{i}.parquet" for i in range(3)]
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        segmented(folder, columns, names, dict.fromkeys(drawn, kinds))
        assert len(newest_head(location_of(folder)).segments) > 1
        for _ in range(3):
            assert same_as_whole(folder, data.draw(predicates(drawn))) == []
        for text in ("k = '01'", "k = 1", "k <> 'x'") if folders[0] else ():
            assert same_as_whole(folder, text) == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five files of ten rows, ``a`` ascending; the first row of the log is dead."""
    columns = [{"a": [*range(10 * i, 10 * i + 10)]} for i in range(5)]
    names = [f"{i}.parquet" for i in range(5)]
    segmented(tmp_path, columns, names, {"a": ["bitmap"]})
    return tmp_path


def test_no_task_sees_more_than_one_segment(folder: Path) -> None:
    segments = newest_head(location_of(folder)).segments
    assert any(segment.dead for segment in segments) or len(segments) > 1
    seen = []
    make = TableState.__init__

    def noted(self: TableState, *args: Any, **options: Any) -> None:
        make(self, *args, **options)
        seen.append(len(self))

    with mock.patch.object(TableState, "__init__", noted):
        assert list(plan_by_segment("a = 33", table=folder)) == ["3.parquet"]
    # The first one is without files: what is wrong with a condition shows there.
    assert seen == [0, *(segment.n_live for segment in segments)]


def test_a_damaged_segment_means_a_listing(folder: Path) -> None:
    flip(newest_manifest(folder), 100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        notes = same_as_whole(folder, "a = 33")
    assert notes[0].startswith("planned in one process")
    assert any("listed" in note for note in notes)


def test_a_damaged_commit_means_a_listing(folder: Path) -> None:
    log = sorted((folder / "_skipindex" / "log").glob("*.json"))
    log[-1].write_bytes(b"{}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        notes = same_as_whole(folder, "a = 33")
    assert notes[0].startswith("planned in one process")


def test_a_table_that_others_write_to_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "0.parquet", {"a": [1]})
    build(tmp_path)
    put(tmp_path / "1.parquet", {"a": [2]})
    with pytest.raises(TableError, match="cannot be opened from its log"):
        plan_by_segment("a = 2", table=tmp_path)


@pytest.mark.parametrize("text", ["nothing = 1", "a ="])
def test_a_wrong_condition_is_refused(folder: Path, text: str) -> None:
    with pytest.raises(PredicateError):
        plan_by_segment(text, table=folder)


@pytest.mark.parametrize("n_full", [1, 2, 4])
def test_no_segment_is_larger_than_full(tmp_path: Path, n_full: int) -> None:
    with mock.patch.object(compaction, "FULL", n_full):
        for i in range(13):
            put(tmp_path / f"{i:02}.parquet", {"a": [i]})
            if i % 3 != 1:  # two files at a time, now and then
                build(tmp_path)
        sx.open_table(tmp_path).declare_exclusive()
        segments = newest_head(location_of(tmp_path)).segments
        assert max(segment.n_rows or 0 for segment in segments) <= n_full
        assert sum(segment.n_live or 0 for segment in segments) == 13
        for i in (0, 6, 12):
            assert list(plan_by_segment(f"a = {i}", table=tmp_path)) == [
                f"{i:02}.parquet"
            ]
        assert same_as_whole(tmp_path, "a BETWEEN 3 AND 8") == []


@pytest.mark.spark
def test_spark_plans_the_same(folder: Path, spark: SparkSession) -> None:
    for text in ("a = 33", "a > 15 AND a < 32", "a < 0", "a >= 0"):
        assert same_as_whole(folder, text, spark=spark) == []
    with pytest.raises(PredicateError):
        plan_by_segment("nothing = 1", table=folder, spark=spark)
    flip(newest_manifest(folder), 100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        notes = same_as_whole(folder, "a = 33", spark=spark)
    assert notes[0].startswith("planned in one process")
