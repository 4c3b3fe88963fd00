"""Tables as wide as the terminal; plain cells where there is no terminal."""

from __future__ import annotations

import io
import math
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from skipindex.errors import one_line

_UNITS: Final = ("B", "KB", "MB", "GB", "TB")
_LEAST: Final = 16
"""Characters of the last column that are left to it in a terminal."""
_NO_LIMIT: Final = 100_000
"""Characters of a line in a file or a pipe, where each row is to stay one line."""


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()
) -> str:
    """Columns below their names; those at ``right`` are numbers.

    In a terminal the last column is wrapped where it does not fit, and the others are
    cut; elsewhere every cell is whole, and every row one line.
    """
    listed = [list(map(one_line, row)) for row in rows]
    is_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size((80, 24)).columns if is_terminal else _NO_LIMIT
    widest = [max(map(len, cells)) for cells in zip(head, *listed, strict=True)]
    most = _most(widest[:-1], width - min(_LEAST, widest[-1]) - 2 * len(widest))
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for i, name in enumerate(head):
        drawn.add_column(
            name,
            justify="right" if i in right else "left",
            no_wrap=i < len(head) - 1,
            max_width=most if i < len(head) - 1 else None,
        )
    for row in listed:
        drawn.add_row(*map(Text, row))
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=is_terminal)
    console.print(drawn)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def _most(widths: Sequence[int], room: int) -> int:
    """The width to which columns are cut, so that they fit together."""
    most = max(widths, default=0)
    while most > 1 and sum(min(width, most) for width in widths) > room:
        most -= 1
    return most


def size(n_bytes: float) -> str:
    """A number of bytes, in three or four digits."""
    if n_bytes < 1000:
        return f"{n_bytes:.0f} B"
    at = min(4, int(math.log10(n_bytes)) // 3)
    return f"{n_bytes / 1000**at:.1f} {_UNITS[at]}"


def files(n: int) -> str:
    """A number of files."""
    return f"{n:,} file{'' if n == 1 else 's'}"
