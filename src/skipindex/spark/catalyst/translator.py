"""Catalyst's expressions as SQL for the planner.

An expression is written as text only if its class is listed in ``classes``, ``names``
or ``forms``, and the text says all that the expression holds.  Every other one becomes
``opaque()``, a function that the planner does not know: every row may match a condition
with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skipindex.spark.catalyst.classes import (
    CALLS,
    COMPARISONS,
    TRANSPARENT,
    Part,
    Shape,
)
from skipindex.spark.catalyst.forms import FORMS
from skipindex.spark.catalyst.literals import literal_text
from skipindex.spark.catalyst.names import NAMES
from skipindex.spark.catalyst.node import Node
from skipindex.spark.catalyst.sql_text import OPAQUE, call_text


@dataclass(slots=True)
class Translator:
    """Writes expressions as SQL, and remembers the time zone that they hold.

    Args:
        columns: the types of the table's columns, as a catalog writes them.
        zone: the first zone that a value depends on; None if there is none.
        for_people: whether what has no SQL reads ``{Class(operands)}`` instead, by the
            name that Spark has for it.  Such a text is shown, and never parsed.
    """

    columns: Mapping[str, str]
    zone: str | None = None
    for_people: bool = False

    def text(self, node: Node, *, compared: bool = False) -> str:
        """See ``Writer.text``."""
        if compared and node.is_literal():
            return literal_text(node.kind, node.value, compared=True)
        form = FORMS.get(node.name) or NAMES.get(node.name)
        if form is not None:
            return form.write(self, node) or self._opaque(node)
        if self._is_a(TRANSPARENT, node):
            return self.text(node.children[0], compared=compared)
        if self._is_a(COMPARISONS, node):
            operands = self.compared_texts(node.children)
            return call_text(COMPARISONS[node.name].sql, operands)
        if self._is_a(CALLS, node):
            operands = [self.text(child) for child in node.children]
            return call_text(CALLS[node.name].sql, operands)
        return self._opaque(node)

    def _opaque(self, node: Node) -> str:
        if not self.for_people or node.is_literal() or not node.name:
            return OPAQUE
        return f"{{{node.name}({', '.join(map(self.text, node.children))})}}"

    def compared_texts(self, operands: Sequence[Node]) -> list[str]:
        """See ``Writer.compared_texts``."""
        kinds = {operand.kind for operand in operands}
        alike = len(kinds) == 1 and "" not in kinds
        values = [operand for operand in operands if not operand.is_literal()]
        if alike and len(values) == 1 and _is_decimal_as_double(values[0]):
            # So does the planner compare a decimal with a double, of any precision.
            (plain,) = values[0].children
            operands = [plain if o is values[0] else o for o in operands]
        return [self.text(operand, compared=alike) for operand in operands]

    def takes_zone(self, zone: str | None) -> bool:
        """See ``Writer.takes_zone``."""
        if zone is not None and self.zone is None:
            self.zone = zone
        return zone in {None, self.zone}

    def _is_a(self, shapes: Mapping[str, Shape], node: Node) -> bool:
        """Whether it is listed there, and holds what is listed in one time zone."""
        shape = shapes.get(node.name)
        if shape is None or not shape.accepts(node.held):
            return False
        pairs = zip(shape.parts, node.held, strict=False)
        return all(self.takes_zone(h) for part, h in pairs if part is Part.ZONE)


def _is_decimal_as_double(node: Node) -> bool:
    match node.name, node.held, node.children:
        case "Cast", ["double", _, mode], [child] if child.kind.startswith("decimal("):
            return Part.MODE.accepts(mode)
    return False
