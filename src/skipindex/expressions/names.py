"""Column names in text: splitting at dots, and quoting.

A column is a path of names: a column of the files has one, a field of a struct more.
``stored_name`` is the text of a path in everything that is stored.  ``quoted`` is a
part of it in SQL, which ``name_parts`` reads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from skipindex.errors import PredicateError

_NAMES: Final = "expected a, a.b or `a.b`"
_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([^`.]+)")
_NAME: Final = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*")
_RESERVED: Final = {
    *("ALL", "AND", "ANY", "AS", "BETWEEN", "CASE", "CAST", "CURRENT_DATE"),
    *("CURRENT_PATH", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER", "ELSE"),
    *("END", "ESCAPE", "EXISTS", "FALSE", "FROM", "ILIKE", "IN", "INTERVAL", "IS"),
    *("LIKE", "LOCALTIME", "MAP", "NOT", "NULL", "OR", "REDUCE", "REGEXP", "RLIKE"),
    *("SELECT", "SESSION_USER", "SOME", "TABLE", "THEN", "TRUE", "USER", "VALUES"),
    *("WHEN", "WITH"),
}
"""Words that mean something else than a column, in Spark or to a reader."""


def name_parts(name: str) -> tuple[str, ...]:
    """The names from the column inwards, of ``a.b`` or ```a.b`.c``."""
    if not _NAME.fullmatch(name):
        raise PredicateError(f"not a column name: {name!r} ({_NAMES})")
    parts = _PART.findall(name)
    return tuple(plain or quoted.replace("``", "`") for quoted, plain in parts)


def stored_name(path: Sequence[str]) -> str:
    """The text of a path of names, which no other path has.

    A name is in backticks if it has a dot or a backtick, or is empty.

    >>> stored_name(["a", "b"]), stored_name(["a.b"])
    ('a.b', '`a.b`')
    """
    return ".".join(
        part if part and not {".", "`"} & set(part) else _in_backticks(part)
        for part in path
    )


def quoted(part: str) -> str:
    """``part`` in backticks, if Spark would take it for anything but a name."""
    plain = part.isascii() and part.isidentifier() and part.upper() not in _RESERVED
    return part if plain else _in_backticks(part)


def _in_backticks(part: str) -> str:
    return "`" + part.replace("`", "``") + "`"
