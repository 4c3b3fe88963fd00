"""The example of the README, as a stranger would paste it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.cli.sample import write_events

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "events"
    write_events(folder, rows=2_000)
    return folder


def example(folder: Path) -> str:
    found = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert found is not None
    return found[1].replace("/data/events", str(folder))


@pytest.mark.spark
def test_the_first_example_runs(
    spark: SparkSession, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a session that runs already, which is the one that it gets."""
    names: dict[str, Any] = {}
    try:
        exec(example(folder), names)
    finally:
        sx.disable(names.get("spark", spark))
    check(capsys.readouterr().out, folder)


@pytest.mark.slow
@pytest.mark.spark
def test_the_first_example_runs_as_written(folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(example(folder))
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    check(done.stdout, folder)


def check(told: str, folder: Path) -> None:
    users = ds.dataset(folder, format="parquet").to_table(columns=["user"])["user"]
    expected = pc.sum(pc.equal(users, 4711)).as_py()
    assert re.search(rf"^{expected}$", told, re.MULTILINE), told
    found = re.search(r": (\d+) of 40 files for: ", told)
    assert found is not None, told
    assert int(found[1]) <= 10, "most files are skipped"
