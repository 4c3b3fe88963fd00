"""Recognizing tables of other formats, whose files are defined by a log or by names.

A deleted row of a table with a log still stands in a Parquet file, so a reader of the
folder would bring it back, and a writer who replaces the folder would destroy the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Final

from skipindex.errors import TableError
from skipindex.storage.deadline import carried
from skipindex.storage.file_system.location import Location

_LOGS: Final = {
    "_delta_log/": ("Delta", re.compile(r".*")),
    ".hoodie/": ("Hudi", re.compile(r".*")),
    "_spark_metadata/": ("Spark Streaming", re.compile(r".*")),
    "metadata/": ("Iceberg", re.compile(r"[^/]*\.metadata\.json(\.gz)?")),
    "_versions/": ("Lance", re.compile(r"[^/]*\.manifest")),
    "schema/": ("Paimon", re.compile(r"schema-[0-9]+")),
}
"""The format that keeps its log in a folder, and its files' names, by folder."""
_PAIRED: Final = {"Paimon": re.compile(r"snapshot/snapshot-[0-9]+")}
"""Another file that must be there too, where one alone may be anything."""
_FOLDERS: Final = (*_LOGS, "snapshot/")
_ABOVE: Final = ("_delta_log", ".hoodie")
"""Folders of logs that may name files anywhere below the folder in which they are."""
_BUCKET: Final = re.compile(
    r"(?:.*/)?part-\d+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}_\d{5,}\.[^/]*",
    re.DOTALL | re.ASCII,
)
"""The name that Spark gives to a file of a bucketed table."""


def other_format(paths: Iterable[str]) -> tuple[str, str] | None:
    """The format whose log is among these relative paths, and a file of it."""
    below = [path for path in paths if path.startswith(_FOLDERS)]
    for folder, (name, pattern) in _LOGS.items():
        log = [
            path
            for path in below
            if path.startswith(folder) and pattern.fullmatch(path, len(folder))
        ]
        paired = _PAIRED.get(name)
        if log and (paired is None or any(map(paired.fullmatch, below))):
            return name, min(log)
    return None


def log_in(location: Location) -> str:
    """The path of a log of another format in a folder; empty if there is none."""
    with ThreadPoolExecutor(len(_FOLDERS)) as pool:  # a store is waited for once
        lists = pool.map(carried(location.names), (one[:-1] for one in _FOLDERS))
        logs = zip(_FOLDERS, lists, strict=True)
        result = other_format(f"{one}{name}" for one, names in logs for name in names)
    return "" if result is None else location.full(result[1])


def log_above(location: Location) -> str:
    """The path of a log in a folder above, which may name files of this one, or empty.

    A log of Iceberg names those in ``data`` beside it.
    """
    root = PurePosixPath(location.root)
    ways = {root, PurePosixPath(Path(root).resolve())} if location.is_local else {root}
    for way in ways:
        for parent in way.parents:
            for log in (f"{parent / one}" for one in _ABOVE):
                if location.holds(log):
                    return log
            beside = f"{parent / 'metadata'}"
            is_in_data = way.relative_to(parent).parts[0] == "data"
            if is_in_data and location.holds(beside):
                # On a store a folder of that name is enough: no other is listed there.
                if not location.is_local:
                    return beside
                if logs := sorted(Path(beside).glob("*.metadata.json*")):
                    return str(logs[0])
    return ""


def require_plain(location: Location, paths: Iterable[str], *, insist: bool) -> None:
    """Refuse a table of another format.

    ``paths`` are those of all files below it.  ``insist`` says that the caller takes
    ``plain=True``, which the message then names.
    """
    if (result := other_format(paths)) is not None:
        raise refused(location, *result, insist=insist)


def refused(location: Location, name: str, path: str, *, insist: bool) -> TableError:
    """The error that the files of a table are those of the log at ``path``."""
    expected = "expected a plain folder of Parquet files"
    if name == "Iceberg":  # of the files in its folder, its catalog alone knows which
        expected += ", or a table of pyiceberg, or the path of a file *.metadata.json"
    if insist:
        expected += "; pass plain=True to read it as one"
    kind = f"an {name}" if name == "Iceberg" else f"a {name}"
    return TableError(
        f"{location.full('')!r} is {kind} table: {path!r} determines which files "
        f"belong to it, and plain readers and writers ignore that ({expected})"
    )


def is_metadata(path: str) -> bool:
    """Whether this is the path of a file with the metadata of an Iceberg table."""
    return re.search(r"/metadata/[^/]*\.metadata\.json$", path) is not None


def require_unbucketed(folder: str, paths: Iterable[str]) -> None:
    """Refuse to write files into a bucketed table.

    Spark takes the bucket of a file from its name, and cannot read a bucketed table
    that has a file of another name.
    """
    if result := next(filter(_BUCKET.fullmatch, paths), None):
        raise TableError(
            f"cannot write files into {folder!r}: it is bucketed, as the name of "
            f"{result!r} shows, and Spark could not read the table any more (accepted: "
            "a table without buckets, or optimize with into=, which writes a copy)"
        )
