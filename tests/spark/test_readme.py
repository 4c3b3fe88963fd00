"""The example of the README, as a stranger would paste it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.spark
def test_the_first_example_runs_as_written(tmp_path: Path) -> None:
    example = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert example is not None
    here = example[1].replace("/tmp/skipindex-demo", str(tmp_path / "demo"))
    script = tmp_path / "example.py"
    script.write_text(here)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    expected = sum(i % 997 == 7 and 10 <= i * 7 % 5000 <= 40 for i in range(10**6))
    assert f"{expected} rows, as the plan knew: ({expected}, {expected})" in done.stdout
