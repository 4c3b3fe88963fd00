"""Mutants of ``build``."""

from __future__ import annotations

from typing import Final

from tests.heavy.mutants.mutant import Mutant

_MEMORY: Final = ("tests/build/test_memory.py",)

BUILD: Final = (
    Mutant(
        "failed-column-served",
        "build.missing.missing_of",
        "per_file[i] = list(requests)",
        "per_file.setdefault(i, list(requests))",
        "what could not be read is not built anew, and its empty payload is there",
        ("tests/indexes/test_bad_input.py",),
    ),
    Mutant(
        "spilled-twice",
        "build.task._read_and_index",
        "indexed.spilled and rest",
        "False",
        "the last columns of a file that was spilled have no index",
        _MEMORY,
    ),
)
