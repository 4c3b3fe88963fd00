"""What manifests of Iceberg say of files, in the second and in the third format."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
)
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from tests.heavy.lives.rows import Column, Kind, cut, flat, order

TYPES: Final[Mapping[str, Any]] = {
    "integer": IntegerType(),
    "long": LongType(),
    "string": StringType(),
    "double": DoubleType(),
    "float": FloatType(),
    "date": DateType(),
    "timestamp": TimestamptzType(),
    "timestamp_ntz": TimestampType(),
    "decimal(10,2)": DecimalType(10, 2),
    "decimal(30,4)": DecimalType(30, 4),
    "boolean": BooleanType(),
}
FLOATS: Final = ("double", "float")
PATH: Final = 2147483546
"""The field id of paths in files of deletes."""
_COUNTS: Final = ("value_counts", "null_value_counts", "nan_value_counts")
_BOUNDS: Final = ("lower_bounds", "upper_bounds")
_OTHERS: Final = (
    *("column_sizes", "key_metadata", "split_offsets", "equality_ids", "sort_order_id"),
)
_NEW: Final = (
    *("first_row_id", "referenced_data_file"),
    *("content_offset", "content_size_in_bytes"),
)
"""What the third format has of a file, and the second has not."""


@dataclass
class Entry:
    """An entry of a manifest.

    Args:
        file: what it says of the file.
        of: the paths of data files that it is of.
        snapshot: that added it.
        sequence: its data sequence number; None until it is committed.
        file_sequence: its file sequence number.
        is_new: whether its snapshot is the one that is made.
    """

    file: DataFile
    of: tuple[str, ...]
    snapshot: int
    sequence: int | None = None
    file_sequence: int | None = None
    is_new: bool = True


@dataclass
class Manifest:
    """A manifest of the current snapshot."""

    content: ManifestContent
    spec: int
    entries: list[Entry]
    file: ManifestFile

    def commit(self, sequence: int) -> None:
        """What has no sequence number has that of the commit."""
        unassigned = -1
        if self.file.sequence_number == unassigned:
            self.file.sequence_number = sequence
        if self.file.min_sequence_number == unassigned:
            self.file.min_sequence_number = sequence
        for one in self.entries:
            one.sequence = sequence if one.sequence is None else one.sequence
            one.file_sequence = one.file_sequence or sequence
            one.is_new = False


class ManifestWriter(ManifestWriterV2):
    """Writes a manifest of either content, in the second or the third format."""

    kind = ManifestContent.DATA
    number = 2

    def content(self) -> ManifestContent:
        return self.kind

    @property
    def version(self) -> Any:
        return self.number

    @property
    def _meta(self) -> dict[str, str]:
        named = "data" if self.kind is ManifestContent.DATA else "deletes"
        return {**super()._meta, "content": named}

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        schema = self._with_partition(self.version)
        return AvroOutputFile[ManifestEntry](
            output_file=self._output_file,
            file_schema=schema,
            record_schema=schema,
            schema_name="manifest_entry",
            metadata=self._meta,
        )

    def write(self, entries: Iterable[Entry], gone: Iterable[Entry]) -> ManifestFile:
        """Entries that are not new exist; those that have gone are deleted."""
        added, existing = ManifestEntryStatus.ADDED, ManifestEntryStatus.EXISTING
        listed = [(one, added if one.is_new else existing) for one in entries]
        listed += [(one, ManifestEntryStatus.DELETED) for one in gone]
        with self:
            for one, status in listed:
                is_gone = status is ManifestEntryStatus.DELETED
                self.add_entry(
                    ManifestEntry.from_args(
                        status=status,
                        snapshot_id=self._snapshot_id if is_gone else one.snapshot,
                        sequence_number=one.sequence,
                        file_sequence_number=one.file_sequence,
                        data_file=one.file,
                    )
                )
        return self.to_manifest_file()


def described(
    version: int, path: Path, n: int, record: Record, **what: Any
) -> DataFile:
    """A file in a format of tables, by default a data file of Parquet."""
    known = dict.fromkeys(
        (*_COUNTS, *_BOUNDS, *_OTHERS, *(_NEW if version > 2 else ()))
    )
    known |= {
        "content": DataFileContent.DATA,
        "file_path": f"file://{path}",
        "file_format": FileFormat.PARQUET,
        "partition": record,
        "record_count": n,
        "file_size_in_bytes": path.stat().st_size,
    }
    return DataFile.from_args(version, **{**known, **what})


def upgraded(file: DataFile) -> DataFile:
    """What the second format says of a file, in the third."""
    return DataFile(*file._data, *[None] * len(_NEW))


def metrics(
    rng: random.Random, columns: Sequence[Column], n: int, rows: Mapping[int, list[Any]]
) -> dict[str, Any]:
    """What a writer may say of the columns of a file."""
    style = rng.choice(["absent", "counts", "some", "all", "all", "bounds", "low"])
    nothing = rng.choice([None, {}])
    result: dict[str, Any] = {name: {} for name in (*_COUNTS, *_BOUNDS)}
    for one in columns:
        for _, leaf, values in flat(one, rows.get(one.number, [])):
            if values and (style != "some" or rng.random() < 0.5):
                _describe(rng, leaf, n, values, result)
    left_out = {
        "absent": (*_COUNTS, *_BOUNDS),
        "counts": _BOUNDS,
        "bounds": rng.choice([_COUNTS, _COUNTS[1:]]),
        "low": _BOUNDS[1:],
    }
    return {**result, **dict.fromkeys(left_out.get(style, ()), nothing)}


def _describe(
    rng: random.Random, column: Column, n: int, values: list[Any], to: dict[str, Any]
) -> None:
    kind, number = column.kind, column.number
    assert kind is not None
    known = [value for value in values if value is not None]
    to["value_counts"][number] = n
    to["null_value_counts"][number] = n - len(known)
    if kind.name in FLOATS:
        numbers = [value for value in known if not math.isnan(value)]
        to["nan_value_counts"][number] = len(known) - len(numbers)
        known = numbers
    if known:
        low, high = min(known, key=order), max(known, key=order)
        to["lower_bounds"][number] = _bound(rng, kind, low, up=False)
        to["upper_bounds"][number] = _bound(rng, kind, high, up=True)


def _bound(rng: random.Random, kind: Kind, value: Any, *, up: bool) -> bytes:
    if isinstance(value, str):
        return cut(rng, value, up=up).encode()
    if isinstance(value, float) and not value:
        value = 0.0 if up else -0.0
    return to_bytes(TYPES[kind.name], internal(value))


def internal(value: Any) -> Any:
    """A value as pyiceberg has it in partitions and bounds."""
    match value:
        case datetime():
            since = value.replace(tzinfo=None) - datetime(1970, 1, 1)
            return since // datetime.resolution
        case date():
            return (value - date(1970, 1, 1)).days
    return value
