"""``verify_plan`` finds what a plan says wrongly, and only that."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.api.types import Violation
from skipindex.errors import PlanError
from tests.quick_run import examples
from tests.strategies import predicates, tables, to_arrow
from tests.tables import build, put, put_all, set_mtime

PLAIN: dict[str, Any] = {"use_dictionary": False, "compression": "NONE"}
"""Then all files of as many rows have the same size."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = [{"a": [*range(10 * i, 10 * i + 10)], "b": [1, 2] * 5} for i in range(4)]
    return put_all(tmp_path, files)


def test_a_true_plan_has_no_violation(folder: Path) -> None:
    table = build(folder, {"a": "bitmap", "b": "bitmap"})
    for condition in ("a < 15 AND b = 1", "a >= 10", "a IS NULL", "FALSE", "opaque(a)"):
        report = table.plan(condition).verify()
        assert report.is_right
        assert (report.checked, report.unchecked) == (4, {})


@examples(30, whole=130)
@given(st.data())
def test_true_plans_are_found_true(data: st.DataObject) -> None:
    columns = data.draw(tables(min_rows=1))
    tree = data.draw(predicates(columns, unsupported=["opaque()"], two_columns=True))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = to_arrow(columns)
        for i, start in enumerate(range(0, len(whole), 10)):
            pq.write_table(whole.slice(start, 10), folder / f"{i}.parquet")
        table = build(folder, dict.fromkeys(columns, "bitmap"))
        report = table.plan(tree, timezone="UTC").verify()
        assert report.is_right, report.violations
        assert report.checked == len(table)


def secretly_replaced(path: Path, columns: Any) -> None:
    """Other rows in a file of the same size and time: what no plan can see."""
    before = path.stat()
    put(path, columns, **PLAIN)
    assert path.stat().st_size == before.st_size
    set_mtime(path, before.st_mtime_ns / 1e9)


def as_integers(first: int) -> dict[str, pa.Array]:
    return {"a": pa.array(range(first, first + 10)), "b": pa.array([1, 2] * 5)}


@pytest.mark.parametrize(
    ("condition", "claim", "found"),
    [
        ("a < 10", "every row matches", "0 rows match"),
        ("a > 45", "no row matches", "10 rows match"),
        ("a < 10 AND b = 1", "at least 5 rows match", "0 rows match"),
        ("a IN (3, 55, 56)", "at most 1 rows match", "2 rows match"),
    ],
)
def test_a_lie_is_reported(
    tmp_path: Path, condition: str, claim: str, found: str
) -> None:
    put(tmp_path / "0.parquet", as_integers(0), **PLAIN)
    set_mtime(tmp_path / "0.parquet", 1e9)
    table = build(tmp_path, {"a": "bitmap", "b": "bitmap"})
    plan = table.plan(condition)
    secretly_replaced(tmp_path / "0.parquet", as_integers(50))
    report = plan.verify()
    assert not report.is_right
    assert report.violations == (Violation("0.parquet", claim, found),)
    assert report.to_dict()["violations"][0]["claim"] == claim


def test_a_file_that_changed_is_not_checked(folder: Path) -> None:
    plan = build(folder).plan("a = 5")
    put(folder / "1.parquet", {"a": [5, 5], "b": [1, 1]})
    (folder / "2.parquet").unlink()
    report = plan.verify()
    assert report.is_right
    assert report.checked == 2
    assert report.unchecked == {"changed since the plan was made": 2}


def test_a_file_of_another_type_is_not_checked(folder: Path) -> None:
    put(folder / "9.parquet", {"a": ["x"], "b": ["y"]})
    report = build(folder).plan("a = 5").verify()
    assert report.unchecked == {
        "column 'a' has type string here, and another in the table": 1
    }
    assert report.checked == 4


@pytest.mark.parametrize(
    ("sample", "checked"), [(None, 4), (0, 0), (2, 2), (99, 4), (0.5, 3), (0.01, 2)]
)
def test_a_sample(folder: Path, sample: float | None, checked: int) -> None:
    plan = build(folder).plan("a < 5")
    report = plan.verify(sample=sample)
    assert report.checked == checked
    assert np.isclose(len(plan.skipped), 3)


@pytest.mark.parametrize("sample", [-1, 1.5])
def test_what_is_no_sample(folder: Path, sample: float) -> None:
    with pytest.raises(PlanError, match=f"not a sample: {sample}"):
        build(folder).plan("a < 5").verify(sample=sample)


def test_partition_values_are_part_of_the_rows(tmp_path: Path) -> None:
    for p in ("1", "2", "__HIVE_DEFAULT_PARTITION__"):
        put(tmp_path / f"p={p}" / "f.parquet", {"a": [1, 2]})
    table = build(tmp_path, {"a": "bitmap"})
    for condition in ("p = 1 AND a = 2", "p IS NULL", "p <> 2 OR a > 1"):
        report = table.plan(condition).verify()
        assert report.is_right
        assert report.checked == 3


def test_a_limit_is_checked_by_what_is_known(folder: Path) -> None:
    plan = build(folder).plan("a >= 0", limit=3, order_by="a")
    report = plan.verify()
    assert report.is_right
    assert report.checked == 4
