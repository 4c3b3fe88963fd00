"""A cluster whose workers do not have skipindex does all that a table needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.spark.cluster.clusters import driver, standalone, write_site

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(params=["local-cluster", "standalone"])
def master(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    is_alone = request.param == "standalone"
    cluster: Any = nullcontext("local-cluster[2,1,1024]")
    with standalone(tmp_path) if is_alone else cluster as url:
        yield url


def test_a_table_is_made_and_read(master: str, tmp_path: Path) -> None:
    found = driver("work.py", master, write_site(tmp_path / "site"), tmp_path)
    assert found["before"] == ["ModuleNotFoundError: No module named 'skipindex'"]
    for path in found["after"]:
        assert path.endswith("skipindex.zip/skipindex/build/task.py")
    assert found["files"] == 10
    assert found["notes"] == []
    for done, of in (found["written"], found["built"]):
        assert done == of > 1
    ids = [i for i in range(4000) if (i % 40, i % 71) == (7, 11)]
    assert found["rows"] == sorted([*ids, *(i + 4000 for i in ids)])
    n_read, n_files, bounds = found["planned"]
    assert n_read < n_files == 20
    assert bounds == [2 * len(ids)] * 2
    assert found["ok"]["ok"], found["ok"]
    assert found["alike"], "the executors check what the driver does"
    assert found["same"]
    assert found["optimized"] == 1
    assert found["verified"]["ok"], found["verified"]
    n_read, n_files = found["read"]
    assert n_read == 1 < n_files


def test_a_task_that_runs_twice_leaves_what_one_run_leaves(tmp_path: Path) -> None:
    """It fails, its process dies, or a copy of it on the other host is faster."""
    ends = ("fails", "dies", "sleeps")
    with standalone(tmp_path) as master:
        site = write_site(tmp_path / "site")
        found = driver("repeats.py", master, site, tmp_path, *ends)
    for end in ends:
        of_one = found[end]
        assert of_one["runs"] == 2, end
        assert (of_one["files"], of_one["notes"]) == (16, [])
        assert of_one["same_packs"], end
        assert of_one["progress"], "it never goes back"
        assert of_one["verified"]["ok"], of_one
        assert of_one["verified"]["orphans"] == [], end
        assert of_one["paths"] == ["04.parquet"]
