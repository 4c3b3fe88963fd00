"""Every exception that skipindex raises on purpose.

::

    SkipIndexError
      TableError(ValueError)              the path is not a Parquet table
      PredicateError(ValueError)          the predicate cannot be read
      UnsupportedTypeError(TypeError)     the kind does not support the column's type
      UnknownIndexError(ValueError)       the index kind does not exist
      AdviceError(ValueError)             the arguments for choosing indexes are invalid
      LayoutError(ValueError)             the arguments of a clustering are invalid
      PlanError(ValueError)               a plan is impossible, or cannot be read
      EngineError(TypeError)              no query engine is known for a value
      CorruptIndexError(ValueError)       the bytes are not what was written
        IndexVersionError                 their version is not supported
      CommitConflictError(RuntimeError)   other writers committed first, repeatedly
      BuildError(RuntimeError)            a worker process was killed
      StorageError(OSError)               the file system refuses a call

A message has one line: what happened, to which object, and what is accepted.
``plan_files`` never raises ``CorruptIndexError``: it reads the file.
"""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path, PurePath
from typing import Final

_SHELL: Final = f"{os.sep}IPython{os.sep}"
"""A part of the paths of IPython's own modules."""
_STEERS: Final = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029]")


class SkipIndexError(Exception):
    """The base class of every error that skipindex raises on purpose.

    >>> issubclass(sx.TableError, sx.SkipIndexError)
    True
    """

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the frames of the caller, and the message."""
        own = str(Path(__file__).parent)
        frames = [
            frame
            for frame in traceback.extract_tb(self.__traceback__)
            if not (frame.filename.startswith(own) or _SHELL in frame.filename)
        ]
        told = traceback.format_exception_only(self)
        return [line.rstrip() for line in (*traceback.format_list(frames), *told)]


class TableError(SkipIndexError, ValueError):
    """The path is not a Parquet table, or the table lacks a part that the call needs.

    >>> sx.open_table("/nowhere")
    Traceback (most recent call last):
        ...
    skipindex.errors.TableError: ...
    """


class PredicateError(SkipIndexError, ValueError):
    """The predicate cannot be read, or does not fit the table's schema.

    >>> table.plan("nothing = 1")
    Traceback (most recent call last):
        ...
    skipindex.errors.PredicateError: ...
    """


class UnsupportedTypeError(SkipIndexError, TypeError):
    """The index kind cannot hold values of the column's type.

    >>> table.build_indexes({"price": "ngram_bloom"}, workers=1)
    Traceback (most recent call last):
        ...
    skipindex.errors.UnsupportedTypeError: ...
    """


class UnknownIndexError(SkipIndexError, ValueError):
    """No index kind has that name."""


class AdviceError(SkipIndexError, ValueError):
    """The arguments for choosing indexes are invalid."""


class LayoutError(SkipIndexError, ValueError):
    """The arguments of a clustering are invalid, or do not fit the table.

    >>> sx.Clustering(by="city")
    Traceback (most recent call last):
        ...
    skipindex.errors.LayoutError: ...
    """


class PlanError(SkipIndexError, ValueError):
    """The arguments of a plan are invalid, or the plan cannot be read.

    >>> table.plan("price < 4", limit=-1)
    Traceback (most recent call last):
        ...
    skipindex.errors.PlanError: ...
    """


class EngineError(SkipIndexError, TypeError):
    """No query engine is known for the value, or its package is not installed.

    >>> table.plan("price < 4").read("no session")
    Traceback (most recent call last):
        ...
    skipindex.errors.EngineError: ...
    """


class CorruptIndexError(SkipIndexError, ValueError):
    """The bytes of an index fail a check."""


class IndexVersionError(CorruptIndexError):
    """This version of the library does not support the version of the bytes."""


class CommitConflictError(SkipIndexError, RuntimeError):
    """Other writers committed first, in every attempt of this writer.

    >>> issubclass(sx.CommitConflictError, RuntimeError)
    True
    """


class BuildError(SkipIndexError, RuntimeError):
    """Something cannot be indexed, or a process ended before its work was done."""


class StorageError(SkipIndexError, OSError):
    """The file system refuses to read, write, move or copy a file."""


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its type's name where it has no text."""
    return str(error).partition("\n")[0] or type(error).__name__


def one_line(name: str) -> str:
    """A name with escapes for line breaks, and for all else that steers a terminal."""
    return _STEERS.sub(lambda result: repr(result[0])[1:-1], name)


def kind_of(value: object) -> str:
    """A value for a message: itself where it is short, else what kind it is of."""
    if value is None or isinstance(value, str | int | float | PurePath):
        return repr(value)
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else _full_name(kind)
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _full_name(kind: type) -> str:
    """The name of a class, after the package that it comes from."""
    return f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A question after the most similar name, for a message; empty if none is."""
    by_folded = {other.lower(): other for other in names}
    result = get_close_matches(name.lower(), by_folded, n=1)
    return f": did you mean {by_folded[result[0]]!r}?" if result else ""
