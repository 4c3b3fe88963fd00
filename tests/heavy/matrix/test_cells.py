"""What is promised is what the matrix has proved."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.heavy.matrix import __main__ as runner
from tests.heavy.matrix.cells import (
    CELLS,
    ROOT,
    Cell,
    lower_bound,
    name_of,
    project,
    requirements,
)
from tests.heavy.matrix.environments import LackError, NoCellError
from tests.heavy.matrix.results import (
    NO_RUN,
    Outcome,
    load,
    outcome_of,
    page,
    save,
    table,
)

PROJECT = {
    "dependencies": ["numpy>=2.1,<3", "pyspark>=3.5,<4.4", "pybloom-live>=4,<5"],
    "optional-dependencies": {"ssb": ["tpchgen-cli>=2"], "dev": ["ruff>=1", "pytest"]},
}
LIGHT = {
    "dependencies": ["numpy>=2.1,<3"],
    "optional-dependencies": {
        "spark": ["pyspark>=3.5,<4.4", "pandas>=2.2,<3"],
        "ssb": [],
        "dev": ["skipindex[spark]", "pytest"],
    },
}
REPORT = """<testsuites><testsuite tests="9" failures="2" errors="1" skipped="3"/>
</testsuites>"""


def rows_of_the_page() -> list[list[str]]:
    lines = (ROOT / "docs" / "support.md").read_text().splitlines()
    rows = [[word.strip() for word in line.split("|")[1:-1]] for line in lines]
    return [row for row in rows if len(row) == 7][2:]


def words_of_the_page(cell: str) -> str:
    """What the page says that a cell ran with."""
    page = (ROOT / "docs" / "support.md").read_text()
    return page.partition(f"- **{cell}**: ")[2].partition("\n")[0]


def test_every_version_that_is_allowed_has_a_cell() -> None:
    found = project()
    extras = found["optional-dependencies"]
    own = [*found["dependencies"], *extras.get("spark", ())]
    spark = next(one for one in own if name_of(one) == "pyspark")
    bounds = re.fullmatch(r"pyspark>=(\d+)\.(\d+),<(\d+)\.(\d+)", spark)
    assert bounds is not None, spark
    low, high = (int(bounds[1]), int(bounds[2])), (int(bounds[3]), int(bounds[4]))
    cells = [tuple(map(int, cell.spark.split("."))) for cell in CELLS if cell.spark]
    assert min(cells) == low
    assert max(cells) == (high[0], high[1] - 1)
    oldest = next(cell for cell in CELLS if cell.is_oldest)
    assert oldest.python == lower_bound(found["requires-python"])


def test_every_cell_has_the_libraries_of_the_command() -> None:
    for cell in CELLS:
        names = set(map(name_of, requirements(cell, project())))
        assert {"click", "rich", "sqlglot"} <= names, cell.name


def test_ci_runs_these_cells() -> None:
    """Read as text: no test depends on a reader of YAML."""
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    found = re.findall(r'- \{ cell: (\S+), python: "(\S+)" \}', workflow)
    assert found == [(cell.name, cell.python) for cell in CELLS]
    assert workflow.count("cell:") == len(CELLS)
    assert 'make test-matrix MATRIX="--cell ${{ matrix.cell }}"' in workflow


def test_the_page_is_of_these_cells_and_none_failed() -> None:
    rows = rows_of_the_page()
    assert [row[0] for row in rows] == [cell.name for cell in CELLS]
    for cell, (_, python, spark, _, failed, *_) in zip(CELLS, rows, strict=True):
        assert failed in {"0", "-"}, f"{cell.name} failed"
        if failed == "0":
            assert python.startswith(f"{cell.python}.")
            assert spark.startswith(f"{cell.spark}." if cell.spark else "-")


def test_the_page_shows_the_oldest_versions_that_are_allowed_now() -> None:
    *_, failed, _, _ = next(r for r in rows_of_the_page() if r[0] == "oldest")
    versions = words_of_the_page("oldest")
    shown = dict(one.split(" ") for one in versions.split(", ") if failed != "-")
    for one in project()["dependencies"] if shown else ():
        found = re.sub(r"(\.0)*$", "", shown[name_of(one)])
        assert found == lower_bound(one).removesuffix(".0"), one


def test_the_oldest_versions_are_the_lower_bounds() -> None:
    cell = Cell("oldest", "3.11", is_oldest=True)
    expected = ["numpy==2.1", "pybloom-live==4", "tpchgen-cli>=2", "pytest"]
    assert requirements(cell, PROJECT) == expected
    assert requirements(cell, LIGHT) == ["numpy==2.1", "pandas==2.2", "pytest"]


@pytest.mark.parametrize("table", [PROJECT, LIGHT], ids=["always", "extra"])
def test_pyspark_is_in_the_cells_with_spark_alone(table: dict[str, object]) -> None:
    without = requirements(Cell("a", "3.12"), table)
    assert not any("pyspark" in one or "pandas" in one for one in without)
    with_spark = requirements(Cell("b", "3.12", spark="4.0"), table)
    assert "pyspark>=3.5,<4.4,==4.0.*" in with_spark
    assert set(without) < set(with_spark)


def test_a_cell_proves_nothing_unless_tests_ran_and_passed(tmp_path: Path) -> None:
    report = tmp_path / "a.xml"
    report.write_text(REPORT)
    found = outcome_of("a", {"python": "3.12.1"}, report, 1.25)
    assert (found.passed, found.failed, found.skipped) == (3, 3, 3)
    assert not found.is_proof
    assert not outcome_of("b", {}, tmp_path / "none.xml", 0).is_proof
    assert not Outcome("c").is_proof
    assert Outcome("d", passed=1).is_proof


def pretend(
    monkeypatch: pytest.MonkeyPatch, folder: Path, code: int, report: str
) -> None:
    """Let each run of pytest end with this code and report, without a run."""

    def ends(command: Sequence[object], **_: object) -> SimpleNamespace:
        option = next(text for text in map(str, command) if text.startswith("--junit"))
        if report:
            Path(option.partition("=")[2]).write_text(report)
        return SimpleNamespace(returncode=code)

    monkeypatch.setattr(runner, "FOLDER", folder)
    monkeypatch.setattr(runner, "OUTCOMES", folder / "outcomes")
    monkeypatch.setattr(runner, "variables", lambda *_: {})
    monkeypatch.setattr(runner, "versions", lambda *_: {"python": "3.14.0"})
    monkeypatch.setattr(runner, "subprocess", SimpleNamespace(run=ends))


@pytest.mark.parametrize(
    ("arguments", "error", "expected"),
    [
        ([], LackError("no Python 3.14"), 0),
        (["--cell", "python-3.14"], LackError("no Python 3.14"), 1),
        ([], NoCellError("pip failed"), 1),
        ([], None, 0),
    ],
)
def test_a_cell_that_is_named_must_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    error: NoCellError | None,
    expected: int,
) -> None:
    def prepared(cell: Cell) -> Path:
        if cell.name == "python-3.14" and error:
            raise error
        return tmp_path / "python"

    pretend(monkeypatch, tmp_path, 0, '<testsuite tests="1"/>')
    monkeypatch.setattr(runner, "prepared", prepared)
    assert runner.main(arguments) == expected


@pytest.mark.parametrize(
    ("code", "report", "expected"),
    [
        (0, '<testsuite tests="44"/>', 0),
        (1, '<testsuite tests="44" failures="1"/>', 1),
        (1, '<testsuite tests="44"/>', 1),  # of an interrupted pytest that crashed
        (2, '<testsuite tests="44"/>', 1),
        (-9, '<testsuite tests="44"/>', 1),
        (0, "", 1),
    ],
)
def test_a_run_that_broke_off_is_no_proof(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    report: str,
    expected: int,
) -> None:
    pretend(monkeypatch, tmp_path, code, report)
    monkeypatch.setattr(runner, "prepared", lambda _: tmp_path / "python")
    assert runner.main(["--cell", "python-3.12"]) == expected


def test_no_cell_at_all_is_no_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepared(_: Cell) -> Path:
        raise LackError("no Python")

    monkeypatch.setattr(runner, "OUTCOMES", tmp_path)
    monkeypatch.setattr(runner, "prepared", prepared)
    assert runner.main([]) == 1


def test_the_page_has_a_row_for_every_cell(tmp_path: Path) -> None:
    save(
        Outcome("a", versions={"python": "3.12.1", "numpy": "2.1"}, passed=7), tmp_path
    )
    found = load(["a", "b"], tmp_path)
    assert table(found).splitlines()[2:] == [
        "| a | 3.12.1 | - | 7 | 0 | 0 | 0 |",
        "| b | - | - | - | - | - | - |",
        "",
        "- **a**: numpy 2.1",
        "- **b**: not run: no run is noted",
    ]
    assert table(found) in page(found)


LACKS = Outcome("a", "this machine has no Python 3.14", is_lacking=True)
"""The outcome of a cell that another machine may have run."""


@pytest.mark.parametrize(
    ("former", "newest", "expected"),
    [
        (Outcome("a", passed=1), Outcome("a", NO_RUN), Outcome("a", passed=1)),
        (Outcome("a", passed=1), Outcome("a", failed=1), Outcome("a", failed=1)),
        (Outcome("a", passed=1), Outcome("a", "no wheel"), Outcome("a", "no wheel")),
        (Outcome("a", passed=1), LACKS, Outcome("a", passed=1)),
        (Outcome("a", NO_RUN), LACKS, LACKS),
        (Outcome("b"), LACKS, LACKS),
    ],
)
def test_a_row_stays_until_the_cell_runs_again(
    former: Outcome, newest: Outcome, expected: Outcome
) -> None:
    assert page([newest], page([former])) == page([expected])


@pytest.mark.slow
def test_no_test_needs_pyspark_but_those_that_are_left_out_without_it() -> None:
    """One module that imports it ends the run of a cell before its first test."""
    script = """
import sys
sys.modules["pyspark"] = sys.modules["py4j"] = None
import pytest
quick = ["--assert=plain", "-p", "no:cacheprovider", "-m", "not spark"]
sys.exit(pytest.main(["--collect-only", "-qq", *quick]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
