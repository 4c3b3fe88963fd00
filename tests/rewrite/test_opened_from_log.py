"""Tables that are opened from their log: the same files as a listing, or an error."""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

import skipindex as sx
from skipindex.errors import TableError
from skipindex.log import newest_snapshot
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.rewrite.vacuum import vacuum
from skipindex.source import commit
from skipindex.source.folder.exclusive import DECLARED
from skipindex.source.folder.new_files import NewFiles, SaveMode
from skipindex.source.folder.publish import Publisher
from skipindex.storage.file_system.location import Location, location_of
from tests.rewrite.arriving import arrived, copied, fill
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.killing import killed_in, meanwhile
from tests.rewrite.seen import NOW, listed, rows_of
from tests.tables import build, newest_commit, newest_manifest, put, rewrite_commit


def by_log(folder: Path, **options: Any) -> sx.Table:
    return sx.open_table(folder, trust="log", **options)


def declared(folder: Path, n_files: int = 3) -> sx.Table:
    fill(folder, n_files)
    return build(folder, {"x": "bitmap"}).declare_exclusive()


def is_from_log(folder: Path) -> bool:
    """Whether the table opens without a listing of its files, or is refused."""
    with mock.patch.object(Location, "list", side_effect=AssertionError):
        try:
            by_log(folder)
        except TableError as error:
            if "not declared exclusive" not in str(error):
                raise
            return False
    return True


def check_same(folder: Path) -> None:
    """The table opens from its log, with the rows of a listing, and plans are right."""
    assert is_from_log(folder)
    ours, theirs = by_log(folder), sx.open_table(folder)
    assert ours.schema == theirs.schema
    assert [c.domain for c in ours.columns] == [c.domain for c in theirs.columns]
    assert rows_of(folder, ours.paths) == rows_of(folder, theirs.paths)
    assert ours.paths == sorted(ours.paths)
    for condition in ("x = 7", "x > 50 AND day = 2", "i = 1"):
        found = [table.plan(condition) for table in (ours, theirs)]
        rows = [rows_of(folder, plan.paths) for plan in found]
        assert rows[0] == rows[1]


def test_what_is_opened_from_the_log_is_what_a_listing_finds(tmp_path: Path) -> None:
    declared(tmp_path)
    ours, theirs = by_log(tmp_path), sx.open_table(tmp_path)
    assert ours.files == theirs.files
    assert ours.state.schema_path == theirs.state.schema_path
    assert ours.refresh().files == theirs.files
    assert ours.state.freshness == [""] * 6
    check_same(tmp_path)


def test_the_schema_is_that_of_the_file_that_spark_looks_at(tmp_path: Path) -> None:
    names = ["b.parquet", "\U0001f600.parquet", "\ufb01.parquet"]
    for i, name in enumerate(names):
        put(tmp_path / name, {"x": pa.array([i]), f"own{i}": pa.array([i])})
    build(tmp_path, {"x": "bitmap"}).declare_exclusive()
    assert by_log(tmp_path).schema == sx.open_table(tmp_path).schema
    (tmp_path / "b.parquet").unlink()
    with pytest.warns(UserWarning, match="was deleted or changed"):
        table = build(tmp_path, {"x": "bitmap"})
    table.declare_exclusive()
    assert (
        by_log(tmp_path).state.schema_path == sx.open_table(tmp_path).state.schema_path
    )


@pytest.mark.parametrize("trust", ["", "lists", None])
def test_only_two_things_are_trusted(tmp_path: Path, trust: Any) -> None:
    declared(tmp_path)
    with pytest.raises(TableError, match="accepted: 'listing', 'log'"):
        sx.open_table(tmp_path, trust=trust)


def test_a_log_that_does_not_name_all_is_refused(tmp_path: Path) -> None:
    fill(tmp_path, 2)
    with pytest.raises(TableError, match=r"accepted: trust='listing', or first wr"):
        by_log(tmp_path)
    build(tmp_path, {"x": "bitmap"})
    assert not is_from_log(tmp_path)
    sx.open_table(tmp_path).declare_exclusive()
    assert is_from_log(tmp_path)
    table = by_log(tmp_path).declare_exclusive(False)
    assert len(table) == 4
    assert "listed" in table.notes[0]
    assert not is_from_log(tmp_path)
    assert not is_from_log(tmp_path / "nothing")
    with pytest.raises(TableError, match="is a file"):
        by_log(tmp_path / "day=1" / "0.parquet")


def not_indexed(folder: Path) -> None:
    put(folder / "day=1" / "new.parquet", {"x": [7], "i": [1]})


def overwritten(folder: Path) -> None:
    put(folder / "day=1" / "0.parquet", {"x": [7], "i": [1]})


def deleted(folder: Path) -> None:
    (folder / "day=1" / "0.parquet").unlink()


def with_summary(folder: Path) -> None:
    shutil.copy(folder / "day=1" / "0.parquet", folder / "_metadata")


def with_empty_partition(folder: Path) -> None:
    (folder / "day=x").mkdir()
    (folder / "day=x" / "empty.parquet").write_bytes(b"")


