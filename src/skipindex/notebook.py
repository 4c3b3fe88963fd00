"""Values as HTML for notebooks: tables, a bar, and files as boxes.

Viewers of notebooks drop style sheets and scripts, and their pages are light or dark.
So a drawing is SVG in the colour of the text, and all else is plain elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import Any, Final, cast

_MOST_BOXES: Final = 1_000
"""Boxes of a drawing; of more files each box is for several."""
_BOXES_A_ROW: Final = 50
_SIDE: Final = 10
_GAP: Final = 2
_BAR: Final = 240
_MOST_LISTED: Final = 20
"""Values of a list that are shown."""
_FAINT: Final = 0.15


class InNotebook:
    """A report, which notebooks show as its first line and a table of its figures."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(cast("Any", self))

    def _repr_html_(self) -> str:
        return record(str(self), self.to_dict())


def record(text: str, values: Mapping[str, Any]) -> str:
    """The first line of a text, and named values; lists behind a fold."""
    head, *_ = text.splitlines() or [""]
    plain: list[Sequence[Any]] = []
    folds = []
    for name, value in values.items():
        if not isinstance(value, Mapping | list | tuple):
            plain.append((name, "" if value is None else value))
            continue
        plain.append((name, len(value)))
        if isinstance(value, Mapping):
            texts = [f"{key}: {one}" for key, one in value.items()]
        else:
            texts = list(map(str, value))
        if texts:
            folds.append(fold(f"{name} ({len(texts):,})", listed(texts)))
    return block(paragraph(head), table((), plain, right=(1,)), *folds)


def block(*parts: str) -> str:
    """Parts below one another."""
    return f"<div>{''.join(parts)}</div>"


def paragraph(text: str) -> str:
    """A text, in bold."""
    return f"<p><b>{escape(text)}</b></p>"


def lines(texts: Iterable[str]) -> str:
    """Texts below one another, with their blanks."""
    return f"<pre>{escape(chr(10).join(texts))}</pre>"


def listed(texts: Iterable[str]) -> str:
    """The first of some texts, and how many more there are."""
    every = list(texts)
    shown = every[:_MOST_LISTED]
    if len(every) > len(shown):
        shown.append(f"and {len(every) - len(shown):,} more")
    return lines(shown)


def fold(title: str, content: str) -> str:
    """Content that is shown once its title is clicked."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def table(
    names: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Sequence[int] = ()
) -> str:
    """A table; the columns ``right`` are figures.  ``Drawing`` cells stay as they are.

    >>> table(("file", "rows"), [("a<b", 1200)], right=(1,))[-62:]
    '<tr><td>a&lt;b</td><td align="right">1,200</td></tr></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(_cell(value, i in right) for i, value in enumerate(row))}</tr>"
        for row in rows
    )
    return f"<table>{head and f'<tr>{head}</tr>'}{body}</table>"


def _cell(value: Any, is_right: bool) -> str:  # noqa: FBT001
    if isinstance(value, Drawing):
        text = value.svg
    elif isinstance(value, float):
        text = f"{value:,.1f}"
    elif isinstance(value, int) and not isinstance(value, bool):
        text = f"{value:,}"
    else:
        text = escape(str(value))
    return f'<td align="right">{text}</td>' if is_right else f"<td>{text}</td>"


class Drawing:
    """A picture, as SVG in the colour of the text around it."""

    def __init__(self, width: int, height: int, title: str, shapes: str) -> None:
        self.svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
            f'height="{height}" viewBox="0 0 {width} {height}" role="img" '
            f'fill="currentColor"><title>{escape(title)}</title>{shapes}</svg>'
        )


def bar(part: float, title: str) -> Drawing:
    """A bar of which some part is full."""
    full = round(_BAR * min(1.0, max(0.0, part)))
    return Drawing(
        _BAR,
        _SIDE,
        title,
        f'<rect width="{_BAR}" height="{_SIDE}" fill-opacity="{_FAINT}"/>'
        f'<rect width="{full}" height="{_SIDE}"/>',
    )


def boxes(parts: Sequence[bool], title: str) -> Drawing:
    """A box for each file, full if it is read; of very many files, for several."""
    n_each = -(-len(parts) // _MOST_BOXES) or 1
    step = _SIDE + _GAP
    shapes = []
    for i in range(0, len(parts), n_each):
        mine = parts[i : i + n_each]
        share = sum(mine) / len(mine)
        x, y = (i // n_each) % _BOXES_A_ROW * step, (i // n_each) // _BOXES_A_ROW * step
        opacity = max(_FAINT, round(share, 2))
        shapes.append(
            f'<rect x="{x}" y="{y}" width="{_SIDE}" height="{_SIDE}" '
            f'fill-opacity="{opacity:g}"/>'
        )
    n_rows = -(-len(shapes) // _BOXES_A_ROW)
    return Drawing(
        min(len(shapes), _BOXES_A_ROW) * step or step,
        max(1, n_rows) * step,
        title,
        "".join(shapes),
    )
