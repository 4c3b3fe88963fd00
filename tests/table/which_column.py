"""Random tables whose folders and files have one name in several capitals.

What a name means to Spark, written down without the library: a partition column hides
what the files hold under its name, and where capitals do not tell names apart, so it
does in any capitals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from tests.tables import put

NAMES = ("day", "Day", "DAY")
ROWS = 4
"""Rows of each file; their ``id`` counts on from file to file."""
CONDITIONS = ("= 2", "<> 2", "> 2", "IS NULL", "IS NOT NULL", "IN (1, 4)", "<=> 3")


@dataclass(frozen=True)
class Table:
    """A table of a few files.

    Args:
        partition: the name that the folders have; empty if there are none.
        folders: of each file, the value of its folder.
        files: of each file, the values of each column.
    """

    partition: str
    folders: Sequence[int]
    files: Sequence[Mapping[str, Sequence[int | None]]]

    @staticmethod
    def draw(random: Random) -> Table:
        """A table in which no file has two columns that differ in capitals alone.

        Spark refuses to read such a file, unless capitals tell names apart.
        """
        n = random.randint(2, 4)
        partition = random.choice(("", *NAMES))
        files = []
        for i in range(n):
            columns: dict[str, list[int | None]] = {"id": list(ids_of(i))}
            if random.random() < 0.8:
                values = random.choices((None, 1, 2, 3, 4), k=ROWS)
                columns[random.choice(NAMES)] = values
            files.append(columns)
        return Table(partition, [random.randint(1, 4) for _ in range(n)], files)

    def paths(self) -> list[str]:
        """The paths of the files, relative to the table."""
        folder = f"{self.partition}={{}}/" if self.partition else ""
        return [f"{folder.format(v)}{i}.parquet" for i, v in enumerate(self.folders)]

    def write(self, folder: Path) -> Path:
        """Write the files; the folder."""
        for path, columns in zip(self.paths(), self.files, strict=True):
            arrays = {name: pa.array(v, pa.int64()) for name, v in columns.items()}
            put(folder / path, arrays)
        return folder

    def schema(self, *, exact: bool) -> list[str]:
        """The names of the columns, if the files' are those of the first by path."""
        first = min(range(len(self.files)), key=self.paths().__getitem__)
        own = [
            name for name in self.files[first] if not same(name, self.partition, exact)
        ]
        return [*own, *([self.partition] if self.partition else [])]

    def values(self, file: int, name: str, *, exact: bool) -> list[int | None]:
        """What Spark reads in a file for the column that is called ``name``."""
        columns = self.files[file]
        if same(name, self.partition, exact):
            return [self.folders[file]] * ROWS
        mine = [values for own, values in columns.items() if same(name, own, exact)]
        return list(mine[0]) if mine else [None] * ROWS


def ids_of(file: int) -> range:
    """The values of ``id`` in a file."""
    return range(file * ROWS, file * ROWS + ROWS)


def same(name: str, other: str, exact: bool) -> bool:
    """Whether two names are one to a reader."""
    return name == other if exact else name.lower() == other.lower()


def is_true(value: int | None, condition: str) -> bool:
    """Whether a condition of ``CONDITIONS`` is TRUE of a value."""
    if value is None:
        return condition == "IS NULL"
    found: dict[str, Any] = {
        "= 2": value == 2,
        "<> 2": value != 2,
        "> 2": value > 2,
        "IS NULL": False,
        "IS NOT NULL": True,
        "IN (1, 4)": value in {1, 4},
        "<=> 3": value == 3,
    }
    return bool(found[condition])
