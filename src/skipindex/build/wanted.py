"""The indexes that a table should have, named by the user or chosen.

A build records in the table's properties its request (``indexes``), or what
the advisor chose (``choice``).  A refresh builds both, and the kinds that are present,
on new and changed files.  The record outlives the files: a table that is overwritten
every day has no index to tell by.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from skipindex.errors import UnknownIndexError, UnsupportedTypeError
from skipindex.indexes import (
    MinMax,
    index_type,
    parse_spec,
    spec_from_json,
    spec_to_json,
)
from skipindex.indexes.file_map import FILE_MAP
from skipindex.indexes.interface import IndexSpec
from skipindex.log.properties import TableProperties
from skipindex.storage.blobs import spec_key
from skipindex.table import ColumnInfo, TableState

EVERY: Final = "*"
"""In a request, every column that has an order and is not named in it."""

Spec: TypeAlias = IndexSpec | MinMax
SpecLike: TypeAlias = str | Spec
"""A spec, or the name of a kind with its defaults."""
SpecsByColumn: TypeAlias = dict[str, list[Spec] | None]
"""Wanted specs by column, or ``*``; None is not even statistics."""
SpecKey: TypeAlias = tuple[str, str]
"""A column and a spec as text."""


def asked_for(table: TableState) -> SpecsByColumn:
    """The requested indexes; without a record, the indexes that are present."""
    record = table.snapshot.properties.indexes
    if isinstance(record, Mapping):
        return _read(record)
    chosen = spec_keys(chosen_for(table))
    result: SpecsByColumn = {}
    for column, spec in _present(table):
        if (column, _key(spec)) not in chosen:
            _add(result, column, [spec])
    return result


def chosen_for(table: TableState) -> SpecsByColumn:
    """What the advisor chose."""
    record = (table.snapshot.properties.choice or {}).get("indexes")
    return _read(record) if isinstance(record, Mapping) else {}


def wanted_of(table: TableState) -> SpecsByColumn:
    """The indexes that a table is to have, on columns that can have them.

    Statistics of every other column that has an order are wanted too, unless ``*``
    says None.
    """
    result = asked_for(table)
    for name, specs in chosen_for(table).items():
        _add(result, name, specs or [])
    for name, spec in _present(table):
        _add(result, name, [spec])
    if EVERY in result and result[EVERY] is None:
        names = {column.name for column in indexable_columns(table)}
        for name in table.snapshot.manifest.stats.keys() & names:
            result.setdefault(name, [])
    return _possible(result, table)


def asked_before(properties: TableProperties, table: TableState) -> SpecsByColumn:
    """The requested indexes of a table, on columns of the one that replaces it."""
    record = properties.indexes
    return _possible(_read(record), table) if isinstance(record, Mapping) else {}


def _possible(request: SpecsByColumn, table: TableState) -> SpecsByColumn:
    """The part of a request that the columns of a table can have."""
    domains = {column.name: column.domain for column in indexable_columns(table)}
    return {
        name: specs and [s for s in specs if name == EVERY or fits(s, domains[name])]
        for name, specs in request.items()
        if name == EVERY or name in domains
    }


def has_any(table: TableState) -> bool:
    """Whether anything was ever built or requested, and not dropped since."""
    properties, manifest = table.snapshot.properties, table.snapshot.manifest
    was_asked = properties.indexes is not None or properties.choice is not None
    return bool(was_asked or manifest.packs or manifest.stats)


def indexable_columns(table: TableState) -> list[ColumnInfo]:
    """The columns that can have an index."""
    return [
        c
        for c in table.leaves
        if c.domain is not None and not c.reason and not c.is_partition
    ]


def restrictions(table: TableState) -> SpecsByColumn:
    """The columns that were to have no statistics, as a request says it."""
    known = {EVERY, *(column.name for column in indexable_columns(table))}
    asked = asked_for(table).items()
    return {name: None for name, specs in asked if specs is None and name in known}


def with_asked(table: TableState, request: Mapping[str, Any]) -> dict[str, Any]:
    """The property that says what was requested before, and ``request`` too."""
    result = asked_for(table)
    for name, wanted in request.items():
        key = name if name == EVERY else table.find(name).name
        if wanted is None:
            result[key] = result.get(key) or None
            continue
        _add(result, key, specs_of(wanted))
    return to_json(result)


def specs_of(wanted: SpecLike | Sequence[SpecLike]) -> list[Spec]:
    """The specs that a request names for one column."""
    if isinstance(wanted, str) or not isinstance(wanted, Sequence):
        return [parse_spec(wanted)]
    return [parse_spec(one) for one in wanted]


def without_asked(
    properties: TableProperties,
    columns: Collection[str] | None,
    kinds: Collection[str] | None,
) -> TableProperties:
    """The properties once indexes were dropped; None stands for all of them.

    Later builds leave out what was dropped, also where ``*`` asks for it.
    """
    left = replace(properties, indexes=None, choice=None)
    if columns is None and kinds is None:
        return left
    record = properties.indexes
    asked = _read(record) if isinstance(record, Mapping) else {}
    has_statistics = kinds is not None and "minmax" not in kinds
    names = [*asked, *([] if has_statistics else [EVERY])]
    for name in names if columns is None else columns:
        specs = asked.get(name, asked.get(EVERY, []))
        rest = [s for s in specs or () if kinds is not None and s.kind not in kinds]
        is_none = specs is None or not has_statistics
        asked[name] = None if is_none and not rest else rest
    return replace(left, indexes=to_json(asked)) if asked else left


def to_json(request: Mapping[str, Sequence[Spec] | None]) -> dict[str, Any]:
    """A request as the property ``indexes`` has it."""
    return {
        name: None if specs is None else [spec_to_json(spec) for spec in specs]
        for name, specs in request.items()
    }


def spec_keys(request: SpecsByColumn) -> set[SpecKey]:
    """The columns and specs of a request, without ``*``."""
    return {(name, _key(s)) for name, specs in request.items() for s in specs or ()}


def _key(spec: Spec) -> str:
    return spec_key(spec_to_json(spec))


def _read(record: Mapping[str, Any]) -> SpecsByColumn:
    """The request in a property; entries that cannot be read are omitted."""
    result: SpecsByColumn = {}
    for name, specs in record.items():
        if specs is None:
            result[name] = None
        elif isinstance(specs, Sequence) and not isinstance(specs, str):
            result[name] = []
            for spec in specs:
                try:
                    _add(result, name, [spec_from_json(spec)])
                except (UnknownIndexError, TypeError, ValueError, AttributeError):
                    continue  # of another version of this library, or not installed
    return result


def _add(request: SpecsByColumn, name: str, specs: Sequence[Spec]) -> None:
    mine = request.get(name) or []
    request[name] = [*mine, *(spec for spec in specs if spec not in mine)]


def _present(table: TableState) -> Iterator[tuple[str, Spec]]:
    """The indexes that some file of the table has."""
    for pack in table.snapshot.manifest.packs:
        for blob in pack.blobs:
            if blob.meta.kind == FILE_MAP:
                continue
            try:
                yield blob.meta.column, spec_from_json(blob.meta.spec)
            except UnknownIndexError:  # of a package that is not installed here
                continue


def fits(spec: Spec, domain: Any) -> bool:
    """Whether a column can have that index; its type may have changed."""
    if isinstance(spec, MinMax):
        return True
    try:
        index_type(spec.kind).check(domain)
    except (UnsupportedTypeError, UnknownIndexError):
        return False
    return True
