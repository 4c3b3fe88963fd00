"""Draws ``docs/files.svg``: ``python -m docs.files``.

The files of the sample, each as a box: those that a query reads by min/max statistics,
and those that it reads with an index.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Final

import skipindex as sx
from skipindex.cli.sample import FILES, write_events

_QUERY: Final = "user = 4711"
_ACROSS: Final = 20
_SIDE: Final = 28
_STEP: Final = 34
_MARGIN: Final = 16
_READ, _SKIPPED = "#d9534f", "#e8eef2"


def picture() -> str:
    """The picture as SVG; the same each time."""
    with tempfile.TemporaryDirectory() as folder:
        write_events(folder)
        report = sx.build_indexes(folder, {"user": "bloom"}, workers=1)
        by_kind = {
            "by min/max statistics": report.table.plan(_QUERY, kinds=["minmax"]).paths,
            "with a Bloom filter on user": report.table.plan(_QUERY).paths,
        }
        names = report.table.paths
    rows = -(-FILES // _ACROSS)
    height = len(by_kind) * (rows * _STEP + 40) + _MARGIN
    width = _ACROSS * _STEP + 2 * _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"',
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="15">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for i, (how, paths) in enumerate(by_kind.items()):
        top = _MARGIN + i * (rows * _STEP + 40)
        told = f"WHERE {_QUERY}, {how}: {len(paths)} of {FILES} files are read"
        lines.append(f'<text x="{_MARGIN}" y="{top + 14}">{told}</text>')
        lines += _boxes(names, set(paths), top + 26)
    return "\n".join([*lines, "</svg>", ""])


def _boxes(names: list[str], read: Collection[str], top: int) -> list[str]:
    return [
        f'<rect x="{_MARGIN + at % _ACROSS * _STEP}" y="{top + at // _ACROSS * _STEP}" '
        f'width="{_SIDE}" height="{_SIDE}" rx="3" stroke="#8aa0ad" '
        f'fill="{_READ if name in read else _SKIPPED}"/>'
        for at, name in enumerate(names)
    ]


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(picture(), "utf-8")
