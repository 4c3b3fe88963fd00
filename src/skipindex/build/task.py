"""One build task: read some data files, write their payloads into packs.

A file or column that cannot be indexed (a damaged file, a column of another type) gets
a note in the manifest, and plans read it; it never fails the build.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from skipindex.build.memory import Memory, default_memory, size_of
from skipindex.build.pending_pack import ColumnRequest, IndexedFile, PendingPack
from skipindex.build.runners import n_cores
from skipindex.errors import (
    StorageError,
    TableError,
    UnsupportedTypeError,
    first_line,
)
from skipindex.expressions import stored_name
from skipindex.expressions.domain import Domain
from skipindex.indexes import EncodedColumn, MinMax, spec_to_json
from skipindex.indexes.file_map import ValueSpans
from skipindex.indexes.interface import IndexSpec, TogetherSpec
from skipindex.log.manifest import Manifest, StatsColumn
from skipindex.source import UNREADABLE, DataFile, column_reader
from skipindex.source.field_ids import FieldIds
from skipindex.source.parquet.files import footer_crc
from skipindex.source.parquet.stored import place_of
from skipindex.storage.blobs import PackInfo, spec_key
from skipindex.storage.file_system.file_info import Clock
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.telling import tell_done
from skipindex.table.summaries import UNKNOWN, Summary, summaries_to_arrow, summarize

PACK_BYTES: Final = 128 << 20
PACK_FILES: Final = 256
"""A task closes its pack when it holds this many bytes, or data files."""

NOT_READABLE: Final = "not readable: "
"""In the note on a file, what a later build may be able to read."""


@dataclass(frozen=True, slots=True)
class BuildTask:
    """Some data files and what to build on them; pickled to a worker.

    Args:
        location: of the table.
        paths: of the files.
        columns: what to build on each of them.
        memory: bytes that the worker may take; None is by the machine that it is on.
        ids: what gives the columns of the files their numbers; None is their names.
    """

    location: Location
    paths: tuple[str, ...]
    columns: tuple[ColumnRequest, ...]
    memory: int | None = None
    ids: FieldIds | None = None

    @property
    def n_units(self) -> int:
        """See ``runners.Task``."""
        return len(self.paths)

    @property
    def done(self) -> str:
        """See ``runners.Task``."""
        return f"indexed {self.location.full('')!r}"

    def run(self) -> Manifest:
        """See ``run_task``."""
        return run_task(self)


def run_task(task: BuildTask) -> Manifest:
    """Index the files of ``task``; the piece of a manifest."""
    pack = PendingPack(task.columns)
    rows: list[dict[str, Any]] = []
    summaries: list[dict[str, Summary]] = []
    domains = {column.name: column.domain for column in task.columns}
    packs: list[PackInfo] = []
    clock = Clock(task.location.past)
    memory = Memory(task.memory or default_memory(n_cores()))
    full = min(PACK_BYTES, 2 * memory.pack_bytes)

    def close_pack() -> None:
        nonlocal pack
        info = pack.write(task.location)
        if info is not None:
            packs.append(info)
            pack = PendingPack(task.columns)
        memory.held = 0

    for i, path in enumerate(task.paths):
        if i:
            tell_done()
        indexed = _index_file(task, path, clock, memory)
        if indexed is None:  # deleted since it was listed
            continue
        places: dict[str, list[int]] = {"packs": [], "slots": []}
        if indexed.row["n_rows"] >= 0:  # if not read, the next build tries again
            if indexed.spilled:
                close_pack()  # whose number is the next one
                numbers = [len(packs) + i for i in range(len(indexed.spilled))]
                places = {"packs": numbers, "slots": [0] * len(numbers)}
                packs += indexed.spilled
            else:
                places = {"packs": [len(packs)], "slots": [pack.add(indexed)]}
        memory.held = pack.n_bytes
        rows.append(indexed.row | places)
        summaries.append(indexed.summaries)
        domains.update({c.name: c.domain for c in indexed.respelled})
        if pack.n_bytes >= full or pack.n_files >= PACK_FILES:
            close_pack()
    close_pack()
    tell_done()
    if not packs:  # statistics only
        rows = [{**row, "packs": [], "slots": []} for row in rows]
    stats = {
        name: StatsColumn(
            domain.tag, summaries_to_arrow([s.get(name) for s in summaries], domain)
        )
        for name, domain in domains.items()
    }
    return Manifest.of_files(rows, stats, tuple(packs))


def _index_file(
    task: BuildTask, path: str, clock: Clock, memory: Memory
) -> IndexedFile | None:
    """Index one file; a column that cannot be indexed gets a note."""
    location = task.location
    result = FileInfo(path, 0, 0)
    note = None
    try:
        with _noted():
            now = location.stat(path)
        if now is None:
            return None
        result = now
        if not clock.has_passed(now):
            note = "modified too recently: a later change could keep the same time"
            return IndexedFile(_row(now, note=note))
        indexed = _read_and_index(location, result, task, memory)
        with _noted():
            if result.is_same(location.stat(path)):
                return indexed
        note = "changed while it was indexed"
    except StorageError:
        raise
    except Exception as error:  # noqa: BLE001 (one file never takes the build with it)
        note = NOT_READABLE + reason(error)
    return IndexedFile(_row(result, note=note))


@contextmanager
def _noted() -> Iterator[None]:
    """Look at a data file: of all that is refused, only writing fails the build."""
    try:
        yield
    except StorageError as error:
        raise TableError(str(error)) from error


def _row(
    info: FileInfo,
    *,
    footer_crc: int = 0,
    file: DataFile | None = None,
    note: str | None = None,
) -> dict[str, Any]:
    """A file's row of the manifest, without its packs."""
    return {
        "path": info.path,
        "size": info.size,
        "mtime": info.mtime,
        "tag": info.tag,
        "footer_crc": footer_crc,
        "n_rows": -1 if file is None else file.metadata.num_rows,
        "note": note,
        "groups": file and file.row_groups(),
        "columns": file and file.columns_hash(),
    }


