"""The truth about a layout: matching rows of each file, found by one scan."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

Matches = Mapping[str, Mapping[str, int]]
"""By query and by the name of a file, the rows that match."""


def save(matches: Matches, path: Path) -> None:
    """Write the truth beside a layout, for a run that goes on later."""
    path.write_text(json.dumps(matches), encoding="utf-8")


def load(path: Path) -> Matches:
    """What ``save`` wrote."""
    matches: Matches = json.loads(path.read_text(encoding="utf-8"))
    return matches
