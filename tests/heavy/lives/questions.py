"""What is asked of a table, and how its answers are judged by the rows it holds."""

from __future__ import annotations

import os
import random
import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

import skipindex as sx
from skipindex.errors import PlanError, SkipIndexError
from tests.heavy.lives.rows import Column, counted, leaves, norm
from tests.heavy.lives.world import Moment

_ZONE: Final = "UTC"
_LIMITS: Final = (1, 1, 2, 3, 8, 20)
_INSTEAD: Final = "rows='files'"
"""What a message names that refuses to filter rows."""
_READERS: Final[Mapping[str, Callable[[sx.Plan, pa.Schema], pa.Table]]] = {
    "arrow": lambda plan, _: plan.to_arrow().to_table(),
    "pandas": lambda plan, schema: pa.Table.from_pandas(
        plan.to_pandas(), schema=schema, preserve_index=False
    ),
    "polars": lambda plan, _: plan.to_polars().collect().to_arrow(),
    "duckdb": lambda plan, _: plan.to_duckdb(_connection()).to_arrow_table(),
}


def _connection() -> duckdb.DuckDBPyConnection:
    result = duckdb.connect()
    result.execute(f"SET timezone = '{_ZONE}'")
    return result


def condition(rng: random.Random, columns: Sequence[Column], depth: int = 2) -> str:
    """A condition that Spark, DuckDB and skipindex mean alike."""
    if depth and rng.random() < 0.4:
        parts = [condition(rng, columns, depth - 1) for _ in range(2)]
        text = f" {rng.choice(['AND', 'OR'])} ".join(f"({one})" for one in parts)
        return f"NOT ({text})" if rng.random() < 0.25 else text
    whole = [(one.name, one) for one in columns if one.kind is None]
    if whole and rng.random() < 0.1:
        return f"{rng.choice(whole)[0]} IS {rng.choice(['', 'NOT '])}NULL"
    return _leaf(rng, *rng.choice([*leaves(columns)]), [*leaves(columns)])


def wide_condition(rng: random.Random, columns: Sequence[Column]) -> str:
    """A condition that all rows of many files meet, or any other."""
    name, column = rng.choice([*leaves(columns)])
    assert column.kind is not None
    least = f"{name} >= {column.kind.sql(column.kind.pool[0])}"
    wide = rng.choice(["TRUE", f"{name} IS NOT NULL", f"{name} IS NULL", least])
    return wide if rng.random() < 0.7 else condition(rng, columns)


def _leaf(
    rng: random.Random, name: str, column: Column, others: Sequence[tuple[str, Column]]
) -> str:
    kind = column.kind
    assert kind is not None
    some = [kind.sql(rng.choice(kind.pool)) for _ in range(4)]
    alike = [other for other, one in others if one.kind is kind and other != name]
    choices = [
        *[f"{name} {rng.choice(['=', '<', '<=', '>', '>=', '<>'])} {some[0]}"] * 3,
        f"NOT ({name} {rng.choice(['=', '<', '>='])} {some[0]})",
        f"{name} BETWEEN {some[0]} AND {some[1]}",
        f"{name} {rng.choice(['', 'NOT '])}IN ({', '.join(some)})",
        f"{name} IN ({some[0]}, NULL, {some[1]})",
        f"{name} IS {rng.choice(['', 'NOT '])}DISTINCT FROM {some[0]}",
        *[f"{name} IS {rng.choice(['', 'NOT '])}NULL"] * 2,
        *(one.replace("{}", name) for one in kind.functions),
        *(f"{name} {rng.choice(['=', '<', '>='])} {other}" for other in alike[:1]),
    ]
    return rng.choice(choices)


