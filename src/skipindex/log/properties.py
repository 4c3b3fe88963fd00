"""The properties of a table in a commit, such as its layout.

A property is checked when it is read.  One that fails its check is ignored with a note,
and the others stay.  One that this version does not know is written back as it was.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from typing import Any, Final

import pyarrow as pa

from skipindex.errors import CorruptIndexError
from skipindex.storage.checks import (
    MAX_INT,
    RefusedError,
    checked_int,
    checking,
    reason,
    require,
)
from skipindex.storage.file_system.names import (
    is_data_file,
    is_hidden_copy,
    is_plain_path,
    published,
)

RETENTION: Final = timedelta(days=7)
"""How long a table keeps what is superseded, unless it says so itself."""
_MAX_SECONDS: Final = 1e11
_MOST_RUNS: Final = 1000
"""Runs to which those of appends come; files of no run are clustered as new ones."""
_MAX_SCHEMA: Final = 1 << 20
_MAX_TEXT: Final = 4096
"""Characters of a text."""
_LOOKED_UP: Final = ("key", "table", "table_key", "attribute")


@dataclass(frozen=True, slots=True)
class TableProperties:
    """The properties of a table as JSON values; None is a property that is not there.

    Args:
        layout: how the rows are distributed over files.
        indexes: the requested indexes; the content is not checked.
        schema: the columns that they were requested with, if these were given: in
            ``arrow``, an Arrow schema in base64.
        choice: what the advisor chose.
        derived: what the partition columns were computed from.
        runs: how the runs that wrote files have clustered or joined them.
        rewrites: what ``source.folder`` alone reads.
        exclusive: that the log names all files (``source.folder.exclusive``).
        retention: how long superseded history is kept, in seconds.
        sidecar: of which table the log is, where it is not in the table's folder.
        streams: by stream, the number of its last batch (``source.folder.batch``).
        others: properties of other versions of this library.
    """

    layout: Mapping[str, Any] | None = None
    indexes: Any = None
    schema: Mapping[str, Any] | None = None
    choice: Mapping[str, Any] | None = None
    derived: Mapping[str, Any] | None = None
    runs: Mapping[str, Any] | None = None
    rewrites: Mapping[str, Any] | None = None
    exclusive: Mapping[str, Any] | None = None
    retention: Mapping[str, Any] | None = None
    sidecar: Mapping[str, Any] | None = None
    streams: Mapping[str, Any] | None = None
    others: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, value: Any) -> tuple[TableProperties, tuple[str, ...]]:
        """The properties that can be used, and notes on those that are ignored.

        Raises:
            CorruptIndexError: ``value`` is no object.
            RefusedError: a property cannot be checked now.
        """
        require(isinstance(value, dict), "the properties are not an object")
        known: dict[str, Any] = {}
        others: dict[str, Any] = {}
        notes: list[str] = []
        for name, content in value.items():
            try:
                with checking("it is of another form"):
                    _check(name, content)
            except RefusedError:
                raise
            except CorruptIndexError as error:
                notes.append(f"property {name!r} ignored: {reason(error)}")
            else:
                mine = name in _NAMES and content is not None
                (known if mine else others)[name] = content
        return cls(**known, others=others), tuple(notes)

    def to_json(self) -> dict[str, Any]:
        """The object in a commit; the inverse of ``from_json``."""
        return {**self.others, **self._set()}

    def __or__(self, news: TableProperties) -> TableProperties:
        """These properties, where those that ``news`` has replace their own.

        Runs come to those that are known, up to a thousand: no commit may grow with
        each append.
        """
        others = {**self.others, **news.others}
        runs = _joined(self.runs, news.runs)
        return replace(self, **{**news._set(), "runs": runs}, others=others)

    def _set(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in _NAMES}
        return {name: value for name, value in values.items() if value is not None}


NO_PROPERTIES: Final = TableProperties()
"""The properties of a table without any."""

_NAMES: Final = [one.name for one in fields(TableProperties) if one.name != "others"]


def _joined(
    known: Mapping[str, Any] | None, news: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """The runs of both, those to one target together; new ones as long as few are."""
    if known is None or news is None:
        return news if known is None else known
    targets = [{**one, "runs": dict(one["runs"])} for one in known["targets"]]
    if sum(len(one["runs"]) for one in targets) >= _MOST_RUNS:
        return known
    for one in news["targets"]:
        alike = (t for t in targets if all(t[p] == one[p] for p in ("shape", "size")))
        same = next(alike, None)
        if same is None:
            targets.append(one)
        else:
            same["runs"].update(one["runs"])
    return {**known, "targets": targets}


def _check(name: str, content: Any) -> None:
    check = _CHECKS.get(name)
    if check is not None:
        _check_object(content)
        check(content)


def _seconds(value: Any) -> None:
    good = type(value) in {int, float} and 0 <= value < _MAX_SECONDS
    require(good and math.isfinite(value), "a time is out of range")


def _texts(value: Any, what: str) -> None:
    good = isinstance(value, list) and all(isinstance(v, str) for v in value)
    require(good, f"{what} is not a list of names")


def _files(value: Any, is_ours: Callable[[str], bool], what: str) -> list[str]:
    require(isinstance(value, list), f"the {what} files are not a list")
    for entry in value:
        good = isinstance(entry, list) and len(entry) == 3
        require(good, "a file is not a triple")
        path, size, mtime = entry
        ours = is_plain_path(path) and is_ours(path)
        require(ours, f"{str(path)[:200]!r} is no {what} file of the table")
        checked_int(size, 1)
        checked_int(mtime, -MAX_INT)
    return [entry[0] for entry in value]


def _check_tags(value: Any) -> None:
    good = isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
    require(good, "the tags of files are not texts")


def _check_replacements(records: Any, *, is_open: bool) -> list[str]:
    """Check replacements, of ``source.folder``; the paths that they name."""
    require(isinstance(records, list), "the replacements are not a list")
    old: list[str] = []
    new: list[str] = []
    for record in records:
        require(isinstance(record, dict), "a replacement is not an object")
        overwrites = record.get("overwrites", False)
        for name in ("overwrites", "has_defaults"):
            require(isinstance(record.get(name, False), bool), f"{name} is not a bool")
        seen = _files(record.get("old"), is_data_file, "visible")
        require(bool(seen) or overwrites or not is_open, "there are no visible files")
        hidden = _files(record.get("new"), is_hidden_copy, "hidden")
        require(bool(hidden), "there are no hidden files")
        _check_tags(record.get("tags", {}))
        _seconds(record.get("since"))
        old += seen
        new += hidden
    copies = list(map(published, new))
    require(all(map(is_data_file, copies)), "a copy cannot be visible")
    named = [*old, *new, *copies] if is_open else new
    require(len(set(named)) == len(named), "a file is in two replacements")
    return new


def _check_rewrites(value: Any) -> None:
    hidden = _check_replacements(value.get("replacements", []), is_open=True)
    hidden += _check_replacements(value.get("shown", []), is_open=False)
    trash = value.get("trash", [])
    require(isinstance(trash, list), "the trash is not a list")
    for entry in trash:
        require(isinstance(entry, list) and len(entry) == 4, "trash is no four")
        _seconds(entry[3])
    hidden += _files([entry[:3] for entry in trash], is_hidden_copy, "hidden")
    require(len(set(hidden)) == len(hidden), "a hidden file is named twice")
    checked_int(value.get("changes", 0))


def _check_schema(value: Any) -> None:
    text = value.get("arrow")
    require(isinstance(text, str) and len(text) <= _MAX_SCHEMA, "it is no short text")
    try:
        schema_of(value)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise CorruptIndexError(f"it is no schema of Arrow ({error})") from error


def schema_of(record: Mapping[str, Any]) -> pa.Schema:
    """The schema that ``schema_record`` has written."""
    raw = base64.b64decode(record["arrow"], validate=True)
    return pa.ipc.read_schema(pa.py_buffer(raw))


def schema_record(schema: pa.Schema) -> dict[str, str]:
    """A schema without its metadata, as a property."""
    raw = schema.remove_metadata().serialize().to_pybytes()
    return {"arrow": base64.b64encode(raw).decode()}


def _check_runs(value: Any) -> None:
    targets = value.get("targets")
    require(isinstance(targets, list), "the targets are not a list")
    for one in targets:
        _check_object(one)
        shape, size, runs = (one.get(part) for part in ("shape", "size", "runs"))
        for part in (shape, size, runs):
            _check_object(part)
        _texts(shape.get("cluster_by"), "cluster_by")
        if size.get("cube_size") is not None:
            checked_int(size["cube_size"], 1)
        levels = size.get("levels", [])
        require(isinstance(levels, list), "the levels are not a list")
        for number in (*levels, *runs.values()):
            checked_int(number)


def _check_layout(value: Any) -> None:
    for name in ("cluster_by", "sort_within", "partition_by"):
        _texts(value.get(name) or [], name)
    for name in ("rows_per_file", "bytes_per_file", "rows_per_group"):
        if value.get(name) is not None:
            checked_int(value[name], 1)
    attributes = value.get("via", {})
    _check_object(attributes)
    for one in attributes.values():
        _check_object(one)
        parts = (one.get(part) for part in _LOOKED_UP)
        require(all(map(_is_text, parts)), "a column to look up is not of texts")
    curve = value.get("curve")
    require(curve is None or isinstance(curve, str), "curve is not a name")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MAX_TEXT


def _check_exclusive(value: Any) -> None:
    checked_int(value.get("commit"))


def _check_retention(value: Any) -> None:
    _seconds(value.get("seconds"))


def _check_sidecar(value: Any) -> None:
    require(isinstance(value.get("of"), str), "it names no table")


def _check_streams(value: Any) -> None:
    for query, numbers in value.items():
        require(_is_text(query), "the id of a stream is no text")
        good = isinstance(numbers, list) and len(numbers) == 2
        require(good, "a stream has no two numbers")
        for number in numbers:
            checked_int(number)


def _check_object(value: Any) -> None:
    require(isinstance(value, dict), "it is not an object")


_CHECKS: Final[Mapping[str, Callable[[Any], None]]] = {
    "rewrites": _check_rewrites,
    "runs": _check_runs,
    "layout": _check_layout,
    "schema": _check_schema,
    "choice": _check_object,
    "derived": _check_object,
    "exclusive": _check_exclusive,
    "retention": _check_retention,
    "sidecar": _check_sidecar,
    "streams": _check_streams,
}


def retention_of(properties: TableProperties) -> timedelta:
    """How long a table keeps what is superseded."""
    record = properties.retention
    return RETENTION if record is None else timedelta(seconds=record["seconds"])
