"""Attributes of joined tables to cluster by, looked up while rows are written."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skipindex.errors import LayoutError
from skipindex.storage.file_system.location import Location


@dataclass(frozen=True, slots=True)
class JoinedAttribute:
    """An attribute of a joined table to cluster by; ``skipindex.via`` makes it.

    Args:
        key: the table's column that the join compares.
        location: the joined table's folder.
        table_key: its column that the join compares.
        attribute: its column that is looked up.
    """

    key: str
    location: Location
    table_key: str
    attribute: str


Attributes = Mapping[str, JoinedAttribute]
"""Attributes by the names that a layout has for them."""


def named(
    columns: Sequence[str | JoinedAttribute],
) -> tuple[tuple[str, ...], dict[str, JoinedAttribute]]:
    """The names of what a layout clusters by, and of which the attributes are."""
    if isinstance(columns, str):
        raise LayoutError(f"cannot cluster by the string {columns!r} (expected a list)")
    names: list[str] = []
    attributes: dict[str, JoinedAttribute] = {}
    for one in columns:
        if isinstance(one, str):
            names.append(one)
            continue
        name = f"{one.attribute} via {one.key}"
        if attributes.setdefault(name, one) != one:
            raise LayoutError(
                f"column {one.attribute!r} of two tables is looked up by {one.key!r} "
                "(accepted: one of them)"
            )
        names.append(name)
    return tuple(names), attributes


def to_json(attributes: Attributes, table: Location) -> dict[str, dict[str, str]]:
    """The attributes as the property ``layout`` has them, under ``via``."""
    return {
        name: {
            "key": one.key,
            "table": _path_from(table, one.location),
            "table_key": one.table_key,
            "attribute": one.attribute,
        }
        for name, one in attributes.items()
    }


def from_json(layout: Mapping[str, Any], table: Location) -> dict[str, JoinedAttribute]:
    """The inverse of ``to_json``; ``log.properties`` has checked the layout."""
    return {
        name: JoinedAttribute(
            one["key"], _beside(table, one["table"]), one["table_key"], one["attribute"]
        )
        for name, one in layout.get("via", {}).items()
    }


def _beside(table: Location, path: str) -> Location:
    """The folder that a relative path leads to from the table's folder."""
    root = posixpath.normpath(posixpath.join(table.root, path))
    uri = table.uri.replace(table.root, root, 1)
    return replace(table, root=root, uri=uri, sidecar=None)


def _path_from(table: Location, joined: Location) -> str:
    """The inverse of ``_beside``."""
    path = posixpath.relpath(joined.root, table.root)
    if (table.is_local, _beside(table, path).uri) != (joined.is_local, joined.uri):
        raise LayoutError(
            f"cannot cluster by a column of {joined.full('')!r}, which is on another "
            f"file system than {table.full('')!r} (accepted: tables on the same one)"
        )
    return path
