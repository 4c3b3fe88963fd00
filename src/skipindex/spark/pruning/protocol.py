"""The messages between the driver and the planner, typed.

``docs/reference/driver-protocol.md`` says what goes over the border.  A message is an
object in JSON whose members have the names and the types of the fields here.  It is
read once; a member that lacks, or is of another type, is an error that names it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa

from skipindex.errors import PlanError
from skipindex.expressions.arrays import Ints, Mask
from skipindex.source import NEWEST, AtVersion
from skipindex.spark.pruning.tables import scanned_location
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.sidecar import with_sidecar

VERSION: Final = 4
"""The version of the messages that ask; ``Question.java`` has the same."""
ROW_GROUPS: Final = "skipindex.rowGroups"
"""A setting of the session: whether parts of files are read."""
NO_ANSWER: Final = b""
"""The question has no answer: it failed, took too long, or is repeated later."""

_IN_JSON: Final[Mapping[Any, Any]] = {Mapping: dict, Sequence: list}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """The first line of a question.

    Args:
        purpose: ``read``, ``ahead`` of it, ``rows`` and else ``ahead``, an ``estimate``
            of sizes, ``partitions``, ``observe``, where nothing is skipped, or the
            ``files`` of a listing.  Under ``told``, the driver reports something.
        number: of the question, by which the driver tells what was read; 0 if it will
            not tell.
        seconds: that the query waits in all.
        age: seconds of them that are over.
    """

    purpose: str
    number: int
    seconds: float
    age: float

    @classmethod
    def of(cls, line: str) -> Call:
        """The words of a line."""
        purpose, number, seconds, age = line.split(" ")
        return cls(purpose, int(number), float(seconds), float(age))


@dataclass(frozen=True, kw_only=True)
class WantedRows:
    """The second line of a question for rows, in JSON.

    Args:
        columns: of the files, that the query needs.
        bytes: of the rows in memory, at most.
        rows: at most.
    """

    columns: Sequence[str]
    bytes: int
    rows: int

    @classmethod
    def of(cls, line: str) -> WantedRows:
        """The members of a line."""
        return _read(cls, json.loads(line))


@dataclass(frozen=True, kw_only=True)
class Scan:
    """A folder that Spark reads, and what its values are read as.

    Args:
        scheme: of the folder's URI.
        authority: of it.
        root: its path, without escapes.
        sidecar: where the folder's indexes are, if not in it.
        data: the schema of its files, in Spark's JSON.
        data_types: the same by column, as a catalog writes types.
        partitions_types: those of the columns that folders name.
        is_catalog_table: whether a catalog says what the partitions' values are.
        reader: settings of the session that defined the relation, where it has others.
        options: of the read, as far as they say how times are read.
    """

    scheme: str | None
    authority: str | None
    root: str
    data: str
    data_types: Mapping[str, str]
    partitions_types: Mapping[str, str]
    is_catalog_table: bool
    reader: Mapping[str, str | None]
    options: Mapping[str, str]
    sidecar: str | None = None

    @property
    def uri(self) -> str:
        """The folder for people."""
        is_local = self.scheme in {None, "file"}
        return self.root if is_local else f"{self.scheme}://{self.authority}{self.root}"

    def location(self) -> Location:
        """Where the planner looks for it."""
        result = scanned_location(self.scheme, self.authority, self.root)
        return with_sidecar(result, self.sidecar or None, insist=False)


@dataclass(frozen=True, kw_only=True)
class Dimension(Scan):
    """The other side of a join: a folder, and conditions on its columns.

    Args:
        key: its column that is joined.
        paths: the files that Spark has listed.
        sizes: their bytes.
        millis: their times, in milliseconds.
        conjuncts: the conditions, as ``ExpressionJson.java`` writes them.
        keys: what its own columns are joined with, as for a ``Question``.
    """

    key: str
    paths: Sequence[str]
    sizes: Sequence[int]
    millis: Sequence[int]
    conjuncts: str
    keys: Sequence[Any]


@dataclass(frozen=True, kw_only=True)
class Order:
    """The first key of an order.

    Args:
        column: as ``ExpressionJson.java`` writes it.
        direction: ``ASC`` or ``DESC``.
        nulls: ``NULLS FIRST`` or ``NULLS LAST``.
    """

    column: str
    direction: str
    nulls: str


@dataclass(frozen=True, kw_only=True)
class First:
    """The first rows of an order, or any rows; and how many."""

    n: int
    order: Order | None


@dataclass(frozen=True, kw_only=True)
class Function:
    """``count``, ``min`` or ``max`` of a column; None counts rows."""

    name: str
    column: str | None


@dataclass(frozen=True, kw_only=True)
class Results:
    """Results that are requested instead of rows.

    Args:
        rows: whether so many match, if not None; then nothing else is asked.
        group: the column to group by, as ``ExpressionJson.java`` writes it, if any.
        functions: of all rows, or of each group.
    """

    rows: int | None = None
    group: str | None = None
    functions: Sequence[Function] = ()


@dataclass(frozen=True, kw_only=True)
class Iceberg:
    """What a scan reads of an Iceberg table.

    Args:
        metadata: the file with the table's metadata.
        snapshot: that is read.
        is_current: whether it is the current one, which has the newest columns.
        names: the columns and fields of structs that are read, by their field ids.
    """

    metadata: str
    snapshot: int
    is_current: bool
    names: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Question(Scan):
    """Which files of a scan hold no row that a query needs.

    Args:
        settings: of the session that runs the query, by name; None is unknown to it.
        keys: by column that the scan is joined by: the keys that the other side has, or
            the ``Dimension`` that it is.
        conjuncts: the conditions, as ``ExpressionJson.java`` writes them.
        offsets: when the clocks of the session's zone change, and their offset from
            UTC after it, alternately and in seconds; None if no condition depends
            on it.
        derived: what partitions are made of, by properties of the table or the read.
        listing: the number of the planner's listing that ``listed`` is about; None is
            any, of which Spark lists all files.
        listed: for each file of that listing, "1" if Spark lists it, with its size and
            time.
        folders: of the partitions that a catalog has, if these are asked about.
        first: if only some rows are needed.
        answer: if no rows are needed.
        takes_rewritten: whether hidden files may be read for those that they were
            rewritten from.
        instead_of: the number of a question whose answer is of no use, as Spark does
            not list the files that were rewritten; 0 is none.
        iceberg: if it is a table of Iceberg.
        is_planned: whether the scan is of files that a plan left, which is recorded.
    """

    settings: Mapping[str, str | None]
    keys: Sequence[Any]
    conjuncts: str
    offsets: Sequence[int] | None = None
    derived: Mapping[str, str] | None = None
    listing: int | None = None
    listed: str = ""
    folders: Sequence[str] = ()
    first: First | None = None
    answer: Results | None = None
    takes_rewritten: bool = False
    instead_of: int = 0
    iceberg: Iceberg | None = None
    is_planned: bool = False

    @property
    def at(self) -> AtVersion:
        """Which version of a table with a log is read."""
        one = self.iceberg
        if one is None:
            return NEWEST
        return AtVersion(None if one.is_current else one.snapshot, one.metadata)

    @classmethod
    def read(cls, text: str) -> Question:
        """A line of JSON, and the conditions in JSON after it.

        Raises:
            PlanError: it is of another version, or a member is not as it should be.
        """
        header, _, conjuncts = text.partition("\n")
        result = json.loads(header)
        version = result.get("version")
        if version != VERSION:
            raise PlanError(
                f"the driver has version {version!r} of the protocol, and the planner "
                f"version {VERSION} (accepted: one version of skipindex on both sides)"
            )
        return _read(cls, _with_sides(result) | {"conjuncts": conjuncts})

    @property
    def takes_ranges(self) -> bool:
        """Whether parts of files may be read, as no row tells where it is from."""
        is_on = (self.settings.get(ROW_GROUPS) or "true").lower() == "true"
        needs_rows = self.first is None and self.answer is None and self.iceberg is None
        return is_on and needs_rows and self.takes_rewritten

    def is_listed(self, n_files: int) -> Mask:
        """Which files of the listing, of so many, Spark lists."""
        if self.listing is None:
            return np.ones(n_files, np.bool_)
        listed: Mask = np.frombuffer(self.listed.encode(), np.uint8) == ord("1")
        return listed


@dataclass(frozen=True, kw_only=True)
class Read:
    """What a scan reads.

    Args:
        number: of the question that it asked.
        scan: tells scans of one question apart.
        listed: files that Spark lists.
        read: those of them that it reads.
        unknown: those that the planner did not list so.
    """

    number: int
    scan: int
    listed: int
    read: int
    unknown: int


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Why a scan reads all files, with its folder and its question, if known."""

    problem: str
    root: str = ""
    number: int = 0


