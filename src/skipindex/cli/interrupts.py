"""Ctrl-C: one line and exit code 130, within a second."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from types import FrameType
from typing import Any, Final, NoReturn

CODE: Final = 130
"""The exit code, as shells have it."""
_TOLD: Final = "skipindex: interrupted\n"
_UNHEARD_SECONDS: Final = 0.9
"""How long a command may be where no Python runs, as in a request to a store."""
_MOMENT_SECONDS: Final = 0.02
"""How long it takes until it is known that Ctrl-C was pressed."""
_HEARD_SECONDS: Final = 10.0
"""How long it may take back what it has begun."""


class _When(Enum):
    """What Ctrl-C does."""

    BEFORE = "nothing is written yet, so the process ends at once"
    AT_WORK = "an exception ends what is begun"
    AFTER = "all is done, so nothing"


class _SigintHandler:
    """What hears Ctrl-C."""

    when = _When.BEFORE
    is_heard = False

    def __init__(self) -> None:
        self.pressed = threading.Event()

    def handle(self, _signal: int, _frame: FrameType | None) -> None:
        """End what is at work.

        Raises:
            KeyboardInterrupt: while a command is.
        """
        self.is_heard = True
        if self.when is _When.BEFORE:
            _end()
        if self.when is _When.AT_WORK:
            logging.disable()  # Py4J would tell where it was
            raise KeyboardInterrupt


_HANDLER = _SigintHandler()


@contextmanager
def at_work() -> Iterator[None]:
    """Ctrl-C raises ``KeyboardInterrupt`` in here, and nothing afterwards."""
    _HANDLER.when = _When.AT_WORK
    try:
        yield
    finally:
        _HANDLER.when = _When.AFTER


@contextmanager
def while_spark_starts() -> Iterator[None]:
    """Ctrl-C ends the process immediately in here, and afterwards it is ours again."""
    # An exception in here would leave a JVM that no one has spoken to, and that goes on
    # for ever.  PySpark's own handler asks the JVM to cancel its jobs, over a
    # connection that may be in use, and tells at length that it could not.
    if _HANDLER.when is not _When.AT_WORK:
        yield
        return
    _HANDLER.when, before = _When.BEFORE, logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(before)
        signal.signal(signal.SIGINT, _HANDLER.handle)
        _HANDLER.when = _When.AT_WORK


def was_pressed() -> bool:
    """Whether Ctrl-C was, so that an error is what came of it."""
    return _HANDLER.pressed.wait(_MOMENT_SECONDS)


def exit_interrupted() -> int:
    """Say that the command was interrupted; its exit code."""
    sys.stderr.write(_TOLD)
    return CODE


@contextmanager
def interruptible(*, is_all: bool) -> Iterator[None]:
    """Ctrl-C ends what is done in here, also where it is slow to hear it.

    If this ``is_all`` that the process does, it ends nothing afterwards.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _HANDLER.when, _HANDLER.is_heard = _When.BEFORE, False
    _HANDLER.pressed.clear()
    before = signal.signal(signal.SIGINT, _HANDLER.handle)
    hook = sys.unraisablehook
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    previous = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(reader, over), daemon=True)
    watch.start()
    sys.unraisablehook = lambda args: _raised_again(hook, args)
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.set_wakeup_fd(previous)
        signal.signal(signal.SIGINT, signal.SIG_IGN if is_all else before)
        over.set()
        os.close(writer)  # of which the watch hears
        watch.join()
        os.close(reader)


def _raised_again(hook: Any, args: Any) -> None:
    """An interrupt that fell into a destructor, which cannot pass it on, again."""
    if issubclass(args.exc_type, KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    else:
        hook(args)


def _watch(reader: int, over: threading.Event) -> None:
    """End the process if it goes on after Ctrl-C."""
    while (data := os.read(reader, 1)) and data[0] != signal.SIGINT:
        pass
    if not data:
        return
    _HANDLER.pressed.set()
    if over.wait(_UNHEARD_SECONDS):
        return
    if _HANDLER.is_heard and over.wait(_HEARD_SECONDS):
        return
    _end()


def _end() -> NoReturn:
    """End the process as it is."""
    os.write(2, _TOLD.encode())
    os._exit(CODE)
