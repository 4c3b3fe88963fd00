"""The columns that conditions are about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from skipindex.errors import PredicateError, did_you_mean
from skipindex.expressions import stored_name
from skipindex.expressions.domain import Domain

UNORDERED: Final = "cannot be indexed"
"""The end of the reason of a column whose type is a list, a map or a struct, say."""


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """One column of a table, or one field of a struct.

    Args:
        name: the name in the log, in statistics and in packs (``stored_name``).
        domain: the order of its values; None if no condition on it can be judged.
        reason: why it cannot have an index; empty if it can.
        is_partition: whether its values are in the paths.
        path: the name of the column, then those of the fields, as in the schema.
        fields: the fields, if it is a struct.
        has_default: whether files without the column have its default, not NULL.
        place: the path under which files have it; it makes ``name``.
        mapped_name: the name in the log for files that have it by another rule; empty
            if there is none (``FieldIds``).
    """

    name: str
    domain: Domain | None
    reason: str = ""
    is_partition: bool = False
    path: tuple[str, ...] = ()
    fields: tuple[ColumnInfo, ...] = ()
    has_default: bool = False
    place: tuple[str, ...] = ()
    mapped_name: str = ""

    def __repr__(self) -> str:
        kind = self.domain.name if self.domain else f"no order: {self.reason}"
        return f"ColumnInfo({self.name!r}, {kind})"

    @property
    def stored_names(self) -> list[str]:
        """The names under which something may be stored, the usual one first."""
        return [self.name, self.mapped_name] if self.mapped_name else [self.name]

    @property
    def own_name(self) -> str:
        """The name as the schema spells it, without those of structs around it."""
        return self.path[-1]

    @property
    def shown(self) -> str:
        """The name in the schema, as readers write it."""
        return stored_name(self.path)

    def as_shown(self) -> ColumnInfo:
        """The same column, named as in the schema."""
        fields = tuple(one.as_shown() for one in self.fields)
        return replace(self, name=self.shown, fields=fields)

    @property
    def leaves(self) -> list[ColumnInfo]:
        """The column itself; a struct is replaced by the fields in it."""
        if not self.fields:
            return [self]
        return [leaf for inner in self.fields for leaf in inner.leaves]

    def field(self, name: str) -> ColumnInfo:
        """The field that Spark finds by ``name``.

        An exact match wins over one in other capitals; Spark itself rejects a name that
        its session's setting makes ambiguous.
        """
        if not self.fields:
            raise PredicateError(
                f"no field {name!r}: column {self.name!r} is not a struct"
            )
        exact = [inner for inner in self.fields if inner.own_name == name]
        folded = name.lower()
        alike = [f for f in self.fields if f.own_name.lower() == folded]
        result = exact or alike
        if len(result) != 1:
            problem = "ambiguous field" if result else "no field"
            names = ", ".join(inner.own_name for inner in self.fields)
            similar = did_you_mean(name, [inner.own_name for inner in self.fields])
            hint = "" if result else similar
            raise PredicateError(
                f"{problem} {name!r} of column {self.name!r}{hint} (fields: {names})"
            )
        return result[0]
