"""The user's request as columns and specs that can be built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from skipindex.build.pending_pack import ColumnRequest, request_of
from skipindex.build.wanted import (
    EVERY,
    SpecLike,
    fits,
    indexable_columns,
    specs_of,
)
from skipindex.errors import UnsupportedTypeError
from skipindex.expressions.domain import ACCEPTED, Domain
from skipindex.indexes import MinMax, index_type, spec_to_json
from skipindex.indexes.interface import IndexSpec
from skipindex.storage.blobs import spec_key
from skipindex.table import ColumnInfo, TableState

Request: TypeAlias = Mapping[str, SpecLike | Sequence[SpecLike] | None]
"""What to build by column, or ``*`` for all others; None is not even statistics."""


def requested(
    table: TableState, indexes: Request
) -> list[tuple[ColumnInfo, SpecLike | Sequence[SpecLike]]]:
    """The columns of a request, and what each is to have.

    Columns that are not named have what ``*`` says, or else statistics; None, for one
    column or ``*``, is not even these.
    """
    named = {name: wanted for name, wanted in indexes.items() if name != EVERY}
    result = [(table.find(name), wanted) for name, wanted in named.items()]
    taken = {column.name for column, _ in result}
    rest = [column for column in indexable_columns(table) if column.name not in taken]
    every = indexes.get(EVERY, MinMax())
    result += [(column, every) for column in rest]
    return [(column, wanted) for column, wanted in result if wanted is not None]


def column_requests(
    table: TableState, indexes: Request, notes: list[str] | None = None
) -> list[ColumnRequest]:
    """The columns to index, and what to build on each.

    Columns whose type does not fit a kind of ``*`` do not get it.  With ``notes``, a
    named column that cannot be indexed is omitted, unless all are; both are noted.

    Raises:
        UnsupportedTypeError: a named column cannot have an index of that kind.
        UnknownIndexError: the kind does not exist.
    """
    asked = [name for name, wanted in indexes.items() if wanted is not None]
    named = {table.find(name).name for name in asked if name != EVERY}
    requests = []
    failed: list[UnsupportedTypeError] = []
    unfit: dict[str, list[str]] = {}
    for column, wanted in requested(table, indexes):
        specs = [spec for spec in specs_of(wanted) if not isinstance(spec, MinMax)]
        try:
            domain = domain_to_index(column)
        except UnsupportedTypeError as error:
            failed.append(error)
            continue
        if column.name in named:
            check_specs(column.name, domain, specs)
        else:
            for spec in specs:
                if not fits(spec, domain):
                    unfit.setdefault(spec.kind, []).append(column.name)
            specs = [spec for spec in specs if fits(spec, domain)]
        distinct = {spec_key(spec_to_json(spec)): spec for spec in specs}
        requests.append(request_of(table, column, tuple(distinct.values())))
    if failed and (notes is None or len(failed) == len(asked)):
        raise failed[0]
    if notes is not None:
        notes += map(str, failed)
        notes += [
            f"{len(names)} columns have no {kind} index, which does not support their "
            f"type (first: {names[0]})"
            for kind, names in unfit.items()
        ]
    return requests


def check_specs(name: str, domain: Domain, specs: Sequence[IndexSpec]) -> None:
    """Raise ``UnsupportedTypeError`` if a column cannot have one of these indexes."""
    for spec in specs:
        try:
            index_type(spec.kind).check(domain)
        except UnsupportedTypeError as error:
            raise UnsupportedTypeError(
                f"cannot build a {spec.kind} index on column {name!r}: {error}"
            ) from error


def domain_to_index(column: ColumnInfo) -> Domain:
    """The domain of a column that can have an index.

    Raises:
        UnsupportedTypeError: it cannot, and why.
    """
    if column.is_partition:
        raise UnsupportedTypeError(
            f"cannot index column {column.name!r}: it is a partition column, whose "
            "values are known from the paths"
        )
    if column.domain is None or column.reason:
        why = f"cannot index column {column.shown!r}: {column.reason}"
        accepted = "" if "(accepted: " in why else f" (accepted: {ACCEPTED})"
        raise UnsupportedTypeError(why + accepted)
    return column.domain
