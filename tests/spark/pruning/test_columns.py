"""Which column a name is, its zone, and its default."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from tests.quick_run import RUN
from tests.table.which_column import CONDITIONS, NAMES, Table, ids_of, is_true, same

pytestmark = pytest.mark.spark


@pytest.fixture(params=[False, True], ids=["folded", "exact"])
def exact(request: pytest.FixtureRequest, pruned: SparkSession) -> Iterator[bool]:
    """Whether capitals tell names apart in the session, which asks for answers too."""
    pruned.conf.set("spark.sql.caseSensitive", str(request.param).lower())
    pruned.conf.set("skipindex.answers", "true")
    yield request.param
    pruned.conf.unset("skipindex.answers")
    pruned.conf.unset("spark.sql.caseSensitive")


@pytest.mark.few(1)
@pytest.mark.parametrize("kinds", ["bitmap", "bloom"])
def test_a_name_is_the_column_that_spark_reads(
    tmp_path: Path,
    pruned: SparkSession,
    exact: bool,
    kinds: str,
) -> None:
    random = Random(11)
    for case in range(2 if RUN.is_whole else 1):
        drawn = Table.draw(random)
        folder = str(drawn.write(tmp_path / f"{case}"))
        sx.build_indexes(folder, {"*": kinds}, workers=1)
        columns = drawn.schema(exact=exact)
        names = [n for n in NAMES if any(same(n, c, exact) for c in columns)]
        for name in random.sample(names, min(2, len(names))):
            condition = random.choice(CONDITIONS)
            ids = random.sample(range(4 * len(drawn.files)), 4)
            found = {
                n: value
                for file in range(len(drawn.files))
                for n, value in zip(
                    ids_of(file), drawn.values(file, name, exact=exact), strict=True
                )
                if n in ids and is_true(value, condition)
            }
            text = f"id IN ({', '.join(map(str, ids))}) AND {name} {condition}"
            rows = pruned.read.parquet(folder).where(text)
            case_of = (drawn, text)
            assert dict(rows.select("id", name).collect()) == found, case_of
            assert rows.groupBy().count().first()[0] == len(found), case_of
            ends = rows.selectExpr(f"min({name})", f"max({name})").first()
            known = [v for v in found.values() if v is not None]
            expected = (min(known, default=None), max(known, default=None))
            assert tuple(ends) == expected, case_of
            read = sx.read(folder, text, spark=pruned)
            assert {r["id"] for r in read.collect()} == set(found), case_of
