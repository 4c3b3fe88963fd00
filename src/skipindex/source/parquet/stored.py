"""The rule for when Spark reads exactly the values that a Parquet file stores.

Spark types a table by one file, or by all of them merged, and reads every file under
those types.  It then converts what a file stores: it cuts the bits of integers, makes
NULL of decimals that are too long, counts months for an interval.  Which, depends on
the reader and on settings that no plan knows.  So a column of a file has an index only
where every reader under every setting hands out the stored value, or fails:

======================  =====================================  =======================
type in the table       Parquet type in the file               condition
======================  =====================================  =======================
tinyint ... bigint      INT32, INT64: plain, or INT of any     every value fits the
                        width and sign below unsigned 64       table's type
bigint                  INT64 TIMESTAMP(NANOS), as a number    the same
timestamp in ns         INT64 TIMESTAMP(NANOS), plain INT64    the same
decimal(p, s)           DECIMAL(q, s) of any physical type;    every value fits p
                        unsigned INT64 where s is 0            digits
float, double           FLOAT, DOUBLE                          none
boolean                 BOOLEAN                                none
date                    INT32 DATE                             not of the old calendar
timestamp, _ntz         INT64 TIMESTAMP(MILLIS or MICROS),     not of the old calendar
                        INT96
string, binary          BYTE_ARRAY: plain, STRING, ENUM, JSON  no collation, no CHAR
                        or BSON; plain FIXED_LEN_BYTE_ARRAY
all other               any                                    never
======================  =====================================  =======================

The table's types are those of the row metadata that Spark leaves in a footer, else
those that Spark infers from the Parquet types: ``footer_schema``.  What a file stores
comes from its Parquet types alone: ``stored_schema``.  Whether values fit is asked of
the statistics when a plan is made, because the table's types may change under an index.

Nanoseconds are the one type that Spark and other readers do not share: Spark fails, or
reads a bigint, and others read a time.  Without row metadata the table has the time,
which is compared with numbers as a bigint is.  A session types it as it reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

import pyarrow as pa

from skipindex.errors import UnsupportedTypeError
from skipindex.expressions import stored_name
from skipindex.expressions.domain import Domain, domain_of
from skipindex.source.parquet.files import DataFile
from skipindex.source.parquet.spark_json import ROW_METADATA, Typed, declared_schema
from skipindex.source.partitions.inference import INSTANT

_SPARK_VERSION: Final = b"org.apache.spark.version"
_HYBRID: Final = frozenset(
    {b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"}
)
_PLAIN: Final[Mapping[str, pa.DataType]] = {
    "BOOLEAN": pa.bool_(),
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BYTE_ARRAY": pa.binary(),
    "FIXED_LEN_BYTE_ARRAY": pa.binary(),
}
"""What Spark makes of physical types that nothing annotates."""

_SIGNED: Final = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_UNSIGNED: Final = {
    8: pa.int16(),
    16: pa.int32(),
    32: pa.int64(),
    64: pa.decimal128(20, 0),
}
_KNOWN: Final[WeakKeyDictionary[Any, Typed]] = WeakKeyDictionary()
"""Types of open files: each of their columns asks for the types of all."""

_Fields: TypeAlias = dict[tuple[str, ...], dict[str, list[pa.Field]]]
_FIELDS: Final[WeakKeyDictionary[Any, _Fields]] = WeakKeyDictionary()
"""Columns of open files, and the fields of structs, by name in small letters."""


def footer_schema(file: DataFile) -> Typed:
    """The columns that a table has, if Spark takes its types from this file."""
    stored, refused = stored_schema(file)
    text = (file.metadata.metadata or {}).get(ROW_METADATA)
    if text is None:
        return stored, refused
    if text.startswith(b"StructType("):
        why = "only Spark can read the row metadata that Spark 1 wrote"
        return stored, {stored_name((name,)): why for name in stored.names}
    return declared_schema(text) or (stored, refused)


def stored_schema(file: DataFile) -> Typed:
    """The columns of a file under the types that Spark infers from Parquet's."""
    result = _KNOWN.get(file)
    if result is None:
        result = _KNOWN[file] = _infer(file)
    return result


