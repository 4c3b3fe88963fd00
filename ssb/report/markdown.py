"""Tables of Markdown."""

from __future__ import annotations

from collections.abc import Sequence

Cell = str | int | float | None


def table(heads: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[str]:
    """A table of Markdown; columns of numbers are set to the right."""
    cells = [[shown(cell).replace("|", "\\|") for cell in row] for row in rows]
    numeric = [
        all(isinstance(row[i], int | float | None) for row in rows)
        for i in range(len(heads))
    ]
    return [
        f"| {' | '.join(heads)} |",
        f"|{'|'.join('--:' if right else '---' for right in numeric)}|",
        *(f"| {' | '.join(row)} |" for row in cells),
    ]


def shown(value: Cell) -> str:
    """A value as a text.

    >>> shown(12345), shown(0.1234), shown(3.14159), shown(250.4), shown(None)
    ('12,345', '0.123', '3.14', '250', '-')
    """
    match value:
        case None:
            return "-"
        case str():
            return value
        case int():
            return f"{value:,}"
        case _ if abs(value) >= 100:
            return f"{value:,.0f}"
        case _ if abs(value) >= 1 or not value:
            return f"{value:.2f}"
        case _:
            return f"{value:.3f}"
