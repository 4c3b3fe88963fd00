"""Maintenance: what is done next, what it may take, and what nothing changes."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

import skipindex as sx
from skipindex.api.maintenance import run, steps
from skipindex.api.maintenance.policy import Budget, Policy
from skipindex.api.maintenance.run import maintain_all, tables_below
from skipindex.cli import actions, main, sessions
from skipindex.errors import BuildError, CommitConflictError, StorageError, TableError
from skipindex.log import latest_version
from skipindex.planner.recorded import RecordedQueries
from skipindex.rewrite.selection import target
from skipindex.spark.writers import optimize as spark_optimize
from skipindex.storage.file_system.location import location_of
from skipindex.table import queries
from skipindex.table.queries import Recording
from tests.iceberg.catalogs import sql_catalog
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.maintaining import without_spark
from tests.tables import build, made, put, put_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = [{"x": [i, i + 1], "s": [f"a{i}", f"b{i}"]} for i in range(6)]


def make(folder: Path) -> None:
    build(put_all(folder, FILES), {"x": "bitmap"})


@pytest.fixture
def table(tmp_path: Path) -> Iterator[sx.Table]:
    yield sx.open_table(made(tmp_path / "t", make))
    queries.flush()


def ask(table: sx.Table, where: str, n: int = 1) -> None:
    for _ in range(n):
        Recording("table").add(
            table.state.location,
            where,
            zone="UTC",
            files=6,
            read=1,
            n_bytes=9,
            seconds=0.1,
        )
    queries.flush()


def names(report: Any, *, done: bool = True) -> list[str]:
    return [step.step for step in report.steps if step.done is done]


def test_new_files_are_indexed_and_deleted_ones_leave_the_log(table: sx.Table) -> None:
    folder = Path(table.folder)
    put(folder / "new.parquet", {"x": [100], "s": ["z"]})
    (folder / "0.parquet").unlink()
    ask(table, "x = 100", 3)
    told = sx.maintain(folder, dry_run=True, workers=1)
    assert names(told, done=False) == ["refresh"]
    n_bytes = (folder / "new.parquet").stat().st_size
    assert (told.steps[0].n_bytes, told.steps[0].seconds) == (n_bytes, 0)
    promised = f"refresh: about {n_bytes / 1e6:.1f} MB: 1 files have no index"
    assert promised in str(told), "how long it takes is not known"
    assert sx.open_table(folder).status().gaps, "a dry run changes nothing"
    report = sx.maintain(folder, workers=1)
    assert names(report) == ["refresh"]
    status = sx.open_table(folder).status()
    assert (status.fresh, status.indexed_files) == (True, 6)
    assert sx.open_table(folder).history()[0].operation in {"build", "merge"}
    assert sx.open_table(folder).plan("x = 100").paths == ["new.parquet"]


def test_a_table_that_was_opened_before_is_looked_at_again(table: sx.Table) -> None:
    put(Path(table.folder, "new.parquet"), {"x": [100], "s": ["z"]})
    assert names(sx.maintain(table, workers=1)) == ["refresh"]


def test_nothing_to_do_makes_no_commit_and_no_file(table: sx.Table) -> None:
    ask(table, "x = 3")
    folder = Path(table.folder)

    def files() -> list[tuple[Path, int]]:
        every = (path for path in folder.rglob("*") if path.is_file())
        return sorted((path, path.stat().st_mtime_ns) for path in every)

    before = files()
    report = sx.maintain(table, workers=1)
    assert report.steps == ()
    assert "nothing was done" in str(report)
    assert files() == before


def test_hidden_files_that_wait_to_be_deleted_are_not_refreshed_for(
    tmp_path: Path,
) -> None:
    """Their rewrite is void, as a file was deleted; a vacuum deletes them."""
    put_all(tmp_path, [{"x": [1, 2]}, {"x": [3, 4]}])
    build(tmp_path, {"x": "bitmap"})
    optimized(tmp_path, cluster_by=["x"])
    (tmp_path / "0.parquet").unlink()
    assert sx.open_table(tmp_path).paths == ["1.parquet"]
    assert sx.open_table(tmp_path).status().vanished_files == 0
    assert names(sx.maintain(tmp_path, policy=Policy(steps=("refresh",)))) == []


def test_queries_read_fewer_bytes_and_the_report_says_so(table: sx.Table) -> None:
    folder = Path(table.folder)
    for i in range(5):
        put(folder / f"new{i}.parquet", {"x": [100 + 10 * i], "s": ["z"]})
    ask(table, "x = 100", 20)
    ask(table, "x = 3", 1)
    report = sx.maintain(folder, workers=1, policy={"least_queries": 99})
    assert report.n_queries == 21
    assert report.bytes_after < report.bytes_before
    assert report.steps[0].gain == report.bytes_before - report.bytes_after
    assert "the 21 queries of the last 7 days would have read" in str(report)
    assert "% fewer bytes; cost " in str(report)
    assert json.loads(json.dumps(report.to_dict()))["n_queries"] == 21


def test_indexes_are_chosen_again_when_queries_have_changed(table: sx.Table) -> None:
    ask(table, "s = 'b3'", 30)
    policy = {"max_bytes_ratio": 100}
    told = sx.maintain(table, policy=policy, workers=1, dry_run=True)
    assert "100% of the queries are not those of" in told.steps[0].note
    report = sx.maintain(table, policy=policy, workers=1)
    assert names(report) == ["advise"]
    after = sx.open_table(table.folder)
    assert "s" in {one.column for one in after.indexes if one.kind != "minmax"}
    assert after.plan("s = 'b3'").paths == ["3.parquet"]
    again = sx.maintain(table, policy=policy, workers=1)
    assert again.steps == ()


def test_a_choice_is_not_made_again_for_the_same_queries(table: sx.Table) -> None:
    """Of many long shapes too, of which a sample is the workload."""
    ask(table, "x = 3", 30)
    assert names(sx.maintain(table, workers=1)) == ["advise"]
    assert sx.maintain(table, workers=1).steps == ()
    for i in range(120):
        ask(table, f"s IN ('a') AND {' AND '.join(['x > 1'] * 80)} AND x <> {i} + x")
        ask(table, f"x = {i} OR s = 'b' OR s LIKE '{'_' * i}%' OR x + {i} = x * x")
    policy = {"max_bytes_ratio": 100}
    assert names(sx.maintain(table, policy=policy, workers=1)) == ["advise"]
    assert sx.maintain(table, policy=policy, workers=1).steps == ()


def test_few_queries_choose_nothing(table: sx.Table) -> None:
    ask(table, "s = 'b3'", 19)
    assert sx.maintain(table, workers=1).steps == ()


def test_a_budget_that_is_too_small_says_so_and_changes_nothing(
    table: sx.Table,
) -> None:
    folder = Path(table.folder)
    put(folder / "new.parquet", {"x": [100], "s": ["z"]})
    for budget in ("1B", 1, "0s", timedelta(0)):
        report = sx.maintain(folder, budget=budget, workers=1)
        assert names(report) == []
        assert "budget" in report.steps[0].note
    assert not sx.open_table(folder).status().fresh
    assert names(sx.maintain(folder, budget="1min,1GB", workers=1)) == ["refresh"]


@pytest.mark.parametrize("budget", ["soon", "10 apples", -1, 1.5, "1h,x"])
def test_a_budget_is_time_or_bytes(table: sx.Table, budget: Any) -> None:
    with pytest.raises(TableError, match="not a budget"):
        sx.maintain(table, budget=budget)


def test_budgets_are_read() -> None:
    both = Budget.of("90s, 2 GB")
    assert (both.seconds, both.n_bytes) == (90, 2_000_000_000)
    both.spend(500)
    assert both.bytes_left(1e12) == 2_000_000_000 - 500
    assert both.bytes_left(1) <= 90
    assert Budget.of("1.5h").seconds == 5400
    assert Budget.of(None).bytes_left(1) == float("inf")


@pytest.mark.parametrize(
    "policy",
    [
        {"steps": ["sleep"]},
        {"steps": 5},
        {"days": 0},
        {"publish": 1},
        {"in_place": "yes"},
        {"least_queries": True},
        {"queries": "somewhere"},
        {"max_bytes_ratio": 0},
    ],
)
def test_a_policy_is_checked(table: sx.Table, policy: dict[str, Any]) -> None:
    with pytest.raises(TableError, match="a policy cannot have"):
        sx.maintain(table, policy=policy)


def test_a_policy_may_be_a_file(table: sx.Table, tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('steps = ["merge"]\ndays = 30\n')
    assert Policy.of(file) == Policy(steps=("merge",), days=30)
    put(Path(table.folder, "new.parquet"), {"x": [100], "s": ["z"]})
    assert sx.maintain(table.folder, policy=str(file)).steps == ()
    for text, told in (("days = ", "cannot read"), ("day = 1", "has no 'day'")):
        file.write_text(text)
        with pytest.raises(TableError, match=told):
            sx.maintain(table, policy=file)
    with pytest.raises(TableError, match="cannot read"):
        sx.maintain(table, policy=tmp_path / "none.toml")


def test_packs_are_merged_when_there_are_many(
    table: sx.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(Path(table.folder, "new.parquet"), {"x": [100], "s": ["z"]})
    table = table.refresh_indexes(workers=1).table
    n_packs = len(table.state.snapshot.manifest.packs)
    assert n_packs > 1
    monkeypatch.setattr(steps, "CROWD", n_packs)
    assert names(sx.maintain(table)) == ["merge"]
    assert len(sx.open_table(table.folder).state.snapshot.manifest.packs) == 1


def test_another_writer_that_is_first_is_no_error(
    table: sx.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def conflict(*_: Any, **__: Any) -> Any:
        raise CommitConflictError("build: other writers committed first")

    put(Path(table.folder, "new.parquet"), {"x": [100], "s": ["z"]})
    monkeypatch.setattr(steps, "refresh", conflict)
    report = sx.maintain(table.folder)
    assert names(report) == []
    assert "not done: build: other writers committed first" in report.steps[0].note
    monkeypatch.undo()
    assert names(sx.maintain(table.folder, workers=1)) == ["refresh"]


def test_a_step_that_fails_is_told_on_stderr(
    table: sx.Table, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise BuildError("no space left")

    put(Path(table.folder, "new.parquet"), {"x": [100], "s": ["z"]})
    monkeypatch.setattr(steps, "refresh", broken)
    assert main(["maintain", table.folder, "--no-spark", "--quiet", "--json"]) == 1
    told = capsys.readouterr()
    (record,) = json.loads(told.out)["tables"]
    assert [(one["step"], one["failed"]) for one in record["steps"]] == [
        ("refresh", True)
    ]
    where = f"skipindex: error: {table.folder}: refresh was not done: no space left\n"
    assert told.err == where


def test_a_column_added_later_is_not_forgotten(tmp_path: Path) -> None:
    put_all(tmp_path, [{"x": [1]}, {"x": [2], "y": [3]}])
    schema = pa.schema({"x": pa.int64(), "y": pa.int64()})
    built = sx.open_table(tmp_path, schema=schema).build_indexes({"y": "exact"})
    put(tmp_path / "2.parquet", {"x": [4], "y": [5]})
    assert names(sx.maintain(tmp_path, workers=1)) == ["refresh"]
    put(tmp_path / "3.parquet", {"x": [6], "y": [7]})
    assert sx.open_table(tmp_path).refresh_indexes(workers=1).files == 1
    table = built.table.refresh()
    assert not table.status().gaps
    for value, path in ((5, "2.parquet"), (7, "3.parquet")):
        assert table.plan(f"y = {value}").paths == [path]


def test_a_request_whose_schema_was_not_kept_is_told(tmp_path: Path) -> None:
    put_all(tmp_path, [{"x": [1], "y": [3]}])
    sx.build_indexes(tmp_path, {"y": "exact"})
    put(tmp_path / "0.parquet", {"x": [4]})
    (note,) = sx.maintain(tmp_path, workers=1).notes
    assert "indexes of 'y' are requested and not built" in note


def test_files_of_other_writers_are_rewritten_by_no_door_unasked(
    tmp_path: Path,
) -> None:
    """A declared layout is for what skipindex writes."""
    built = build(put_all(tmp_path, [{"x": [i, 10 - i]} for i in range(6)]), {})
    table = built.declare_layout(sx.Clustering(by=["x"], rows_per_file=4))
    with pytest.raises(TableError, match="or once with in_place=True"):
        optimized(table, in_place=False)
    (note,) = sx.maintain(tmp_path, dry_run=True).notes
    assert "was not written by skipindex: call optimize with into=" in note
    optimized(table)
    put(tmp_path / "new.parquet", {"x": [0, 10]})
    (note,) = sx.maintain(tmp_path, dry_run=True).notes
    assert note.startswith("cluster: it needs Spark")
    assert optimized(table, in_place=False).files_in


def test_files_that_follow_no_layout_are_counted_and_clustered_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def n_unclustered() -> int:
        return sx.open_table(tmp_path).status().unclustered_files

    table = build(put_all(tmp_path, [{"x": [i, 60 - i]} for i in range(40)]), {})
    assert n_unclustered() == 0, "there is no layout"
    table = table.declare_layout(sx.Clustering(by=["x"], rows_per_file=4))
    assert n_unclustered() == 40
    optimized(table)
    assert n_unclustered() == 0
    for i in range(3):
        put(tmp_path / f"new{i}.parquet", {"x": [i, 50 + i]})
    put(tmp_path / "empty.parquet", {"x": pa.array([], pa.int64())})
    build(tmp_path, {})
    assert n_unclustered() == 3, "an empty file is not clustered"
    assert main(["status", str(tmp_path)]) == 0
    assert "3 files: not clustered by the layout\n" in capsys.readouterr().out
    assert "3 files do not follow the layout" in str(sx.open_table(tmp_path).status())
    size = sum(path.stat().st_size for path in tmp_path.glob("new*.parquet"))
    with without_spark():
        (report,) = maintain_all(
            [("t", sx.open_table(tmp_path).state.refresh)],
            Policy(steps=("cluster",)),
            Budget.of(2 * size),
            dry_run=False,
            session=lambda: None,  # type: ignore[arg-type, return-value]
            workers=1,
        )
    assert names(report) == ["cluster"]
    assert n_unclustered() == 0, "under a budget new files come first"
    sx.open_table(tmp_path).declare_layout(
        sx.Clustering(by=["x"], curve="zorder", rows_per_file=4)
    )
    status = sx.open_table(tmp_path).status()
    assert status.unclustered_files == status.files - 1, "by another layout"


@pytest.mark.spark
@pytest.mark.parametrize("given", [None, "python3.11"])
def test_workers_run_the_python_of_the_command_unless_one_is_given(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    """Else they run the first of the PATH, which in cron has no skipindex."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", given or "python3")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    if given is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", given)
    options = SimpleNamespace(master=None, conf=[], verbose=True)
    assert sessions.session(options) is spark
    assert spark.sparkContext.pythonExec == (given or sys.executable)


