"""Pruning the partitions of a catalog table before files are listed.

The planner judges a table of one file for each partition, of which it knows nothing but
the folder's values.  What is left becomes a condition on the partition columns, which
Spark takes for one of the query's own: the catalog leaves out the other partitions, and
the plan shows it under ``PartitionFilters``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby
from typing import Any, Final, TypeAlias

import numpy as np

from skipindex.errors import TableError
from skipindex.planner.plan import Plan
from skipindex.source import declared_schema, folder_of
from skipindex.spark.pruning.protocol import Question
from skipindex.spark.pruning.tables import ScannedTable
from skipindex.spark.pruning.verdicts import verdict
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.table import TableState

Choice: TypeAlias = "list[tuple[Values, Choice]]"
"""Alternatives of a partition column: its values, and a choice of the next columns.

No alternative is "none of them", and an empty choice after values "all of them"."""
Values: TypeAlias = "list[str | None] | dict[str, str]"
"""Texts as folders have them, None for NULL; or the first and the last of a range."""

_MOST_LISTED: Final = 8
"""More values than this are a range, if no other partition lies in it."""
_KEYS: Final[Mapping[str, tuple[re.Pattern[str], Callable[[str], Any]]]] = {
    "string": (
        re.compile(".*", re.DOTALL),
        partial(str.encode, errors="surrogateescape"),
    ),
    "int": (re.compile("-?[0-9]{1,9}", re.ASCII), int),
    "bigint": (re.compile("-?[0-9]{1,18}", re.ASCII), int),
    "date": (re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII), str),
}
"""What texts of folders have a value of a type, and its key; others have none."""
_MOST_TABLES: Final = 8


@dataclass(frozen=True, slots=True)
class Needed:
    """The partitions that a scan needs.

    Args:
        is_left: by folder, whether it is one of them.
        choice: the same as a choice of values; None is "all of them".
        condition: of the scan, in SQL.
        plan: says why, of one file for each folder; None if nothing was asked.
    """

    is_left: np.ndarray
    choice: Choice | None
    condition: str
    plan: Plan | None


def needed_partitions(question: Question) -> Needed:
    """The needed ones among the ``folders`` of a question, by what is ``derived``."""
    table = _table(question.location(), question.data, tuple(question.folders))
    state = table.state
    is_left = np.ones(len(state), np.bool_)
    judged = verdict(table, question)
    kinds = question.partitions_types
    names = [partition.name.lower() for partition in state.partitions]
    is_known = names == [name.lower() for name in kinds]
    if judged is None or not is_known or not _KEYS.keys() >= set(kinds.values()):
        return Needed(is_left, None, "", None)
    is_left[judged.files] = False
    columns = [partition.values for partition in state.partitions]
    rows = sorted(zip(*columns, is_left.tolist(), strict=True), key=nulls_first)
    chosen = choice(rows, list(kinds.values()))
    return Needed(is_left, chosen, judged.condition, judged.plan)


@lru_cache(maxsize=_MOST_TABLES)
def _table(location: Location, data: str, folders: tuple[str, ...]) -> ScannedTable:
    """A table of a file for each folder; what it derives is remembered with it."""
    result = declared_schema(data)
    if result is None:
        raise TableError(f"not a Spark schema: {data[:80]!r}")
    files = [FileInfo(f"{folder}/0.parquet", 1, 0) for folder in folders]
    return ScannedTable(TableState(location, folder_of(files, *result)))


def nulls_first(row: Sequence[Any]) -> list[tuple[bool, Any]]:
    """The key by which partitions are sorted for ``choice``."""
    return [(value is not None, value) for value in row]


def choice(rows: Sequence[Sequence[Any]], kinds: Sequence[str]) -> Choice | None:
    """The partitions that are left; None is "all of them".

    Args:
        rows: sorted; the texts of a partition, and whether it is left.
        kinds: the types of the columns.

    >>> rows = [("2021", "1", False), ("2022", "1", False), ("2022", "2", True)]
    >>> choice([*rows, ("2023", "7", True)], ["int", "int"])
    [(['2022'], [(['2'], [])]), (['2023'], [])]
    """
    if all(row[-1] for row in rows):
        return None
    if not any(row[-1] for row in rows):
        return []
    below: dict[str, tuple[Choice | None, list[str | None]]] = {}
    every: list[str | None] = []
    for value, same in groupby(rows, key=lambda row: row[0]):
        every.append(value)
        result = choice([row[1:] for row in same], kinds[1:])
        if result != []:
            below.setdefault(repr(result), (result, []))[1].append(value)
    return [
        (values, result or [])
        for result, chosen in below.values()
        for values in _ranges(chosen, every, kinds[0])
    ]


def _ranges(
    chosen: Sequence[str | None], every: Sequence[str | None], kind: str
) -> Iterator[Values]:
    """The chosen values of a column, as ranges of all values where they are many."""
    texts = [value for value in every if value is not None]
    form, key = _KEYS[kind]
    if len(chosen) <= _MOST_LISTED or not all(map(form.fullmatch, texts)):
        yield list(chosen)
        return
    wanted = set(chosen)
    for is_chosen, run in groupby(sorted(texts, key=key), key=wanted.__contains__):
        if is_chosen:
            first, *rest = run
            yield {"first": first, "last": rest[-1] if rest else first}
    if None in wanted:
        yield [None]
