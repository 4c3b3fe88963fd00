"""Deliberately broken variants of the library: each must fail one of its tests.

Nearly every one is a mistake that another system has shipped, with the number of the
trap or the project beside it.  They stand in ``catalogue.txt``: a module and the tests
that must notice, below it the changes of its functions as ``Mutant`` describes them,
and below each what is wrong then.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.heavy.mutants.mutant import Mutant

_INDENT: Final = 4


def _mutants(text: str) -> Iterator[Mutant]:
    """The mutants of a catalogue; a line that begins with ``->`` continues a change."""
    module, tests = "", ()
    changes: list[str] = []
    for line in text.splitlines():
        words = line.strip()
        match (len(line) - len(line.lstrip())) // _INDENT:
            case 0 if words:
                module, *names = words.split()
                tests = tuple(f"tests/{name}" for name in names)
            case 1:
                changes = [words]
            case 2 if words.startswith("->"):
                changes.append(words)
            case 2:
                function, _, change = " ".join(changes).partition(": ")
                yield Mutant(f"{module}.{function}", change, words, tests)


MUTANTS: Final = (*_mutants(Path(__file__).with_suffix(".txt").read_text()),)
BY_NAME: Final = {mutant.name: mutant for mutant in MUTANTS}
[ONE_FILE_MORE] = (one for one in MUTANTS if one.why.startswith("one file more "))
"""What each sweep of queries must notice."""


def of(function: str) -> list[Mutant]:
    """The mutants of a function, or of all functions of a module or package."""
    return [
        one
        for one in MUTANTS
        if one.name == function or f"{one.function}.".startswith(f"{function}.")
    ]
