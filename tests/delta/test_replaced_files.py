"""Files of a Delta table that others replace, by a commit in Delta's own log."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from deltalake.exceptions import CommitFailedError

import skipindex as sx
from skipindex.errors import CommitConflictError, LayoutError, TableError
from skipindex.rewrite import transaction
from skipindex.source.delta import DeltaSource
from tests.delta.logs import actions_of, commit, delete_rows, live_files, protocol
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.maintaining import maintain, without_spark


@pytest.fixture
def delta(tmp_path: Path) -> str:
    """Six files of 40 rows each in partitions ``p``, in no order of ``a``."""
    path = str(tmp_path / "t")
    for i in range(3):
        a = [(7 * n + 3 * i) % 120 for n in range(80)]
        rows = pa.table({"a": a, "p": ["x", "y/ z"] * 40, "x": [1.5, None] * 40})
        write_deltalake(path, rows, mode="append", partition_by=["p"])
    sx.build_indexes(path, {"a": "exact"}, workers=1)
    return path


def rows_of(path: str, **version: int) -> Counter[Any]:
    """The rows of the table, read by deltalake."""
    rows = DeltaTable(path, **version).to_pyarrow_table().select(["a", "p", "x"])
    return Counter(tuple(row.values()) for row in rows.to_pylist())


def clustered(path: str, **wish: Any) -> sx.Table:
    given = {"cluster_by": ["a"], "rows_per_file": 30, "in_place": False}
    return optimized(sx.open_table(path), **{**given, **wish}).table


def spelling_known(path: str) -> Callable[..., None]:
    """What commits, after it was seen how it spells the paths of the table."""
    table = sx.open_table(path).state
    assert not any(map(table.source.left_out, table.paths))
    return DeltaTable.create_write_transaction


def files_of(path: str) -> set[Path]:
    return {
        file for file in Path(path).rglob("*.parquet") if "_skipindex" not in str(file)
    }


def test_one_commit_of_delta_replaces_the_files(delta: str) -> None:
    before, old = rows_of(delta), set(live_files(delta))
    table = clustered(delta)
    assert rows_of(delta) == before
    assert not old & set(live_files(delta))
    assert DeltaTable(delta).version() == 3
    assert table.status().fresh
    assert len(table) == 8
    assert len(table.plan("a = 7").paths) == 2  # one in each partition
    assert table.verify().ok
    # Readers of the rows that changed see none.
    assert {one["dataChange"] for one in actions_of(delta, "remove")} == {False}
    new = [one for one in actions_of(delta, "add") if one["path"] in live_files(delta)]
    assert {one["dataChange"] for one in new} == {False}
    assert {one["partitionValues"]["p"] for one in new} == {"x", "y/ z"}
    assert rows_of(delta, version=2) == before
    old = sx.open_table(delta, version=2).plan("a = 7").to_pandas()
    assert old["a"].tolist() == [7, 7]


def test_the_log_gets_statistics_of_the_new_files(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    big = pa.array([Decimal("1234567890123456789.01"), Decimal("2.5")])
    rows = pa.table(
        {
            "a": [5, 3],
            "text": ["ä" * 40, None],
            "big": big.cast(pa.decimal128(30, 2)),
            "small": big.take([1, 1]).cast(pa.decimal128(10, 2)),
            "whole": pa.array([Decimal(7), Decimal(9)], pa.decimal128(14, 0)),
            "s": pa.array([{"f": 1, "big": big[0].as_py()}, None], pa.struct(
                {"f": pa.int64(), "big": pa.decimal128(30, 2)})),
        }
    )  # fmt: skip
    write_deltalake(path, rows)
    sx.build_indexes(path, {"a": "minmax"}, workers=1)
    clustered(path)
    (name,) = live_files(path)
    add = next(one for one in actions_of(path, "add") if one["path"] == name)
    stats = json.loads(add["stats"])
    low, high = stats["minValues"], stats["maxValues"]
    assert stats["numRecords"] == 2
    assert (low["a"], high["a"]) == (3, 5)
    assert stats["nullCount"]["text"] == 1
    assert stats["nullCount"]["a"] == 0
    assert (low["whole"], high["whole"]) == (7, 9)
    assert low["s"] == high["s"] == {"f": 1}
    assert (low["small"], high["small"]) == (2.5, 2.5)
    assert "big" not in low.keys() | high.keys(), "a number of JSON is rounded"
    assert add["size"] == Path(path, name).stat().st_size
    for where in ("a = 5", f"text = '{'ä' * 40}'", "s.f = 1"):
        assert DeltaTable(path).to_pyarrow_table().num_rows == 2
        assert len(sx.open_table(path).plan(where).paths) == 1, where


@pytest.mark.parametrize(
    ("precision", "scale"), [(3, 0), (4, 2), (10, 2), (14, 7), (14, 14), (15, 2)]
)
def test_bounds_of_decimals_are_those_of_the_rows(
    tmp_path: Path, precision: int, scale: int
) -> None:
    """deltalake multiplies numbers by a power of ten, so their last digits are off."""
    path, most = str(tmp_path / "t"), 10**precision
    rng = np.random.default_rng(precision)
    numbers = [1 - most, most - 1, 57, -29, *rng.integers(-most, most, 60).tolist()]
    values = [Decimal(n).scaleb(-scale) for n in numbers]
    column = pa.array(values, pa.decimal128(precision, scale))
    write_deltalake(path, pa.table({"a": [*range(len(values))], "d": column}))
    sx.build_indexes(path, {"a": "minmax"}, workers=1)
    clustered(path, rows_per_file=2)
    live, bounds = live_files(path), []
    for add in actions_of(path, "add"):
        if add["path"] in live:
            own = pq.read_table(Path(path, add["path"]))["d"].to_pylist()
            stats = json.loads(add["stats"], parse_float=Decimal, parse_int=Decimal)
            bounds += [
                (stats[kind]["d"], end)
                for kind, end in (("minValues", min(own)), ("maxValues", max(own)))
                if "d" in stats[kind]
            ]
    assert len(bounds) == (len(values) if precision < 15 else 0)
    assert [one for one, _ in bounds] == [end for _, end in bounds]
    query = QueryBuilder().register("t", DeltaTable(path)).execute
    for value in values[:8]:
        wanted = f"CAST('{value:f}' AS DECIMAL({precision}, {scale}))"
        found = pa.table(query(f"SELECT a FROM t WHERE d = {wanted}").read_all())
        assert found.num_rows == values.count(value)


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("p=x/g.parquet", "p%3Dx/g.parquet"),
        ("p=x/ä.parquet", "p=x/ä.parquet"),
        ("p=x/ä.parquet", "p=x/%C3%A4.parquet"),
        ("p=x/a b+~.parquet", "p=x/a%20b+~.parquet"),
        ("p=x/a~.parquet", "p=x/a%7E.parquet"),
    ],
)
def test_files_are_replaced_once_however_a_log_spells_them(
    delta: str, name: str, spelled: str
) -> None:
    """deltalake would remove some under another spelling, so their rows stayed."""
    log = max(Path(delta, "_delta_log").glob("*.json"))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    (add,) = [
        one["add"] for one in lines if "p=x" in one.get("add", {}).get("path", "")
    ]
    Path(delta, add["path"]).rename(Path(delta, name))
    add["path"] = spelled
    log.write_text("".join(json.dumps(one) + "\n" for one in lines))
    before = rows_of(delta)
    sx.build_indexes(delta, {"a": "exact"}, workers=1)
    table = clustered(delta)
    assert rows_of(delta) == before
    assert table.plan("TRUE").count() == before.total()
    is_left = spelled in DeltaTable(delta).get_add_actions()["path"].to_pylist()
    assert is_left == (spelled not in {"p=x/%C3%A4.parquet", "p=x/a%20b+~.parquet"})
    note = "spells it otherwise than deltalake"
    report = optimized(sx.open_table(delta), cluster_by=["x"], in_place=False)
    assert any(note in one for one in report.notes) == is_left


def test_incremental_runs_leave_what_was_clustered(delta: str) -> None:
    clustered(delta)
    again = optimized(sx.open_table(delta), in_place=False)
    assert again.files_in == 0
    assert DeltaTable(delta).version() == 3
    rows = pa.table({"a": [500, 501] * 20, "p": ["x"] * 40, "x": [0.5] * 40})
    write_deltalake(delta, rows, mode="append")
    before = rows_of(delta)
    more = optimized(sx.open_table(delta), in_place=False)
    assert more.files_in == 1
    assert rows_of(delta) == before
    assert more.table.status().fresh


def test_maintain_clusters_what_is_new(delta: str) -> None:
    sx.open_table(delta).declare_layout(sx.Clustering(by=["a"], rows_per_file=30))
    before = rows_of(delta)

    def all_steps() -> list[str]:
        runs = list(itertools.islice(iter(lambda: maintain(Path(delta)), []), 4))
        assert len(runs) < 4, runs
        return list(itertools.chain(*runs))

    assert sx.open_table(delta).status().unclustered_files == 6
    with without_spark():
        assert "cluster" in all_steps()
        assert sx.open_table(delta).status().unclustered_files == 0
        DeltaTable(delta).delete("a = 7")
        assert "refresh" in all_steps()
    assert rows_of(delta) == Counter({r: n for r, n in before.items() if r[0] != 7})
    assert sx.open_table(delta).status().fresh


# -- other writers ---------------------------------------------------------------------


def meanwhile(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]
) -> Callable[[], None]:
    """Let another writer act when the new files are written and not committed."""
    commits = DeltaSource.replace_files

    def late(*args: Any) -> None:
        act()
        commits(*args)

    monkeypatch.setattr(DeltaSource, "replace_files", late)
    return lambda: monkeypatch.setattr(DeltaSource, "replace_files", commits)


def test_rows_that_others_append_meanwhile_stay(
    delta: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = pa.table({"a": [7, 999], "p": ["x", "y/ z"], "x": [None, 2.0]})
    meanwhile(monkeypatch, lambda: write_deltalake(delta, new, mode="append"))
    before = rows_of(delta)
    table = clustered(delta)
    assert rows_of(delta) == before + Counter([(7, "x", None), (999, "y/ z", 2.0)])
    assert len(table) == 10
    assert table.plan("a = 999").to_pandas()["a"].tolist() == [999]
    assert len(table.plan("a = 7").paths) == 3, "two files are new, without an index"


def _vector(path: str) -> None:
    commit(path, protocol("deletionVectors"))
    delete_rows(path, [0, 1])


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "act",
    [
        lambda path: DeltaTable(path).delete("a = 7"),
        lambda path: DeltaTable(path).update(updates={"x": "3.0"}, predicate="a = 7"),
        lambda path: DeltaTable(path).optimize.compact(),
        lambda path: DeltaTable(path).restore(1),
        lambda path: clustered(path, rows_per_file=50),
        _vector,
    ],
    ids=["delete", "update", "compact", "restore", "optimize", "vector"],
)
def test_files_that_others_change_meanwhile_are_a_conflict(
    delta: str, monkeypatch: pytest.MonkeyPatch, act: Callable[[str], object]
) -> None:
    truth: list[Counter[Any]] = []

    def other() -> None:
        undo()
        act(delta)
        truth.append(rows_of(delta) if act is not _vector else Counter())

    undo = meanwhile(monkeypatch, other)
    table = sx.open_table(delta)
    with pytest.raises(CommitConflictError, match="another writer"):
        optimized(table, cluster_by=["a"], rows_per_file=30)
    after = sx.open_table(delta)
    rows = after.plan("a >= 0").to_arrow().to_table().select(["a", "p", "x"])
    if act is _vector:
        assert len(rows) == 238
        return
    assert Counter(tuple(row.values()) for row in rows.to_pylist()) == truth[0]
    assert after.refresh_indexes(workers=1).table.verify().ok


def at_the_last_moment(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]
) -> None:
    """Let another writer act between the look at the newest version and the commit."""
    looked, acts = DeltaSource._changed_in, [act]

    def late(*args: Any) -> str:
        result = looked(*args)
        if acts:
            acts.pop()()
        return result

    monkeypatch.setattr(DeltaSource, "_changed_in", late)


def test_a_commit_has_the_number_after_the_version_that_was_checked(
    delta: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """deltalake itself commits after a compaction, and each row counts twice."""
    before = rows_of(delta)
    at_the_last_moment(monkeypatch, DeltaTable(delta).optimize.compact)
    with pytest.raises(CommitConflictError, match="was replaced"):
        clustered(delta)
    assert rows_of(delta) == before
    new = pa.table({"a": [999], "p": ["x"], "x": [2.0]})
    at_the_last_moment(monkeypatch, lambda: write_deltalake(delta, new, mode="append"))
    clustered(delta)
    assert rows_of(delta) == before + Counter([(999, "x", 2.0)])


def test_an_answer_that_was_lost_is_found_in_the_log(
    delta: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first commit succeeds, and a second try takes its own for another's."""
    commits = spelling_known(delta)

    def lost(*args: Any, **how: Any) -> None:
        commits(*args, **how)
        raise CommitFailedError("0")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", lost)
    before = rows_of(delta)
    assert clustered(delta).status().fresh
    assert rows_of(delta) == before


