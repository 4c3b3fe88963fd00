"""How a Parquet file is opened, and its columns read one at a time."""

from __future__ import annotations

import errno
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from crc32c import crc32c

from skipindex.errors import TableError, UnsupportedTypeError
from skipindex.expressions import stored_name
from skipindex.source.field_ids import FieldIds, Names, renamed, unmapped_name
from skipindex.source.parquet.dictionaries import is_as_written
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.thrift import read_struct

_SMALL_DICTIONARY: Final = 1 << 16
"""Compressed bytes; writers give up at 1 MB before compression."""

_WRONG_DICTIONARY: Final = "its dictionary cannot be decoded"

UNREADABLE: Final = (pa.ArrowException, OSError, ValueError)
"""What pyarrow raises for a damaged file; ValueError for names that are no UTF-8."""

_REPEATED: Final = (b"ARROW:schema", b"pandas")
"""Keys of a writer's notes."""

_OPTIONS: Final[Mapping[str, Any]] = {"coerce_int96_timestamp_unit": "us"}


class DataFile:
    """One Parquet file, of which columns are read one at a time.

    Columns of ``encoded`` are read as dictionary arrays where that is faster.  With
    ``ids``, the columns are named by their numbers.

    Raises:
        UnsupportedTypeError: no column has a number that ``ids`` knows.
    """

    def __init__(
        self,
        source: pa.NativeFile,
        encoded: Collection[str] = (),
        ids: FieldIds | None = None,
    ) -> None:
        self._source = source
        self._plain = pq.ParquetFile(source, **_OPTIONS)
        self.metadata = self._plain.metadata
        self.is_signed = _is_signed(source, self.metadata)
        """Whether columns may be encrypted, so that no chunk is asked about."""
        self.schema = self._plain.schema
        self.schema_arrow = self._plain.schema_arrow
        self._readers = [(self._plain, self.schema_arrow)]
        self._places: dict[Names, Names] = {}
        self._mapped_names: Mapping[Names, str] | None = None
        if ids is not None:
            self._places = ids.places(self.schema_arrow)
            if ids.are_mapped(self.schema_arrow):
                self._mapped_names = ids.mapped_names()
            own = {name[0]: path[0] for name, path in self._places.items()}
            encoded = [own[name] for name in encoded if name in own]
            self.schema_arrow = renamed(self.schema_arrow, self._places)
        if self.is_signed:
            return
        if columns := _dictionary_columns(self.metadata, encoded):
            first = pq.ParquetFile(
                source, metadata=self.metadata, read_dictionary=columns, **_OPTIONS
            )
            self._readers.insert(0, (first, first.schema_arrow))

    def read(self, path: Sequence[str]) -> pa.ChunkedArray:
        """All rows of a column, or of a field of structs, as the file has them.

        A field is NULL where a struct around it is.

        Raises:
            UnsupportedTypeError: the column is encrypted, or the writer asks for a
                dictionary array, and Arrow does not read the values of this
                dictionary rightly.
        """
        path = self._own(path)
        for file, _ in self._readers:
            with self._without_key(path):
                table = file.read(columns=[".".join(path)], use_threads=False)
            values = values_at(table, path)
            if not pa.types.is_dictionary(values.type) or self._is_right(values, path):
                return values
        raise UnsupportedTypeError(f"column {'.'.join(path)!r}: {_WRONG_DICTIONARY}")

    @contextmanager
    def _without_key(self, path: Sequence[str]) -> Iterator[None]:
        """Say what it means that Arrow cannot decrypt a column."""
        try:
            yield
        except OSError as error:
            if self.is_signed and error.errno is None and "crypt" in str(error):
                name = ".".join(path)
                raise UnsupportedTypeError(f"column {name!r} is encrypted") from error
            raise

    def stored_name(self, path: Names) -> str:
        """The name under which what is known of a column of this file is stored."""
        if self._mapped_names is None:
            return stored_name(path)
        return self._mapped_names.get(path, unmapped_name(path))

    def leaves(self, path: Sequence[str]) -> list[int]:
        """The places of a column among the columns of Parquet."""
        return self._leaves.get(".".join(self._own(path)), [])

    def _own(self, path: Sequence[str]) -> Sequence[str]:
        """The path as the file has it."""
        return self._places.get(tuple(path), path)

    @cached_property
    def _leaves(self) -> dict[str, list[int]]:
        """The places of all columns, by their paths."""
        result: dict[str, list[int]] = {}
        for i in range(self.metadata.num_columns):
            result.setdefault(self.schema.column(i).path, []).append(i)
        return result

    @property
    def groups(self) -> list[pq.RowGroupMetaData]:
        """The row groups, in order."""
        return [*map(self.metadata.row_group, range(self.metadata.num_row_groups))]

    def row_groups(self) -> bytes | None:
        """The row groups as in a manifest; None if Spark may place one elsewhere."""
        if self.is_signed or not self.groups:
            return None
        if len(self.groups) == 1:
            return b""
        places, end = [], 0
        for group in self.groups:
            chunks = [*map(group.column, range(group.num_columns))]
            begin = min(map(chunk_begin, chunks[:1]), default=end)
            size = sum(chunk.total_compressed_size for chunk in chunks)
            if min(group.num_rows, begin - end, size) < 0:
                return None
            places.append((group.num_rows, begin, size))
            end = begin + size
        # Spark reads a row group if its middle is in the range that is read, and takes
        # its size from the footer's own field, which it may lack.
        with suppress(LookupError, ValueError):
            groups = read_struct(footer_of(self._source), 0)[0][4]
            rows, _, sizes = zip(*places, strict=True)
            told = [one.get(6, n) for one, n in zip(groups, sizes, strict=True)]
            if told == [*sizes] and sum(rows) == self.metadata.num_rows:
                return np.array(places, "<i8").tobytes()
        return None

    def columns_hash(self) -> int | None:
        """A number that files with equal columns and notes share; None: not known.

        Notes are the metadata of the writer.  The columns that these repeat, and those
        of pandas, do not count.
        """
        if self.is_signed:
            return None
        notes = self.metadata.metadata or {}
        told = sorted(notes.items() - {(key, notes.get(key)) for key in _REPEATED})
        arrow = self.schema_arrow.remove_metadata()
        texts = (
            str(self.schema).partition("\n")[2],  # after the address of the object
            arrow.to_string(show_field_metadata=True, truncate_metadata=False),
            repr(told),
        )
        digest = blake2b("\0".join(texts).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little")

    def text_bytes(self, path: Sequence[str], least: float) -> float:
        """The bytes of a column before compression, as far as the footer tells.

        ``least`` is taken for a column that Arrow decodes from dictionaries.
        """
        if self.is_signed:
            sizes = [group.total_byte_size for group in self.groups]
            return max(least, float(sum(sizes)))
        chunks = [group.column(i) for group in self.groups for i in self.leaves(path)]
        size = float(sum(chunk.total_uncompressed_size for chunk in chunks))
        if self.has_small_entries(path):
            return size
        return max(size, least) if any(c.has_dictionary_page for c in chunks) else size

    def has_small_entries(self, path: Sequence[str]) -> bool:
        """Whether a column is read as dictionaries, if these are read correctly."""
        return _has_dictionary(self._readers[0][1], self._own(path))

    def _is_right(self, values: pa.ChunkedArray, path: Sequence[str]) -> bool:
        leaves = self.leaves(path)
        if self.is_signed or len(leaves) != 1:
            return False
        return is_as_written(values, leaves[0], self.metadata, self._source)


def values_at(table: pa.Table, path: Sequence[str]) -> pa.ChunkedArray:
    """The column, or the field of structs, of a table that has no other."""
    values = table.column(path[0])
    return values if len(path) == 1 else pc.struct_field(values, path[1:])


def _has_dictionary(schema: pa.Schema, path: Sequence[str]) -> bool:
    """Whether Arrow reads a column as dictionaries."""
    dtype = schema.field(path[0]).type
    for name in path[1:]:
        dtype = dtype.field(name).type
    return bool(pa.types.is_dictionary(dtype))


@contextmanager
def column_reader(
    location: Location,
    path: str,
    *,
    encoded: Collection[str] = (),
    known: FileInfo | None = None,
    ids: FieldIds | None = None,
) -> Iterator[DataFile]:
    """The Parquet file at ``path``, open as long as the block runs.

    ``known`` is what was listed of it, if it must be that very content.
    """
    with location.open_input(path, known) as source:
        yield DataFile(source, encoded, ids)


def _is_signed(source: pa.NativeFile, metadata: pq.FileMetaData) -> bool:
    """Whether more than a footer is at the end of a file: the signature of one."""
    # Columns of such a file may be encrypted, and Arrow ends the process if it is asked
    # for the metadata of one of their chunks, so it is asked for none.
    tail = source.read_at(8, source.size() - 8)
    return bool(int.from_bytes(tail[:4], "little") != metadata.serialized_size)


def _dictionary_columns(metadata: pq.FileMetaData, names: Collection[str]) -> list[str]:
    """Columns of byte strings that are written as a dictionary throughout."""
    # A writer whose dictionary grows too large goes on with plain values, which take
    # several times longer to read as a dictionary.
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    columns = map(metadata.schema.column, range(metadata.num_columns))
    return [
        column.path
        for i, column in enumerate(columns)
        if column.path in names
        and "." not in column.path  # the field of a struct
        and column.physical_type == "BYTE_ARRAY"
        and column.converted_type in {"UTF8", "NONE"}
        and groups
        and all(_is_dictionary(group.column(i)) for group in groups)
    ]


def _is_dictionary(chunk: pq.ColumnChunkMetaData) -> bool:
    if not chunk.has_dictionary_page:
        return False
    # The first version of the format names plain pages apart from the dictionary.
    if "PLAIN" not in chunk.encodings:
        return True
    # Only Spark's writer says so; else a small dictionary counts as one of all values.
    n_bytes = chunk.data_page_offset - chunk.dictionary_page_offset
    return bool(0 < n_bytes < _SMALL_DICTIONARY)


def footer_of(source: pa.NativeFile) -> bytes:
    """The bytes of the footer of an open file.

    Raises:
        ValueError: it is larger than the file.
    """
    length = int.from_bytes(source.read_at(8, source.size() - 8)[:4], "little")
    if length > source.size() - 12:
        raise ValueError("the footer is larger than the file")
    footer: bytes = source.read_at(length, source.size() - 8 - length)
    return footer


def chunk_begin(chunk: pq.ColumnChunkMetaData) -> int:
    """Where the first page of a column chunk begins."""
    start, first = chunk.data_page_offset, chunk.dictionary_page_offset
    if chunk.has_dictionary_page and first is not None and 0 < first < start:
        start = first
    return int(start)


def footer_crc(location: Location, info: FileInfo) -> int:
    """The crc32c of the Parquet footer, which names every column chunk."""
    with location.open_input(info.path, info) as source:
        if info.size < 12:
            raise TableError(f"{info.size} bytes are too few for a Parquet file")
        tail = source.read_at(8, info.size - 8)
        if len(tail) < 8:
            raise FileNotFoundError(errno.ENOENT, "it has become shorter", info.path)
        if tail[4:] == b"PARE":
            raise TableError("its footer is encrypted")
        (length,) = struct.unpack("<I", tail[:4])
        if tail[4:] != b"PAR1" or length + 12 > info.size:
            raise TableError("no Parquet footer at its end")
        return int(crc32c(source.read_at(length, info.size - 8 - length)))
