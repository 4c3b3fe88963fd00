"""Conditions of the catalogue as versions of Spark hand them over.

``python -m tests.conditions.catalogue`` writes ``trees_4.3.txt`` for one: on each
line a condition on the table ``shapes``, a tabulator, and the JSON of its final
conditions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from tests.conditions.catalogue.entries import HERE

TABLE: Final = "shapes"
"""Whose conditions are recorded so."""


@cache
def versions() -> Mapping[str, Mapping[str, str]]:
    """By version, and by condition, the final conditions as JSON."""
    found = {}
    for path in sorted(HERE.glob("trees_*.txt")):
        lines = path.read_text(encoding="utf-8").splitlines()
        version = path.stem.removeprefix("trees_")
        found[version] = dict(line.split("\t") for line in lines)
    return found


def write(version: str, trees: Mapping[str, str]) -> None:
    """Write those of a version."""
    lines = [f"{text}\t{json}\n" for text, json in trees.items()]
    (HERE / f"trees_{version}.txt").write_text("".join(lines), encoding="utf-8")
