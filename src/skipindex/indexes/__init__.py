"""Indexes of one column of one file: specs, building and probing.

An index answers one atom and never walks a predicate tree.  ``kinds``
has the kinds, one module each.
"""

from __future__ import annotations

from skipindex.indexes.encoding.column import EncodedColumn
from skipindex.indexes.interface import Index, IndexSpec, IndexType, MinMax
from skipindex.indexes.registry import (
    index_type,
    index_types,
    parse_spec,
    spec_from_json,
    spec_to_json,
)
from skipindex.storage.parts import Parts, ReadCount

__all__ = [
    "EncodedColumn",
    "Index",
    "IndexSpec",
    "IndexType",
    "MinMax",
    "Parts",
    "ReadCount",
    "index_type",
    "index_types",
    "parse_spec",
    "spec_from_json",
    "spec_to_json",
]
