"""The look of all pictures, and pictures as SVG.

Colours are those of Okabe and Ito (*Color Universal Design*, 2008), which people who
see colours differently can tell apart; markers differ too, for print.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure

COLOURS: Final = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7"),
    *("#D55E00", "#56B4E9", "#000000", "#8C8C8C"),
)
MARKERS: Final = "osD^vPX*<>"

_STYLE: Final[dict[Any, Any]] = {
    "axes.edgecolor": "#555555",
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "font.size": 9,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "skipindex",
}
WIDTH: Final = 9.0
"""Inches of a picture."""


@contextmanager
def style() -> Iterator[None]:
    """Draw in the look of all pictures."""
    with mpl.rc_context(_STYLE):
        yield


def svg(figure: Figure) -> str:
    """A figure as an ``svg`` element, without the head of a file."""
    buffer = io.StringIO()
    # No metadata: they are the same for all, and name addresses.
    metadata = dict.fromkeys(["Creator", "Date", "Format", "Type"])
    figure.savefig(buffer, format="svg", metadata=metadata, bbox_inches="tight")
    text = buffer.getvalue()
    return text[text.index("<svg") :]
