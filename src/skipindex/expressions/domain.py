"""The domain of a column: its values as ordered integers or byte strings.

Statistics, bitmaps and literals all live in the domain, so that one comparison,
of two ``int`` or of two ``bytes``, decides every type as Spark orders it:

=====================  =======  ==================================================
column                 values   mapping
=====================  =======  ==================================================
int8 .. int64          int      the number (unsigned ones below 64 bits too)
uint64                 bytes    Spark makes it decimal(20, 0)
boolean                int      0, 1
date                   int      days since 1970-01-01
timestamp              int      microseconds since the epoch, UTC
timestamp_ntz          int      microseconds of the local time
timestamp in ns        int      the nanoseconds: a bigint to Spark, a time to others
decimal(p <= 18, s)    int      the unscaled number
decimal(p > 18, s)     bytes    16 bytes, big-endian, sign bit flipped
float, double          int      the bits of the double, made monotone; -0.0 is 0.0,
                                every NaN is one value above infinity
string, binary         bytes    UTF-8, or the bytes themselves, unsigned order
=====================  =======  ==================================================

A ``Domain`` is written beside every index.  An index of another domain (the
column's type changed) answers nothing.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipindex.errors import UnsupportedTypeError
from skipindex.expressions.atoms import Value

ACCEPTED: Final = (
    "integers, float, double, decimal, date, timestamp in ms, us or ns, string, "
    "binary, boolean"
)
INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1
"""The ends of every domain of integers."""
EPOCH: Final = date(1970, 1, 1)
EPOCH_UTC: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_WALL: Final = datetime(1970, 1, 1)  # noqa: DTZ001 (a local time has no zone)
_SIGN_128: Final = 1 << 127
_LOW_63: Final = 0x7FFF_FFFF_FFFF_FFFF
NAN: Final = 0x7FF8_0000_0000_0000
"""The value of NaN in the domain of a float column, greater than infinity's."""

_DTYPES: Final = {
    "int": pa.int64(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "float": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
}
_TEXTS: Final = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_BYTES: Final = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)