def _read_and_index(
    location: Location,
    info: FileInfo,
    task: BuildTask,
    memory: Memory,
) -> IndexedFile:
    columns = task.columns
    names = {stored_name(request.path) for request in columns}
    with ExitStack() as stack:
        with _noted():
            crc = footer_crc(location, info)
            opened = column_reader(
                location, info.path, encoded=names, known=info, ids=task.ids
            )
            file = stack.enter_context(opened)
        indexed = IndexedFile(_row(info, footer_crc=crc, file=file))
        notes: list[str] = []
        rest: list[ColumnRequest] = []
        held, together = memory.held, Together()
        for request in columns:
            notes += _index_column(file, request, indexed, memory, together)
            memory.held = held + indexed.n_bytes + together.n_bytes
            rest.append(request)
            if indexed.n_bytes + together.n_bytes >= memory.pack_bytes:
                notes += together.build(indexed, memory)
                _spill(location, indexed, rest)
                memory.held, rest = held, []
        notes += together.build(indexed, memory)
        if indexed.spilled and rest:  # no other pack says anything of this file
            _spill(location, indexed, rest)
        indexed.row["note"] = "; ".join(notes) or None
        return indexed


def _spill(
    location: Location, indexed: IndexedFile, columns: Sequence[ColumnRequest]
) -> None:
    """Write the payloads of some columns of a file, as a pack of their own."""
    names = {name for name, _ in indexed.payloads}
    respelled = [one for one in indexed.respelled if one.name in names]
    pack = PendingPack(columns)
    pack.add(replace(indexed, respelled=respelled))
    info = pack.write(location)
    if info is not None:
        indexed.spilled.append(info)
    indexed.forget()


def _index_column(
    file: DataFile,
    request: ColumnRequest,
    indexed: IndexedFile,
    memory: Memory,
    together: Together,
) -> Iterator[str]:
    """Add what is built on one column; notes on what cannot be built, and why."""
    name = request.name
    if (mapped := file.stored_name(request.path)) != stored_name(request.path):
        name = mapped
        indexed.respelled.append(replace(request, name=name))
    try:
        size = size_of(file, request)
        needed = max([size.read, *map(size.with_index, request.specs)])
        yield from together.make_room(needed, indexed, memory)
        if note := memory.why_not(size.read, name, MinMax.kind):
            indexed.summaries[name] = UNKNOWN
            yield note
            for spec in request.specs:
                yield memory.why_not(size.with_index(spec), name, spec.kind)
            return
        column = read_column(file, request.path, request.domain)
        summary = summarize(column)
    except UnsupportedTypeError as error:
        # Said once for all: a second build finds that nothing is missing.
        indexed.summaries[name] = UNKNOWN
        yield str(error)
        return
    except Exception as error:  # noqa: BLE001 (nor does one column)
        yield f"column {name!r}: {NOT_READABLE}{reason(error)}"
        return
    if name == request.name and column.name != name:
        indexed.summaries[name] = UNKNOWN
        if not request.alone:
            yield f"the file has no column {name!r}"
            return
        name = column.name
        indexed.respelled.append(replace(request, name=name))
    indexed.summaries[name] = summary
    if note := _beyond(column):
        yield note
    for spec in request.specs:
        if note := memory.why_not(size.with_index(spec), request.name, spec.kind):
            yield note
        elif isinstance(spec, TogetherSpec):
            together.add(name, spec, column, int(size.read / 2))
        else:
            yield from _build(name, spec, column, indexed, memory)
    # After the indexes, which may have ranked the values.
    if request.has_map and size.ranked <= memory.free:
        try:
            spans = ValueSpans.of(column)
        except Exception as error:  # noqa: BLE001 (the file is then in no map)
            yield f"column {name!r}: no file map: {reason(error)}"
        else:
            if spans is not None:
                indexed.spans[name] = spans