def _infer(file: DataFile) -> Typed:
    leaves = iter(map(file.schema.column, range(len(file.schema))))
    refused: dict[str, str] = {}
    fields = [
        field.with_type(_inferred(field.type, (field.name,), leaves, refused))
        for field in file.schema_arrow
    ]
    return pa.schema(fields), refused


def _inferred(
    dtype: pa.DataType,
    path: tuple[str, ...],
    leaves: Iterator[Any],
    refused: dict[str, str],
) -> pa.DataType:
    """Spark's type for one column, whose leaves of Parquet come next."""
    if isinstance(dtype, pa.BaseExtensionType):
        inner = _inferred(dtype.storage_type, path, leaves, refused)
        return dtype if inner.num_fields else inner
    if pa.types.is_dictionary(dtype):
        return _inferred(dtype.value_type, path, leaves, refused)
    fields = [dtype.field(i) for i in range(dtype.num_fields)]
    if fields:
        notes = refused if pa.types.is_struct(dtype) else {}
        types = [_inferred(f.type, (*path, f.name), leaves, notes) for f in fields]
        match types:
            case _ if pa.types.is_struct(dtype):
                typed = zip(fields, types, strict=True)
                return pa.struct([field.with_type(t) for field, t in typed])
            case [entry] if pa.types.is_map(dtype):
                return pa.map_(entry.field(0).type, entry.field(1).type)
            case [item]:
                return pa.list_(item)
            case _:
                return dtype
    leaf = next(leaves, None)
    result = None if leaf is None else _of_leaf(leaf)
    if result is None:
        what = "" if leaf is None else f" {leaf.physical_type} {leaf.logical_type}"
        refused[stored_name(path)] = f"Spark has no type for Parquet's{what}"
    return dtype if result is None else result


def _of_leaf(leaf: Any) -> pa.DataType | None:
    """Spark's type for a leaf of Parquet, or None if it has none with an order."""
    physical, note = leaf.physical_type, json.loads(leaf.logical_type.to_json())
    match physical, note["Type"]:
        case "INT96", _:
            return INSTANT
        case _, "None":
            return _PLAIN.get(physical)
        case _, "Int":
            by_width = _SIGNED if note["isSigned"] else _UNSIGNED
            return by_width.get(note["bitWidth"])
        case _, "Decimal" if 0 < leaf.precision <= 38:
            return pa.decimal128(leaf.precision, leaf.scale)
        case "INT32", "Date":
            return pa.date32()
        case "INT64", "Timestamp" if note["timeUnit"] == "nanoseconds":
            # Spark fails, or takes the number: spark.sql.legacy.parquet.nanosAsLong.
            return pa.timestamp("ns", "UTC" if note["isAdjustedToUTC"] else None)
        case "INT64", "Timestamp":
            return INSTANT if note["isAdjustedToUTC"] else pa.timestamp("us")
        case "BYTE_ARRAY", "String" | "Enum" | "JSON":
            return pa.string()
        case "BYTE_ARRAY", "BSON":
            return pa.binary()
        case _:
            return None


def has_int96(file: DataFile) -> bool:
    """Whether times are stored as Spark stored them for Hive, without a zone."""
    leaves = map(file.schema.column, range(len(file.schema)))
    return any(leaf.physical_type == "INT96" for leaf in leaves)


def only_outside_spark(file: DataFile) -> list[str]:
    """The columns of a file, with types, that rows written by Spark would not have.

    Other readers would see another type: a number for a duration, or signed numbers.
    """
    leaves = iter(map(file.schema.column, range(len(file.schema))))
    result = []
    for field in file.schema_arrow:
        types = [(one, next(leaves, None)) for one in _leaf_types(field.type)]
        if any(_is_foreign(dtype, leaf) for dtype, leaf in types):
            result.append(f"{field.name} ({field.type})")
    return result


def _leaf_types(dtype: pa.DataType) -> Iterator[pa.DataType]:
    """The types that a type of Arrow is made of."""
    if isinstance(dtype, pa.BaseExtensionType):
        yield from _leaf_types(dtype.storage_type)
    elif pa.types.is_dictionary(dtype):
        yield from _leaf_types(dtype.value_type)
    elif dtype.num_fields:
        for i in range(dtype.num_fields):
            yield from _leaf_types(dtype.field(i).type)
    else:
        yield dtype


