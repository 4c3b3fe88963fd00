"""Running the tests of a mutant against a broken copy of the source."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.mutants.catalogue import Mutant

ROOT: Final = Path(__file__).resolve().parents[2]
_SOURCE: Final = ROOT / "src"
_TESTS_FAILED: Final = 1
"""The exit code of pytest; others mean that no test was run to its end."""


def mutated(mutant: Mutant) -> str:
    """The text of the mutant's module.

    Raises:
        ValueError: what it replaces does not stand exactly once in the module.
    """
    text = (_SOURCE / "skipindex" / mutant.module).read_text()
    if text.count(mutant.old) != 1:
        raise ValueError(
            f"mutant {mutant.name!r} is out of date: {mutant.old!r} stands "
            f"{text.count(mutant.old)} times in {mutant.module}"
        )
    return text.replace(mutant.old, mutant.new)


def survives(mutant: Mutant) -> str:
    """Empty if a test fails with the mutant, else what pytest said."""
    text = mutated(mutant)
    with tempfile.TemporaryDirectory() as name:
        source = Path(name, "src")
        shutil.copytree(_SOURCE, source, ignore=shutil.ignore_patterns("*.pyc"))
        (source / "skipindex" / mutant.module).write_text(text)
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