@dataclass
class Round:
    """Questions about a table at one moment.

    Args:
        rng: what is asked.
        moment: the table, and what it holds.
        folder: of the table.
        changed: the numbers of the columns that were renamed, added or widened last.
    """

    rng: random.Random
    moment: Moment
    folder: str
    changed: frozenset[int] = frozenset()

    @property
    def table(self) -> sx.Table:
        """The table as it is open."""
        return self.moment.table

    @property
    def columns(self) -> Sequence[Column]:
        """The columns that it has."""
        return self.moment.columns

    @property
    def rows(self) -> pa.Table:
        """The rows that it holds."""
        return self.moment.rows

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [one.name for one in self.columns]

    @cached_property
    def duckdb(self) -> duckdb.DuckDBPyConnection:
        """A connection that knows the rows as ``truth``."""
        result = _connection()
        result.register("truth", self.rows)
        return result

    def ask(self) -> Iterator[tuple[str, str]]:
        """Questions, each with what is wrong about its answer; empty if nothing."""
        every = self.rows["file"].to_pylist()
        yield "plan('TRUE')", judged(lambda: _bounds(self._plan("TRUE"), every))
        asks = [self._ask_rows, self._ask_limit, self._ask_order, self._ask_places]
        asks += [self._ask_spare]
        weights = [5, 2, 5, 2, 3 * bool(self.moment.exact)]
        for ask in self.rng.choices(asks, weights, k=4):
            text, judge = ask()
            yield text, judged(judge)
        if changed := [one for one in self.columns if one.number in self.changed]:
            text, judge = self._ask_values(*self.rng.choice([*leaves(changed)]))
            yield text, judged(judge)

    def _where(self, where: str, rest: str = "") -> pa.Table:
        return self.duckdb.sql(
            f"SELECT * FROM truth WHERE {where} {rest}"
        ).to_arrow_table()

    def _plan(self, where: str, **how: Any) -> sx.Plan:
        return self.table.plan(where, timezone=_ZONE, **how)

    def _filtered(self, plan: sx.Plan, where: str, rest: str = "") -> pa.Table:
        """Rows of the files that a plan reads, filtered here."""
        self.duckdb.register("own", plan.to_arrow(rows="files").to_table())
        return self.duckdb.sql(
            f"SELECT * FROM own WHERE {where} {rest}"
        ).to_arrow_table()

    def _read(self, reader: str, plan: sx.Plan, where: str) -> pa.Table:
        """The rows by a reader; one that cannot filter them has those of the files."""
        schema = pa.schema([self.rows.schema.field(name) for name in self.names])
        try:
            return _READERS[reader](plan, schema)
        except PlanError as error:
            if _INSTEAD not in str(error):
                raise
            return self._filtered(plan, where)

    # -- questions ---------------------------------------------------------------------

    def _ask_rows(self) -> tuple[str, Callable[[], str]]:
        where = condition(self.rng, self.columns)
        if self.rng.random() < 0.2:
            where = wide_condition(self.rng, self.columns)
        reader = self.rng.choice([*_READERS])

        def judge() -> str:
            truth, plan = self._where(where), self._plan(where)
            files = [os.path.realpath(one) for one in plan.files]
            if missed := {*truth["file"].to_pylist()} - {*files}:
                return f"skips {sorted(missed)}"
            wrong = _bounds(plan, truth["file"].to_pylist())
            return wrong or self._unlike(self._read(reader, plan, where), truth, reader)

        return f"plan({where!r}) by {reader}", judge

    def _unlike(self, own: pa.Table, truth: pa.Table, reader: str) -> str:
        if sorted(own.column_names) != sorted(self.names):
            return f"columns {own.column_names}, expected {self.names}"
        is_pandas = reader == "pandas"
        read = counted(own, self.names, is_pandas=is_pandas)
        right = counted(truth, self.names, is_pandas=is_pandas)
        if read == right:
            return ""
        more, lost = [*(read - right).items()][:3], [*(right - read).items()][:3]
        return f"{len(own)} rows of {len(truth)}, lost {lost}, more {more}"[:900]

    def _ask_spare(self) -> tuple[str, Callable[[], str]]:
        column = self.rng.choice(self.moment.exact)
        return self._ask_values(column.name, column)

    def _ask_values(self, name: str, column: Column) -> tuple[str, Callable[[], str]]:
        """The files with one value or another, and no others by an exact index."""
        assert column.kind is not None
        pool = column.kind.pool
        some = map(column.kind.sql, self.rng.sample(pool, min(8, len(pool))))
        exact = {one.number for one in self.moment.exact}
        spared = self.moment.spared if column.number in exact else frozenset()

        def judge() -> str:
            for one in some:
                where = f"{name} = {one}"
                files = {os.path.realpath(file) for file in self._plan(where).files}
                truth = {*self._where(where)["file"].to_pylist()}
                if missed := truth - files:
                    return f"{where} skips {sorted(missed)}"
                if spare := files & spared - truth:
                    return f"{where} keeps {sorted(spare)}"
            return ""

        return f"plan({name} = …)", judge

    def _ask_limit(self) -> tuple[str, Callable[[], str]]:
        where = wide_condition(self.rng, self.columns)
        n = self.rng.choice(_LIMITS)
        reader = self.rng.choice(["pandas", "polars", "duckdb"])

        def judge() -> str:
            truth, plan = self._where(where), self._plan(where, limit=n)
            own = self._read(reader, plan, where).slice(0, n)
            if len(own) != min(n, len(truth)):
                return f"{len(own)} rows, expected {min(n, len(truth))}"
            is_pandas = reader == "pandas"
            read = counted(own, self.names, is_pandas=is_pandas)
            more = read - counted(truth, self.names, is_pandas=is_pandas)
            return f"rows that do not match: {[*more][:3]}"[:500] if more else ""

        return f"plan({where!r}, limit={n}) by {reader}", judge

    def _ask_order(self) -> tuple[str, Callable[[], str]]:
        where = wide_condition(self.rng, self.columns)
        n = self.rng.choice(_LIMITS)
        known = [name for name, _ in leaves(self.columns)]
        names = self.rng.sample(known, min(len(known), self.rng.choice([1, 1, 2])))
        keys = [
            f"{name} {self.rng.choice(['ASC', 'DESC'])} "
            f"NULLS {self.rng.choice(['FIRST', 'LAST'])}"
            for name in names
        ]
        # Rows with NULL in the very column that they are ordered by come first or last.
        if random.Random(f"{where} {keys}").random() < 0.4:
            where = f"{names[0]} IS NOT NULL"

        def judge() -> str:
            plan = self._plan(where, limit=n, order_by=keys)
            rest = f"ORDER BY {', '.join(keys)} LIMIT {n}"
            firsts = []
            for rows in (self._filtered(plan, where, rest), self._where(where, rest)):
                self.duckdb.register("firsts", rows)
                told = self.duckdb.sql(f"SELECT {', '.join(names)} FROM firsts")
                firsts.append([tuple(map(norm, row)) for row in told.fetchall()])
            own, right = firsts
            return "" if own == right else f"{own}, expected {right}"[:900]

        return f"plan({where!r}, limit={n}, order_by={keys})", judge

    def _ask_places(self) -> tuple[str, Callable[[], str]]:
        of_files = [one for one in self.columns if not one.is_partition]
        found = [*leaves(of_files)] or [*leaves(self.columns)]
        name, column = self.rng.choice(found)
        kind = column.kind
        assert kind is not None
        keys = self.rng.sample(kind.pool, min(3, len(kind.pool)))

        def judge() -> str:
            located = self.table.locate(pa.array(keys, kind.arrow), name)
            told = located.read_all()
            base = Path(self.folder)
            places = {
                (os.path.realpath(base / one["file"]), one["row"])
                for one in told.to_pylist()
            }
            values = self.duckdb.sql(f"SELECT {name}, file, row FROM truth").fetchall()
            wanted = {norm(one) for one in keys}
            right = {(file, row) for v, file, row in values if norm(v) in wanted}
            for file, row in sorted(right):
                if not {(file, row), (file, None)} & places:
                    return f"misses row {row} of {file}"
            spare = [one for one in places if one[1] is not None and one not in right]
            if spare:
                return f"names rows without a key: {sorted(spare)[:3]}"
            self.duckdb.register("located", located.read([name.partition(".")[0]]))
            rows = self.duckdb.sql(f"SELECT {name} FROM located").fetchall()
            read, held = [norm(v) for (v,) in rows], [norm(v) for v, *_ in values]
            ordered = [norm(key) for key in keys for _ in range(held.count(norm(key)))]
            return "" if read == ordered else f"reads {read}, expected {ordered}"[:900]

        return f"locate({keys!r}, {name!r})", judge


