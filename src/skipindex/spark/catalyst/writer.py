"""The protocol through which a form translates its operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from skipindex.planner.trees.operands import Operand
from skipindex.spark.catalyst.node import Node


class Writer(Protocol):
    """Makes operands of expressions."""

    @property
    def columns(self) -> Mapping[str, str]:
        """The types of the table's columns, as a catalog writes them."""

    def operand(self, node: Node, *, compared: bool = False) -> Operand:
        """The expression as an operand.

        It is ``compared`` if it meets values of its own type alone.
        """

    def compared_operands(self, operands: Sequence[Node]) -> list[Operand]:
        """Operands of a comparison; literals in the form that says most there."""

    def takes_zone(self, zone: str | None) -> bool:
        """Whether it is the zone of all others; None is that of the session."""


@dataclass(frozen=True, slots=True)
class Form:
    """How the expressions of one class are read.

    Args:
        read: the expression as an operand; None if not all that it holds is understood.
        sql: what it is in SQL, for readers.
        only: what is understood of the class, for readers; empty for all of it.
    """

    read: Callable[[Writer, Node], Operand | None]
    sql: str
    only: str = ""
