"""Setuptools, and before it javac: what builds the wheel of a checkout.

The PySpark is that of the Python that builds, outside of the build's environment.
Without it, or a JDK, the wheel has no classes, and queries of Spark read all files.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from setuptools import build_meta  # type: ignore[import-untyped]
from setuptools.build_meta import *  # type: ignore[import-untyped] # noqa: F403 - all hooks

_CLASSES: Final = Path("src/skipindex/spark/java/classes")
_COMPILE: Final = """if True:
    import sys
    sys.path[:0] = [".", "src"]
    from tests.spark.java.javac import JavaError, write_missing
    try:
        write_missing()
    except JavaError as error:
        sys.exit(str(error))
"""


def _compile() -> None:
    command = [sys.executable, "-I", "-c", _COMPILE]  # -I leaves pip's environment
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and not list(_CLASSES.glob("*.jar")):
        why = done.stderr.strip().rpartition("\n")[2]
        print(f"no Java classes, so queries of Spark will read all files: {why}")


def _compiling(build: Callable[..., str]) -> Callable[..., str]:
    """A hook that compiles what is missing, if that is possible, and builds."""

    def hook(*given: Any, **options: Any) -> str:
        _compile()
        return build(*given, **options)

    return hook


build_wheel = _compiling(build_meta.build_wheel)
build_editable = _compiling(build_meta.build_editable)