@dataclass(frozen=True, kw_only=True)
class NoTable:
    """A scan of no table, or of several; ``root`` is its first folder."""

    root: str
    scan: int


def read_report(text: str) -> Read | Problem | NoTable:
    """What the driver tells, of which it waits for nothing."""
    result = json.loads(text)
    if "problem" in result:
        return _read(Problem, result)
    if "root" in result:
        return _read(NoTable, result)
    return _read(Read, result)


@dataclass(frozen=True, slots=True)
class Answer:
    """Files that need not be read.

    Args:
        listing: the number of the planner's listing.
        files: for each file of it, whether it need not be read.
        results: over these files, or rows of the others, where they are requested.
        ranges: of other files, as ``byte_ranges`` has them.
    """

    listing: int
    files: Mask
    results: bytes = b""
    ranges: Mapping[int, Ints] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The number, a bit for each file, and the results or ranges."""
        number = struct.pack("<q", self.listing)
        bits = np.packbits(self.files, bitorder="little").tobytes()
        if not self.ranges:
            return number + bits + self.results
        parts = [
            struct.pack("<ii", file, len(places)) + places.astype("<i8").tobytes()
            for file, places in self.ranges.items()
        ]
        return (
            number + bits + b"ranges" + struct.pack("<i", len(parts)) + b"".join(parts)
        )


def arrow_stream(rows: pa.Table) -> bytes:
    """Rows as ``PlannedRows.java`` reads them."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    result: bytes = sink.getvalue().to_pybytes()
    return result


