"""Opening a table for a predicate without listing folders that cannot match.

Partition folders are judged by their names, level by level, as if each held one file.
The columns must be given, those of the partitions among them, as Spark takes what is
not given from the whole table.  A table with rewritten files is listed whole, as these
may be anywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from skipindex.conditions.functions.zones import no_offsets
from skipindex.errors import SkipIndexError
from skipindex.expressions import Predicate
from skipindex.planner.plan import Plan, plan_files
from skipindex.planner.stages.derived_partitions import derived_partitions
from skipindex.source import folder_of, newest_usable
from skipindex.source.folder.hidden_files import counts_hidden_files
from skipindex.source.parquet.spark_json import given_schema
from skipindex.storage.deadline import carried
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import is_data_name, is_shown
from skipindex.table import Derived, TableState
from skipindex.table.table import Options, open_listed

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

_MOST_FOLDERS: Final = 64
"""Folders that are listed one by one: a store lists a thousand files in the time."""
_AT_ONCE: Final = 8
"""Requests to a store that are under way."""


@dataclass(frozen=True, slots=True)
class Question:
    """A predicate, and what its meaning depends on; see ``plan_files``."""

    predicate: str | Predicate | SparkColumn
    timezone: str | None = None
    case_sensitive: bool = False
    now: datetime | None = None


def open_needed(
    location: Location, question: Question, options: Options
) -> TableState | None:
    """The table without folders that cannot match; None if that is unknown."""
    known = newest_usable(location, None)
    if options.declared is None or counts_hidden_files(known) or known.refused:
        return None
    derived = options.derived or Derived.from_json(known.properties.derived)
    options_of = replace(options, derived=derived)
    needed = Needed(location, question, options_of, options.declared)
    try:
        result = open_listed(location, options, needed.files, known)
    except SkipIndexError:
        return None  # the error is its own, or it has changed
    is_empty = not (len(result) or needed.n_unlisted)
    if is_empty or counts_hidden_files(result.snapshot):
        return None
    return result.without_folders(needed.n_unlisted)


@dataclass(slots=True)
class Needed:
    """The files of the folders that a predicate needs.

    Attributes:
        n_unlisted: the folders that the newest listing has omitted.
    """

    location: Location
    question: Question
    options: Options
    schema: pa.Schema
    n_unlisted: int = 0
    _below: dict[str, _Folder] = field(default_factory=dict)

    def files(self) -> list[FileInfo]:
        """All files but those of folders without a matching row, in no order."""
        self._below.clear()
        self._look([""])
        frontier = [""]
        for _ in range(self._levels()):
            self._look(frontier)
            folders = [one for each in frontier for one in self._below[each].partitions]
            kept = self._kept(folders)
            for each in frontier:
                below = self._below[each]
                below.kept = [one for one in below.partitions if one in kept]
            frontier = [one for one in folders if one in kept]
            if not 0 < len(frontier) <= _MOST_FOLDERS:
                break
        result, folders, self.n_unlisted = self._chosen("")
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for files in pool.map(carried(self._whole), folders):
                result += files
        return result

    def _whole(self, folder: str) -> list[FileInfo]:
        return list(self.location.list(folder))

    def _look(self, folders: Sequence[str]) -> None:
        """Learn what is in some folders, of which some may be known."""
        new = [folder for folder in folders if folder not in self._below]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for folder, entries in zip(
                new, pool.map(carried(self._in), new), strict=True
            ):
                self._below[folder] = _Folder.of(entries)

    def _in(self, folder: str) -> list[FileInfo]:
        return list(self.location.entries(folder))

    def _levels(self) -> int:
        """Down to which level the predicate tells folders apart; 0 is at none."""
        folder, names = "", []
        while self._below[folder].partitions:
            folder = self._below[folder].partitions[0]
            names.append(folder.rpartition("/")[2].partition("=")[0].lower())
            self._look([folder])
        declared = [name.lower() for name in self.schema.names]
        if not names or any(declared.count(name) != 1 for name in names):
            return 0
        evaluation = self._plan([folder]).evaluation
        asked = {one.column.name.lower() for one in evaluation.leaves.values()}
        made_of = derived_partitions(evaluation.table).sources
        asked |= {name.lower() for name, of in made_of.items() if of.lower() in asked}
        return max((i for i, name in enumerate(names, 1) if name in asked), default=0)

    def _kept(self, folders: Sequence[str]) -> Collection[str]:
        """The folders that may hold a matching row."""
        if not folders:
            return ()
        plan = self._plan(folders)
        return {one for one, is_kept in zip(folders, plan.kept, strict=True) if is_kept}

    def _plan(self, folders: Sequence[str]) -> Plan:
        """The plan for a file in each of the folders, of which no more is known."""
        columns, refused = given_schema(self.schema)
        files = [FileInfo(f"{folder}/0.parquet", 1, 0) for folder in folders]
        seen = folder_of(files, columns, refused)
        question = self.question
        return plan_files(
            question.predicate,
            table=TableState(self.location, seen, self.options),
            timezone=question.timezone,
            case_sensitive=question.case_sensitive,
            now=question.now,
            offsets=no_offsets,  # a plan by other rules needs the same folders
        )

    def _chosen(self, folder: str) -> tuple[list[FileInfo], list[str], int]:
        """Files, folders to list with all below, and how many others are omitted."""
        whole: tuple[list[FileInfo], list[str], int] = [], [folder], 0
        below = self._below.get(folder)
        if below is None or below.kept is None or below.has_data:
            return whole
        files, folders = list(below.files), list(below.others)
        n_unlisted = len(below.partitions) - len(below.kept)
        for one in below.kept:
            its_files, its_folders, n = self._chosen(one)
            files, folders = files + its_files, folders + its_folders
            n_unlisted += n
        if not n_unlisted or len(folders) > _MOST_FOLDERS:
            return whole
        return files, folders, n_unlisted


@dataclass(slots=True)
class _Folder:
    """What is in a folder; ``kept`` are the needed ones among its partitions."""

    files: list[FileInfo]
    partitions: list[str]
    others: list[str]
    kept: list[str] | None = None

    @classmethod
    def of(cls, entries: Sequence[FileInfo]) -> _Folder:
        """The folder with these entries."""
        result = cls([file for file in entries if not file.path.endswith("/")], [], [])
        for path in sorted(e.path[:-1] for e in entries if e.path.endswith("/")):
            name = path.rpartition("/")[2]
            is_partition = "=" in name and is_shown(name)
            (result.partitions if is_partition else result.others).append(path)
        return result

    @property
    def has_data(self) -> bool:
        """Whether a data file lies here, which Spark reads if no partition has one."""
        names = (file.path.rpartition("/")[2] for file in self.files)
        return any(is_shown(name) and is_data_name(name) for name in names)
