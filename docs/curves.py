"""Draws ``docs/curves.svg``: ``python docs/curves.py``.

The files that three curves make of the same rows, each as a box over two columns.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from skipindex.layout import CurveLayout

_CURVES: Final = ("linear", "zorder", "hilbert")
_FILES: Final = 24
_SIDE: Final = 320
_MARGIN: Final = 36
_COLOURS: Final = 12


def picture() -> str:
    """The picture as SVG; the same each time."""
    rng = np.random.default_rng(0)
    rows = pa.table({name: rng.random(20_000) for name in ("x", "y")})
    width = len(_CURVES) * (_SIDE + _MARGIN) + _MARGIN
    height = _SIDE + 2 * _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"',
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for i, curve in enumerate(_CURVES):
        left = _MARGIN + i * (_SIDE + _MARGIN)
        lines += [f'<g transform="translate({left},{_MARGIN})">', *_panel(curve, rows)]
        lines.append("</g>")
    return "\n".join([*lines, "</svg>", ""])


def _panel(curve: str, rows: pa.Table) -> list[str]:
    layout = CurveLayout.fit(rows, ["x", "y"], n_files=_FILES, curve=curve)
    files = layout.assign(rows.columns).files
    lines = [
        f'<text x="0" y="-10">{curve}: {_FILES} files</text>',
        f'<rect width="{_SIDE}" height="{_SIDE}" fill="none" stroke="#999"/>',
    ]
    for number in range(_FILES):
        own = rows.filter(pa.array(files == number))
        x, y = (column.to_numpy() * _SIDE for column in own.columns)
        hue = 360 * (number % _COLOURS) // _COLOURS
        lines.append(
            f'<rect x="{x.min():.1f}" y="{_SIDE - y.max():.1f}" '
            f'width="{np.ptp(x):.1f}" height="{np.ptp(y):.1f}" '
            f'fill="hsl({hue},70%,60%)" fill-opacity="0.25" '
            f'stroke="hsl({hue},70%,35%)"><title>file {number}</title></rect>'
        )
    return [
        *lines,
        f'<text x="{_SIDE}" y="{_SIDE + 18}" text-anchor="end">x →</text>',
        '<text transform="translate(-8,0) rotate(-90)" text-anchor="end">y →</text>',
    ]


if __name__ == "__main__":
    Path(__file__).with_name("curves.svg").write_text(picture(), "utf-8")
