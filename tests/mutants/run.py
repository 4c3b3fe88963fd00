"""Running the tests of a mutant against a broken copy of the source."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.mutants.mutant import PACKAGE, ROOT, Mutant, mutated

_TESTS_FAILED: Final = 1
"""The exit code of pytest; others mean that no test was run to its end."""


def survives(mutant: Mutant) -> str:
    """Empty if a test fails with the mutant, else what pytest said."""
    text = mutated(mutant)
    with tempfile.TemporaryDirectory() as name:
        source = Path(name, "src")
        hidden = shutil.ignore_patterns("*.pyc")
        shutil.copytree(PACKAGE, source / PACKAGE.name, ignore=hidden)
        (source / PACKAGE.name / mutant.module).write_text(text)
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-x", "-q", "--no-header"),
                *("-m", "not spark and not slow", "-p", "no:cacheprovider"),
                *mutant.tests,
            ],
            cwd=ROOT,
            env={
                **os.environ,
                "HYPOTHESIS_PROFILE": "mutants",
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONPATH": f"{source}{os.pathsep}{ROOT}",
            },
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode == _TESTS_FAILED:
        return ""
    return f"pytest ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr}"
