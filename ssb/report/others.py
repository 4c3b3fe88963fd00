"""Tables of what other commands found: flat records, whatever their keys are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ssb.report.results import FlatRecords
from ssb.report.tables import Cell, Table
from ssb.report.text import geometric_mean

_QUERY: Final = "query"
_GAIN: Final = "gain"
_NOT_KEYS: Final = {_QUERY, "note"}


def records_table(title: str, records: FlatRecords) -> Table:
    """The records, with their keys as columns."""
    heads = _heads(records)
    rows = [tuple(_shown(record.get(head)) for head in heads) for record in records]
    return Table(title, heads, rows)


def sums_table(records: FlatRecords) -> Table | None:
    """The records of all queries together; None where they name no query.

    Records with the same texts are one line: numbers are summed, of ``gain`` it is the
    geometric mean, and of yes and no whether all say yes.
    """
    heads = _heads(records)
    if _QUERY not in heads:
        return None
    keys = [
        head
        for head in heads
        if head not in _NOT_KEYS and any(isinstance(r.get(head), str) for r in records)
    ]
    figures = [head for head in heads if head not in {*keys, *_NOT_KEYS}]
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for record in records:
        groups.setdefault(tuple(record.get(key) for key in keys), []).append(record)
    rows = [
        (
            *map(_shown, of),
            len({record[_QUERY] for record in group}),
            *(
                _together(head, [record.get(head) for record in group])
                for head in figures
            ),
        )
        for of, group in groups.items()
    ]
    return Table(
        "All queries together",
        (*keys, "queries", *figures),
        rows,
        "A sum leaves out queries that a system cannot answer.",
    )


def _heads(records: FlatRecords) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for record in records for name in record))


def _together(head: str, values: Sequence[object]) -> Cell:
    known = [value for value in values if value is not None]
    if not known:
        return None
    if all(isinstance(value, bool) for value in known):
        return _shown(all(known))
    numbers = [value for value in known if isinstance(value, int | float)]
    if head == _GAIN:
        return geometric_mean([max(float(number), 1e-9) for number in numbers])
    return sum(numbers)


def _shown(value: object) -> Cell:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or isinstance(value, str | int | float):
        return value
    return str(value)
