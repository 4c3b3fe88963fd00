"""Pictures of layouts: every file as a box over two columns, as SVG text."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

import numpy as np
import pyarrow as pa

from skipindex.layout.boundaries import Boundaries
from skipindex.layout.clustering import Clustering
from skipindex.layout.quality import positions
from skipindex.storage.file_system.location import Location
from skipindex.table import TableState, open_state

_SIDE: Final = 320
_MARGIN: Final = 36
_COLOURS: Final = 12
CURVES: Final = ("linear", "zorder", "hilbert")


@dataclass(frozen=True, slots=True)
class Box:
    """The bounds of one file over two columns, each from 0 to 1."""

    x: tuple[float, float]
    y: tuple[float, float]


def picture(
    tables: Mapping[str, TableState | Location | str | os.PathLike[str]], x: str, y: str
) -> str:
    """An SVG picture of tables side by side: their files over two columns.

    The axes are the ranks of the files' bounds, so any types can be drawn.  Files
    without known bounds are left out.

    Raises:
        PredicateError: a table has no such column.
        TableError: there is no such table.
    """
    opened = {name: open_state(table) for name, table in tables.items()}
    infos = [[t.resolve(name) for t in opened.values()] for name in (x, y)]
    stats = [
        [t.stats(info) for t, info in zip(opened.values(), own, strict=True)]
        for own in infos
    ]
    known = [
        a.bounded & a.can_value & b.bounded & b.can_value
        for a, b in zip(*stats, strict=True)
    ]
    sides = []
    for own in stats:
        low, high = positions(*own)
        # Of the files that this column knows, those that the other knows too.
        mine = np.concatenate(
            [k[s.bounded & s.can_value] for k, s in zip(known, own, strict=True)]
        )
        top = max(1, int(high.max(initial=0)))
        sides.append((low[mine] / top, high[mine] / top))
    boxes = _boxes(*sides)
    ends = np.cumsum([int(k.sum()) for k in known]).tolist()
    panels = {
        name: boxes[end - int(k.sum()) : end]
        for name, end, k in zip(opened, ends, known, strict=True)
    }
    return draw(panels, x=x, y=y)


def picture_of_curves(
    rows: pa.Table, x: str, y: str, *, n_files: int, curves: Sequence[str] = CURVES
) -> str:
    """An SVG picture of what curves would make of rows; writes no table.

    The axes are the ranks of the values.

    Raises:
        LayoutError: a column is missing or has no order, or there is no such curve.
    """
    panels = {}
    for curve in curves:
        fitted = Clustering.fit(rows, [x, y], n_files=n_files, curve=curve)
        files = fitted.assign([rows[x], rows[y]]).files
        sides = []
        for name in (x, y):
            ranks = Boundaries.fit(rows[name], column=name).rank(rows[name])
            low = np.full(n_files, np.inf)
            high = np.full(n_files, -np.inf)
            np.minimum.at(low, files, ranks)
            np.maximum.at(high, files, ranks)
            there = high >= low
            top = max(1, int(ranks.max(initial=0)))
            sides.append((low[there] / top, high[there] / top))
        panels[curve] = _boxes(*sides)
    return draw(panels, x=x, y=y)


def draw(panels: Mapping[str, Sequence[Box]], *, x: str, y: str) -> str:
    """The SVG text of boxes, one panel for each name."""
    width = len(panels) * (_SIDE + _MARGIN) + _MARGIN
    height = _SIDE + 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"',
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for i, (name, boxes) in enumerate(panels.items()):
        left = _MARGIN + i * (_SIDE + _MARGIN)
        parts.append(f'<g transform="translate({left},{_MARGIN})">')
        parts.append(
            f'<text x="0" y="-10">{escape(name)}: {len(boxes)} files</text>'
            f'<rect width="{_SIDE}" height="{_SIDE}" fill="none" stroke="#999"/>'
        )
        parts += [_rect(box, number) for number, box in enumerate(boxes)]
        parts.append(
            f'<text x="{_SIDE}" y="{_SIDE + 18}" text-anchor="end">'
            f"{escape(x)} →</text>"
            f'<text transform="translate(-8,0) rotate(-90)" text-anchor="end">'
            f"{escape(y)} →</text></g>"
        )
    return "\n".join([*parts, "</svg>", ""])


def _boxes(
    x: tuple[np.ndarray, np.ndarray], y: tuple[np.ndarray, np.ndarray]
) -> list[Box]:
    corners = zip(*(side.tolist() for side in (*x, *y)), strict=True)
    return [Box((left, right), (low, high)) for left, right, low, high in corners]


def _rect(box: Box, number: int) -> str:
    (left, right), (low, high) = box.x, box.y
    hue = 360 * (number % _COLOURS) // _COLOURS
    return (
        f'<rect x="{left * _SIDE:.1f}" y="{(1 - high) * _SIDE:.1f}" '
        f'width="{max(1.0, (right - left) * _SIDE):.1f}" '
        f'height="{max(1.0, (high - low) * _SIDE):.1f}" '
        f'fill="hsl({hue},70%,60%)" fill-opacity="0.25" stroke="hsl({hue},70%,35%)">'
        f"<title>file {number}</title></rect>"
    )