def _is_foreign(dtype: pa.DataType, leaf: Any) -> bool:
    if pa.types.is_timestamp(dtype):
        return dtype.unit == "ns" and getattr(leaf, "physical_type", "") != "INT96"
    kinds = ("unsigned_integer", "duration", "time", "float16", "fixed_size_binary")
    return any(getattr(pa.types, f"is_{kind}")(dtype) for kind in kinds)


def check_stored(
    file: DataFile, path: tuple[str, ...], domain: Domain
) -> tuple[str, ...]:
    """Where in a file the column at ``path`` is, if Spark reads what is stored there.

    Whether the values fit the table's type remains to be asked of them.

    ``path`` is the name of the column, and from there to the field of a struct.

    Returns:
        The names as the file has them.  They may differ in capitals, where nothing
        has the very name: so Spark reads them too, unless names are distinguished by
        their capitals.
    """
    _, refused = stored_schema(file)
    name = stored_name(path)
    spelled: list[str] = []
    for part in path:
        alike = _alike(file, tuple(spelled), part)
        named = [f for f in alike if f.name == part] or alike
        if len(named) != 1:
            what = "columns" if len(path) == 1 else "fields"
            raise UnsupportedTypeError(f"the file has {len(named)} {what} {name!r}")
        spelled.append(named[0].name)
        dtype = named[0].type
    reason = refused.get(stored_name(spelled))
    if reason is not None:
        raise UnsupportedTypeError(f"column {name!r}: {reason}")
    stored = domain_of(dtype, name)
    clocks = {stored.nanoseconds, domain.nanoseconds} - {""}
    if _family(stored) != _family(domain) or len(clocks) > 1:
        raise UnsupportedTypeError(
            f"column {name!r} has type {dtype} here, and another in the table"
        )
    metadata = file.metadata.metadata or {}
    if pa.types.is_temporal(dtype) and stored.name != "int" and is_hybrid(metadata):
        raise UnsupportedTypeError(
            f"column {name!r}: the file holds dates of the old hybrid calendar"
        )
    return tuple(spelled)


def lacks(file: DataFile, path: tuple[str, ...]) -> bool:
    """Whether a file has no column, or field of a struct, at ``path`` in any capitals.

    Spark then reads NULL in every row.
    """
    spelled: tuple[str, ...] = ()
    for name in path:
        alike = _alike(file, spelled, name)
        if not alike:
            return True
        if len(alike) > 1 or not pa.types.is_struct(alike[0].type):
            return False
        spelled += (alike[0].name,)
    return False


def _alike(file: DataFile, parent: tuple[str, ...], name: str) -> list[pa.Field]:
    """The columns, or fields of the struct at ``parent``, of a name in any capitals."""
    known = _FIELDS.setdefault(file, {})
    if parent not in known:
        fields = list(stored_schema(file)[0])
        for part in parent:
            dtype = next(field.type for field in fields if field.name == part)
            fields = list(dtype) if pa.types.is_struct(dtype) else []
        known[parent] = {}
        for field in fields:
            known[parent].setdefault(field.name.lower(), []).append(field)
    return known[parent].get(name.lower(), [])


def place_of(
    file: DataFile, path: tuple[str, ...], domain: Domain
) -> tuple[str, ...] | None:
    """Where a file has a column, as ``check_stored`` says; None if it lacks it."""
    return None if lacks(file, path) else check_stored(file, path, domain)


def _family(domain: Domain) -> str:
    """Domains of one family hold the same values, where those fit."""
    match domain.name:
        case "string" | "binary":
            return "bytes"
        case "timestamp" | "timestamp_ntz":
            return "instants"
        case "decimal" | "big_decimal":
            return f"decimals of scale {domain.scale}"
        case other:
            return other


def is_hybrid(metadata: Mapping[bytes, bytes]) -> bool:
    """Whether Spark shifts the dates of the file when it reads them."""
    old = metadata.get(_SPARK_VERSION, b"9") < b"3.1"
    return old or bool(_HYBRID & metadata.keys())
