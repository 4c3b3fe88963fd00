"""The example of the README, as a stranger would paste it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from examples.sample_data import write_events

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.spark
def test_the_first_example_runs_as_written(tmp_path: Path) -> None:
    example = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert example is not None
    folder = tmp_path / "events"
    write_events(folder, rows=2_000)
    script = tmp_path / "example.py"
    script.write_text(example[1].replace("/data/events", str(folder)))
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    users = ds.dataset(folder, format="parquet").to_table(columns=["user"])["user"]
    expected = pc.sum(pc.equal(users, 4711)).as_py()
    assert re.search(rf"^{expected}$", done.stdout, re.MULTILINE), done.stdout
    found = re.search(r": (\d+) of 40 files for: ", done.stdout)
    assert found is not None, done.stdout
    assert int(found[1]) <= 10, "most files are skipped"
