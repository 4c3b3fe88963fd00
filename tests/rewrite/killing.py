"""Processes that die at a step of their work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from skipindex.errors import StorageError
from skipindex.storage.file_system.location import Location

CHANGES = ("write", "write_new", "move", "copy", "delete", "delete_folder")
CHANGES += ("delete_tree", "delete_own")


class Killed(BaseException):
    """Nothing that a program catches."""


Change = Callable[[], Any]
"""A change of the file system that is about to be made."""


@contextmanager
def _intercepted(react: Callable[[int, str, Change], Any]) -> Iterator[list[str]]:
    """Let ``react`` make every change, or not, by its number from 0 and its name."""
    calls: list[str] = []
    originals = {name: getattr(Location, name) for name in CHANGES}

    def watched(name: str) -> Callable[..., Any]:
        def change(*args: Any) -> Any:
            calls.append(name)
            return react(len(calls) - 1, name, lambda: originals[name](*args))

        return change

    try:
        for name in CHANGES:
            setattr(Location, name, watched(name))
        yield calls
    finally:
        for name, original in originals.items():
            setattr(Location, name, original)


@contextmanager
def killed_at(step: int, *, after: bool) -> Iterator[list[str]]:
    """Let the process die at its n-th change of the file system.

    The dead change nothing any more, so every later change fails too.

    Args:
        step: counted from 0.
        after: die when it is done, and not before.
    """

    def react(number: int, name: str, change: Change) -> Any:
        if number < step:
            return change()
        if number == step and after:
            change()
        raise Killed(name)

    with _intercepted(react) as calls:
        yield calls


@contextmanager
def failing_at(step: int, error: type[BaseException] = OSError) -> Iterator[list[str]]:
    """Let one change of the file system fail, and the next ones succeed."""

    def react(number: int, name: str, change: Change) -> Any:
        if number == step:
            raise error(f"no {name} today")
        return change()

    with _intercepted(react) as calls:
        yield calls


@contextmanager
def answer_lost_at(step: int) -> Iterator[list[str]]:
    """Let one change of the file system be made, and its answer be an error."""

    def react(number: int, name: str, change: Change) -> Any:
        done = change()
        if number == step:
            raise StorageError(f"no answer to {name}")
        return done

    with _intercepted(react) as calls:
        yield calls
