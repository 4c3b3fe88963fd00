"""Look-ups drawn at random from a seed, so that no choice can be fitted to them.

All values of a look-up are those of one or two rows of the table.  With one row the
look-up has an answer; with two, a conjunction has often none, though each of its
values is in most files.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

from skipindex.advice.sample import Sample, SampledColumn, take_sample
from skipindex.indexes.encoding.column import NULL_CODE
from skipindex.table import TableState

_FILES: Final = 5
_WIDTHS: Final = (0.0005, 0.005, 0.05)
"""Parts of a file's distinct values that a range spans."""


class LookUps:
    """Draws conditions on the columns of a table.

    Args:
        table: whose values are taken.
        columns: that are asked.
        seed: of everything that is drawn.
    """

    def __init__(self, table: TableState, columns: Sequence[str], seed: int) -> None:
        self._chooser = random.Random(seed)
        places = self._chooser.sample(range(len(table)), min(_FILES, len(table)))
        infos = [table.resolve(name) for name in columns]
        self.sample: Sample = take_sample(table, infos, places=places)
        self._columns = list(self.sample.columns.values())

    def draw(self, n: int) -> list[str]:
        """``n`` conditions of all shapes."""
        shapes: tuple[Callable[[], str], ...] = (
            self._equal_alone,
            self._absent,
            self._list,
            self._range_alone,
            self._two_rows,
            self._two_rows,
            self._one_row,
            self._three,
            self._either,
            self._not,
        )
        return [self._chooser.choice(shapes)() for _ in range(n)]

    def _row(self) -> tuple[int, int]:
        file = self._chooser.randrange(len(self.sample.files))
        return file, self._chooser.randrange(self.sample.n_rows[file])

    def _some(self, n: int) -> list[SampledColumn]:
        return self._chooser.sample(self._columns, n)

    def _one(self) -> SampledColumn:
        return self._chooser.choice(self._columns)

    def _equal(self, column: SampledColumn, row: tuple[int, int]) -> str:
        return f"{column.name} = {self._value(column, *row)}"

    def _value(self, column: SampledColumn, file: int, row: int, after: int = 0) -> str:
        """The value of a row as SQL, or one that comes ``after`` values later."""
        values = column.files[file]
        code = int(values.codes[row])
        if code == NULL_CODE:
            return "NULL"
        code = min(code + after, values.n_distinct - 1)
        return column.domain.show(column.value(values, code))

    def _range(self, column: SampledColumn, row: tuple[int, int]) -> str:
        n_distinct = column.files[row[0]].n_distinct
        after = int(self._chooser.choice(_WIDTHS) * n_distinct)
        low, high = (self._value(column, *row, add) for add in (0, after))
        return f"{column.name} BETWEEN {low} AND {high}"

    def _term(self, column: SampledColumn, row: tuple[int, int]) -> str:
        make = self._range if self._chooser.random() < 0.4 else self._equal
        return make(column, row)

    def _equal_alone(self) -> str:
        return self._equal(self._one(), self._row())

    def _range_alone(self) -> str:
        return self._range(self._one(), self._row())

    def _absent(self) -> str:
        """A number near one that is there; of text, the value and a blank."""
        column = self._one()
        value = self._value(column, *self._row())
        if column.domain.is_bytes:
            return f"{column.name} = {value[:-1]} '"
        return f"{column.name} = {int(value) + self._chooser.randrange(1, 100)}"

    def _list(self) -> str:
        column = self._one()
        values = {self._value(column, *self._row()): None for _ in range(3)}
        return f"{column.name} IN ({', '.join(values)})"

    def _two_rows(self) -> str:
        return " AND ".join(self._term(one, self._row()) for one in self._some(2))

    def _one_row(self) -> str:
        row = self._row()
        return " AND ".join(self._term(one, row) for one in self._some(2))

    def _three(self) -> str:
        row, other = self._row(), self._row()
        a, b, c = self._some(3)
        terms = (self._term(a, row), self._term(b, row), self._term(c, other))
        return " AND ".join(terms)

    def _either(self) -> str:
        return f"({self._two_rows()}) OR ({self._two_rows()})"

    def _not(self) -> str:
        a, b = self._some(2)
        return f"{self._equal(a, self._row())} AND NOT ({self._range(b, self._row())})"
