"""What is promised is what the matrix has proved."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.matrix.cells import (
    CELLS,
    ROOT,
    Cell,
    lower_bound,
    name_of,
    project,
    requirements,
)
from tests.matrix.results import Outcome, load, outcome_of, page, save, table

PROJECT = {
    "dependencies": ["numpy>=2.1,<3", "pyspark>=3.5,<4.4", "pybloom-live>=4,<5"],
    "optional-dependencies": {"ssb": ["tpchgen-cli>=2"], "dev": ["ruff>=1", "pytest"]},
}
LIGHT = {
    "dependencies": ["numpy>=2.1,<3"],
    "optional-dependencies": {
        "spark": ["pyspark>=3.5,<4.4", "pandas>=2.2,<3"],
        "ssb": [],
        "dev": ["pytest"],
    },
}
REPORT = """<testsuites><testsuite tests="9" failures="2" errors="1" skipped="3"/>
</testsuites>"""


def proved() -> dict[str, list[str]]:
    """The rows of the page of cells that passed, by name."""
    rows = {}
    for line in (ROOT / "docs" / "support.md").read_text().splitlines():
        words = [word.strip() for word in line.strip("|").split("|")]
        if len(words) == 8 and words[3].isdigit() and words[4] == "0":
            rows[words[0]] = words
    return rows


def test_every_version_that_is_allowed_is_proved() -> None:
    rows = proved()
    found = project()
    extras = found["optional-dependencies"]
    own = [*found["dependencies"], *extras.get("spark", ())]
    spark = next(one for one in own if name_of(one) == "pyspark")
    bounds = re.fullmatch(r"pyspark>=(\d+)\.(\d+),<(\d+)\.(\d+)", spark)
    assert bounds is not None, spark
    low, high = (int(bounds[1]), int(bounds[2])), (int(bounds[3]), int(bounds[4]))
    cells = {
        tuple(map(int, cell.spark.split("."))): cell for cell in CELLS if cell.spark
    }
    inside = [version for version in cells if low <= version < high]
    assert min(inside) == low
    assert max(inside) == (high[0], high[1] - 1)
    for version in inside:
        cell = cells[version]
        assert rows[cell.name][2].startswith(f"{cell.spark}.")
    assert rows["oldest"][1].startswith(lower_bound(found["requires-python"]))


def test_the_oldest_versions_are_the_lower_bounds() -> None:
    cell = Cell("oldest", "3.11", is_oldest=True)
    expected = ["numpy==2.1", "pybloom-live==4", "tpchgen-cli>=2", "pytest"]
    assert requirements(cell, PROJECT) == expected


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


def test_the_page_has_a_row_for_every_cell(tmp_path: Path) -> None:
    save(
        Outcome("a", versions={"python": "3.12.1", "numpy": "2.1"}, passed=7), tmp_path
    )
    found = load(["a", "b"], tmp_path)
    assert table(found).splitlines()[2:] == [
        "| a | 3.12.1 | - | 7 | 0 | 0 | 0 | numpy 2.1 |",
        "| b | - | - | - | - | - | - | not run: no run is noted |",
    ]
    assert table(found) in page(found)