def test_a_commit_is_found_after_others_replaced_its_files(
    delta: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = spelling_known(delta)

    def lost(*args: Any, **how: Any) -> None:
        commits(*args, **how)
        DeltaTable(delta).optimize.compact()
        raise CommitFailedError("0")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", lost)
    before = rows_of(delta)
    clustered(delta)
    assert rows_of(delta) == before
    assert DeltaTable(delta).version() == 4


def test_files_that_a_vacuum_took_before_the_commit_are_not_named(
    delta: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vacuum() -> None:
        keep = {"enforce_retention_duration": False, "full": True}
        DeltaTable(delta).vacuum(0, dry_run=False, **keep)

    meanwhile(monkeypatch, vacuum)
    before = rows_of(delta)
    with pytest.raises(CommitConflictError, match="vacuum with retention 0"):
        clustered(delta)
    assert rows_of(delta) == before


def test_a_table_that_others_write_all_the_time_is_a_conflict(
    delta: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spelling_known(delta)

    def fails(*_: object, **__: object) -> None:
        raise CommitFailedError("0")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", fails)
    with pytest.raises(CommitConflictError, match="20 times"):
        clustered(delta)


def test_a_table_whose_columns_changed_meanwhile_is_a_conflict(
    delta: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = pa.table({"a": [1], "p": ["x"], "x": [1.0], "n": [1]})
    meanwhile(
        monkeypatch,
        lambda: write_deltalake(delta, new, mode="append", schema_mode="merge"),
    )
    before = rows_of(delta)
    with pytest.raises(CommitConflictError):
        clustered(delta)
    assert rows_of(delta) == before + Counter([(1, "x", 1.0)])


# -- a writer that ends on the way -----------------------------------------------------


def test_nothing_is_left_if_the_rows_cannot_be_written(
    delta: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError("the disk is full")

    before = files_of(delta)
    for owner, name in (
        (DeltaSource, "statistics_written"),
        (transaction, "_check_rows"),
    ):
        with monkeypatch.context() as context:
            context.setattr(owner, name, fails)
            with pytest.raises(OSError, match="full"):
                clustered(delta)
        assert files_of(delta) == before, name
        assert DeltaTable(delta).version() == 2


def test_files_that_a_commit_may_name_are_never_deleted(
    delta: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to a commit is lost, or the commit of the indexes fails."""
    commits = DeltaSource.replace_files

    def lost(*args: Any) -> None:
        commits(*args)
        raise TimeoutError("no answer")

    def fails(*_: object, **__: object) -> None:
        raise OSError("the disk is full")

    before = rows_of(delta)
    for owner, name, act in (
        (DeltaSource, "replace_files", lost),
        (transaction, "commit", fails),
    ):
        with monkeypatch.context() as context:
            context.setattr(owner, name, act)
            with pytest.raises(OSError, match=r"no answer|full"):
                clustered(delta, rows_per_file=30 if name == "commit" else 50)
        assert rows_of(delta) == before
        table = sx.open_table(delta)
        assert len(table.plan("a = 7").to_pandas()) == 2, "without an index"
        assert not table.status().fresh
    table = table.refresh_indexes(workers=1).table
    assert table.status().fresh
    assert rows_of(delta) == before


def test_vacuum_of_either_leaves_the_rows(delta: str) -> None:
    before = rows_of(delta)
    clustered(delta)
    sx.open_table(delta).vacuum(retention=timedelta(0))
    assert rows_of(delta) == before
    assert rows_of(delta, version=2) == before
    DeltaTable(delta).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert rows_of(delta) == before
    assert len(files_of(delta)) == len(live_files(delta))
    table = sx.open_table(delta).refresh_indexes(workers=1).table
    assert table.status().vanished_files == 0
    table.vacuum(retention=timedelta(0), purge=True)
    assert rows_of(delta) == before


# -- what is refused -------------------------------------------------------------------


def test_files_with_deleted_rows_are_left(delta: str) -> None:
    commit(delta, protocol("deletionVectors"))
    name = delete_rows(delta, [0, 1])
    partition = name.split("/")[0]
    before = sx.open_table(delta).plan("a >= 0").count()
    report = optimized(
        sx.open_table(delta), cluster_by=["a"], rows_per_file=30, in_place=False
    )
    assert name in live_files(delta)
    assert report.files_in == 3, "those of the other partition"
    assert "3 files were not rewritten: rows of" in str(report)
    assert report.table.plan("a >= 0").count() == before == 238
    assert not any(
        f.startswith(partition) and "-0.snappy" in f for f in live_files(delta)
    )


def test_a_table_that_cannot_be_rewritten_is_refused(delta: str) -> None:
    with pytest.raises(TableError, match="it is open at a version"):
        optimized(sx.open_table(delta, version=1), cluster_by=["a"], rows_per_file=30)
    commit(
        delta,
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7,
                      "writerFeatures": ["rowTracking", "domainMetadata"]}},
    )  # fmt: skip
    with pytest.raises(TableError, match="it needs a writer of rowTracking"):
        clustered(delta)
    with pytest.raises(TableError, match="rowTracking"):
        sx.open_table(delta).declare_layout(sx.Clustering(by=["a"]))


@pytest.mark.spark
def test_statistics_know_nan(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"a": [1, 2], "x": [float("nan"), 2.0]}))
    table = sx.build_indexes(path, {"a": "minmax"}, workers=1).table
    table.optimize(spark, layout=sx.Clustering(by=["a"]))
    (name,) = live_files(path)
    add = next(one for one in actions_of(path, "add") if one["path"] == name)
    assert "x" not in json.loads(add["stats"])["maxValues"]


@pytest.mark.few(1)
@pytest.mark.spark
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_a_condition_on_either_zero_finds_both(
    spark: Any, tmp_path: Path, zero: float
) -> None:
    path = str(tmp_path / "t")
    for _ in range(2):
        rows = pa.table({"a": [1, 2], "x": [zero, zero]})
        write_deltalake(path, rows, mode="append")
    table = sx.build_indexes(path, {"a": "minmax"}, workers=1).table
    table.optimize(spark, layout=sx.Clustering(by=["a"]))
    assert len(live_files(path)) == 1
    for other in (0.0, -0.0):
        where = pc.field("x") == other
        found = DeltaTable(path).to_pyarrow_dataset().to_table(filter=where)
        assert found.num_rows == 4
        assert sx.open_table(path).plan(f"x = {other}").paths == live_files(path)


@pytest.mark.spark
def test_spark_clusters_a_table(delta: str, spark: Any) -> None:
    before = rows_of(delta)
    table = sx.open_table(delta).declare_layout(
        sx.Clustering(by=["a"], rows_per_file=30)
    )
    with pytest.raises(LayoutError, match="publish"):
        table.optimize(spark, publish=True)
    report = table.optimize(spark)
    assert (report.files_in, rows_of(delta)) == (6, before)
    assert report.table.status().fresh
    assert report.table.plan("a = 7").count(spark) == 2
    assert len(report.table.plan("a = 7").paths) < 6
    copy = Path(delta).parent / "copy"
    table.refresh().optimize(spark, into=copy)
    assert pq.read_table(copy).num_rows == sum(before.values())


@pytest.mark.spark
def test_spark_joins_small_files(delta: str, spark: Any) -> None:
    before = rows_of(delta)
    report = sx.open_table(delta).optimize(
        spark, layout=sx.Clustering(by=[], rows_per_file=200)
    )
    assert (report.files_in, report.files_out, rows_of(delta)) == (6, 2, before)
    new = [one for one in actions_of(delta, "add") if one["path"] in live_files(delta)]
    assert [json.loads(one["stats"])["numRecords"] for one in new] == [120, 120]
    assert {one["partitionValues"]["p"] for one in new} == {"x", "y/ z"}
    assert report.table.status().fresh