def _bounds(plan: sx.Plan, files: Sequence[str]) -> str:
    """What is wrong with the numbers of rows of a plan: ``files`` has that of each."""
    least, most = plan.count_bounds
    n, by_file = len(files), Counter(files)
    if n < least or (most is not None and most < n):
        return f"count_bounds {(least, most)} of {n} rows"
    if least == most and plan.count() != n:
        return f"count() is {plan.count()} of {n} rows"
    paths = (os.path.realpath(Path(plan.table.folder, one)) for one in plan.table.paths)
    for path, low, high in zip(paths, *_numbers(plan), strict=True):
        if by_file[path] < low or 0 <= high < by_file[path]:
            return f"{low} to {high} rows of the {by_file[path]} in {path!r}"
    return ""


def _numbers(plan: sx.Plan) -> tuple[list[int], list[int]]:
    """At least and at most so many rows of each file; -1 is not known."""
    counts = plan.row_counts
    return counts.lower.tolist(), counts.upper.tolist()


def judged(judge: Callable[[], str | None]) -> str:
    """What is wrong, also where an error is raised; empty if nothing."""
    try:
        return judge() or ""
    except SkipIndexError as error:
        return f"refused: {type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 (whatever it is, it is a failure)
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        return f"raised {type(error).__name__} at {place}: {str(error)[:300]}"


def allows(patterns: Sequence[str], failure: str) -> bool:
    """Whether a failure is a refusal that the case allows."""
    return failure.startswith("refused: ") and any(
        re.search(one, failure) for one in patterns
    )
