"""Conditions on a side of a join, judged by indexes of the other side's rows.

The fact may have attributes of the dimension as associated columns.  The dimension has
every key once, so a row of the join has the attributes that the fact's indexes know,
and the dimension's conditions are TRUE of them.  That holds only if Spark reads the
very files that were looked up, under the same types.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from skipindex.errors import PlanError
from skipindex.expressions import Predicate, Reference
from skipindex.planner.binding.binder import Binder
from skipindex.planner.bound_predicate import unknowns
from skipindex.planner.sql.parser import parse
from skipindex.spark.catalyst.conditions import conditions
from skipindex.spark.pruning.protocol import Dimension, Scan
from skipindex.spark.settings import check_reading
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.table import ColumnInfo, TableState, declared_schema
from skipindex.table.associated import fingerprint_of
from skipindex.table.listing import current_files
from skipindex.table.schema import Columns, columns_of

_ATTRIBUTE: Final = "org.apache.spark.sql.catalyst.expressions.AttributeReference"


@dataclass(frozen=True, slots=True)
class JoinedConditions:
    """Conditions of a dimension as those of associated columns of the fact.

    Args:
        predicate: TRUE of every row of the fact that the join has.
        text: the same for people.
        zone: the time zone that it is for; None if it does not depend on one.
        are_all: whether every condition is judged.
    """

    predicate: Predicate
    text: str
    zone: str | None
    are_all: bool


def joined_conditions(
    fact: TableState, column: str, asked: Dimension, zone: str | None = None
) -> JoinedConditions | None:
    """What the fact's indexes can judge of a dimension; None if it is nothing.

    ``fact`` has the types of the scan.

    Raises:
        SkipIndexError: the dimension cannot be listed.
        OSError: the same.
    """
    names = dict(_known(fact, column, asked))
    if not names:
        return None
    kinds = asked.data_types
    judged = {stored: kinds[attribute] for attribute, stored in names.items()}
    written = _renamed(json.loads(asked.conjuncts), names)
    found = conditions(json.dumps(written), judged, zone)
    predicate = parse(found.text)
    binder = Binder(fact.stored, found.zone)
    bound = binder.bind(predicate)
    if not binder.seen:
        return None
    shown = found.text
    for attribute, stored in names.items():
        shown = shown.replace(str(Reference((stored,))), str(Reference((attribute,))))
    are_all = not found.lists and not list(unknowns(bound))
    return JoinedConditions(predicate, shown, found.zone, are_all)


def _known(
    fact: TableState, column: str, asked: Dimension
) -> Iterator[tuple[str, str]]:
    """Attributes that the fact knows as Spark reads them, each with what is built."""
    candidates = [info for info in fact.associated if _is_of(info, fact, column, asked)]
    typed = _typed(asked)
    if not candidates or typed is None:
        return
    location = asked.location()
    mine = [
        (one, info)
        for info in candidates
        if (one := info.association) is not None
        and _is_same_place(one.location(fact.location), location)
        and _has(typed, one.table_key, one.table_key_domain)
        and _has(typed, one.attribute, one.domain)
    ]
    if not mine:
        return
    files = current_files(location)
    if not _are_read(files, asked):
        return
    fingerprint = fingerprint_of(files)
    for one, info in mine:
        if one.fingerprint == fingerprint:
            yield one.attribute, info.name


def _is_of(info: ColumnInfo, fact: TableState, column: str, asked: Dimension) -> bool:
    """Whether the associated column is looked up by these two columns."""
    one = info.association
    return (
        one is not None
        and info.domain is not None
        and one.key == fact.resolve(column).own_name
        and one.table_key == asked.key
        and bool(fact.blobs(info))
    )


def _typed(scan: Scan) -> Columns | None:
    """The dimension's columns as the scan types them; None if values differ."""
    try:
        check_reading({}, scan.reader, scan.options)
    except PlanError:
        return None
    found = declared_schema(scan.data)
    if found is None:
        return None
    schema, refused = found
    taken = {name.lower() for name in scan.partitions_types}
    own = pa.schema([field for field in schema if field.name.lower() not in taken])
    return Columns(columns_of(own, refused, []), scan.root)


def _has(columns: Columns, name: str, domain: Any) -> bool:
    info = columns.by_name.get(name)
    if info is None or info.has_default:  # no file was read with the default
        return False
    return columns.is_alone(info) and info.domain == domain


def _is_same_place(one: Location, other: Location) -> bool:
    return (one.root, one.is_local) == (other.root, other.is_local)


def _are_read(files: Sequence[FileInfo], asked: Dimension) -> bool:
    """Whether these are the files that Spark has listed, with its times."""
    now = sorted((file.path, file.size, file.mtime // 1_000_000) for file in files)
    listed = zip(asked.paths, asked.sizes, asked.millis, strict=True)
    return sorted(listed) == now


def _renamed(node: Any, names: Mapping[str, str]) -> Any:
    """Expressions in JSON with other names of columns; those of no other get none."""
    if isinstance(node, list):
        return [_renamed(one, names) for one in node]
    if not isinstance(node, dict):
        return node
    found = {part: _renamed(one, names) for part, one in node.items()}
    if node.get("c") == _ATTRIBUTE:
        name, *held = node["x"]
        found["x"] = [names.get(name, ""), *held]
    return found