@dataclass(frozen=True, slots=True)
class Domain:
    """How one column's values are ordered; ``name`` is stable and stored on disk.

    Args:
        name: ``int``, ``bool``, ``date``, ``timestamp``, ``timestamp_ntz``,
            ``float``, ``decimal``, ``big_decimal``, ``string`` or ``binary``.
        scale: digits after the point, for the two decimals; otherwise 0.
        bits: width of the type that Spark gives the column, for ``int`` (twice
            that of an unsigned one) and ``float``; otherwise 0.
        digits: precision of the column's own type, for decimals; otherwise 0.
        nanoseconds: of an ``int`` that readers other than Spark take for a time,
            ``timestamp`` or ``timestamp_ntz``; otherwise empty.  What is stored is
            the same as of any ``int``.
    """

    name: str
    scale: int = 0
    bits: int = 0
    digits: int = 0
    nanoseconds: str = ""

    @property
    def number(self) -> Domain:
        """The same domain where the numbers are no times to any reader."""
        return replace(self, nanoseconds="") if self.nanoseconds else self

    @property
    def is_bytes(self) -> bool:
        """Whether values are ``bytes``; otherwise they are ``int``."""
        return self.name in {"string", "binary", "big_decimal"}

    @property
    def tag(self) -> str:
        """The text that stands for this domain on disk.

        Widths are omitted: widening int to bigint, or float to double, keeps
        every stored value true.
        """
        return f"{self.name}:{self.scale}" if "decimal" in self.name else self.name

    @property
    def span(self) -> tuple[Value, Value] | None:
        """The least value that fits the type, and the first that no longer does.

        None where every value of the domain fits.
        """
        if self.name == "int" and 0 < self.bits < 64:
            return -(1 << (self.bits - 1)), 1 << (self.bits - 1)
        if self.name == "decimal":
            return 1 - 10**self.digits, 10**self.digits
        if self.name == "big_decimal":
            end = 10**self.digits
            return big_decimal_key(1 - end), big_decimal_key(end)
        return None

    @property
    def dtype(self) -> pa.DataType:
        """An Arrow type of the domain: of a column that a file lacks."""
        if "decimal" in self.name:
            return pa.decimal128(18 if self.name == "decimal" else 38, self.scale)
        return _DTYPES[self.name]

    def encode(self, values: pa.Array) -> pa.Array:
        """``values`` as int64 or large_binary, in order, NULLs where they were."""
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        match self.name:
            case "string" | "binary":
                return values.cast(pa.large_binary())
            case "float":
                return _float_keys(values)
            case "decimal":
                return _unscaled(values)
            case "big_decimal":
                return _sortable_decimals(values)
            case "date":
                return values.cast(pa.int32()).cast(pa.int64())
            case "timestamp" | "timestamp_ntz":
                zone = values.type.tz
                return values.cast(pa.timestamp("us", zone)).cast(pa.int64())
            case _:
                return values.cast(pa.int64())

    def show(self, value: Value) -> str:
        """``value`` as a person would write it, for explanations."""
        if isinstance(value, bytes):
            if self.name == "string":
                return repr(value.decode("utf-8", "backslashreplace"))
            if self.name == "big_decimal":
                return _decimal_text(big_decimal_from_key(value), self.scale)
            return f"X'{value.hex().upper()}'"
        try:
            match self.name:
                case "bool":
                    return str(bool(value)).lower()
                case "decimal":
                    return _decimal_text(value, self.scale)
                case "float":
                    return repr(float_from_key(value))
                case "date":
                    return str(EPOCH + timedelta(days=value))
                case "timestamp":
                    return str(EPOCH_UTC + timedelta(microseconds=value))
                case "timestamp_ntz":
                    return str(_EPOCH_WALL + timedelta(microseconds=value))
                case "int" if self.nanoseconds:
                    return _nanoseconds_text(value, self.nanoseconds)
        except OverflowError:  # Spark's years go beyond Python's 9999
            pass
        return str(value)


def domain_of(dtype: pa.DataType, column: str = "?") -> Domain:
    """The domain of a column of an Arrow type.

    INT96 timestamps must come as ``timestamp("us", "UTC")``.

    Raises:
        UnsupportedTypeError: the type has no order that Spark would agree with.
    """
    types = pa.types
    if types.is_dictionary(dtype):
        return domain_of(dtype.value_type, column)
    if types.is_boolean(dtype):
        return Domain("bool")
    if types.is_uint64(dtype):
        return Domain("big_decimal", digits=20)
    if types.is_integer(dtype):
        doubled = types.is_unsigned_integer(dtype)
        return Domain("int", bits=dtype.bit_width << doubled)
    if types.is_float32(dtype) or types.is_float64(dtype):
        return Domain("float", bits=dtype.bit_width)
    if types.is_decimal(dtype) and dtype.precision <= 38:
        name = "decimal" if dtype.precision <= 18 else "big_decimal"
        return Domain(name, scale=dtype.scale, digits=dtype.precision)
    if types.is_date32(dtype):
        return Domain("date")
    if types.is_timestamp(dtype) and dtype.unit in {"ms", "us"}:
        return Domain("timestamp" if dtype.tz else "timestamp_ntz")
    if types.is_timestamp(dtype) and dtype.unit == "ns":
        return Domain(
            "int", bits=64, nanoseconds="timestamp" if dtype.tz else "timestamp_ntz"
        )
    if any(is_kind(dtype) for is_kind in _TEXTS):
        return Domain("string")
    if any(is_kind(dtype) for is_kind in _BYTES):
        return Domain("binary")
    raise UnsupportedTypeError(
        f"cannot index column {column!r}: type {dtype} cannot be indexed (accepted: "
        f"{ACCEPTED})"
    )


