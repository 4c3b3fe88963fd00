"""Processes that die at a step of their work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

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


@contextmanager
def another_at(step: int, others: Callable[[], Any]) -> Iterator[list[str]]:
    """Let others work before one change of the file system; what they change is none.

    Args:
        step: counted from 0.
        others: what they do.
    """

    def react(number: int, _: str, change: Change) -> Any:
        if number == step:
            others()
        return change()

    with _intercepted(react) as calls:
        yield calls


@contextmanager
def killed_in(owner: Any, name: str) -> Iterator[None]:
    """Let the process die where it calls this function, as it must."""

    def die(*_: Any, **__: Any) -> None:
        raise Killed(name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, die)
        with pytest.raises(Killed):
            yield


@contextmanager
def meanwhile(
    owner: Any,
    name: str,
    others: Callable[[], Any],
    *,
    where: Callable[..., bool] = lambda *_: True,
    after: bool = False,
) -> Iterator[None]:
    """Let others work at one call of a function, which there must be.

    Args:
        owner: of the function.
        name: of the function.
        others: what they do; their own calls are no such call.
        where: by the arguments, whether this is the call; it is the first one.
        after: when it has returned, and not before.
    """
    original, left = getattr(owner, name), [others]

    def call(*args: Any, **named: Any) -> Any:
        if not left or not where(*args):
            return original(*args, **named)
        work = left.pop()
        if not after:
            work()
        found = original(*args, **named)
        if after:
            work()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, call)
        yield
    assert not left, f"nobody called {name}"
