"""The command line: what it prints, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import skipindex as sx
from skipindex.cli import main
from tests.tables import put, put_all


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
    assert "the cap is 10%" in out
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
    assert "a: bitmap" in out
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
    assert "indexed 3 files (0 had it already, 1 not readable)" in (
        capsys.readouterr().out
    )
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
    with pytest.raises(SystemExit) as ended:
        main(["nonsense"])
    assert ended.value.code == 2
    assert "invalid choice" in capsys.readouterr().err


def test_the_module_is_the_command(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "skipindex", "describe", str(folder)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "4 files" in done.stdout
