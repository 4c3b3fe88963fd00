"""Attributes of joined tables to cluster by: looked up for a write, and not stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skipindex.errors import LayoutError, TableError
from skipindex.storage.file_system.location import Location
from skipindex.table.associated import AssociatedColumn, beside, path_from

Attributes = Mapping[str, AssociatedColumn]
"""Associated columns by the names that a layout has for them."""


def named(
    columns: Sequence[str | AssociatedColumn],
) -> tuple[tuple[str, ...], dict[str, AssociatedColumn]]:
    """The names of what a layout clusters by, and of which the attributes are."""
    if isinstance(columns, str):
        raise LayoutError(f"cannot cluster by the string {columns!r} (expected a list)")
    names: list[str] = []
    attributes: dict[str, AssociatedColumn] = {}
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
    try:
        return {
            name: {
                "key": one.key,
                "table": path_from(table, one.location),
                "table_key": one.table_key,
                "attribute": one.attribute,
            }
            for name, one in attributes.items()
        }
    except TableError as error:
        raise LayoutError(f"cannot cluster by a column of it: {error}") from error


def from_json(
    layout: Mapping[str, Any], table: Location
) -> dict[str, AssociatedColumn]:
    """The inverse of ``to_json``; ``log.properties`` has checked the layout."""
    return {
        name: AssociatedColumn(
            one["key"], beside(table, one["table"]), one["table_key"], one["attribute"]
        )
        for name, one in layout.get("via", {}).items()
    }