def with_other_log(folder: Path) -> None:
    (folder / "_delta_log").mkdir()
    (folder / "_delta_log" / "0.json").write_text("{}")


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (not_indexed, "'day=1/new.parquet' is not named by commit 0"),
        (overwritten, "'day=1/0.parquet' has changed since commit 0"),
        (deleted, "'day=1/0.parquet' is named by commit 0, and does not exist"),
        (with_summary, "'_metadata' says which columns"),
        (with_empty_partition, "the folder 'day=x' has only empty files"),
        (with_other_log, "'_delta_log/0.json' is the log of a Delta table"),
    ],
)
def test_what_others_changed_is_found_by_who_lists(
    tmp_path: Path, harm: Callable[[Path], None], why: str
) -> None:
    fill(tmp_path / "t", 2)
    table = build(tmp_path / "t", {"x": "bitmap"})
    other = copied(tmp_path / "t", tmp_path / "other")
    table.declare_exclusive()
    harm(tmp_path / "t")
    harm(other)
    with pytest.raises(TableError, match=why):
        sx.open_table(other, plain=True).declare_exclusive()
    found = why.replace("commit 0", "commit 1")
    stale = sx.open_table(tmp_path / "t", plain=True).verify().stale
    assert any(found in text for text in stale)
    with pytest.warns(UserWarning, match=found):
        vacuum(tmp_path / "t")
    assert not is_from_log(tmp_path / "t")


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (not_indexed, "new.parquet' was not written by"),
        (overwritten, "overwritten by another writer"),
        (deleted, "0.parquet' was deleted or changed"),
    ],
)
def test_a_build_that_finds_what_others_did_ends_the_trust(
    tmp_path: Path, harm: Callable[[Path], None], why: str
) -> None:
    declared(tmp_path)
    harm(tmp_path)
    with pytest.warns(UserWarning, match=why):
        build(tmp_path, {"x": "bitmap"})
    assert not is_from_log(tmp_path)


def test_a_build_that_looks_for_what_is_gone_ends_the_trust(tmp_path: Path) -> None:
    declared(tmp_path)
    table = by_log(tmp_path)
    deleted(tmp_path)
    assert "was deleted" in by_log(tmp_path).notes[0]
    overwritten(tmp_path)
    with pytest.warns(UserWarning, match="overwritten by another writer"):
        report = table.build_indexes({"i": "bitmap"}, workers=1)
    assert len(report.table) == 6
    assert "listed" in report.table.notes[0]


def test_indexes_may_come_and_go(tmp_path: Path) -> None:
    declared(tmp_path)
    table = by_log(tmp_path).build_indexes({"i": "bitmap"}, workers=1).table
    assert is_from_log(tmp_path)
    table.drop_indexes(kinds=["bitmap"])
    check_same(tmp_path)


def test_appends_and_rewrites_go_on_in_the_log(tmp_path: Path) -> None:
    declared(tmp_path)
    arrived(tmp_path, SaveMode.APPEND)
    check_same(tmp_path)
    optimized(by_log(tmp_path), cluster_by=["x"], rows_per_file=30)
    check_same(tmp_path)
    optimized(by_log(tmp_path), cluster_by=["i"], rows_per_file=20, mode="full")
    arrived(tmp_path, SaveMode.APPEND)
    check_same(tmp_path)
    vacuum(tmp_path, retention=NOW)
    check_same(tmp_path)
    vacuum(tmp_path, purge=True)
    check_same(tmp_path)


def test_an_append_lists_no_data(tmp_path: Path) -> None:
    declared(tmp_path)
    known = by_log(tmp_path).paths
    with mock.patch.object(
        Location, "list", autospec=True, side_effect=Location.list
    ) as looked:
        arrived(tmp_path, SaveMode.APPEND)
        table = by_log(tmp_path)
    folders = [call.args[1] for call in looked.call_args_list]
    assert all(folder.startswith("_skipindex/staging/") for folder in folders)
    assert len(table) == len(known) + 2


def test_an_overwrite_is_recorded_anew_or_not(tmp_path: Path) -> None:
    declared(tmp_path)
    arrived(tmp_path, SaveMode.OVERWRITE)
    assert not is_from_log(tmp_path)


def test_files_of_which_nothing_is_indexed_end_the_trust(tmp_path: Path) -> None:
    declared(tmp_path)
    nothing = Manifest.empty()
    with (
        mock.patch("tests.rewrite.arriving.index_files", return_value=nothing),
        pytest.warns(UserWarning, match="no index has"),
    ):
        arrived(tmp_path, SaveMode.APPEND)
    assert not is_from_log(tmp_path)


