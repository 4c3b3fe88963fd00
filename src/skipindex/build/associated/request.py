"""Which associated columns a table is to have, and what is built on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from skipindex.build.associated.dimension import Dimension
from skipindex.build.column_requests import Request, check_specs
from skipindex.build.pending_pack import ColumnRequest, Source, request_of
from skipindex.build.wanted import EVERY, SpecLike, specs_of
from skipindex.errors import (
    BuildError,
    PredicateError,
    SkipIndexError,
    TableError,
    UnknownIndexError,
    UnsupportedTypeError,
    first_line,
)
from skipindex.indexes import MinMax, spec_from_json, spec_to_json
from skipindex.indexes.interface import IndexSpec
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from skipindex.storage.blobs import spec_key
from skipindex.storage.file_system.file_info import Clock
from skipindex.storage.file_system.names import is_hidden_copy
from skipindex.table import ColumnInfo, TableState, open_state
from skipindex.table.associated import (
    AssociatedColumn,
    Association,
    JoinedTables,
    associations_of,
    beside,
    fingerprint_of,
    is_stored_name,
    path_from,
)
from skipindex.table.listing import current_files

AssociatedRequest: TypeAlias = Mapping[str, AssociatedColumn]
"""Associated columns that a table is to have, by name."""
_KEYS: Final = frozenset({"int", "string"})
_DEFAULT: Final = "bitmap"
MAX_FILES: Final = 10_000
"""Files of a dimension."""
_LONGEST: Final = 255
"""Characters of a name."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, taken apart.

    Args:
        indexes: of the table's own columns; None is as in the request.
        associated: the associated columns to build.
    """

    indexes: Request | None
    associated: tuple[Association, ...]


def taken_apart(
    table: TableState, indexes: Request | None, given: AssociatedRequest | None
) -> Asked:
    """What is asked of columns of the table, and of associated ones.

    Names in ``indexes`` that no column of the table has may be those of associated
    columns, given or recorded.

    Raises:
        UnsupportedTypeError: a column cannot have an index of that kind.
        UnknownIndexError: the kind does not exist.
    """
    own = {column.own_name.lower() for column in table.columns}
    recorded = {one.name.lower(): one for one in table.associations}
    named = {name.lower() for name in (*(given or {}), *recorded)}
    wanted: dict[str, list[str]] = {}
    rest: dict[str, Any] = {}
    for name, specs in (indexes or {}).items():
        folded = name.lower()
        if name == EVERY or folded in own or folded not in named:
            rest[name] = specs
        else:
            wanted[folded] = _keys_of(specs)
    result = []
    for name, one in (given or {}).items():
        before = recorded.pop(name.lower(), None)
        known = [] if before is None else list(before.indexes)
        keys = wanted.pop(name.lower(), None) or known or _keys_of(_DEFAULT)
        result.append(associated(table, name, one, keys))
    for folded, more in wanted.items():
        mine = recorded[folded]
        keys = list(dict.fromkeys([*mine.indexes, *more]))
        result.append(associated(table, mine.name, definition(table, mine), keys))
    return Asked(None if indexes is None else rest, tuple(result))


def renewed(table: TableState) -> tuple[list[Association], list[str]]:
    """The recorded associated columns as they are to be now, and what cannot be.

    A dimension that has not changed is not read again.
    """
    result, notes = [], []
    joined = JoinedTables(table.location)
    for column in table.associated:
        before = column.association
        assert before is not None
        try:
            if column.domain is not None and not joined.why_void(before):
                result.append(before)
                continue
            again = definition(table, before)
            result.append(associated(table, before.name, again, before.indexes))
        except (SkipIndexError, OSError) as error:
            notes.append(f"column {before.name!r} not associated: {first_line(error)}")
    return result, notes


def definition(table: TableState, one: Association) -> AssociatedColumn:
    """What a recorded associated column was defined by."""
    location = beside(table.location, one.path)
    return AssociatedColumn(one.key, location, one.table_key, one.attribute)


def associated(
    table: TableState, name: str, given: AssociatedColumn, indexes: Sequence[str]
) -> Association:
    """An associated column for the dimension as it is now, which is read once.

    ``indexes`` are specs as JSON.

    Raises:
        BuildError: the dimension is being rewritten, or has too many rows or files,
            or a key twice, or the name cannot be used.
        PredicateError: a column does not exist.
        TableError: there is no such dimension.
        UnsupportedTypeError: a column cannot be joined by, or cannot be indexed.
    """
    _check_name(table, name)
    dimension = open_state(given.location)
    key = _own(table, given.key)
    table_key = _own(dimension, given.table_key)
    attribute = _own(dimension, given.attribute)
    for one, place in ((key, table), (table_key, dimension)):
        if one.domain is None or one.domain.name not in _KEYS:
            raise UnsupportedTypeError(
                f"column {one.own_name!r} of {place.folder!r} is no key to join by "
                "(accepted: integers and strings)"
            )
    for one, place in ((key, table), (table_key, dimension), (attribute, dimension)):
        if one.has_default:
            raise UnsupportedTypeError(
                f"files of {place.folder!r} that lack column {one.own_name!r} have its "
                "default (accepted: a column without DEFAULT)"
            )
    if attribute.domain is None:
        raise UnsupportedTypeError(
            f"cannot index column {attribute.name!r}: {attribute.reason}"
        )
    assert key.domain is not None
    assert table_key.domain is not None
    if key.domain.name != table_key.domain.name:
        raise UnsupportedTypeError(
            f"column {key.own_name!r} has other values than {table_key.own_name!r} of "
            f"{dimension.folder!r} (accepted: two integers, or two strings)"
        )
    if len(dimension) > MAX_FILES:
        raise BuildError(
            f"{dimension.folder!r} has {len(dimension)} files, which every plan lists "
            f"(accepted: up to {MAX_FILES:,})"
        )
    if any(is_hidden_copy(path) for path in dimension.paths):
        raise BuildError(
            f"{dimension.folder!r} is being rewritten (vacuum publishes its files)"
        )
    result = Association(
        name,
        key.own_name,
        key.domain.number,
        path_from(table.location, dimension.location),
        table_key.own_name,
        table_key.domain.number,
        attribute.own_name,
        attribute.domain.number,
        fingerprint_of(dimension.listing),
        tuple(indexes),
    )
    specs = [spec for spec in _specs(result) if not isinstance(spec, MinMax)]
    check_specs(name, attribute.domain, specs)
    Dimension.read(Source(result, result.location(table.location)))
    clock = Clock(table.location.past)
    for file in dimension.listing:
        if not clock.has_passed(file):
            raise BuildError(
                f"{dimension.location.full(file.path)!r} was modified just now, so a "
                "change would leave its time as it is (accepted: a time that has "
                "passed)"
            )
    return result


def requests_of(
    table: TableState, associations: Iterable[Association]
) -> list[ColumnRequest]:
    """The requests for associated columns that ``table`` has."""
    requests = []
    for one in associations:
        column = table.stored(one.stored)
        if column.domain is not None:
            requests.append(request_of(table, column, _buildable(one)))
    return requests


def full_paths(sources: Iterable[Source]) -> list[str]:
    """The files that values are looked up in."""
    places = {source.location for source in sources}
    return [p.full(result.path) for p in places for result in current_files(p)]


def current(table: TableState) -> list[Association]:
    """The associated columns whose dimension is as it was when they were built."""
    joined = JoinedTables(table.location)
    return [one for one in table.associations if not joined.why_void(one)]


def with_associated(
    properties: TableProperties, associations: Iterable[Association]
) -> TableProperties:
    """The properties with these associated columns, beside those of other names."""
    news = {one.name: one.to_json() for one in associations}
    if not news:
        return properties
    folded = {name.lower() for name in news}
    others = {
        name: record
        for name, record in (properties.associated or {}).items()
        if name.lower() not in folded
    }
    return replace(properties, associated={**others, **news})


def without_associated(
    properties: TableProperties,
    names: Collection[str] | None,
    kinds: Collection[str] | None,
) -> TableProperties:
    """The properties once indexes of associated columns were dropped; None is all."""
    left = {}
    for one in associations_of(properties.associated):
        if names is not None and one.stored not in names:
            left[one.name] = one.to_json()
        elif kinds is not None:
            rest = [s for s in one.to_json()["indexes"] if s.get("kind") not in kinds]
            left[one.name] = one.to_json() | {"indexes": rest}
    return replace(properties, associated=left or None)


def dead_names(
    manifest: Manifest, properties: TableProperties, table: TableState
) -> set[str]:
    """Names under which something is built for what the table no longer associates."""
    built = {blob.meta.column for pack in manifest.packs for blob in pack.blobs}
    alive = {one.stored for one in associations_of(properties.associated)}
    own = {column.name for column in table.leaves}
    return set(filter(is_stored_name, {*manifest.stats, *built})) - alive - own


def without_names(manifest: Manifest, names: Collection[str]) -> Manifest:
    """The manifest without what is built under these names."""
    if not names:
        return manifest
    blobs = {
        (blob.meta.column, spec_key(blob.meta.spec))
        for pack in manifest.packs
        for blob in pack.blobs
        if blob.meta.column in names
    }
    return manifest.without_blobs(blobs).without_stats(set(names))


def _check_name(table: TableState, name: str) -> None:
    if not 0 < len(name) <= _LONGEST or name == EVERY:
        raise BuildError(f"a column cannot be named {name[:_LONGEST]!r}")
    if name.lower() in {column.own_name.lower() for column in table.columns}:
        raise BuildError(
            f"{table.folder!r} has a column {name!r}, so none can be associated under "
            "that name (accepted: another name)"
        )


def _own(table: TableState, name: str) -> ColumnInfo:
    """A column of a table's files."""
    try:
        column = table.resolve(name, case_sensitive=True)
    except PredicateError:
        column = table.resolve(name)
    if column.is_partition:
        raise TableError(
            f"column {name!r} of {table.folder!r} is no column of its files that can "
            "be joined by or looked up"
        )
    if not table.is_alone(column):
        raise TableError(
            f"{table.folder!r} has columns that differ from {name!r} in capitals alone"
        )
    return column


def _keys_of(wanted: SpecLike | Sequence[SpecLike] | None) -> list[str]:
    """Specs as JSON; None is the statistics alone."""
    specs = specs_of(MinMax() if wanted is None else wanted)
    return [spec_key(spec_to_json(spec)) for spec in specs]


def _specs(one: Association) -> list[IndexSpec | MinMax]:
    """The specs of a column, without those that this installation does not know."""
    result = []
    for spec in one.to_json()["indexes"]:
        try:
            result.append(spec_from_json(spec))
        except (UnknownIndexError, TypeError, ValueError, AttributeError):
            continue
    return result


def _buildable(one: Association) -> list[IndexSpec]:
    return [spec for spec in _specs(one) if not isinstance(spec, MinMax)]
