"""What a form of an expression needs from the translator that writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from skipindex.spark.catalyst.node import Node


class Writer(Protocol):
    """Writes expressions as SQL."""

    @property
    def columns(self) -> Mapping[str, str]:
        """The types of the table's columns, as a catalog writes them."""

    def text(self, node: Node, *, compared: bool = False) -> str:
        """The expression in SQL; parts that only Spark can compute read ``opaque()``.

        It is ``compared`` if it meets values of its own type alone.
        """

    def compared_texts(self, operands: Sequence[Node]) -> list[str]:
        """Operands of a comparison; literals in the form that says most there."""

    def takes_zone(self, zone: str | None) -> bool:
        """Whether it is the zone of all others; None is that of the session."""


@dataclass(frozen=True, slots=True)
class Form:
    """How the expressions of one class are written.

    Args:
        write: the expression in SQL; None if not all that it holds is understood.
        sql: the form of the SQL, for readers.
        only: what is understood of the class, for readers; empty for all of it.
    """

    write: Callable[[Writer, Node], str | None]
    sql: str
    only: str = ""
