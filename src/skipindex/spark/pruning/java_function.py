"""Python functions that the driver calls."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from skipindex.errors import EngineError

MAX_TEXTS: Final = 256
"""Texts that have begun and not ended; each thread of ``Asking.java`` sends one, of
which there are as many as calls have run at once."""


class JavaFunction:
    """A function of a text, which the driver sends in pieces; see ``Asking.java``.

    It is called with whole texts alone.

    Args:
        function: of the text.
    """

    def __init__(self, function: Callable[[str], bytes | None]) -> None:
        self._function = function
        self._begun: OrderedDict[str, list[str]] = OrderedDict()
        self._lock = threading.Lock()

    def apply(self, argument: str) -> bytes | None:
        """The function's result at the last piece of a text, and None before it."""
        line, _, piece = argument.partition("\n")
        name, before, follows = line.split(" ")
        with self._lock:
            pieces = self._begun.pop(name, [])
            if len(pieces) != int(before):
                raise EngineError(
                    f"text {name} of the driver came without its piece {len(pieces)}"
                )
            pieces.append(piece)
            if follows == "more":
                self._begun[name] = pieces
                if len(self._begun) > MAX_TEXTS:
                    self._begun.popitem(last=False)
                return None
        return self._function("".join(pieces))

    class Java:
        """What Py4J looks for."""

        implements = ("java.util.function.Function",)
