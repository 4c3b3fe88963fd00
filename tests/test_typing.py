"""The public API as a type checker sees it from outside of the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
USER_CODE = ROOT / "tests" / "typing" / "api.py"
CACHE = ROOT / ".mypy_cache" / "user_code"
WRONG = """
import skipindex as sx
sx.open_table("t").plan("a = 1", colour="red")
sx.open_table("t").plan(7)
n: str = sx.plan_files("a = 1", table="t").count()
sx.vacuum("t")
"""
"""Four lines, from the third on, that a type checker must refuse."""


@pytest.mark.slow
def test_user_code_is_well_typed_and_wrong_code_is_told(tmp_path: Path) -> None:
    """Strict mypy, where no settings of ours are; it needs the types of PySpark.

    What it finds of the packages is kept for the next run, as they seldom change.
    """
    pytest.importorskip("pyspark")
    pytest.importorskip("mypy")
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull]
    untyped = ["--disable-error-code", "import-untyped"]  # pyarrow has no types
    done = subprocess.run(
        [*command, *untyped, "--cache-dir", CACHE, USER_CODE, wrong],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        check=False,
    )
    told = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert [line.partition(": error:")[0] for line in told] == [
        f"wrong.py:{number}" for number in (3, 4, 5, 6)
    ], done.stdout + done.stderr
