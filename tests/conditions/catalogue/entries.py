"""The conditions of the catalogue, and the rows that Spark finds for each.

A file holds the conditions on one table of ``tables.py``, one on each line::

    [UTC]
    -+?+--  i = 1
    -+?+-- ~2 !ansi  i + 1 = 2

Below the time zone of the session stands what Spark said of each row without ANSI
mode, ``+`` for TRUE, ``-`` for FALSE and ``?`` for NULL; then marks, two spaces and the
condition, where ⏎ stands for a line break.  Marks are:

- ``~2``: so many rows lie between the bounds of the plan; without it the plan knows
  which rows match;
- ``engines``: Arrow, DuckDB and Polars refuse the condition;
- ``!ansi`` or ``ansi:-+-``: with ANSI mode Spark fails, or says something else;
- ``!3.5`` or ``3.5:-+-``: the same of an older version of Spark.

In place of the rows may stand ``fails``, for a condition that Spark takes and cannot
compute, or ``varies``, for one whose rows are others each time.

To add a condition write it on a line, without rows, and run
``python -m tests.conditions.catalogue``, which asks Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tests.conditions.catalogue.tables import MADE, rows_of

HERE: Final = Path(__file__).parent
BASE: Final = ""
"""The session without ANSI mode, of the newest version."""
ANSI: Final = "ansi"
FAILS: Final = "fails"
VARIES: Final = "varies"
"""No rows are recorded."""
_LINE: Final = re.compile(r"([-+?]+|fails|varies)((?: \S+)*)  (.+)")
_BREAK: Final = "⏎"
_QUOTED: Final = re.compile(r"""('(?:[^'\\]|\\.)*'|"[^"]*"|`[^`]*`)""")
_NAME: Final = re.compile(r"(?<![\w.])[a-z_]\w*")
_WORDS: Final = {"date", "order"}
"""Names of columns that are words of SQL too; conditions quote them."""


@dataclass(frozen=True)
class Entry:
    """A condition.

    Args:
        table: the name of the table.
        zone: the time zone of the session.
        text: the condition.
        truths: what Spark said of each row, by session; there is no ``BASE`` in a
            condition that is new.
        doubt: how many rows lie between the bounds of the plan.
        refused: whether engines other than Spark refuse the condition.
    """

    table: str
    zone: str
    text: str
    truths: Mapping[str, str] = field(default_factory=dict)
    doubt: int = 0
    refused: bool = False

    def __str__(self) -> str:
        """The condition, and where it stands."""
        return f"{self.table}.txt [{self.zone}]: {self.text}"

    @property
    def known(self) -> list[str]:
        """What sessions say of each row, or of the first ones."""
        return [t for t in self.truths.values() if t not in {FAILS, VARIES}]

    @property
    def line(self) -> str:
        """The line of the file."""
        marks = [f"~{self.doubt}"] * (self.doubt > 0) + ["engines"] * self.refused
        for session in sorted(self.truths.keys() - {BASE}, reverse=True):
            truth = self.truths[session]
            marks.append(f"!{session}" if truth == FAILS else f"{session}:{truth}")
        text = self.text.replace("\n", _BREAK)
        if BASE not in self.truths:
            return text
        return f"{' '.join([self.truths[BASE], *marks])}  {text}"


def entry_of(table: str, zone: str, line: str) -> Entry:
    """The condition on a line."""
    match = _LINE.fullmatch(line)
    n_rows = len(rows_of(table))
    if match is None or (match[1] not in {FAILS, VARIES} and len(match[1]) != n_rows):
        return Entry(table, zone, line.replace(_BREAK, "\n"))
    truths, doubt, refused = {BASE: match[1]}, 0, False
    for mark in match[2].split():
        if mark.startswith("~"):
            doubt = int(mark[1:])
        elif mark.startswith("!"):
            truths[mark[1:]] = FAILS
        elif ":" in mark:
            session, _, truth = mark.partition(":")
            truths[session] = truth
        elif mark == "engines":
            refused = True
        else:
            raise ValueError(
                f"{table}.txt has the mark {mark!r} in {line!r} (known: ~2, engines, "
                "!ansi, ansi:-+-, !3.5, 3.5:-+-)"
            )
    text = match[3].replace(_BREAK, "\n")
    return Entry(table, zone, text, truths, doubt, refused)


def lines_of(table: str) -> Iterator[str | Entry]:
    """The lines of a file: zones and remarks as they are, and conditions."""
    zone = "UTC"
    path = HERE / f"{table}.txt"
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.startswith("[") and line.endswith("]"):
            zone = line[1:-1]
            yield line
        elif not line or line.startswith("# "):
            yield line
        else:
            yield entry_of(table, zone, line)


def entries(*tables: str) -> list[Entry]:
    """The conditions on some tables, or on all."""
    lines = (line for table in tables or MADE for line in lines_of(table))
    return [line for line in lines if isinstance(line, Entry)]


def templates(*columns: str) -> list[str]:
    """Conditions on one of these columns alone, with ``{v}`` for it.

    The columns are those of the tables ``every`` and ``functions``.
    """
    found: dict[str, None] = {}
    for one in entries("every", "functions"):
        pieces = _QUOTED.split(one.text)  # every second one is a text or a name
        used = {*_NAME.findall(" ".join(pieces[::2]))}
        used &= {*rows_of(one.table).files[0].column_names, "nr", "_metadata"} - _WORDS
        if len(used) == 1 and used <= {*columns} and "`" not in one.text:
            name = re.compile(rf"(?<![\w.]){used.pop()}(?!\w)")
            pieces[::2] = [name.sub("{v}", piece) for piece in pieces[::2]]
            if one.truths.get(BASE) != VARIES:
                found["".join(pieces)] = None
    return [*found]


def write(table: str, lines: Iterable[str | Entry]) -> None:
    """Write the file of a table."""
    texts = [line.line if isinstance(line, Entry) else line for line in lines]
    (HERE / f"{table}.txt").write_text("\n".join(texts), encoding="utf-8")


def with_truth(entry: Entry, session: str, truth: str) -> Entry:
    """The condition with what a session said, if it is not what the base says."""
    truths = {name: t for name, t in entry.truths.items() if name != session}
    if session == BASE or truth != truths.get(BASE, "")[: len(truth)]:
        truths[session] = truth
    return replace(entry, truths=truths)
