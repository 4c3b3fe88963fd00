"""Processes that die at a step of their work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from skipindex.storage.file_system.location import Location

CHANGES = ("write", "write_new", "move", "copy", "delete", "delete_folder")
CHANGES += ("delete_tree",)


class Killed(BaseException):
    """Nothing that a program catches."""


@contextmanager
def killed_at(step: int, *, after: bool) -> Iterator[list[str]]:
    """Let the process die at its n-th change of the file system.

    The dead change nothing any more, so every later change fails too.

    Args:
        step: counted from 0.
        after: die when it is done, and not before.
    """
    calls: list[str] = []
    originals = {name: getattr(Location, name) for name in CHANGES}

    def mortal(name: str) -> Callable[..., Any]:
        def change(*args: Any) -> Any:
            calls.append(name)
            if len(calls) <= step:
                return originals[name](*args)
            if len(calls) == step + 1 and after:
                originals[name](*args)
            raise Killed(name)

        return change

    try:
        for name in CHANGES:
            setattr(Location, name, mortal(name))
        yield calls
    finally:
        for name, original in originals.items():
            setattr(Location, name, original)
