"""Tables of other formats are refused at every door, and a caller can insist."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import skipindex as sx
from skipindex.cli import main
from skipindex.cli.commands import COMMANDS
from skipindex.errors import TableError
from skipindex.storage import disk_cache
from tests.tables import api_members, build, put

LOGS = {
    "Delta": ["_delta_log/00000000000000000000.json"],
    "Hudi": [".hoodie/hoodie.properties"],
    "Spark Streaming": ["_spark_metadata/0"],
    "Iceberg": ["metadata/00000-7c.metadata.json"],
    "Paimon": ["schema/schema-0", "snapshot/snapshot-1"],
    "Lance": ["_versions/1.manifest"],
}
NO_LOGS = [
    ["metadata/notes.json"],
    ["metadata/deep/v1.metadata.json"],
    ["schema/schema-0"],
    ["snapshot/snapshot-1"],
    ["sub/_delta_log/00000000000000000000.json"],
    ["_versions/notes.txt"],
]


def table_with(folder: Path, *logs: str) -> Path:
    put(folder / "f.parquet", {"a": [1]})
    for log in logs:
        (folder / log).parent.mkdir(parents=True, exist_ok=True)
        (folder / log).write_bytes(b"{}")
    return folder


DOORS: dict[str, Callable[..., Any]] = {
    "open_table": sx.open_table,
    "plan_files": lambda path, **how: sx.plan_files("a = 2", table=path, **how),
    "build_indexes": lambda path, **how: sx.build_indexes(
        path, {"a": "bitmap"}, workers=1, **how
    ),
    "advise": lambda path, **how: sx.open_table(path, **how).advise(),
}


@pytest.mark.parametrize("name", sorted(LOGS.keys() - {"Delta"}))
@pytest.mark.parametrize("door", DOORS)
def test_tables_of_other_formats_are_refused_at_every_door(
    tmp_path: Path, door: str, name: str
) -> None:
    folder = table_with(tmp_path, *LOGS[name])
    with pytest.raises(TableError, match=f"is an? {name} table: ") as error:
        DOORS[door](folder)
    text = str(error.value)
    assert repr(LOGS[name][0]) in text
    assert "determines which files" in text
    assert "plain=True" in text
    assert not (folder / "_skipindex").exists()
    DOORS[door](folder, plain=True)


@pytest.mark.parametrize("logs", NO_LOGS, ids=str)
def test_what_only_looks_like_a_log_is_none(tmp_path: Path, logs: list[str]) -> None:
    assert sx.open_table(table_with(tmp_path, *logs)).paths == ["f.parquet"]


def test_a_table_that_was_opened_as_plain_stays_so(tmp_path: Path) -> None:
    folder = table_with(tmp_path, *LOGS["Delta"])
    table = sx.open_table(folder, plain=True)
    assert table.refresh().paths == table.paths
    built = sx.build_indexes(table, {"a": "bitmap"}, workers=1).table
    assert built.plan("a = 2").paths == []


def _warm(table: sx.Table) -> None:
    before = [*disk_cache._given]
    disk_cache.set_cache_dir(Path(table.folder, "_cache"))
    try:
        assert table.warm() > 0
    finally:
        disk_cache._given[:] = before


CALLS: dict[str, Callable[[sx.Table], Any]] = {
    "advise": lambda table: table.advise(),
    "build_indexes": lambda table: table.build_indexes({"a": "bloom"}, workers=1),
    "compact_indexes": lambda table: table.compact_indexes(),
    "declare_derived": lambda table: table.declare_derived({}),
    "declare_exclusive": lambda table: table.declare_exclusive(False),
    "declare_layout": lambda table: table.declare_layout(sx.Clustering(by=["a"])),
    "declare_retention": lambda table: table.declare_retention(timedelta(days=1)),
    "drop_indexes": lambda table: table.drop_indexes(),
    "history": lambda table: table.history(),
    "layout_quality": lambda table: table.layout_quality(["a = 1"]),
    "locate": lambda table: table.locate([1], "a").read_all(),
    "plan": lambda table: table.plan("a = 1").verify(),
    "plan_files": lambda table: table.plan_files("a = 1").verify(),
    "propose_derived": lambda table: table.propose_derived(),
    "refresh": lambda table: table.refresh(),
    "remove_indexes": lambda table: table.remove_indexes(),
    "refresh_indexes": lambda table: table.refresh_indexes(workers=1, repair=True),
    "status": lambda table: table.status(),
    "usage": lambda table: table.usage(),
    "vacuum": lambda table: table.vacuum(purge=True),
    "verify": lambda table: table.verify(),
    "warm": _warm,
}


def test_every_call_without_spark_is_named() -> None:
    methods = {name for name, value in api_members(sx.Table).items() if callable(value)}
    public = {name for name in methods if not name.startswith("_")}
    assert public - CALLS.keys() == {"optimize"}, "which needs Spark"


@pytest.mark.few(8)
@pytest.mark.parametrize("name", CALLS)
def test_every_call_goes_on_with_a_plain_table(tmp_path: Path, name: str) -> None:
    """With a pack of which a file is gone, so that a purge rewrites it."""
    folder = table_with(tmp_path, *LOGS["Delta"])
    put(folder / "g.parquet", {"a": [2]})
    table = sx.open_table(folder, plain=True)
    table = table.build_indexes({"a": "bitmap"}, workers=1).table.compact_indexes()
    (folder / "g.parquet").unlink()
    CALLS[name](table.refresh())


def test_a_log_that_comes_later_is_seen(tmp_path: Path) -> None:
    build(table_with(tmp_path))
    table_with(tmp_path, *LOGS["Iceberg"])
    with pytest.raises(TableError, match="Iceberg"):
        sx.open_table(tmp_path).drop_indexes()


@pytest.mark.parametrize(
    "command",
    sorted(n for n, one in COMMANDS.items() if one.on_table and n != "optimize"),
)
def test_the_command_line_refuses_them_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    folder = str(table_with(tmp_path, *LOGS["Hudi"]))
    more = {
        "build": ["--index", "a=bitmap", "--workers", "1"],
        "drop": ["--all"],
        "plan": ["a = 2"],
        "explain": ["a = 2"],
    }
    assert main([command, folder, *more.get(command, [])]) == 2
    assert "is a Hudi table" in capsys.readouterr().err
    # No file has an index, and the writers of the other format go on.
    done = {"verify": 1, "exclusive": 2, "warm": 2}.get(command, 0)
    assert main([command, folder, "--plain", *more.get(command, [])]) == done
