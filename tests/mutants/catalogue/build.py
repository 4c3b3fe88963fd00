"""Mutants of ``build``."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

BUILD: Final = (
    Mutant(
        "failed-column-served",
        "build.missing.missing_of",
        "per_file[i] = list(requests)",
        "per_file.setdefault(i, list(requests))",
        "what could not be read is not built anew, and its empty payload is there",
        ("tests/indexes/test_bad_input.py",),
    ),
)
