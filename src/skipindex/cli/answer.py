"""The answer of a command, as text and as JSON."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any, Final, TextIO

from skipindex.errors import one_line

_BYTES: Final = re.compile("[\ud800-\udfff]")
_LAID_OUT: Final = re.compile("([\n\t]|\x1b\\[[01]m)")
"""What lays out an answer: lines, and the bold heads of tables."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command prints, as text or as JSON, and its exit code."""

    text: str
    record: Any
    code: int = 0


def tell(what: str, text: str) -> None:
    """Say something in a line on stderr, such as an error."""
    sys.stderr.write(shown(f"skipindex: {what}: {one_line(text)}\n", sys.stderr))


def shown(text: str, stream: TextIO) -> str:
    """The text with escapes for what steers a terminal, and for what a stream lacks.

    Bytes of a name that are no UTF-8 are U+FFFD, as click shows names of files.
    """
    text = _BYTES.sub("\ufffd", text)
    parts = _LAID_OUT.split(text)  # what lays it out is at the odd places
    parts[::2] = map(one_line, parts[::2])
    text = "".join(parts)
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
