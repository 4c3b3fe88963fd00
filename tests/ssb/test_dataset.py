from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ssb import SsbError
from ssb.__main__ import main
from ssb.data import generate
from ssb.data.generate import TABLES, Dataset, find_dataset, find_or_generate
from ssb.data.scale import Sizes


@pytest.mark.slow
@pytest.mark.spark
def test_matching_data_are_found_again(
    ssb_dataset: Dataset, spark: SparkSession
) -> None:
    assert find_dataset(ssb_dataset.path) == ssb_dataset
    lines: list[str] = []
    found = find_or_generate(
        ssb_dataset.path,
        scale=ssb_dataset.scale,
        files=ssb_dataset.n_files,
        spark=spark,
        log=lines.append,
    )
    assert found == ssb_dataset
    assert lines == [f"reusing the data at {ssb_dataset.path}"]


def stored_dataset(folder: Path, **changes: object) -> Path:
    for table in TABLES:
        (folder / table).mkdir(parents=True)
    rows = dict.fromkeys(TABLES, 1)
    metadata = {"version": generate.FORMAT_VERSION, "scale": 0.01, "seed": 1}
    metadata |= {"n_files": 10, "row_counts": rows, **changes}
    (folder / "_SSB.json").write_text(json.dumps(metadata), encoding="utf-8")
    return folder


def test_incomplete_or_foreign_data_are_not_reused(tmp_path: Path) -> None:
    assert find_dataset(tmp_path / "nowhere") is None
    good = stored_dataset(tmp_path / "good")
    found = find_dataset(good)
    assert found is not None
    assert (found.flat, found.n_rows) == (good / "lineorder_flat", 1)
    assert found.tables["date"] == good / "date"
    assert find_dataset(stored_dataset(tmp_path / "old", version=0)) is None
    (good / "part").rmdir()
    assert find_dataset(good) is None
    damaged = stored_dataset(tmp_path / "damaged")
    (damaged / "_SSB.json").write_text("{", encoding="utf-8")
    assert find_dataset(damaged) is None


def checked(out: Path, **changes: object) -> None:
    request: dict[str, object] = {
        "scale": 0.01,
        "seed": 1,
        "files": None,
        "overwrite": False,
    }
    generate.check_request(out, **(request | changes))  # type: ignore[arg-type]


def test_nothing_that_is_not_ours_is_overwritten(tmp_path: Path) -> None:
    checked(tmp_path / "new")
    (tmp_path / "empty").mkdir()
    checked(tmp_path / "empty")
    ours = stored_dataset(tmp_path / "ours")
    checked(ours, overwrite=True)
    with pytest.raises(SsbError, match="holds an SSB data set"):
        checked(ours)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("years of work", encoding="utf-8")
    for path in (foreign, foreign / "thesis.txt"):
        with pytest.raises(SsbError, match="exists and is no SSB data set"):
            checked(path, overwrite=True)


@pytest.mark.parametrize(
    "scale", [0.0, -1.0, 0.009, 0.0125, 1000.5, 1e9, float("nan"), float("inf")]
)
def test_impossible_scales_are_refused(scale: float, tmp_path: Path) -> None:
    with pytest.raises(SsbError, match=r"accepted is 0\.01 to 1000 in steps of 0\.001"):
        checked(tmp_path / "out", scale=scale)


@pytest.mark.parametrize(
    ("scale", "parts", "ordered", "files"),
    [
        (0.01, 2000, 2000, 10),
        (0.1, 20_000, 20_000, 10),
        (0.25, 50_000, 50_000, 25),
        (1, 200_000, 200_000, 100),
        (2, 400_000, 200_000, 200),
        (4, 600_000, 400_000, 400),
        (10, 800_000, 600_000, 1000),
    ],
)
def test_sizes_grow_like_the_generator(
    scale: float, parts: int, ordered: int, files: int
) -> None:
    sizes = Sizes.of(scale)
    assert (sizes.n_customers, sizes.n_suppliers) == (30_000 * scale, 2000 * scale)
    assert (sizes.n_parts, sizes.n_ordered_parts) == (parts, ordered)
    assert sizes.default_files == files


def test_an_impossible_number_of_files_is_refused(tmp_path: Path) -> None:
    for files in (0, 15_001):
        with pytest.raises(SsbError, match="accepted is 1 to 15000, one order a file"):
            checked(tmp_path / "out", files=files)


def test_a_seed_beyond_64_bits_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SsbError, match="64-bit"):
        checked(tmp_path / "out", seed=2**63)


def test_a_missing_tpchgen_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SsbError, match=r"no tpchgen-cli .* install it with pip"):
        checked(tmp_path / "out")


@pytest.mark.spark
def test_a_failing_tpchgen_leaves_nothing_behind(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / "bin" / "tpchgen-cli"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\necho disk full >&2\nexit 3\n", encoding="utf-8")
    command.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(command.with_name("python")))
    with pytest.raises(SsbError, match="failed with 3: disk full"):
        generate.generate(tmp_path / "out", scale=0.01, spark=spark)
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


def test_the_command_line_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    assert main(["generate", "--scale", "0", "--out", out]) == 2
    assert capsys.readouterr().err == (
        "error: no SSB data at scale 0.0: accepted is 0.01 to 1000 in steps of 0.001\n"
    )
