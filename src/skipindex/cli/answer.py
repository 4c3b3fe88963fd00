"""What a command answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command prints, as text or as JSON, and its exit code."""

    text: str
    record: Any
    code: int = 0
