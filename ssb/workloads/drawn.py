"""Look-ups that are drawn at random from the data, so that nothing is fitted to them.

Rows are drawn, and literals are taken from them, so a frequent value is a frequent
literal.  Absent literals are neighbours of such values within the range of the column;
a scan of the data proves that no row has them.  The same data, number and seed give the
same look-ups.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, cycle, islice
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ssb import SsbError
from ssb.data.generate import Dataset
from ssb.queries import Query

TOTALS: Final = "count(*) AS n_rows, sum(lo_revenue) AS revenue"
"""What a look-up selects."""

Literal = int | str
Row = Mapping[str, Literal]

_KEYS: Final = ("lo_custkey", "lo_partkey", "lo_suppkey", "lo_orderdate")
_AMOUNTS: Final = ("lo_ordtotalprice", "lo_extendedprice", "lo_revenue")
_WORDS: Final = ("c_city", "s_city", "p_brand1")
_NARROW: Final = (*_KEYS, *_AMOUNTS, *_WORDS)
"""Columns of many values: a condition on one of them leaves few rows."""
_WIDE: Final = ("lo_quantity", "lo_discount", "d_year", "c_region", "p_mfgr")
"""Columns of few values, for what is combined with a narrow one."""
_COLUMNS: Final = (*_NARROW, *_WIDE)
_DRAWS: Final = 12
"""Rows, and absent candidates of each column, that one look-up may use up."""
_ABSENT_SHARE: Final = 0.2
"""Of the literals outside of absent-value look-ups."""


def drawn_lookups(dataset: Dataset, n: int, *, seed: int) -> tuple[Query, ...]:
    """``n`` look-ups, of every form in turn.

    Args:
        dataset: where the literals come from.
        n: how many.
        seed: of the draw.

    Raises:
        SsbError: ``n`` is negative.
    """
    if n < 0:
        raise SsbError(f"cannot draw {n} look-ups: accepted is 0 or more")
    if n == 0:
        return ()
    rng = random.Random(seed)
    rows = _drawn_rows(dataset, rng, n * _DRAWS)
    draw = _Draw(rng, rows, _absent(dataset, rng, rows[: max(40, n)]))
    forms = islice(cycle(_FORMS.items()), n)
    return tuple(
        Query(f"{form}-{1 + i // len(_FORMS)}", make(draw), TOTALS)
        for i, (form, make) in enumerate(forms)
    )


class _Draw:
    """Literals and conditions, from one stream of random numbers."""

    def __init__(
        self,
        rng: random.Random,
        rows: Sequence[Row],
        absent: Mapping[str, Sequence[Literal]],
    ) -> None:
        self.rng = rng
        self._rows = cycle(rows)
        self._absent = absent

    def row(self) -> Row:
        """The next row."""
        return next(self._rows)

    def narrow(self) -> str:
        """A column of many values."""
        return self.rng.choice(_NARROW)

    def literal(self, column: str, row: Row | None = None) -> str:
        """A value of a row, or of any row; or now and then an absent one."""
        if row is None:
            if self._absent.get(column) and self.rng.random() < _ABSENT_SHARE:
                return self.absent(column)
            row = self.row()
        return _text(row[column])

    def absent(self, column: str) -> str:
        """A value that no row has."""
        return _text(self.rng.choice(self._absent[column]))

    def absent_column(self) -> str:
        """A column that has such values."""
        return self.rng.choice([name for name in _NARROW if self._absent.get(name)])

    def equal(self, column: str, row: Row | None = None) -> str:
        """An equality."""
        return f"{column} = {self.literal(column, row)}"

    def within(self, column: str, row: Row) -> str:
        """A range around a value of a column of numbers."""
        value = int(row[column])
        width = self.rng.randint(1, max(1, value // 50))
        return f"{column} BETWEEN {value - width} AND {value + width}"

    def pair(self) -> str:
        """Two columns; one row has both values, or two rows have one each."""
        row = self.row()
        other = row if self.rng.random() < 0.5 else self.row()
        first, second = self.rng.sample(_NARROW, 2)
        if second in _AMOUNTS:
            return f"{self.equal(first, row)} AND {self.within(second, other)}"
        return f"{self.equal(first, row)} AND {self.equal(second, other)}"


def _point(draw: _Draw) -> str:
    return draw.equal(draw.narrow())


def _in(draw: _Draw) -> str:
    column = draw.narrow()
    literals = [draw.literal(column) for _ in range(draw.rng.randint(2, 6))]
    return f"{column} IN ({', '.join(literals)})"


def _or(draw: _Draw) -> str:
    first, second = draw.rng.sample(_NARROW, 2)
    return f"{draw.equal(first)} OR {draw.equal(second)}"


def _or_of_ands(draw: _Draw) -> str:
    return f"({draw.pair()}) OR ({draw.pair()})"


def _not(draw: _Draw) -> str:
    """What is left of a narrow condition when a frequent value is ruled out."""
    row, wide = draw.row(), draw.rng.choice(_WIDE)
    narrow = draw.equal(draw.narrow(), row)
    ruled_out = draw.equal(wide, row if draw.rng.random() < 0.5 else draw.row())
    return f"{narrow} AND NOT ({ruled_out} OR lo_quantity > 25)"


def _like(draw: _Draw) -> str:
    column, rng = draw.rng.choice(_WORDS), draw.rng
    word = str(draw.row()[column])
    cut = rng.randint(len(word) - 3, len(word) - 1)
    pattern = rng.choice(
        [f"{word[:cut]}%", f"%{word[-3:]}", f"%{word[2:cut]}%", f"{word[:-1]}_"]
    )
    return f"{column} LIKE {_text(pattern)} AND {draw.pair()}"


def _absent_value(draw: _Draw) -> str:
    column = draw.absent_column()
    return f"{column} = {draw.absent(column)}"


_FORMS: Final[Mapping[str, Callable[[_Draw], str]]] = {
    "point": _point,
    "in": _in,
    "or": _or,
    "or-of-ands": _or_of_ands,
    "not": _not,
    "like": _like,
    "absent": _absent_value,
}


def _text(value: Literal) -> str:
    """A literal of Spark SQL.

    >>> _text(7), _text("it's")
    ('7', "'it''s'")
    """
    if isinstance(value, int):
        return str(value)
    return "'" + value.replace("'", "''") + "'"


def _drawn_rows(dataset: Dataset, rng: random.Random, n: int) -> list[Row]:
    """Rows of the flat table in random order; every row is equally likely."""
    files = sorted(dataset.flat.glob("*.parquet"))
    ends = list(accumulate(pq.read_metadata(file).num_rows for file in files))
    drawn = [rng.randrange(ends[-1]) for _ in range(n)]
    by_file: dict[int, list[int]] = {}
    for position in sorted(drawn):
        by_file.setdefault(bisect_right(ends, position), []).append(position)
    found: dict[int, Row] = {}
    for i, positions in by_file.items():
        begin = ends[i - 1] if i else 0
        rows = pq.read_table(files[i], columns=list(_COLUMNS))
        taken = rows.take(pa.array([position - begin for position in positions]))
        found.update(zip(positions, taken.to_pylist(), strict=True))
    return [found[position] for position in drawn]


def _absent(
    dataset: Dataset, rng: random.Random, rows: Sequence[Row]
) -> dict[str, list[Literal]]:
    """By column, values near those of rows that no row of the table has."""
    tried = {
        name: list(dict.fromkeys(_near(rng, row[name]) for row in rows))
        for name in _NARROW
    }
    present: dict[str, set[Literal]] = {name: set() for name in tried}
    table = ds.dataset(sorted(map(str, dataset.flat.glob("*.parquet"))))
    for batch in table.to_batches(columns=list(tried)):
        for name, candidates in tried.items():
            values = batch.column(name)
            wanted = pa.array(candidates, values.type)
            hits = values.filter(pc.is_in(values, value_set=wanted))
            present[name].update(hits.unique().to_pylist())
    return {
        name: [value for value in candidates if value not in present[name]]
        for name, candidates in tried.items()
    }


def _near(rng: random.Random, value: Literal) -> Literal:
    """Another value close by, which may or may not be there."""
    if isinstance(value, int):
        return value + rng.choice([-3, -2, -1, 1, 2, 3])
    place = rng.randrange(len(value) // 2, len(value))
    return value[:place] + rng.choice("0123456789ABEK") + value[place + 1 :]
