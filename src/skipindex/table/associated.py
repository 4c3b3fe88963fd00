"""Associated columns: attributes of a joined dimension, indexed as columns of the fact.

A fact table that is joined with a dimension by a key has, for every row, the attributes
of the dimension's row.  ``build_indexes`` indexes such an attribute without storing it:
each file's keys are looked up in the dimension.

What is built is true of one state of the dimension.  So it has a name in which the
definition and a fingerprint of the dimension's files are hashed: what is built for one
state is never taken for another's.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from skipindex.errors import SkipIndexError, TableError, first_line
from skipindex.expressions.domain import Domain
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.table.listing import current_files

_STORED: Final = re.compile(r".+ via [0-9a-f]{32}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class AssociatedColumn:
    """An attribute of a dimension as a column of the fact; ``skipindex.via`` makes it.

    Args:
        key: the fact's column that the join compares.
        location: the dimension's folder.
        table_key: the dimension's column that the join compares; unique.
        attribute: the dimension's column that is looked up.
    """

    key: str
    location: Location
    table_key: str
    attribute: str


@dataclass(frozen=True, slots=True)
class Association:
    """An associated column as a table has it, for one state of the dimension.

    ``path`` is the dimension's folder, from the fact's; ``indexes`` are the specs that
    are to be built, as JSON.
    """

    name: str
    key: str
    key_domain: Domain
    path: str
    table_key: str
    table_key_domain: Domain
    attribute: str
    domain: Domain
    fingerprint: str
    indexes: tuple[str, ...]

    @property
    def stored(self) -> str:
        """The name of what is built, which no other definition or state has."""
        hashed = self.to_json() | {"name": self.name, "indexes": None}
        text = json.dumps(hashed, sort_keys=True).encode()
        return f"{self.name} via {hashlib.sha256(text).hexdigest()[:32]}"

    def location(self, fact: Location) -> Location:
        """The dimension's folder, on the file system of the fact's."""
        return beside(fact, self.path)

    def to_json(self) -> dict[str, Any]:
        """The value of the property ``associated`` under this name."""
        return {
            "key": self.key,
            "key_domain": _domain_to_json(self.key_domain),
            "table": self.path,
            "table_key": self.table_key,
            "table_key_domain": _domain_to_json(self.table_key_domain),
            "attribute": self.attribute,
            "domain": _domain_to_json(self.domain),
            "fingerprint": self.fingerprint,
            "indexes": [json.loads(spec) for spec in self.indexes],
        }

    @classmethod
    def from_json(cls, name: str, record: Mapping[str, Any]) -> Association:
        """The inverse of ``to_json``; ``log.properties`` has checked the record."""
        return cls(
            name,
            record["key"],
            Domain(*record["key_domain"]),
            record["table"],
            record["table_key"],
            Domain(*record["table_key_domain"]),
            record["attribute"],
            Domain(*record["domain"]),
            record["fingerprint"],
            tuple(json.dumps(spec, sort_keys=True) for spec in record["indexes"]),
        )


def associations_of(record: Mapping[str, Any] | None) -> tuple[Association, ...]:
    """The associated columns in the property ``associated``."""
    return tuple(
        Association.from_json(name, one) for name, one in (record or {}).items()
    )


def is_stored_name(name: str) -> bool:
    """Whether what is built under this name may be of an associated column."""
    return _STORED.fullmatch(name) is not None


def fingerprint_of(files: Sequence[FileInfo]) -> str:
    """A hash of the files' paths, sizes and modification times, and of their tags."""
    marks = sorted(
        (file.path, file.size, file.mtime, *filter(None, [file.tag])) for file in files
    )
    return hashlib.sha256(json.dumps(marks).encode()).hexdigest()


def beside(fact: Location, path: str) -> Location:
    """The folder that a relative path leads to from the fact's folder."""
    root = posixpath.normpath(posixpath.join(fact.root, path))
    uri = fact.uri.replace(fact.root, root, 1)
    return replace(fact, root=root, uri=uri, sidecar=None)


def path_from(fact: Location, dimension: Location) -> str:
    """The inverse of ``beside``.

    Raises:
        TableError: the two are on different file systems.
    """
    path = posixpath.relpath(dimension.root, fact.root)
    if (fact.is_local, beside(fact, path).uri) != (dimension.is_local, dimension.uri):
        raise TableError(
            f"{dimension.full('')!r} is on another file system than "
            f"{fact.full('')!r} (accepted: tables on the same one)"
        )
    return path


def _domain_to_json(domain: Domain) -> list[Any]:
    return [domain.name, domain.scale, domain.bits, domain.digits]


class JoinedTables:
    """The tables that associated columns are looked up in, each listed once."""

    def __init__(self, fact: Location) -> None:
        self._fact = fact
        self._fingerprints: dict[Location, str | SkipIndexError | OSError] = {}

    def why_void(self, one: Association) -> str:
        """Why what is built of an associated column is not true any more, if it is not.

        Empty if it is true.
        """
        place = one.location(self._fact)
        if place not in self._fingerprints:
            self._fingerprints[place] = _fingerprint(place)
        now = self._fingerprints[place]
        if now == one.fingerprint:
            return ""
        if not isinstance(now, str):
            return f"the table {place.full('')!r} cannot be listed: {first_line(now)}"
        return (
            f"the table {place.full('')!r} has changed since column {one.name!r} was "
            "indexed (refresh_indexes indexes it again)"
        )


def _fingerprint(place: Location) -> str | SkipIndexError | OSError:
    try:
        return fingerprint_of(current_files(place))
    except (SkipIndexError, OSError) as error:
        return error