def float_key(value: float) -> int:
    """Monotone: ``a < b`` as Spark orders doubles iff ``key(a) < key(b)``."""
    if value != value:  # noqa: PLR0124 (the definition of NaN)
        return NAN
    bits: int = struct.unpack("<q", struct.pack("<d", value + 0.0))[0]
    return bits if bits >= 0 else bits ^ _LOW_63


def float_from_key(key: int) -> float:
    """The inverse of ``float_key``."""
    bits = key if key >= 0 else key ^ _LOW_63
    value: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return value


def big_decimal_key(unscaled: int) -> bytes:
    """The domain value of a decimal of more than 18 digits."""
    return (unscaled + _SIGN_128).to_bytes(16, "big")


def big_decimal_from_key(key: bytes) -> int:
    """The inverse of ``big_decimal_key``."""
    return int.from_bytes(key, "big") - _SIGN_128


def _nanoseconds_text(value: int, name: str) -> str:
    seconds, fraction = divmod(value, 1_000_000_000)
    moment = _EPOCH_WALL + timedelta(seconds=seconds)
    tail = f".{fraction:09}".rstrip("0") if fraction else ""
    return f"{moment}{tail}{'+00:00' if name == 'timestamp' else ''}"


def _decimal_text(unscaled: int, scale: int) -> str:
    digits = tuple(map(int, str(abs(unscaled))))
    return f"{Decimal((int(unscaled < 0), digits, -scale)):f}"


def _float_keys(values: pa.Array) -> pa.Array:
    wide = values.cast(pa.float64())
    doubles = wide.fill_null(0.0).to_numpy() + 0.0  # -0.0 + 0.0 is 0.0
    nan = np.isnan(doubles)
    keys = doubles.view(np.int64)
    if nan.any():
        keys[nan] = NAN
    keys ^= (keys >> 63) & _LOW_63
    return pa.array(keys, mask=_nulls(wide))


def _nulls(values: pa.Array) -> np.ndarray | None:
    if not values.null_count:
        return None
    mask: np.ndarray = values.is_null().to_numpy(zero_copy_only=False)
    return mask


_WORD_DIGITS: Final = 18
"""Every decimal of so many digits fits in 64 bits."""


def _decimal_words(values: pa.Array) -> np.ndarray:
    """The two little-endian 64-bit words of every decimal128, as ``[n, 2]``."""
    wide = values
    if pa.types.is_uint64(values.type):
        wide = values.cast(pa.decimal128(20, 0))
    elif not pa.types.is_decimal128(values.type):
        wide = values.cast(pa.decimal128(38, values.type.scale))
    words = np.frombuffer(wide.buffers()[1], np.int64).reshape(-1, 2)
    return words[wide.offset : wide.offset + len(wide)]


def _unscaled(values: pa.Array) -> pa.Array:
    if not len(values):
        return pa.array([], pa.int64())
    words = _decimal_words(values)
    # Up to 18 digits fit in the low word, whose sign is then the number's.
    low = np.ascontiguousarray(words[:, 0])
    if pa.types.is_uint64(values.type) or values.type.precision > _WORD_DIGITS:
        # What does not fit is beyond all values that do, on its own side.
        high = words[:, 1]
        low = np.where(high == low >> 63, low, np.where(high < 0, INT64_MIN, INT64_MAX))
    return pa.array(low, mask=_nulls(values))


def _sortable_decimals(values: pa.Array) -> pa.Array:
    if not len(values):
        return pa.array([], pa.large_binary())
    words = _decimal_words(values)
    keys = np.empty((len(words), 2), ">u8")
    keys[:, 0] = words[:, 1].view(np.uint64) ^ np.uint64(1 << 63)
    keys[:, 1] = words[:, 0].view(np.uint64)
    offsets = pa.py_buffer(np.arange(len(words) + 1, dtype=np.int64) * 16)
    flat = pa.Array.from_buffers(
        pa.large_binary(), len(words), [None, offsets, pa.py_buffer(keys.tobytes())]
    )
    mask = _nulls(values)
    if mask is None:
        return flat
    return pc.if_else(pa.array(mask), pa.scalar(None, pa.large_binary()), flat)
