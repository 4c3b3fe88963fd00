"""CASE as an image: the value of the first branch whose condition is TRUE.

The conditions before a branch are not TRUE and its own is, which is a predicate that
every index kind can be asked.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from skipindex.atoms import Atom, Value
from skipindex.domain import Domain
from skipindex.planner._answers import judged
from skipindex.planner._functions import Plain, UnsureError
from skipindex.planner._images import ColumnImage, ConstantImage, Image, settled
from skipindex.planner.bound import AllOf, AnyOf, Bound


@dataclass(frozen=True)
class Choice:
    """One branch of a CASE: its condition, and that it is not TRUE, bound."""

    condition: Bound
    otherwise: Bound
    image: Image


@dataclass(frozen=True)
class CaseImage:
    """The value of the first branch whose condition is TRUE."""

    domain: Domain
    choices: tuple[Choice, ...]
    default: Image
    columns: tuple[ColumnImage, ...]
    expression: str

    @property
    def key(self) -> Hashable:
        """None: conditions are not compared."""
        return None

    def value(self, value: Value | None) -> Plain | None:
        """That of the branch that this value takes."""
        for choice in self.choices:
            taken = judged(choice.condition, value)
            if taken is None:
                raise UnsureError
            if taken:
                return choice.image.value(value)
        return self.default.value(value)

    def pull(self, question: Atom, text: str) -> Bound:
        """Branch by branch: the conditions before it are not TRUE, and its own is."""
        parts: list[Bound] = []
        before: list[Bound] = []
        for choice in self.choices:
            found = self._branch(choice.image, question, text)
            parts.append(AllOf((*before, choice.condition, found)))
            before.append(choice.otherwise)
        parts.append(AllOf((*before, self._branch(self.default, question, text))))
        return AnyOf(tuple(parts))

    def _branch(self, image: Image, question: Atom, text: str) -> Bound:
        if isinstance(image, ConstantImage):
            return settled(question, self.domain, image.plain, text)
        return image.pull(question, text)
