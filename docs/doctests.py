"""Lets the reference show the doctests of docstrings as code, without a heading each.

An extension of griffe, which reads the docstrings for mkdocstrings.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"^>>> .*\n(?:(?!>>> |\s*$).*\n|>>> .*\n)*", re.MULTILINE)
LITERAL = re.compile(r"^(.*)::$", re.MULTILINE)


class Doctests(griffe.Extension):
    """Puts doctests between fences, and ends a line before a block with one ``:``."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of one object that was loaded."""
        if obj.docstring is not None:
            text = LITERAL.sub(r"\1:", obj.docstring.value + "\n")
            text = DOCTEST.sub(lambda found: f"```pycon\n{found[0]}```\n", text)
            obj.docstring.value = text.rstrip()