def _build(
    name: str,
    spec: IndexSpec,
    column: EncodedColumn,
    indexed: IndexedFile,
    memory: Memory,
) -> Iterator[str]:
    """Add one index of a column; notes on what cannot be built, and why."""
    try:
        parts = spec.build(column)
    except UnsupportedTypeError as error:
        yield str(error)
    except Exception as error:  # noqa: BLE001 (nor one kind, which may be foreign)
        yield f"column {name!r}: no {spec.kind} index: {reason(error)}"
    else:
        indexed.hold(name, spec_key(spec_to_json(spec)), parts)
        memory.held += sum(map(len, parts))


class Together:
    """Columns of a file that wait for others, to be indexed together with them."""

    def __init__(self) -> None:
        self._columns: dict[str, list[tuple[str, TogetherSpec, EncodedColumn]]] = {}
        self.n_bytes = 0
        """What they take in memory."""

    def add(
        self, name: str, spec: TogetherSpec, column: EncodedColumn, n_bytes: int
    ) -> None:
        """Let a column wait, which takes this number of bytes."""
        key = spec_key(spec_to_json(spec))
        self._columns.setdefault(key, []).append((name, spec, column))
        self.n_bytes += n_bytes

    def make_room(
        self, n_bytes: float, indexed: IndexedFile, memory: Memory
    ) -> Iterator[str]:
        """Build now if this number of bytes is not free."""
        if n_bytes > memory.free and self._columns:
            before = indexed.n_bytes + self.n_bytes
            yield from self.build(indexed, memory)
            memory.held += indexed.n_bytes - before

    def build(self, indexed: IndexedFile, memory: Memory) -> Iterator[str]:
        """Add the indexes of all that wait; notes on what cannot be built."""
        for key, waiting in self._columns.items():
            names, specs, columns = zip(*waiting, strict=True)
            try:
                payloads = specs[0].build_together(columns)
            except Exception:  # noqa: BLE001 (one column does not take the others)
                for name, spec, column in waiting:
                    yield from _build(name, spec, column, indexed, memory)
            else:
                for name, parts in zip(names, payloads, strict=True):
                    indexed.hold(name, key, parts)
        self._columns.clear()
        self.n_bytes = 0


def reason(error: Exception) -> str:
    """Why something could not be read, in one line."""
    text = first_line(error)
    return text if isinstance(error, UNREADABLE) else f"{type(error).__name__}: {text}"


def read_column(file: DataFile, path: tuple[str, ...], domain: Domain) -> EncodedColumn:
    """The column of one file, or the field of a struct, at ``path``, encoded.

    A field is NULL where a struct around it is, and so is all of a column that the
    file lacks.  The column that comes back has the name that the file spells.

    Raises:
        UnsupportedTypeError: ``check_stored`` says so.
    """
    result = place_of(file, path, domain)
    if result is None:
        nothing = pa.nulls(file.metadata.num_rows, domain.dtype)
        return EncodedColumn(stored_name(path), pa.chunked_array([nothing]), domain)
    values = file.read(result)
    if len(values) != file.metadata.num_rows:
        raise UnsupportedTypeError(
            f"column {stored_name(path)!r} has {len(values)} rows of "
            f"{file.metadata.num_rows}"
        )
    return EncodedColumn(stored_name(result), values, domain)


def _beyond(column: EncodedColumn) -> str:
    """What to note where a value does not fit the table's type; else empty."""
    # The index is built all the same: the table may get a wider type, and until then
    # a plan does not use it.
    span, low, high = column.domain.span, column.minimum, column.maximum
    if span is None or low is None or high is None:
        return ""
    least, stop = span
    if low >= least and high < stop:  # type: ignore[operator]
        return ""
    value = column.domain.show(low if low < least else high)  # type: ignore[operator]
    return (
        f"column {column.name!r} holds {value} here, which does not fit the table's "
        "type: Spark reads another value"
    )