@pytest.mark.slow
@pytest.mark.spark
def test_cron_clusters_where_no_environment_is_activated(tmp_path: Path) -> None:
    """The PATH has another Python, or none."""
    for i in range(6):
        put(tmp_path / "t" / f"{i}.parquet", {"x": [i, 10 - i]})
    built = sx.build_indexes(tmp_path / "t", {"x": "bitmap"}, workers=1).table
    optimized(built.declare_layout(sx.Clustering(by=["x"], rows_per_file=4)))
    for i in range(6):
        put(tmp_path / "t" / f"more-{i}.parquet", {"x": [i, 10 - i]})
    bare = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    kept = ("JAVA_HOME", "PYTHONPATH")
    bare |= {name: os.environ[name] for name in kept if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-m", "skipindex", "maintain", str(tmp_path / "t")],
        env=bare, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "skipindex: error" not in done.stderr
    assert "cluster: " in done.stdout
    assert sx.open_table(tmp_path / "t").status().waiting


def test_a_delta_table_gets_indexes_alone(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    folder = str(tmp_path / "delta")
    deltalake.write_deltalake(folder, pa.table({"a": [1, 2]}))
    sx.build_indexes(folder, {"a": "bitmap"}, workers=1)
    deltalake.write_deltalake(folder, pa.table({"a": [3]}), mode="append")
    files = sorted(Path(folder).rglob("*.parquet"))
    log = sorted(Path(folder, "_delta_log").iterdir())
    report = sx.maintain(folder, workers=1)
    assert names(report) == ["refresh"]
    assert sx.open_table(folder).status().fresh
    assert sorted(Path(folder).rglob("*.parquet")) == files
    assert sorted(Path(folder, "_delta_log").iterdir()) == log


def test_old_commits_are_deleted(table: sx.Table) -> None:
    table = table.declare_retention(timedelta(0))
    put(Path(table.folder, "new.parquet"), {"x": [100], "s": ["z"]})
    table.refresh_indexes(workers=1)
    assert sx.maintain(table.folder).steps == (), "commits stay for an hour"


def test_many_tables_share_a_budget(
    table: sx.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = build(put_all(tmp_path / "deep" / "other", FILES), {"x": "bitmap"})
    for one in (table, other):
        put(Path(one.folder, "new.parquet"), {"x": [100], "s": ["z"]})
    bare, parts, deep = (tmp_path / name for name in ("bare", "parts", "x/logged"))
    for folder in (bare, parts / "p=1/q=2", deep / "data", bare / "_staging"):
        put_all(folder, FILES)
    for log in (deep / "_delta_log/0.json", tmp_path / "ice/metadata/1.metadata.json"):
        log.parent.mkdir(parents=True)
        log.touch()
    paths, without = tables_below(location_of(tmp_path))
    assert paths == [other.folder, table.folder]
    assert without == [str(one) for one in (bare, tmp_path / "ice", parts, deep)]
    assert main(["status", str(deep.parent)]) == 2
    assert f"passed over: {deep}; accepted" in capsys.readouterr().err
    assert main(["status", str(tmp_path)]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert last == f"without indexes, and passed over: {', '.join(without)}"
    assert len(lines) == 3
    assert "1 file: never indexed" in lines[1]
    size = Path(other.folder, "new.parquet").stat().st_size
    report = sx.maintain(paths, budget=size, workers=1)
    assert names(report) == ["refresh"]
    assert report.steps[0].table == other.folder, "the first"
    command = ["maintain", str(tmp_path), "--workers", "1", "--no-spark", "--json"]
    assert main(command) == 0
    told = json.loads(capsys.readouterr().out)
    assert [len(one["steps"]) for one in told["tables"]] == [1, 0]
    assert told["without"] == without
    assert all(sx.open_table(one).status().fresh for one in paths)


def rows(first: int) -> pa.Table:
    return pa.table({"x": [first, first + 1]})


def make_delta(folder: Path) -> None:
    write_deltalake(str(folder), rows(0))
    build(folder, {"x": "bitmap"})
    write_deltalake(str(folder), rows(2), mode="append")


def make_plain(folder: Path) -> None:
    build(put_all(folder, [rows(0)]), {"x": "bitmap"})
    put(folder / "new.parquet", rows(2))


def make_iceberg(catalog: SqlCatalog, name: str) -> Path:
    table = catalog.create_table(f"db.{name}", schema=rows(0).schema)
    table.append(rows(0))
    sx.build_indexes(table, {"x": "bitmap"}, workers=1)
    table.append(rows(2))
    return Path(table.location().removeprefix("file://"))


def many(root: Path) -> dict[str, Path]:
    """20 tables of three formats by their names; each has a file without an index."""
    catalog = sql_catalog(root)
    ice = {f"i{i}": make_iceberg(catalog, f"i{i}") for i in range(6)}
    delta = {f"d{i}": made(root / f"d{i}", make_delta) for i in range(7)}
    plain = {f"p{i}": made(root / "deep" / f"p{i}", make_plain) for i in range(7)}
    return ice | delta | plain


def refuse_to_list(
    closed: Path, patch: pytest.MonkeyPatch, number: int = errno.EACCES
) -> None:
    """Let the system refuse to list a folder."""
    real = os.scandir

    def scandir(path: Any) -> Any:
        if Path(path) == closed:
            raise OSError(number, os.strerror(number), str(path))
        return real(path)

    patch.setattr(os, "scandir", scandir)


def metadata(folder: Path) -> list[Path]:
    """The metadata files of an Iceberg table, the newest last."""
    return sorted((folder / "metadata").glob("*.metadata.json"))


def test_bad_tables_of_a_root_do_not_stop_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = many(tmp_path)
    for name in ("i0", "d0"):
        logs = [*metadata(tables[name]), *tables[name].glob("_delta_log/*.json")]
        max(logs).write_text("{damaged")
    refuse_to_list(tables["p0"], monkeypatch)
    command = ["maintain", str(tmp_path), "--workers", "1", "--no-spark", "--json"]
    assert main(command) == 1
    told = capsys.readouterr()
    records = json.loads(told.out)["tables"]
    steps = [step for one in records for step in one["steps"]]
    assert Counter((one["step"], one["done"], one["failed"]) for one in steps) == {
        ("refresh", True, False): 17,
        ("open", False, True): 3,
    }
    bad = {"i0": max(metadata(tables["i0"])), "d0": tables["d0"], "p0": tables["p0"]}
    why = ("pyiceberg cannot read", "its log cannot be read", "cannot list")
    for (name, path), reason in zip(bad.items(), why, strict=True):
        (line,) = (one for one in told.err.splitlines() if f": {path}: " in one)
        assert "open was not done: " in line, name
        assert reason in line, name
    assert main(["status", str(tmp_path), "--json"]) == 0
    status = json.loads(capsys.readouterr().out)["tables"]
    assert sum("error" in one for one in status) == 3
    assert sum(one.get("fresh", not one.get("gaps", 1)) for one in status) == 17


@pytest.mark.parametrize(
    "kind",
    ["no files", "Hudi", "newer", "log", "file", "record", "offer", "expire"],
)
def test_a_bad_table_is_named_and_the_others_are_maintained(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    good = [made(tmp_path / name, make_plain) for name in ("a", "z")]
    make_bad = make_delta if kind == "newer" else make_plain
    bad = made(tmp_path / "m", make_bad)
    step, reason = "open", ""

    def fails(module: Any, name: str, *, because: Exception) -> None:
        real = getattr(module, name)

        def call(place: Any, *given: Any, **named: Any) -> Any:
            state = getattr(place, "state", place)
            if getattr(state, "location", state).root == str(bad):
                raise because
            return real(place, *given, **named)

        monkeypatch.setattr(module, name, call)

    match kind:
        case "no files":
            for path in bad.glob("*.parquet"):
                path.unlink()
            reason = "no Parquet files in"
        case "Hudi":
            put(bad / ".hoodie" / "hoodie.properties", rows(0))
            reason = "is a Hudi table"
        case "newer":
            versions = {"minReaderVersion": 99, "minWriterVersion": 99}
            with max(bad.glob("_delta_log/*.json")).open("a") as log:
                log.write(json.dumps({"protocol": versions}) + "\n")
            reason = "Unsupported minimum reader version 99"
        case "log":
            refuse_to_list(bad / "_skipindex" / "log", monkeypatch, errno.EIO)
            reason = "cannot list"
        case "file":
            step, reason = "refresh", "new.parquet"
            fails(steps, "refresh", because=OSError("cannot read new.parquet"))
        case "record":
            reason = "the disk is gone"
            fails(RecordedQueries, "of", because=OSError(reason))
        case "offer":
            step, reason = "merge", "cannot list"
            fails(steps.Subject, "_merge", because=StorageError("cannot list it"))
        case _:
            step, reason = "vacuum", "cannot delete"
            fails(run, "expire", because=StorageError("cannot delete it"))
    command = ["maintain", str(tmp_path), "--workers", "1", "--no-spark"]
    assert main(command) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"skipindex: error: {bad}: {step} was not done: ")
    assert reason in line
    assert all(sx.open_table(one).status().fresh for one in good)
    paths = [good[0], bad, good[1]]
    for path in good:
        put(path / "more.parquet", rows(4))
    if step == "open":
        with pytest.raises(TableError, match="1 of 3 tables were not maintained"):
            sx.maintain(paths, workers=1)
    else:
        failed = [one.step for one in sx.maintain(paths, workers=1).steps if one.failed]
        assert failed == [step]
    assert all(sx.open_table(one).status().fresh for one in good)


def test_of_iceberg_below_a_root_the_newest_metadata_counts(tmp_path: Path) -> None:
    folder = make_iceberg(sql_catalog(tmp_path), "t")
    newest = max(metadata(folder))
    for number in (2, 9, 10):  # by number, not by name
        shutil.copy(newest, folder / "metadata" / f"v{number}.metadata.json")
    (path,), without = tables_below(location_of(tmp_path))
    assert (Path(path).name, without) == ("v10.metadata.json", [])
    assert tables_below(location_of(tmp_path), plain=True) == ([str(folder)], [])
    put(folder / "_delta_log" / "0.json", rows(0))  # which wrote it for others
    assert tables_below(location_of(tmp_path)) == ([str(folder)], [])


def test_a_table_of_another_library_is_taken_at_every_door(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"a": [1, 2], "s": ["x", "y"]}))
    table = DeltaTable(path)
    assert sx.build_indexes(table, {"a": "exact"}, workers=1).files == 1
    assert sx.plan_files(table, "a = 9").paths == []
    write_deltalake(path, pa.table({"a": [3], "s": ["z"]}), mode="append")
    report = sx.maintain(DeltaTable(path), workers=1)
    assert [step.step for step in report.steps if step.done] == ["refresh"]
    assert sx.via("a", table, "a", "s").table_key == "a"
    with pytest.raises(TableError, match="not a table"):
        sx.maintain(7)  # type: ignore[arg-type]


def test_a_folder_without_tables_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    for command in ("status", "maintain"):
        assert main([command, str(tmp_path)]) == 2
        assert "error" in capsys.readouterr().err


def test_a_table_with_nothing_to_do_has_no_commit(tmp_path: Path) -> None:
    put_all(tmp_path, [{"x": [i]} for i in range(50)])
    table = build(tmp_path, {"x": "bitmap"})
    ask(table, "x = 3", 5)
    version = latest_version(table.state.location)
    assert sx.maintain(tmp_path).steps == ()
    assert latest_version(table.state.location) == version


@pytest.mark.spark
@pytest.mark.parametrize("dry_run", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_new_files_are_clustered_within_a_budget(
    spark: SparkSession, tmp_path: Path, *, dry_run: bool
) -> None:
    rows = spark.range(1200).selectExpr("id % 97 AS a", "id % 89 AS b", "id")
    layout = sx.Clustering(by=["a", "b"], rows_per_file=300)
    indexes = {"a": "bitmap", "b": "bitmap"}
    table = sx.write_table(rows, tmp_path / "t", layout=layout, indexes=indexes)
    shuffled = spark.range(1200).selectExpr("id % 97 AS a", "id % 89 AS b", "-id AS id")
    assert table.status().unclustered_files == 0
    shuffled.repartition(4, "id").write.mode("append").parquet(table.folder)
    assert table.refresh().status().unclustered_files == 4
    for i in range(40):
        ask(table, f"a = {i} AND b < 50")
    without = sx.maintain(table.folder, workers=1, dry_run=True)
    assert any("it needs Spark" in note for note in without.notes)
    policy = {"steps": ["refresh", "cluster"]}
    report = sx.maintain(table.folder, spark=spark, policy=policy, budget="1h,1GB")
    assert "cluster" in names(report)
    assert report.bytes_after < report.bytes_before
    after = sx.open_table(table.folder)
    assert after.plan("a >= 0").count() == 2400
    assert after.status().unclustered_files == 0
    assert sorted(r.id for r in after.plan("a = 5").read(spark).collect()) == sorted(
        s * i for i in range(1200) if i % 97 == 5 for s in (1, -1)
    )
    again = sx.maintain(after, spark=spark, policy=policy, dry_run=dry_run)
    assert names(again) in ([], ["cluster"])


def by_others(spark: SparkSession, folder: Path) -> sx.Table:
    """A folder of Spark's, in no order, with an index and 40 queries."""
    rows = spark.range(4000).selectExpr("id % 97 AS a", "id % 89 AS b", "id")
    rows.repartition(8, "id").write.parquet(str(folder))
    table = sx.build_indexes(folder, {"b": "bitmap"}, workers=1).table
    for i in range(40):
        ask(table, f"a = {i}")
    return table


@pytest.mark.spark
def test_a_table_without_a_layout_gets_one_if_the_policy_allows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, "_LEAST_BYTES", 1000)
    table = by_others(spark, tmp_path / "t")
    files = sorted(table.paths)
    steps: dict[str, Any] = {"steps": ["cluster"], "least_queries": 20}
    (note,) = sx.maintain(table, spark=spark, policy=steps).notes
    assert "was not written by skipindex" in note
    assert sorted(table.refresh().paths) == files, "others write it"
    policy = steps | {"in_place": True}
    (note,) = sx.maintain(table, policy=policy).notes
    assert "it needs Spark" in note
    assert "a recorded query reads 8.0 of 8 files" in note
    (step,) = sx.maintain(table, spark=spark, policy=policy, dry_run=True).steps
    assert not step.done
    promised = re.search(r"8\.0 of 8 files, clustered by a about (\d+)% ", step.note)
    assert promised is not None, step.note
    assert int(promised[1]) <= 25
    assert table.refresh().status().version == table.status().version
    report = sx.maintain(table, spark=spark, policy=policy)
    assert names(report) == ["cluster"]
    assert report.bytes_after < report.bytes_before / 2
    after = sx.open_table(table.folder)
    assert after.status().layout["cluster_by"] == ["a"]
    assert sorted(row.id for row in after.plan("a = 5").read(spark).collect()) == [
        i for i in range(4000) if i % 97 == 5
    ]
    assert after.plan("id >= 0").count() == 4000
    again = sx.maintain(after, spark=spark, policy=steps)
    assert (again.steps, again.notes) == ((), ()), "from then on it is its own"


@pytest.mark.parametrize("kind", ["plain", "Delta"])
def test_a_layout_that_a_sample_does_not_favour_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    for i, columns in enumerate(FILES):
        if kind == "plain":
            put(tmp_path / f"{i}.parquet", columns)
        else:
            write_deltalake(str(tmp_path), pa.table(columns), mode="append")
    table = build(tmp_path, {"s": "bitmap"})
    for i in range(40):
        ask(table, f"x >= {i % 3}")
    reads = [len(table.plan(f"x >= {i % 3}").paths) for i in range(40)]
    now = sum(reads) / len(reads) / 6

    def chosen(_: Any, __: Any, workload: sx.Workload, asked: Any) -> Any:
        assert set(workload.queries) == {f"x >= {i}" for i in range(3)}
        scores = {"all": 240.0, "curve": 240.0 * (now - off)}
        known = {"cluster_by": ["x"], "curve": "hilbert"}
        return replace(asked, chosen=known | {"files_read_on_sample": scores})

    monkeypatch.setattr(spark_optimize, "with_choice", chosen)
    for part, is_made in ((0.76, False), (0.74, True)):
        off = (1 - part) * now
        with without_spark():
            (report,) = maintain_all(
                [("t", table.state.refresh)],
                Policy(steps=("cluster",), in_place=True),
                Budget.of(None),
                dry_run=False,
                session=lambda: None,  # type: ignore[arg-type, return-value]
                workers=1,
            )
        (step,) = report.steps
        assert step.note.startswith("nothing was rewritten: ") is not is_made
        after = sx.open_table(tmp_path)
        assert (after.status().layout is not None) is is_made
        assert (set(after.paths) == set(table.paths)) is not is_made
        found = after.plan("x >= 0").to_arrow().to_table().sort_by("x")
        assert found.column("x").to_pylist() == sorted([*range(6), *range(1, 7)])


def test_a_loop_goes_on_after_a_round_that_failed(
    table: sx.Table, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = iter([None, StorageError("the store is away"), KeyboardInterrupt()])
    real = maintain_all

    def fail(*given: Any, **named: Any) -> Any:
        if (error := next(rounds)) is not None:
            raise error
        return real(*given, **named)

    monkeypatch.setattr(actions, "maintain_all", fail)
    arguments = ["maintain", table.folder, "--every", "0", "--json", "--no-spark"]
    assert main(arguments) == 130
    told = capsys.readouterr()
    (line,) = told.out.splitlines()
    assert json.loads(line)["tables"][0]["table"] == table.folder
    assert "the store is away" in told.err


def test_a_loop_tells_only_of_rounds_that_find_or_do_something(
    table: sx.Table, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real, rounds = maintain_all, count()

    def with_a_commit_of_another(*given: Any, **named: Any) -> Any:
        match next(rounds):
            case 3:
                put(Path(table.folder, "new.parquet"), {"x": [7]})
            case 6:
                raise KeyboardInterrupt
        return real(*given, **named)

    monkeypatch.setattr(actions, "maintain_all", with_a_commit_of_another)
    assert main(["maintain", table.folder, "--every", "0", "--no-spark"]) == 130
    lines = capsys.readouterr().out.splitlines()
    told = [line.removeprefix(table.folder) for line in lines]
    assert told[0] == ": nothing was done"
    assert [line.partition(":")[0] for line in told[1:]] == ["", "refresh"], told
