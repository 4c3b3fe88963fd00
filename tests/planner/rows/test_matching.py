"""The rows of a plan in other engines are those of the row oracle: Spark's rows."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from skipindex.conditions.bound_predicate import Unknown, unknowns
from skipindex.errors import PlanError
from skipindex.expressions import Predicate
from tests import oracle
from tests.planner.test_soundness import write_files
from tests.quick_run import examples
from tests.strategies import (
    ColumnData,
    integers_of,
    predicates,
    tables,
    to_arrow,
    values_of,
)

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("polars")
pytest.importorskip("pandas")

UNSURE = "cannot be evaluated without Spark"


def rows_of(plan: sx.Plan) -> Mapping[str, list[int]]:
    """The numbers of the matching rows, by engine; in DuckDB through its own filter."""
    connection = duckdb.connect()
    relation = plan.to_duckdb(connection).filter("id >= 0").project("id")
    return {
        "arrow": plan.to_arrow().to_table(columns=["id"])["id"].to_pylist(),
        "duckdb": [row[0] for row in relation.fetchall()],
        "polars": plan.to_polars().select("id").collect()["id"].to_list(),
        "pandas": plan.to_pandas()["id"].tolist(),
    }


def expected_rows(tree: Predicate, columns: Mapping[str, ColumnData]) -> list[int]:
    return oracle.matching(tree, values_of(columns), integers=integers_of(columns))


def check(
    tree: Predicate,
    columns: Mapping[str, ColumnData],
    cuts: Sequence[int],
    kinds: Sequence[str] = ("minmax",),
) -> bool:
    """Whether there was something to compare."""
    rows = to_arrow(columns)
    rows = rows.append_column("id", pa.array(range(len(rows)), pa.int64()))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, rows, cuts)
        table = sx.build_indexes(
            folder, {key: list(kinds) for key in columns}, workers=1
        )
        plan = table.table.plan(tree, timezone="UTC")
        if any(type(node) is Unknown for node in unknowns(plan.tree)):
            with pytest.raises(PlanError, match=UNSURE):
                plan.to_arrow()
            return False
        expected = expected_rows(tree, columns)
        assert plan.to_arrow().count_rows() == len(expected)
        for engine, found in rows_of(plan).items():
            assert sorted(found) == expected, engine
        every = plan.to_arrow(rows="files").to_table()["id"].to_pylist()
        assert Counter(every) >= Counter(expected)
    return True


@examples(100, whole=600)
@given(st.data())
def test_the_rows_are_those_of_the_oracle(data: st.DataObject) -> None:
    columns = data.draw(tables(min_rows=1))
    check(
        data.draw(predicates(columns, two_columns=True)),
        columns,
        data.draw(st.lists(st.integers(0, 30), max_size=2)),
    )
