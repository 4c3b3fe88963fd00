"""Every public name has an example, and it runs as it is written."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.table import Table as IcebergTable

import skipindex as sx
from skipindex import api
from skipindex.api.types import Located
from tests.tables import api_members, put

if TYPE_CHECKING:  # the others run without PySpark
    from pyspark.sql import SparkSession

FINDER = doctest.DocTestFinder(recurse=False)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def public() -> Iterator[tuple[str, Any]]:
    """The public names, and the methods of the three classes that have some."""
    more = {name for name, value in vars(api).items() if callable(value)}
    values = {name: getattr(api, name) for name in sorted({*sx.__all__, *more})}
    for name, value in [*values.items(), ("Located", Located)]:
        if value is not Located:
            yield name, value
        if value in (sx.Table, sx.Plan, Located):
            for key, member in api_members(value).items():
                if not key.startswith("_") and _is_method(member):
                    yield f"{name}.{key}", member


def _is_method(member: object) -> bool:
    return inspect.isfunction(member) or isinstance(member, classmethod)


def example(name: str, value: Any) -> doctest.DocTest:
    text = inspect.cleandoc(getattr(value, "__doc__", "") or "")
    return doctest.DocTestParser().get_doctest(text, {}, name, None, 0)


EXAMPLES = {name: example(name, value) for name, value in public()}


def needs_spark(test: doctest.DocTest) -> bool:
    return any("spark" in one.source for one in test.examples)


@pytest.fixture
def names(tmp_path: Path) -> dict[str, Any]:
    """What examples may use: two files of five rows, with an index."""
    folder = tmp_path / "table"
    first = {"city": ["Rome", "Oslo", "Oslo"], "price": [1, 2, 3]}
    put(folder / "part-0.parquet", first)
    put(folder / "part-1.parquet", {"city": ["Paris", "Rome"], "price": [4, 5]})
    table = sx.build_indexes(folder, {"city": "bitmap"}, workers=1).table
    new_path = str(tmp_path / "new")
    return {"sx": sx, "path": str(folder), "table": table, "new_path": new_path}


def iceberg_table(folder: Path) -> IcebergTable:
    folder.mkdir()
    catalog = InMemoryCatalog("c", warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    rows = pa.table({"a": [1, 2]})
    table = catalog.create_table("db.t", schema=rows.schema)
    table.append(rows)
    return table


def run(test: doctest.DocTest, names: dict[str, Any]) -> None:
    told: list[str] = []
    if any("iceberg" in one.source for one in test.examples):
        names["iceberg"] = sx.open_table(iceberg_table(Path(names["new_path"])))
    test.globs = names
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=told.append)
    assert not told, "".join(told)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_public_name_has_an_example(name: str) -> None:
    assert EXAMPLES[name].examples, f"{name} has no example"


@pytest.mark.parametrize("name", [n for n, e in EXAMPLES.items() if not needs_spark(e)])
def test_the_example_runs(name: str, names: dict[str, Any]) -> None:
    run(EXAMPLES[name], names)


@pytest.mark.few(2)
@pytest.mark.spark
@pytest.mark.parametrize("name", [n for n, e in EXAMPLES.items() if needs_spark(e)])
def test_the_example_runs_on_spark(
    name: str, names: dict[str, Any], spark: SparkSession
) -> None:
    run(EXAMPLES[name], {**names, "spark": spark})