def _with_sides(body: dict[str, Any]) -> dict[str, Any]:
    """Members of a message, whose keys that are objects are dimensions."""
    if not isinstance(pairs := body.get("keys"), list):
        return body
    keys = [
        (name, _read(Dimension, _with_sides(side)) if isinstance(side, dict) else side)
        for name, side in pairs
    ]
    return body | {"keys": keys}


def _read(kind: Callable[..., T], body: Mapping[str, Any]) -> T:
    """The message that has these members; it may have others."""
    values = {}
    for name, wanted, is_needed in _fields(kind):
        if is_needed or body.get(name) is not None:
            values[name] = _value(name, wanted, body.get(name))
    return kind(**values)


@cache
def _fields(kind: Any) -> Sequence[tuple[str, Any, bool]]:
    """The fields of a message: name, type, and whether it may not lack."""
    hints = get_type_hints(kind)
    return [(f.name, hints[f.name], f.default is MISSING) for f in fields(kind)]


def _value(name: str, wanted: Any, value: Any) -> Any:
    if get_origin(wanted) is UnionType:
        if value is None:
            return None
        wanted, _none = get_args(wanted)
    is_message = is_dataclass(wanted)
    kind = dict if is_message else _IN_JSON.get(get_origin(wanted), wanted)
    if type(value) is not kind:
        raise PlanError(
            f"a message of the driver has {name}={repr(value)[:80]} "
            f"(accepted: {kind.__name__})"
        )
    if is_message:
        return _read(wanted, value)
    if kind is list and is_dataclass(one := get_args(wanted)[0]):
        return [_value(name, one, part) for part in value]
    return value
