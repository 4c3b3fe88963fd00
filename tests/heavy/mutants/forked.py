"""Runs pytest in a fork of a process that has imported other libraries once.

A line of the input has the environment, the arguments of pytest, and a file for what it
prints; the answer is the exit code.  Nothing of skipindex is imported before a fork.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Final

import pytest
from hypothesis import Phase, settings

_LIBRARIES: Final = (
    *("pyarrow.dataset", "pyarrow.parquet", "pandas", "polars", "duckdb", "sqlglot"),
    *("deltalake", "pyiceberg.catalog.sql", "pyiceberg.table", "pyspark.sql"),
)
"""What takes most of the time in which tests are collected."""


class _QuickFirst:
    """Tests of Hypothesis run last: one of them takes as long as all others of a file.

    A mutant is caught as well by an example that is not the smallest.
    """

    @pytest.hookimpl(trylast=True)  # behind the conftest, which has the other profiles
    def pytest_configure(self) -> None:
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", settings.default, phases=phases)
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: hasattr(getattr(item, "obj", None), "hypothesis"))


def _run(environment: dict[str, str], arguments: list[str], output: str) -> int:
    """The exit code of pytest, in this process."""
    os.environ.update(environment)
    sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
    descriptor = os.open(output, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    return pytest.main(arguments, plugins=[_QuickFirst()])


def main() -> None:
    """Fork for each line, one after the other."""
    sys.path.pop(0)  # the folder of this file
    for name in _LIBRARIES:
        with suppress(ImportError):
            import_module(name)
    for line in sys.stdin:
        if child := os.fork():
            _, status = os.waitpid(child, 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
        else:
            sys.exit(_run(**json.loads(line)))


if __name__ == "__main__":
    main()
