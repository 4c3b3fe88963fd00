"""The command line: what it prints, and its exit codes."""

from __future__ import annotations

import io
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import skipindex as sx
from skipindex import cli
from skipindex.cli import actions, main
from skipindex.cli.commands import COMMANDS
from skipindex.cli.tables import size, table
from skipindex.indexes import spec_to_json
from tests.tables import packs, put, put_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Path(__file__).parents[1] / "docs" / "reference" / "cli.schema.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = [
        {
            "a": [(7 * n + i) % 50 for n in range(3000)],
            "s": [f"v{n % 40}" for n in range(3000)],
        }
        for i in range(4)
    ]
    return put_all(tmp_path / "table", files)


def test_advise_prints_the_choice_and_what_if(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queries = tmp_path / "queries.sql"
    queries.write_text("SELECT * FROM t WHERE t.a = 3 AND s = 'v7'; -- one\na < 2;")
    assert main(["advise", str(folder), "--queries", str(queries)]) == 0
    out = capsys.readouterr().out
    assert "your 2 queries read 4 of 4 files on average; with " in out
    assert "the cap is 10%" in out
    assert out.count("\n") <= 6
    command = f"skipindex build {folder} --queries {queries}"
    assert f"to build: {command}\n" in out
    assert main([*command.split()[1:], "--workers", "1"]) == 0
    assert "your 2 queries read" in capsys.readouterr().out
    assert main(["remove", str(folder)]) == 0
    assert main(["advise", str(folder), "--queries", str(queries), "-v"]) == 0
    out = capsys.readouterr().out
    assert "a = 3 AND s = 'v7'" in out
    assert "min/max 4, the choice" in out
    assert not (folder / "_skipindex").exists(), "nothing is built"


def test_advise_prints_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["advise", str(folder), "--json", "--columns", "a, s"]
    assert main([*arguments, "--max-bytes-ratio", "0.5"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["max_bytes"] == record["data_bytes"] // 2
    assert {column["name"] for column in record["columns"]} == {"a", "s"}


def test_build_plan_and_describe(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = ["--index", "a=bitmap", "--index", "s=bloom", "--workers", "1"]
    assert main(["build", str(folder), *wanted]) == 0
    assert "indexed 4 files" in capsys.readouterr().out
    assert main(["plan", str(folder), "a = 3 AND s = 'none'"]) == 0
    assert "0 of 4 files" in capsys.readouterr().out
    assert main(["plan", str(folder), "a = 3", "--files"]) == 0
    assert len(capsys.readouterr().out.split()) == 4
    assert main(["plan", str(folder), "a = 3", "--json", "--kinds", "minmax"]) == 0
    assert len(json.loads(capsys.readouterr().out)["files"]) == 4
    assert main(["describe", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "4 of them indexed, with 12,000 rows" in out
    assert re.search(r"^a +int +bitmap +[0-9.]+ KB +4$", out, re.MULTILINE)
    assert main(["describe", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == 4


def test_build_without_a_wish_builds_what_is_advised(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["build", str(folder), "--workers", "1", "--max-bytes-ratio", "0.9"]) == 0
    )
    assert "the cap is 90%" in capsys.readouterr().out
    assert sx.open_table(folder).state.snapshot.properties.to_json()["choice"][
        "indexes"
    ]
    assert main(["build", str(folder), "--json", "--max-bytes-ratio", "0.9"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == 0


def test_refresh_builds_what_the_table_has(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", str(folder), "--index", "a=bitmap", "--workers", "1"]) == 0
    put(folder / "new.parquet", {"a": [1], "s": ["x"]})
    assert main(["verify", str(folder)]) == 1
    assert "new.parquet: never indexed" in capsys.readouterr().out
    assert main(["refresh", str(folder), "--workers", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == 1
    assert main(["refresh", str(folder), "--workers", "1", "--repair"]) == 0
    assert "indexed 0 files" in capsys.readouterr().out
    assert main(["verify", str(folder)]) == 0


def test_a_file_that_cannot_be_read_is_exit_code_1(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "3.parquet").write_bytes(b"no Parquet file")
    build = ["build", str(folder), "--index", "a=bitmap", "--workers", "1"]
    assert main(build) == 1
    assert "indexed 3 files (0 up to date, 1 not readable)" in (capsys.readouterr().out)
    assert main(["refresh", str(folder), "--workers", "1", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["files"], found["unchanged"], found["unread"]) == (0, 3, 1)
    (folder / "3.parquet").unlink()
    assert main(["refresh", str(folder), "--workers", "1"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan", "{nowhere}", "a = 1"], "no such table"),
        (["plan", "{folder}", "nope = 1"], "no column 'nope'"),
        (["plan", "{folder}", "a ="], "expected"),
        (["plan", "{folder}", "a = 1", "--kinds", "nope"], "unknown index kind"),
        (["build", "{folder}", "--index", "a"], "accepted: COLUMN=KIND"),
        (["build", "{folder}", "--index", "a=nope"], "unknown index kind 'nope'"),
        (["build", "{folder}", "--index", "a=bitmap", "--columns", "a"], "one of the"),
        (["advise", "{folder}", "--queries", "{nowhere}"], "cannot read the queries"),
        (
            ["advise", "{folder}", "--max-bytes-ratio", "0"],
            "accepted: a number above 0",
        ),
        (["advise", "{folder}", "--columns", "nope"], "no column 'nope'"),
        (["describe", "{nowhere}"], "no such table"),
        (["build", "{folder}", "--workers", "0"], "accepted: 1 or more"),
        (["verify", "{folder}", "--workers", "0"], "accepted: 1 or more"),
        (["build", "{folder}", "--workers", "two"], "not a valid integer"),
        (["build", "{folder}", "--timezone", "Rome"], "unknown time zone 'Rome'"),
        (["advise", "{folder}", "--timezone", "Mars"], "accepted: a name such as"),
        (["plan", "{folder}", "a = 1", "--timezone", "X/Y"], "unknown time zone 'X/Y'"),
        (["plan", "{folder}", "a = 1", "--files="], "does not take a value"),
        (["plan", "{folder}", "a = 1", "--kinds", ","], "accepted: such as A or A,B"),
        (["explain", "{folder}", "a = 1", "--file", ""], "no file ''"),
        (["advise", "{folder}", "--columns", " "], "accepted: such as A or A,B"),
        (["build", "{folder}", "--index", "=bloom"], "accepted: COLUMN=KIND"),
        (["drop", "{folder}"], "accepted: --columns, --kinds or both, or --all"),
        (["drop", "{folder}", "--all", "--kinds", "bloom"], "no indexes to drop"),
        (["drop", "{folder}", "--columns", "nope"], "no column 'nope'"),
        (["vacuum", "{folder}", "--retention", "a week"], "'30min', '12h' or '7d'"),
        (["vacuum", "{folder}", "--retention", "7"], "a number with its unit"),
        (["maintain", "{folder}", "--every", "90"], "90s, 30min, 12h or 7d"),
        (["status", "{folder}", "--conf", "a"], "accepted: NAME=VALUE"),
        (["status"], "missing argument 'PATH'"),
        (["completion", "tcsh"], "is not one of"),
        (["refresh", "{nowhere}"], "no such table"),
        (["verify", "{nowhere}"], "no such table"),
    ],
)
def test_a_wrong_question_is_told_in_one_line(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    places = {"folder": folder, "nowhere": tmp_path / "nowhere"}
    assert main([argument.format(**places) for argument in arguments]) == 2
    captured = capsys.readouterr()
    assert not captured.out
    assert message in captured.err
    assert captured.err.startswith("skipindex: error: ")
    assert captured.err.count("\n") == 1


def test_unknown_commands_end_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nonsense"]) == 2
    assert "no such command 'nonsense'" in capsys.readouterr().err
    assert main([]) == 2
    assert "Commands:" in capsys.readouterr().out


@pytest.mark.slow
def test_the_module_is_the_command(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "skipindex", "describe", str(folder)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "4 files" in done.stdout


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_has_an_example_and_80_columns(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*command.split(), "-h"]) == 0
    text, _, example = capsys.readouterr().out.partition("Example:\n")
    assert f"  skipindex {command}" in example
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("command", ["", "build", "plan"])
def test_help_loads_nothing_heavy(command: str) -> None:
    code = f"""if True:
        import sys
        from skipindex.cli import main
        assert main([*{command!r}.split(), "--help"]) == 0
        heavy = {{"numpy", "pyarrow", "pyspark", "rich", "sqlglot"}}
        assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
    """
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"skipindex {sx.__version__}\n"


def test_a_missing_package_is_told_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "find_spec", lambda name: None if name == "rich" else 1)
    assert main(["--help"]) == 2
    told = capsys.readouterr().err
    assert "rich is not installed (type: pip install 'skipindex[cli]')" in told
    assert told.count("\n") == 1


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """What a command prints with ``--json``, which its schema takes."""
    validator = pytest.importorskip("jsonschema").Draft202012Validator
    main([*arguments, "--json"])
    record = json.loads(capsys.readouterr().out)
    schema = json.loads(SCHEMA.read_text())
    reference = {"$ref": f"#/$defs/{arguments[0]}"}
    problems = validator({**schema, **reference}).iter_errors(record)
    assert [problem.message for problem in problems] == []
    return record


def test_json_is_as_its_schema_says(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = str(folder)
    queries = tmp_path / "queries.sql"
    queries.write_text("a = 3 AND s = 'v7'")
    assert as_json(capsys, "status", place)["version"] == -1
    assert as_json(capsys, "history", place) == {"commits": []}
    advice = as_json(capsys, "advise", place, "--queries", str(queries))
    assert len(advice["queries"]) == 1
    build = ("build", place, "--workers", "1", "--index", "a=bitmap")
    assert as_json(capsys, *build, "--index", "s=bloom")["files"] == 4
    put(folder / "new.parquet", {"a": [1], "s": ["x"]})
    (due,) = as_json(capsys, "maintain", place, "--no-spark", "--dry-run")["tables"]
    assert [one["step"] for one in due["steps"]] == ["refresh"]
    assert as_json(capsys, "refresh", place, "--workers", "1")["files"] == 1
    plan = as_json(capsys, "plan", place, "a = 3 AND s = 'none' OR a > 48")
    assert plan == sx.open_table(folder).plan(plan["where"]).to_dict() | {
        "stages": plan["stages"],
        "count_bounds": plan["count_bounds"],
        "row_groups": plan["row_groups"],
        "tasks": plan["tasks"],
        "skipped": plan["skipped"],
        "conditions": plan["conditions"],
        "together": plan["together"],
    }
    assert plan["skipped"]
    assert plan["tasks"]
    explained = as_json(capsys, "explain", place, "a = 3", "--file", "new.parquet")
    assert explained["path"] == "new.parquet"
    assert as_json(capsys, "explain", place, "a = 3")["files"] == plan["files"]
    assert as_json(capsys, "verify", place)["ok"]
    (report,) = as_json(capsys, "report", place, "--days", "2.5")["tables"]
    assert (report["n_queries"], report["days"], report["conditions"]) == (0, 2.5, [])
    assert as_json(capsys, "merge", place)["after"] == 1
    dropped = as_json(capsys, "drop", place, "--kinds", "bloom")["dropped"]
    assert [(one["column"], one["kind"]) for one in dropped] == [("s", "bloom")]
    commits = as_json(capsys, "history", place)["commits"]
    assert [one["operation"] for one in commits] == ["drop", "merge", "build", "build"]
    assert as_json(capsys, "exclusive", place) == {"exclusive": True}
    assert as_json(capsys, "describe", place)["exclusive"]
    assert not as_json(capsys, "vacuum", place, "--retention", "0")["dry_run"]
    assert as_json(capsys, "remove", place)["n_bytes"] > 0
    settings = {"spark.sql.extensions": "skipindex.Extension"}
    monkeypatch.setattr(actions, "extension_settings", lambda _version: settings)
    assert as_json(capsys, "spark-conf", "--spark", "3.5") == settings
    assert as_json(capsys, "completion", "zsh")["shell"] == "zsh"


def test_a_report_names_a_bad_table_and_tells_of_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "bad", "z"):
        put(tmp_path / name / "0.parquet", {"a": [1, 2]})
        sx.build_indexes(tmp_path / name, {"a": "bitmap"}, workers=1)
    put(tmp_path / "bad" / ".hoodie" / "hoodie.properties", {"a": [0]})
    assert main(["report", str(tmp_path)]) == 1
    told, wrong = capsys.readouterr()
    assert [line for line in told.splitlines() if "queries of the last 7 days" in line]
    assert str(tmp_path / "z") in told
    assert f"{tmp_path / 'bad'}: " in wrong
    assert main(["report", str(tmp_path / "a"), "--verify", "-1"]) == 2
    assert "verify=-1 (accepted: a number of days above 0" in capsys.readouterr().err


def test_every_command_has_a_schema() -> None:
    schema = json.loads(SCHEMA.read_text())
    assert schema["$defs"].keys() == {*COMMANDS, "file"}


@pytest.mark.spark
@pytest.mark.parametrize(
    "optimized", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_optimize_and_names_of_the_catalog(
    tmp_path: Path,
    spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
    *,
    optimized: bool,
) -> None:
    path = tmp_path / "t"
    frame = spark.range(100).selectExpr("id % 7 AS city", "id AS price")
    frame.write.option("path", str(path)).saveAsTable("command_line")
    try:
        named = ("default.command_line", "--catalog")
        assert main(["build", *named, "--index", "city=bitmap"]) == 0
        assert "indexed" in capsys.readouterr().out
        n_files = len(list(path.glob("*.parquet")))
        assert as_json(capsys, "status", *named)["indexed_files"] == n_files
        if optimized:
            queries = tmp_path / "queries.sql"
            queries.write_text("SELECT * FROM t WHERE city = 3")
            how = ("--queries", str(queries), "--in-place", "--mode", "full")
            assert as_json(capsys, "optimize", *named, *how)["n_rows"] == 100
        assert main(["plan", *named, "city = 3"]) == 0
        assert "rows that match: 14\n" in capsys.readouterr().out
    finally:
        spark.sql("DROP TABLE command_line")


def test_optimize_takes_queries_of_a_file(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[Any] = []

    def optimize(_table: sx.Table, _spark: None, **given: Any) -> None:
        asked.append(given["layout"].by)
        raise sx.TableError("enough")

    monkeypatch.setattr(sx.Table, "optimize", optimize)
    monkeypatch.setattr(actions, "session", lambda _options: None)
    queries = tmp_path / "queries.sql"
    queries.write_text("SELECT b FROM t WHERE t.a = 1; -- the second\nb < 3")
    named = ["optimize", str(folder), "--queries", str(queries)]
    assert main([*named, "--timezone", "Europe/Rome"]) == 2
    assert "enough" in capsys.readouterr().err
    assert asked == [sx.Workload(["a = 1", "b < 3"], timezone="Europe/Rome")]
    assert main([*named, "--by", "a"]) == 2
    assert "--by and --queries both choose" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("home", "names", "message"),
    [
        ("/nowhere", ("json",), "Spark needs Java"),
        ("", ("no_such_module",), "no_such_module is not installed"),
    ],
)
def test_optimize_says_what_spark_needs(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    home: str,
    names: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.setenv("JAVA_HOME", home)
    monkeypatch.setattr("skipindex.api.calls.SPARK", names)
    monkeypatch.setattr("importlib.import_module", lambda _name: None)
    assert main(["optimize", str(folder), "--by", "a", "--in-place"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("by", ["nope", "a,nope"])
def test_optimize_refuses_a_bad_column_before_spark_starts(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    by: str,
) -> None:
    monkeypatch.setattr(actions, "session", lambda _: pytest.fail("Spark started"))
    assert main(["optimize", str(folder), "--by", by, "--in-place"]) == 2
    assert "no column 'nope'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wanted", "spec"),
    [
        ("a=bloom", sx.Bloom()),
        ("a=bloom()", sx.Bloom()),
        ("a=bloom(error_rate=0.001)", sx.Bloom(error_rate=0.001)),
        ("a= bit_sliced( max_slices = 4 ) ", sx.BitSliced(max_slices=4)),
        ("x=(y)=ngram_bloom(n=4, error_rate=0.01)", sx.NGramBloom(n=4)),
        ("a=bit_sliced(max_slices=None)", sx.BitSliced()),
    ],
)
def test_an_index_with_arguments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wanted: str, spec: Any
) -> None:
    put_all(tmp_path, [{"a": [1, 2], "x=(y)": ["abcdef", "b"]}])
    assert main(["build", str(tmp_path), "--index", wanted, "--workers", "1"]) == 0
    capsys.readouterr()
    (record,) = (
        sx.open_table(tmp_path).state.snapshot.properties.to_json()["indexes"].values()
    )
    assert record == [spec_to_json(spec)]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("bloom(0.1)", "accepted: such as bloom, or bloom(error_rate=0.001)"),
        ("bloom(error_rate=open('x'))", "accepted: such as bloom, or bloom(error"),
        ("bloom(error_rate=)", "accepted: such as bloom, or bloom(error_rate=0.001)"),
        ("bloom(rate=1)", "index kind 'bloom' does not take {'rate': 1}"),
        ("bloom(error_rate=7)", "accepted: between 0 and 1"),
        ("nope(x=1)", "unknown index kind 'nope'"),
        ("bloom(x=1", "no column 'a=bloom(x'"),
    ],
)
def test_arguments_that_no_index_takes(
    folder: Path, capsys: pytest.CaptureFixture[str], kind: str, message: str
) -> None:
    code = main(["build", str(folder), "--index", f"a={kind}", "--workers", "1"])
    captured = capsys.readouterr()
    assert (code, captured.err.count("\n")) == (2, 1)
    assert message in captured.err


def test_plan_names_what_a_time_zone_is_needed_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moment = pa.array([0], pa.timestamp("us", "UTC"))
    put_all(tmp_path, [{"t": moment, "a": [1]}])
    where = "t > '2024-01-01' AND a > 3 AND year(t) = 2024 AND a + t = 1"
    line = "not judged without --timezone: "
    assert main(["plan", str(tmp_path), where]) == 0
    told = capsys.readouterr().out.splitlines()
    found = [text.removeprefix(line) for text in told if text.startswith(line)]
    assert found == ["t > '2024-01-01'", "year(t) = 2024"]
    assert main(["plan", str(tmp_path), where, "--timezone", "UTC"]) == 0
    assert line not in capsys.readouterr().out


def test_bytes_that_wait_for_a_vacuum_are_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sx.open_table(folder).status().superseded_bytes == 0
    table = sx.build_indexes(folder, {"a": "bitmap"}, workers=1).table
    before = table.status()
    assert before.superseded_bytes == 0
    assert "vacuum" not in str(before)
    assert main(["drop", str(folder), "--columns", "a", "--kinds", "bitmap"]) == 0
    (freed,) = [size(one.n_bytes) for one in table.indexes if one.kind == "bitmap"]
    assert f"{freed} are freed later, or now with --purge, by: " in (
        capsys.readouterr().out
    )
    status = sx.open_table(folder).status()
    stored = sum(path.stat().st_size for path in packs(folder))
    assert stored == status.index_bytes + status.superseded_bytes
    assert status.superseded_bytes == before.index_bytes
    assert "MB of superseded index files wait for vacuum" in str(status)
    assert main(["status", str(folder)]) == 0
    line = f"{size(stored)} of superseded index files are freed by: "
    line += f"skipindex vacuum {folder}"
    assert line in capsys.readouterr().out
    assert main(["vacuum", str(folder), "--purge"]) == 0
    assert sx.open_table(folder).status().superseded_bytes == 0


def test_a_table_without_an_index_is_described(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("describe", "status"):
        assert main([command, str(folder)]) == 0
        told = capsys.readouterr().out
        assert "no commit yet" in told
        assert "pack" not in told
        assert "commit -1" not in told
    assert f"skipindex build {folder}" in told


def test_verify_lists_a_file_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", str(folder), "--index", "a=bitmap", "--workers", "1"]) == 0
    put(folder / "1.parquet", {"a": [1], "s": ["x"]})
    (folder / "2.parquet").unlink()
    capsys.readouterr()
    assert main(["verify", str(folder)]) == 1
    told = capsys.readouterr().out
    assert [told.count(f"{n}.parquet") for n in (1, 2)] == [1, 1]


def test_no_file_to_read_is_no_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", str(folder), "--index", "a=bitmap", "--workers", "1"]) == 0
    capsys.readouterr()
    assert main(["plan", str(folder), "a = 1000", "--files"]) == 0
    assert capsys.readouterr().out == ""


def test_rows_are_one_line_in_a_pipe_and_80_columns_in_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = ["a" * 60, "b" * 30, "said of it " * 12]
    names = ("file", "size", "why")
    lines = table(names, [row]).splitlines()
    assert lines[1].split() == " ".join(row).split()
    assert len(lines) == 2
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", table(names, [row]))
    assert max(map(len, plain.splitlines())) <= 80
    assert plain.count("\n") > 1


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KB"),
        (12_345_678, "12.3 MB"),
        (10**15, "1000.0 TB"),
    ],
)
def test_sizes(n_bytes: int, text: str) -> None:
    assert size(n_bytes) == text


def test_progress_is_plain_lines_in_a_log(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build = ["build", str(folder), "--workers", "1", "--index", "a=bitmap"]
    assert main(build) == 0
    first, last = capsys.readouterr().err.splitlines()
    assert first == "skipindex: indexing: 0 of 4 files, 0 s"
    assert re.fullmatch(r"skipindex: indexing: 4 of 4 files, \d+ s", last)
    assert main(["advise", str(folder)]) == 0
    told = capsys.readouterr().err
    assert "sampling: 0 of 4 files" in told
    assert "measuring: 2 of 2 columns" in told
    assert re.search(r"asking: (\d+) of \1 questions", told)
    assert main(["verify", str(folder)]) == 0
    assert "checking: 0 of 8 parts" in capsys.readouterr().err
    assert main(["verify", str(folder), "--quiet"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("more", "told"),
    [("-v", True), pytest.param("--quiet", False, marks=pytest.mark.slow)],
)
def test_quiet_and_verbose(folder: Path, more: str, *, told: bool) -> None:
    """In a process of its own, as the log is the process's."""
    build = ["build", str(folder), "--workers", "1", "--index", "s=bloom", more]
    done = subprocess.run(
        [sys.executable, "-m", "skipindex", *build],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ("build of" in done.stderr) == told
    assert bool(done.stderr) == told
    assert "indexed 4 files" in done.stdout


def test_a_reader_who_has_seen_enough_is_no_traceback(folder: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m skipindex describe {folder} | true",
        shell=True, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"_SKIPINDEX_COMPLETE={shell}_complete" in script
    word = "ver" if shell == "fish" else "1"  # fish gives the word, the others where
    asked = {"COMP_WORDS": "skipindex ver", "COMP_CWORD": word}
    done = subprocess.run(
        [sys.executable, "-c", "from skipindex.cli import main; main()"],
        env={**os.environ, **asked, "_SKIPINDEX_COMPLETE": f"{shell}_complete"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "verify" in done.stdout


NASTY = " '\"$`!\\*?~#&|;<>(){}[]=%^\n\té-"


def drawn_name(drawn: random.Random) -> str:
    name = "".join(drawn.choices(NASTY + "ab", k=drawn.randint(1, 9)))
    return f"a{name}" if name[0] in "-~" or name.isspace() else name


def pasted(text: str, tmp_path: Path) -> list[str]:
    """The arguments that a shell gives to the command that is printed last."""
    tool = tmp_path / "bin" / "skipindex"
    tool.parent.mkdir(exist_ok=True)
    tool.write_text("#!/bin/sh\nprintf '%s\\0' \"$@\"\n")
    tool.chmod(0o755)
    text = text.removesuffix("\nwhy: the same command with -v\n")
    _, found, command = text.rpartition(": skipindex ")
    assert found, text
    paths = f"{tool.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/sh", "-c", f"skipindex {command}"],
        capture_output=True,
        check=True,
        cwd=tmp_path / "bin",
        env={**os.environ, "PATH": paths},
    )
    assert not done.stderr
    return done.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize("seed", range(6))
def test_commands_to_copy_work_in_a_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    drawn = random.Random(seed)
    name, column = drawn_name(drawn), drawn_name(drawn).replace("`", "$")
    value = drawn_name(drawn).replace("\\", "").replace("'", "$")
    folder = put_all(tmp_path / name, [{column: ["x"]}, {column: [value]}])
    assert main(["build", str(folder), "--index", f"{column}=bitmap"]) == 0
    where = f"`{column}` = '{value}'"
    options = ["--kinds", "bitmap,minmax", "--timezone", "Europe/Rome", "--plain"]
    given = [str(folder), where, *options]
    capsys.readouterr()

    def copied(*words: str) -> list[str]:
        assert main(words) == 0
        return pasted(capsys.readouterr().out, tmp_path)

    again = copied("plan", *given)
    assert again == ["explain", *given]
    assert main(again) == 0
    put(folder / "new.parquet", {column: ["y"]})
    assert copied("status", str(folder), "--quiet") == ["refresh", str(folder)]
    conf = ["--conf", f"a.b={value}x", "--conf", "c=d e"]
    ratio = ["--max-bytes-ratio", "0.5"]
    wanted = [*ratio, "--timezone", "+01:00"]
    words = copied("advise", str(folder), *conf, *wanted, "--plain")
    assert words == ["build", str(folder), *wanted, "--plain", *conf]
    words = copied("drop", str(folder), "--kinds", "bitmap", "--plain")
    assert words == ["vacuum", str(folder), "--plain"]


def test_a_path_to_copy_is_no_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put_all(tmp_path / "-t", [{"a": [1]}])
    monkeypatch.chdir(tmp_path)
    assert main(["status", "--", "-t"]) == 0
    assert pasted(capsys.readouterr().out, tmp_path) == ["build", "--", "-t"]


ARGUMENTS = {
    "build": ["--index", "x=bitmap", "--workers", "1"],
    "advise": ["--columns", "x"],
    "plan": ["x = 3"],
    "explain": ["x = 3"],
    "drop": ["--columns", "x", "--kinds", "bitmap"],
}


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
@pytest.mark.parametrize("form", ["", "--json", "--files"])
def test_names_that_no_terminal_has_are_shown_with_escapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, form: str
) -> None:
    """By every command: they are no UTF-8, steer the terminal, or break a line."""
    folder = tmp_path / "t\x1b[2J\n\x7f\x9bé"
    column = "\x1b[31m\r\nLEAKé\x7f"
    for name in ("a", "b\udcff", "c\x1b]0;title\x07\nLEAK\x9b2J", "é"):
        put(tmp_path / "t.parquet", {"x": [3, 4], column: ["a", "b"]})
        folder.mkdir(exist_ok=True)
        (tmp_path / "t.parquet").rename(folder / f"{name}.parquet")
    (folder / "damaged\nLEAK.parquet").write_bytes(b"no Parquet")
    commands = [*COMMANDS, "verify", "status"] if not form else list(COMMANDS)
    commands = ["plan"] if form == "--files" else commands
    for name in commands:
        if name in {"optimize", "spark-conf", "completion"}:  # with Spark, and no table
            continue
        out, err = (
            io.TextIOWrapper(io.BytesIO(), encoding, errors, write_through=True)
            for errors in ("strict", "backslashreplace")
        )
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        words = [name, str(folder), *ARGUMENTS.get(name, [])]
        code = main([*words, *([form] if form else []), "-v"])
        printed, told = (s.buffer.getvalue().decode(encoding) for s in (out, err))
        assert code in {0, 1} or (code == 2 and not printed and told), told
        if name in {"status", "describe", "build", "plan", "explain", "verify"}:
            assert printed, name
        for text in (printed, told):
            assert not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f]", text), (name, text)
            assert not re.search("^LEAK", text, re.MULTILINE), (name, text)
        if form == "--json" and printed:
            json.loads(printed)
        if form == "--files":
            assert len(printed.splitlines()) == 5


def test_a_folder_whose_name_is_no_utf_8_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t").mkdir()
    put(tmp_path / "t" / "a.parquet", {"x": [1]})
    (tmp_path / "t").rename(tmp_path / "t\udcff")
    for name in ("build", "status", "verify"):
        assert main([name, f"{tmp_path}/t\udcff"]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert told.startswith("skipindex: error: ")


def test_the_indexes_are_in_the_sidecar(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    side = ["--sidecar", str(tmp_path / "side"), "--quiet"]
    before = sorted(folder.rglob("*"))
    asked = ["--index", "a=bitmap", "--workers", "1"]
    assert main(["build", str(folder), *asked, *side]) == 0
    capsys.readouterr()
    for name, given, expected in (
        ("status", [], "up to date"),
        ("describe", [], "bitmap"),
        ("plan", ["a < 0"], "0 of 4 files"),
        ("refresh", ["--workers", "1"], "indexed 0 files"),
        ("verify", [], "0 damaged, 0 stale, 0 orphans"),
        ("advise", [], f"to build: skipindex build {folder} --sidecar {side[1]}"),
        ("drop", ["--columns", "a"], f"skipindex vacuum {folder} --sidecar {side[1]}"),
        ("vacuum", ["--purge"], "published 0 rewritten files and deleted"),
        ("remove", [], f"of the indexes of {folder}"),
    ):
        assert main([name, str(folder), *given, *side]) == 0, name
        assert expected in capsys.readouterr().out, name
    assert sorted(folder.rglob("*")) == before
    assert main(["status", str(folder), "--sidecar", str(folder / "in")]) == 2
    assert "is in the table's folder" in capsys.readouterr().err


def test_sample_data_are_written_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "a" / "events")
    assert as_json(capsys, "sample", folder) == {"folder": folder, "files": 40}
    assert sx.plan_files(folder, "status = 500").paths
    before = sorted(tmp_path.rglob("*"))
    for place, why in (
        (folder, "is not empty"),
        (f"{folder}/day-000.parquet", "Not"),
    ):
        assert main(["sample", place]) == 2
        assert why in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_a_column_that_was_added_later_is_indexed_by_a_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, place = tmp_path / "t", str(tmp_path / "t")
    put(folder / "0.parquet", {"a": [1, 2]})
    put(folder / "1.parquet", {"a": [3, 4], "device": ["x", "y"]})
    schema = ["--schema", str(folder / "1.parquet")]
    assert main(["build", place, "--index", "device=exact", "--quiet"]) == 2
    assert main(["build", place, "--index", "device=exact", "--quiet", *schema]) == 0
    put(folder / "2.parquet", {"a": [5, 6], "device": ["z", None]})
    capsys.readouterr()
    status = as_json(capsys, "status", place)
    assert (status["notes"], status["indexed_files"]) == ([], 2)
    assert main(["refresh", place, "--quiet"]) == 0
    put(folder / "3.parquet", {"a": [5, 6], "device": ["w", None]})
    assert main(["maintain", place, "--quiet", "--no-spark"]) == 0
    capsys.readouterr()
    status = as_json(capsys, "status", place)
    assert (status["notes"], status["indexed_files"]) == ([], 4)
    (column,) = (one for one in status["columns"] if one["name"] == "device")
    assert column["indexes"] == {"exact": 4}
    for value, expected in (("y", "1.parquet"), ("w", "3.parquet")):
        plan = as_json(capsys, "plan", place, f"device = '{value}'", *schema)
        assert [one["path"] for one in plan["tasks"]] == [expected]
    assert main(["status", place, "--schema", str(tmp_path / "none")]) == 2
    assert "accepted: a Parquet file that has all columns" in capsys.readouterr().err
    assert main(["status", "db.t", "--catalog", *schema]) == 2
    assert "--schema or --catalog" in capsys.readouterr().err
