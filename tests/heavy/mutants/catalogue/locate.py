"""Mutants of finding rows by keys."""

from __future__ import annotations

from typing import Final

from tests.heavy.mutants.mutant import Mutant

_TESTS: Final = ("tests/planner/rows/test_by_keys.py",)

LOCATE: Final = (
    Mutant(
        "null-has-a-key",
        "indexes.kinds.run_length.RunLengthIndex._places_of",
        "mine[rows] < self.head.n_codes",
        "mine[rows] <= self.head.n_codes",
        "a row of NULL is taken for one with the key beyond the greatest value",
        _TESTS,
    ),
    Mutant(
        "rough-rows-of-a-key",
        "indexes.positional.PositionalIndex._places_of",
        "bounds.lower is not bounds.upper",
        "False",
        "rows that only may have a key are said to have it",
        _TESTS,
    ),
    Mutant(
        "keys-beyond-the-bounds",
        "planner.rows.by_keys.KeyLocations._spans",
        'values.array.searchsorted(stats.high, side="right")',
        "values.array.searchsorted(stats.high)",
        "the greatest value of a file is not looked for",
        _TESTS,
    ),
    Mutant(
        "places-of-other-keys",
        "planner.rows.by_keys.KeyLocations.batches",
        "first + rows[1]",
        "rows[1]",
        "rows are said to have keys that come before theirs",
        _TESTS,
    ),
    Mutant(
        "files-without-an-index-left-out",
        "planner.rows.by_keys.KeyLocations._may_hold",
        "return True",
        "return False",
        "a file that nothing is known of is left out",
        _TESTS,
    ),
)
