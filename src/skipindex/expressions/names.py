"""Names of columns in text: split where a dot reaches into a struct, and quoted.

``name_parts`` reads the result of ``quoted`` as that one part.
"""

from __future__ import annotations

from typing import Final

from skipindex.errors import PredicateError

_NAMES: Final = "expected a, a.b or `a.b`"
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
    """The names from the column inwards, of ``a.b`` or ```a.b`.c``.

    Raises:
        PredicateError: a backtick is not closed, or a part is empty.
    """
    parts: list[str] = []
    rest = name
    while True:
        if rest.startswith("`"):
            part, rest = _quoted_part(rest, name)
        else:
            end = rest.find(".")
            part, rest = (rest, "") if end < 0 else (rest[:end], rest[end:])
            if "`" in part:
                raise PredicateError(f"no column name: {name!r} ({_NAMES})")
        parts.append(part)
        if not rest:
            break
        if not rest.startswith("."):
            raise PredicateError(f"no column name: {name!r} ({_NAMES})")
        rest = rest[1:]
    if not all(parts):
        raise PredicateError(f"no column name: {name!r} ({_NAMES})")
    return tuple(parts)


def _quoted_part(text: str, name: str) -> tuple[str, str]:
    """Split `` `a``b`.c `` into ``a`b`` and ``.c``."""
    i = 1
    while (i := text.find("`", i)) >= 0:
        if text[i : i + 2] != "``":
            return text[1:i].replace("``", "`"), text[i + 1 :]
        i += 2
    raise PredicateError(f"no column name: a backtick is not closed in {name!r}")


def quoted(part: str) -> str:
    """``part`` in backticks, if Spark would take it for anything but a name."""
    plain = part.isascii() and part.isidentifier() and part.upper() not in _RESERVED
    return part if plain else "`" + part.replace("`", "``") + "`"
