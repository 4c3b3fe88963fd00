"""Adding an index kind is adding one file: ``tests/sample_kind.py``, not a fake.

It is installed as pip would do it, by a dist-info with an entry point on ``sys.path``.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import skipindex as sx
from skipindex.errors import UnknownIndexError
from skipindex.indexes import index_type, index_types, parse_spec
from tests import sample_kind
from tests.indexes import test_contract as contract
from tests.indexes.test_registry import clear_kinds
from tests.sample_kind import Buckets
from tests.tables import build, edit_blobs, put_all

ROOT = Path(__file__).parents[2]


@pytest.fixture
def site(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A folder of installed packages, with one that brings the kind."""
    site = tmp_path_factory.mktemp("site")
    info = site / "skipindex_buckets-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: skipindex-buckets\nVersion: 1.0\n"
    )
    (info / "entry_points.txt").write_text(
        "[skipindex.indexes]\nbuckets = tests.sample_kind:INDEX_TYPE\n"
    )
    monkeypatch.syspath_prepend(site)
    clear_kinds()
    yield site
    clear_kinds()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = [{"a": [1, 5, 9 + i], "s": ["x", None, f"z{i}"]} for i in range(8)]
    return put_all(tmp_path, files)


def test_without_its_package_the_kind_is_unknown() -> None:
    clear_kinds()
    with pytest.raises(UnknownIndexError, match="unknown index kind 'buckets'"):
        index_type("buckets")


def test_the_installed_kind_is_discovered(site: Path) -> None:
    assert index_type("buckets") is sample_kind.INDEX_TYPE
    assert parse_spec("buckets") == Buckets()
    assert "buckets" not in index_types(), "it is not one of ours"


@pytest.mark.parametrize(
    "law",
    [
        contract.test_answers_enclose_the_true_rows,
        contract.test_bytes_are_the_same_on_every_run,
        contract.test_every_flipped_bit_is_refused_by_the_checksum,
        contract.test_without_a_checksum_damage_is_no_other_error,
        contract.test_a_newer_payload_is_refused_as_such,
        contract.test_trap_c14_an_index_on_text_is_not_asked_about_numbers,
    ],
    ids=lambda law: str(law.__name__),
)
def test_the_installed_kind_obeys_the_contract(site: Path, law: object) -> None:
    assert callable(law)
    law(spec=Buckets(n_buckets=16))


def test_build_and_plan_use_the_installed_kind(site: Path, folder: Path) -> None:
    table = build(folder, {"a": Buckets(n_buckets=512), "s": ["buckets", "bitmap"]})
    assert table.plan("a = 4 OR a = 14").paths == ["5.parquet"]
    plan = table.plan("a = 14 AND s = 'z5'", kinds=["buckets"])
    assert plan.paths == ["5.parquet"]
    skipped = {file.path: file for file in plan.skipped}["4.parquet"]
    assert skipped.reason == "a = 14: buckets index holds none of the values"
    assert table.plan("a > 14", kinds=["buckets"]).paths == table.paths
    dropped = table.drop_indexes(kinds=["buckets"])
    assert dropped.plan("a = 4", kinds=["buckets"]).paths == table.paths


def test_a_table_outlives_the_package_of_its_index(site: Path, folder: Path) -> None:
    """Its packs are there, the code is not: files are kept, and the plan says so."""
    build(folder, {"a": "buckets", "s": "bitmap"})
    (site / "skipindex_buckets-1.0.dist-info" / "entry_points.txt").unlink()
    clear_kinds()
    plan = sx.plan_files("a = 4", table=folder)
    assert len(plan.paths) == 8
    assert "unknown index kind 'buckets'" in plan.notes[0]
    assert len(sx.plan_files("s = 'z5'", table=folder).paths) == 1


def test_a_table_outlives_a_package_that_fails(site: Path, folder: Path) -> None:
    """Its entry point is there, and what it names cannot be imported."""
    build(folder, {"a": "buckets", "s": "bitmap"})
    points = site / "skipindex_buckets-1.0.dist-info" / "entry_points.txt"
    points.write_text("[skipindex.indexes]\nbuckets = tests.no_such_module:KIND\n")
    clear_kinds()
    plan = sx.plan_files("a = 4 AND s = 'z5'", table=folder)
    assert plan.paths == ["5.parquet"]
    assert "index kind 'buckets' cannot be loaded" in plan.notes[0]
    assert sx.open_table(folder).indexes
    assert not sx.open_table(folder).verify().ok


def test_damage_is_no_index_of_the_installed_kind(site: Path, folder: Path) -> None:
    def scramble(blob: bytearray) -> None:
        blob[20] ^= 0xFF  # inside of the first payload

    build(folder, {"a": "buckets"})
    edit_blobs(folder, scramble)
    plan = sx.plan_files("a = 4", table=folder)
    assert "0.parquet" in plan.paths
    assert "crc32c" in plan.notes[0]


@pytest.mark.slow
def test_a_new_process_finds_the_kind_by_itself(site: Path, folder: Path) -> None:
    """As every worker of a build does."""
    code = (
        "import skipindex as sx\n"
        f"report = sx.build_indexes({str(folder)!r}, {{'a': 'buckets'}}, workers=1)\n"
        "print(len(report.table.plan('a = 4').paths) < 8)\n"
    )
    path = ":".join([str(site), str(ROOT), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "True\n"
