"""A column cut at chosen values, in the domain that predicates are bound in.

A row is on the upper side of a step exactly if Spark's ``column >= value`` is TRUE,
NaN, ``-0.0``, decimals and UTF-8 included.  So the steps at a query's literals never
separate rows that the query treats alike.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipindex.errors import LayoutError, UnsupportedTypeError
from skipindex.expressions.atoms import Value
from skipindex.expressions.domain import Domain, domain_of
from skipindex.layout.ordering import Splits, number_ranges

Codes: TypeAlias = npt.NDArray[np.uint16]

MAX_STEPS: Final = (1 << 16) - 2
"""The codes fit 16 bits."""

_COUNTED: Final = frozenset({"date", "timestamp", "timestamp_ntz"})
"""Domains whose values may come as days or microseconds since 1970."""


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Codes values by how many steps they reach, so codes never descend.

    NULL has the code 0, which no value has.
    """

    column: str
    domain: Domain
    values: tuple[Value, ...]
    """Ascending and distinct."""

    @classmethod
    def of(cls, column: str, domain: Domain, values: Iterable[Value]) -> Steps:
        """The steps at these values, in any order, at most ``MAX_STEPS``."""
        return cls(column, domain, tuple(sorted(set(values))[:MAX_STEPS]))

    @property
    def n_codes(self) -> int:
        """How many codes there are, from 0 on."""
        return len(self.values) + 2

    def code_of(self, value: Value) -> int:
        """The code of one value."""
        return bisect_right(self.values, value) + 1

    def codes(self, values: pa.Array | pa.ChunkedArray) -> Codes:
        """The code of every value."""
        array = (
            values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        )
        splits = self.values if self.domain.is_bytes else np.array(self.values, "i8")
        result = number_ranges(cast("Splits", splits), self._keys(array), lowest=1)
        return result.astype(np.uint16)

    def _keys(self, array: pa.Array) -> pa.Array:
        """The values in the domain."""
        dtype = array.type
        if pa.types.is_integer(dtype) and self.domain.name in _COUNTED:
            return array.cast(pa.int64())
        try:
            result = domain_of(dtype, self.column).tag
        except UnsupportedTypeError:
            result = ""
        if result != self.domain.tag:
            raise LayoutError(
                f"cannot lay out by column {self.column!r}: the layout was fitted to "
                f"{self.domain.tag}, the values are {dtype}"
            )
        return self.domain.encode(array)

    def to_json(self) -> dict[str, Any]:
        """The steps as plain values; bytes as hexadecimal digits."""
        return {
            "column": self.column,
            "domain": {
                "name": self.domain.name,
                "scale": self.domain.scale,
                "bits": self.domain.bits,
                "digits": self.domain.digits,
            },
            "values": [v.hex() if isinstance(v, bytes) else v for v in self.values],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Steps:
        """The steps that ``to_json`` wrote."""
        domain = Domain(**data["domain"])
        values = (bytes.fromhex(v) if domain.is_bytes else v for v in data["values"])
        return cls(data["column"], domain, tuple(values))