@pytest.mark.parametrize(
    ("part", "damage"), [(newest_manifest, b""), (newest_commit, b"{}")]
)
def test_a_log_with_a_damaged_part_is_listed(
    tmp_path: Path, part: Callable[[Path], Path], damage: bytes
) -> None:
    """And after damage the trust does not come back."""
    declared(tmp_path)
    arrived(tmp_path, SaveMode.APPEND)
    part(tmp_path).write_bytes(damage)
    with warnings.catch_warnings(action="ignore"):
        table = by_log(tmp_path)
        assert len(table) == 8
        assert "a part of it cannot be read" in table.notes[-1]
        arrived(tmp_path, SaveMode.APPEND)
    assert not newest_snapshot(location_of(tmp_path)).is_exclusive
    assert not is_from_log(tmp_path)


def test_a_commit_of_a_library_that_does_not_know_the_mark_ends_it(
    tmp_path: Path,
) -> None:
    declared(tmp_path)
    mark = newest_snapshot(location_of(tmp_path)).properties.exclusive
    assert mark == {"commit": 1}
    arrived(tmp_path, SaveMode.APPEND)
    written = newest_snapshot(location_of(tmp_path)).properties
    assert written.exclusive == {"commit": 2}, "a mark is of its commit"
    rewrite_commit(tmp_path, properties=replace(written, exclusive=mark).to_json())
    assert not is_from_log(tmp_path)
    arrived(tmp_path, SaveMode.APPEND)
    assert not is_from_log(tmp_path)
    rewrite_commit(tmp_path, properties={"exclusive": {"commit": "3"}})
    assert not is_from_log(tmp_path)


def test_a_declaration_beside_another_writer_is_compared_again(tmp_path: Path) -> None:
    fill(tmp_path, 2)
    table = build(tmp_path, {"x": "bitmap"})
    with meanwhile(
        Location,
        "write_new",
        lambda: arrived(tmp_path, SaveMode.APPEND),
        where=lambda _, path, __: path.startswith("_skipindex/log/"),
    ):
        table.declare_exclusive()
    check_same(tmp_path)


def test_files_that_a_commit_forgets_end_the_trust(tmp_path: Path) -> None:
    location = declared(tmp_path).state.location

    def fewer(base: Any) -> tuple[Manifest, TableProperties]:
        return base.manifest.only([False] + [True] * 5), base.properties

    with pytest.warns(UserWarning, match="was deleted or changed"):
        found = commit(location, fewer, operation="test")
    assert not found.is_exclusive
    assert found.properties.exclusive is None
    assert DECLARED == {}


def test_a_session_that_uses_the_table_lists_it(tmp_path: Path) -> None:
    declared(tmp_path)
    not_indexed(tmp_path)
    table = by_log(tmp_path)
    assert len(table) == 6
    assert len(table.state.reopened(trust="listing")) == 7


def test_the_sweep_of_a_killed_writer_is_no_other_writer(tmp_path: Path) -> None:
    declared(tmp_path)
    with killed_in(NewFiles, "_show"):
        arrived(tmp_path, SaveMode.APPEND)
    check_same(tmp_path)


def test_a_rewrite_that_does_not_fit_any_more_ends_the_trust(tmp_path: Path) -> None:
    location = declared(tmp_path).state.location
    optimized(tmp_path, cluster_by=["x"], rows_per_file=30)
    overwritten(tmp_path)
    Publisher(location, time.time() + 9).run()
    assert not is_from_log(tmp_path)


def test_columns_are_those_of_the_first_visible_file(tmp_path: Path) -> None:
    put(tmp_path / "day=1" / "a.parquet", {"x": [1, 2], "extra": [3, 4]})
    put(tmp_path / "day=2" / "b.parquet", {"x": [1]})
    build(tmp_path, {"x": "bitmap"}).declare_exclusive()
    optimized(tmp_path, cluster_by=["x"], where="day = 1", rows_per_file=1)
    assert is_from_log(tmp_path)
    ours, theirs = by_log(tmp_path), sx.open_table(tmp_path)
    assert ours.state.schema_path == theirs.state.schema_path == "day=1/a.parquet"
    assert ours.schema == theirs.schema


@pytest.mark.parametrize("published", ["not", "not wholly", "wholly"])
def test_rows_that_are_rewritten_before_their_commit_count_once(
    tmp_path: Path, published: str
) -> None:
    """An optimize takes the files of an append as soon as they are visible."""
    declared(tmp_path)
    before = rows_of(tmp_path, listed(tmp_path)).total()

    def rewritten() -> None:
        optimized(tmp_path, cluster_by=["x"], rows_per_file=200, mode="full")
        if published == "not wholly":  # the old files are there, for no reader
            with killed_in(Publisher, "_delete_old"):
                vacuum(tmp_path, retention=NOW)
        elif published == "wholly":
            vacuum(tmp_path, retention=NOW)

    with (
        meanwhile(
            Location,
            "sync",
            rewritten,
            where=lambda _, paths: "_skipindex" not in str(paths),
            after=True,
        ),
        warnings.catch_warnings(action="ignore"),
    ):
        arrived(tmp_path, SaveMode.APPEND)
    table = sx.open_table(tmp_path)
    assert rows_of(tmp_path, table.paths).total() == before + 6
    if table.state.snapshot.is_exclusive:
        check_same(tmp_path)
