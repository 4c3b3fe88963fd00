"""Catalyst's expressions as trees for the planner.

An expression is understood only if its class is listed in ``classes``, ``names`` or
``forms``, and the tree says all that the expression holds.  A condition with any other
one is ``Unsupported``: every row may match it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skipindex.conditions.trees.calls import call
from skipindex.conditions.trees.comparisons import operand_sql, truth
from skipindex.conditions.trees.operands import Operand, require_small
from skipindex.expressions import (
    Not,
    Predicate,
    Reference,
    Unsupported,
    conjunction,
    disjunction,
)
from skipindex.expressions.not_judged import NotJudgedError
from skipindex.planner.engine import OPAQUE
from skipindex.spark.catalyst.classes import (
    CALLS,
    COMPARISONS,
    TRANSPARENT,
    Part,
    Shape,
)
from skipindex.spark.catalyst.forms import FORMS
from skipindex.spark.catalyst.literals import literal, opaque
from skipindex.spark.catalyst.names import NAMES, function_name
from skipindex.spark.catalyst.node import Node
from skipindex.storage.deadline import check


@dataclass(slots=True)
class Translator:
    """Makes trees of expressions, and remembers the time zone that they hold.

    Args:
        columns: the types of the table's columns, as a catalog writes them.
        zone: the first zone that a value depends on; None if there is none.
        as_text: whether the trees become text that is parsed again.
    """

    columns: Mapping[str, str]
    zone: str | None = None
    as_text: bool = False

    def condition(self, node: Node) -> Predicate:
        """The condition, whose parts are judged one by one."""
        match self._name(node), node.children:
            case "and", [_, *_]:
                return conjunction([self.condition(child) for child in node.children])
            case "or", [_, *_]:
                return disjunction([self.condition(child) for child in node.children])
            case "not" | "!", [child]:
                return Not(self.condition(child))
        check()
        try:
            return require_small(truth(self.operand(node)))
        except NotJudgedError as refused:
            text = self.shown(node)
            if text.startswith("("):  # and it ends with the closing one
                text = text[1:-1]
            text = f"{OPAQUE}{text})" if self.as_text else text
            return Unsupported(text, str(refused))

    def operand(self, node: Node, *, compared: bool = False) -> Operand:
        """See ``Writer.operand``."""
        if compared and node.is_literal():
            return literal(node.kind, node.value, compared=True)
        form = FORMS.get(node.name) or NAMES.get(node.name)
        if form is not None:
            result = form.read(self, node)
            if result is None:
                raise opaque()
            return result
        if self._is_a(TRANSPARENT, node):
            return self.operand(node.children[0], compared=compared)
        if self._is_a(COMPARISONS, node):
            operands = self.compared_operands(node.children)
            return call(COMPARISONS[node.name].sql, operands)
        if self._is_a(CALLS, node):
            operands = [self.operand(child) for child in node.children]
            return call(CALLS[node.name].sql, operands)
        raise opaque()

    def column(self, node: Node) -> str | None:
        """The name of a column in SQL; None if it is not understood."""
        try:
            operand = self.operand(node)
        except NotJudgedError:
            return None
        return str(operand) if isinstance(operand, Reference) else None

    def shown(self, node: Node) -> str:
        """The expression for people, in which some class has its own name."""
        try:
            return operand_sql(self.operand(node))
        except NotJudgedError:
            if node.is_literal() or not node.name:
                return "{…}"
        parts = [self.shown(child) for child in node.children]
        name = self._name(node)
        if name and not name.isidentifier() and len(parts) == 2:
            return f"({parts[0]} {name} {parts[1]})"
        called = f"{name or node.name}({', '.join(parts)})"
        return called if name else f"{{{called}}}"

    def _name(self, node: Node) -> str:
        """The function or the operator of an expression that is no more than that."""
        for shapes in (CALLS, COMPARISONS):
            if self._is_a(shapes, node):
                return shapes[node.name].sql
        return function_name(node)

    def compared_operands(self, operands: Sequence[Node]) -> list[Operand]:
        """See ``Writer.compared_operands``."""
        kinds = {operand.kind for operand in operands}
        alike = len(kinds) == 1 and "" not in kinds
        values = [operand for operand in operands if not operand.is_literal()]
        if alike and len(values) == 1 and _is_decimal_as_double(values[0]):
            # So does the planner compare a decimal with a double, of any precision.
            (plain,) = values[0].children
            operands = [plain if o is values[0] else o for o in operands]
        return [self.operand(operand, compared=alike) for operand in operands]

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
