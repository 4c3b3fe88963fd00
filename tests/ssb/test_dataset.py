from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ssb import SsbError
from ssb.__main__ import main
from ssb.data import generate
from ssb.data.generate import TABLES, Dataset, find_dataset, find_or_generate


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


def test_the_command_line_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    assert main(["generate", "--scale", "0", "--out", out]) == 2
    assert capsys.readouterr().err == (
        "error: no SSB data at scale 0.0: accepted is 0.01 to 1000 in steps of 0.001\n"
    )
