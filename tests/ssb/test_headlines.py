"""The headlines: steps that are stored, engines that are compared, and the page."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ssb import SsbError, steps
from ssb.__main__ import main
from ssb.data.generate import Dataset
from ssb.grid.records import Records, StepRecord, cell_key
from ssb.grid.setting import Setting, write_run
from ssb.headlines import skipped, small_files, star, store, studies, whole
from ssb.headlines.claims import CLAIMS, Measured
from ssb.headlines.command import all_steps, chosen, problems
from ssb.headlines.engines import Way
from ssb.headlines.studies import COLUMNS
from ssb.queries import QUERIES, Query
from ssb.steps import (
    FULL,
    LARGE,
    SHORT,
    Context,
    Found,
    Step,
    run_steps,
)

ROOT = Path(__file__).parents[2]
SETTING = {"scale": 0.01, "files": 10}
STEP = StepRecord(
    step="one/a",
    rows=({"layout": "hilbert", "seconds": 0.5, "files": 3, "note": None},),
    seconds=2.0,
    busy=0.25,
    commit="0123456789",
    date="2026-01-02",
    notes=("a note",),
)
DATASET = Dataset(Path("nowhere"), 0.01, 4, 10, {"lineorder": 60_175})


def context(folder: Path, log: Any = lambda _: None) -> Context:
    """A run whose steps need no Spark."""
    records = Records(folder, SETTING)
    none: Any = None
    return Context(none, DATASET, records, folder / "work", log)


def test_a_step_that_fails_is_not_stored(tmp_path: Path) -> None:
    def fail(_: Context) -> Found:
        raise SsbError("no")

    run = context(tmp_path)
    with pytest.raises(SsbError, match="no"):
        run_steps(run, [Step("one", fail)])
    assert list(run.records) == []


def way(name: str, rows: Sequence[tuple[Any, ...]], log: list[str]) -> Way:
    """A way that gives the same rows always, and logs what it is told."""

    def ask(query: Query) -> list[tuple[Any, ...]]:
        log.append(f"{name} {query.name}")
        if not rows:
            raise ValueError("first line\nsecond line")
        return list(rows)

    forget = lambda: log.append("forget")  # noqa: E731 (what it does is its name)
    return Way(name, "1", "hilbert", "all files", ask, forget)


def test_ways_take_turns_and_failures_are_rows(tmp_path: Path) -> None:
    log: list[str] = []
    ways = [
        way("a", [(1, "x"), (2, "y")], log),
        way("b", [(2, "y"), (1, "x")], log),
        way("c", [(3, "x")], log),
        way("d", [], log),
    ]
    rows = whole.asked(ways, QUERIES[:2], SHORT, lambda _: None)
    of_first = [row for row in rows if row["query"] == "Q1.1"]
    answers = {row["engine"]: row.get("answer") for row in of_first}
    assert answers["a"] == answers["b"] != answers["c"]
    assert answers["d"] is None
    notes = [row["note"] for row in of_first if "note" in row]
    assert notes == ["failed: first line"] * 2
    assert {row["state"] for row in of_first} == {"cold", "warm"}
    runs = SHORT.cold + 1 + SHORT.warm
    assert log.count("a Q1.1") == log.count("c Q1.2") == runs
    assert log.count("d Q1.1") == 1
    assert log[:4] == ["forget", "a Q1.1", "forget", "b Q1.1"]

    records = Records(tmp_path, SETTING)
    records.add(dataclasses.replace(STEP, step=f"{whole.ASK}a", rows=tuple(rows[:4])))
    assert problems(records) == []
    records.add(dataclasses.replace(STEP, step=f"{whole.ASK}b", rows=tuple(rows)))
    differ = [f"whole queries: {name}: answers differ" for name in ("Q1.1", "Q1.2")]
    assert problems(records) == differ


def test_a_name_of_no_step_is_refused_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "data"
    assert main(["headlines", "--out", str(out), "--steps", "no such"]) == 2
    assert "no step is named 'no such': accepted is" in capsys.readouterr().err
    assert not out.exists()


def test_each_claim_names_steps_that_there_are() -> None:
    names = [step.name for step in all_steps()]
    assert len(set(names)) == len(names)
    for claim in CLAIMS:
        if claim.test:
            path, _, name = claim.test.partition(" -k ")
            assert f"def test_{name}" in (ROOT / path).read_text()
        else:
            assert chosen(claim.steps, FULL)


def test_a_short_run_measures_a_part_of_what_each_claim_rests_on() -> None:
    names = {step.name for step in all_steps()}
    for effort in (FULL, LARGE):
        assert {step.name for step in chosen(None, effort)} == names
    cells = {cell_key(one, s) for one in skipped.LAYOUTS for s in skipped.SETS}
    for pattern in SHORT.left_out:
        assert fnmatch.filter(names | cells, pattern), pattern
    short = {step.name for step in chosen(None, SHORT)}
    assert short < names
    for claim in CLAIMS:
        if not claim.test:
            named = {step.name for step in chosen(claim.steps, SHORT)}
            assert named & short, claim.claim


def test_a_page_keeps_what_is_around_the_marks(tmp_path: Path) -> None:
    page = pytest.importorskip("ssb.headlines.page", exc_type=ImportError)
    first, last = page.BLOCKS[0].marks(1)
    text = f"# Title\n\n{first}\nold\n{last}\n\nafter\n"
    place = tmp_path / "page.md"
    found = page.between(text, "new", (first, last), place)
    assert found == text.replace("old", "new")
    assert page.between(found, "new", (first, last), place) == found
    for lacking in (text.replace(first, ""), text.replace(last, "")):
        with pytest.raises(SsbError, match=r"page.md' lacks a mark: accepted is"):
            page.between(lacking, "new", (first, last), place)


def test_a_command_writes_the_blocks_that_it_measured(tmp_path: Path) -> None:
    page = pytest.importorskip("ssb.headlines.page", exc_type=ImportError)
    versions = {"machine": {}, "versions": {}, "setting": SETTING}
    machine = {"cores": 2, "processor": "x", "memory (GiB)": 1, "system": "y"}
    (tmp_path / "run.json").write_text(json.dumps(versions | {"machine": machine}))
    records = Records(tmp_path, SETTING)
    with pytest.raises(SsbError, match="nothing is measured yet"):
        page.write_page(records, tmp_path, None)
    records.add(STEP)
    claims = page.BLOCKS[-1].marks(SETTING["scale"])
    text = page.write_page(records, tmp_path, None).read_text()
    assert text.startswith(f"{claims[0]}\n| claim |")
    assert "1 of 1 steps ran beside other work of this machine or its host" in text
    other = tmp_path / "page.md"
    with pytest.raises(SsbError, match=r"no page .*accepted is .* claims"):
        page.write_page(records, tmp_path, other)
    other.write_text("no mark\n")
    with pytest.raises(SsbError, match=r"page.md' lacks a mark: accepted is"):
        page.write_page(records, tmp_path, other)


def test_the_page_of_the_docs_begins_with_whole_queries() -> None:
    page = pytest.importorskip("ssb.headlines.page", exc_type=ImportError)
    text = (ROOT / "docs" / "benchmark.md").read_text()
    whole_queries = page.BLOCKS[0]
    places = [text.index(mark) for mark in whole_queries.marks(10)]
    assert places == sorted(places)
    assert places[0] < text.index(whole_queries.marks(1)[0])
    for before, after in pairwise(page.BLOCKS):
        assert text.index(before.marks(1)[1]) < text.index(after.marks(1)[0])
    assert "| claim | in the articles | measured | command |" in text


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few values of everything, and each once."""
    patched: dict[Any, dict[str, Any]] = {
        store: {"QUERIES": QUERIES[:3], "DELAY": 0.001},
        star: {"QUERIES": QUERIES[:3]},
        whole: {"QUERIES": QUERIES[:3], "LAYOUTS": ("unordered", "hilbert")},
        skipped: {
            "LAYOUTS": ("linear", "zorder", "hilbert"),
            "SETS": ("minmax", "bloom", "bitmap", "full"),
        },
        studies: {"COLUMNS": COLUMNS[:2], "SIZES": (1024,), "CUBES": (0.5,)},
        steps: {"SHORT": dataclasses.replace(SHORT, files=5, appends=2, store=10)},
    }
    for module, values in patched.items():
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("few")
def test_a_whole_run_fills_every_row(
    spark: SparkSession, ssb_dataset: Dataset, tmp_path: Path
) -> None:
    page = pytest.importorskip("ssb.headlines.page", exc_type=ImportError)
    setting = Setting.of(ssb_dataset, lookups=7, seed=1)
    write_run(tmp_path, setting, "17")
    records = Records(tmp_path, dataclasses.asdict(setting))
    run = Context(spark, ssb_dataset, records, tmp_path / "work", lambda _: None)
    every = [
        *whole.steps(),
        *star.steps(),
        *store.steps(),
        *small_files.steps(),
        *skipped.steps(7),
        *studies.steps(),
    ]
    run_steps(run, every)
    assert not list((tmp_path / "work").iterdir())
    measured = Measured(records)
    assert all(row["same"] for row in measured.rows(small_files.STUDY, state="warm"))
    asked = measured.rows(whole.ASK, state="warm", engine="Spark")
    ways = {(row["layout"], row["indexes"]) for row in asked}
    of_each = ("all files", "min/max", "all indexes")
    assert ways == {(one, i) for one in ("unordered", "hilbert") for i in of_each}
    assert problems(records) == []
    for row in measured.rows(skipped.STUDY):
        assert row.get("lost", 0) == 0
        if row["indexes"] == "full":
            oracle = {"layout": row["layout"], "group": row["group"]}
            best = measured.one(skipped.STUDY, indexes="oracle", **oracle)
            assert row["skipped"] == best["skipped"]
    for row in [*measured.rows("clustering"), *measured.rows("size of files")]:
        assert row["same"]
        assert row["oracle"] <= row["kept"] <= row["files"] * len(QUERIES)
    *runs, end = measured.rows(studies.BY_CUBE)
    assert [row["run"] for row in runs] == [1, 2]
    assert runs[-1]["files"] == end["files"]

    text = page.write_page(records, tmp_path, None).read_text()
    assert text.lower().count("not measured yet") <= 1  # without ClickHouse
    for name in ("whole", *page.PICTURES):
        picture = f"headlines-{name}-{ssb_dataset.scale:g}.svg"
        assert f"({picture})" in text
        assert (tmp_path / picture).read_text().startswith("<svg")
