"""One dimension in memory: each key of a file of the fact is looked up in it.

A task reads the dimension itself, so that no row of it passes through the driver.  It
checks before and after that the dimension's files are those of the fingerprint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.build.pending_pack import Source
from skipindex.errors import BuildError, UnsupportedTypeError
from skipindex.expressions import stored_name
from skipindex.expressions.domain import Domain
from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.table import DataFile, column_reader
from skipindex.table.associated import Association, fingerprint_of
from skipindex.table.listing import current_files
from skipindex.table.stored import beyond, read_column

MAX_ROWS: Final = 10_000_000
"""Rows of a dimension, which a task holds in memory."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """The keys of a dimension, and of each its attribute.

    Args:
        keys: distinct, in their domain.
        codes: for every key, the position of its attribute; NULL is NULL.
        entries: the attributes, in their domain.
    """

    keys: pa.Array
    codes: pa.Array
    entries: pa.Array

    @classmethod
    def read(cls, source: Source) -> Dimension:
        """Read it from its files, which must be those of the fingerprint.

        Raises:
            BuildError: they are others, or change meanwhile, or have too many rows,
                or a key twice.
            UnsupportedTypeError: Spark may read other values than a file stores.
        """
        one, location = source.association, source.location
        keys, attributes = [], []
        n_rows = 0
        files = _unchanged(source)
        for result in files:
            with column_reader(location, result) as file:
                n_rows += int(file.metadata.num_rows)
                if n_rows > MAX_ROWS:
                    raise BuildError(
                        f"the table {location.full('')!r} has more than {MAX_ROWS:,} "
                        "rows, so its columns cannot be associated"
                    )
                key = _laid_out(read(file, one.table_key, one.table_key_domain))
                attribute = _laid_out(read(file, one.attribute, one.domain))
                valid = key.is_valid()
                keys.append(key.filter(valid))
                attributes.append(attribute.filter(valid))
        _unchanged(source)
        encoded = pa.concat_arrays(attributes).dictionary_encode()
        distinct = pa.concat_arrays(keys)
        _check_distinct(distinct, source)
        return cls(distinct, encoded.indices, encoded.dictionary)

    def column(self, keys: EncodedColumn, one: Association) -> EncodedColumn:
        """The attribute of every row with these keys; NULL without a match."""
        result = pc.index_in(pa.array(keys.values), value_set=self.keys)
        codes = _spread(self.codes.take(result), keys)
        return EncodedColumn.of_entries(one.stored, codes, self.entries, one.domain)


class Dimensions:
    """The dimensions that a task has read so far, and the keys of its last file."""

    def __init__(self) -> None:
        self._read: dict[Source, Dimension] = {}
        self._file: DataFile | None = None
        self._keys: dict[tuple[str, Domain], EncodedColumn] = {}

    def column(self, file: DataFile, source: Source) -> EncodedColumn:
        """The attribute of every row of a file of the fact; NULL without a match.

        Raises:
            UnsupportedTypeError: Spark may read other values than a file stores.
        """
        if source not in self._read:
            self._read[source] = Dimension.read(source)
        if self._file is not file:
            self._file, self._keys = file, {}
        one = source.association
        key = one.key, one.key_domain
        if key not in self._keys:
            self._keys[key] = read(file, *key)
        return self._read[source].column(self._keys[key], one)


def read(file: DataFile, name: str, domain: Domain) -> EncodedColumn:
    """A column of a file, if it has this very name there and all values fit its type.

    Raises:
        UnsupportedTypeError: Spark may read other values than the file stores.
    """
    column = read_column(file, (name,), domain)
    problem = beyond(column)
    if column.name != stored_name((name,)):
        problem = f"the file spells column {name!r} as {column.name!r}"
    if problem:
        raise UnsupportedTypeError(problem)
    return column


def _laid_out(column: EncodedColumn) -> pa.Array:
    """The values of all rows in the domain; NULL is NULL."""
    return _spread(pa.array(column.values), column)


def _spread(values: pa.Array, column: EncodedColumn) -> pa.Array:
    """What belongs to a column's rows that are not NULL, laid out over all rows."""
    if column.validity is None:
        return values
    places = np.cumsum(column.validity) - 1
    return values.take(pa.array(places, mask=~column.validity))


def _unchanged(source: Source) -> list[str]:
    """The paths of the dimension's files."""
    files = current_files(source.location)
    if fingerprint_of(files) != source.association.fingerprint:
        raise BuildError(
            f"the table {source.location.full('')!r} changed while it was looked up "
            "(build again when it is written)"
        )
    return [file.path for file in files]


def _check_distinct(keys: pa.Array, source: Source) -> None:
    if pc.count_distinct(keys).as_py() == len(keys):
        return
    one = source.association
    counts = pc.value_counts(keys)
    twice = counts.filter(pc.greater(counts.field("counts"), 1))
    shown = one.table_key_domain.show(twice.field("values")[0].as_py())
    raise BuildError(
        f"column {one.table_key!r} of {source.location.full('')!r} has the value "
        f"{shown} more than once, so it is no key to join by (accepted: a column of "
        "distinct values)"
    )
