"""The headlines: steps that are stored, engines that are compared, and the page."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ssb import SsbError, steps
from ssb.__main__ import main
from ssb.data.generate import Dataset
from ssb.grid.records import Records, StepRecord
from ssb.grid.setting import Setting, write_run
from ssb.headlines import skipped, small_files, studies, warehouse
from ssb.headlines.claims import CLAIMS, Measured
from ssb.headlines.command import all_steps, chosen
from ssb.headlines.engines import Engine
from ssb.headlines.studies import COLUMNS
from ssb.peers.interface import MissingPeerError
from ssb.queries import QUERIES, Query
from ssb.steps import (
    SHORT,
    Context,
    Effort,
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


def engine(name: str, rows: Sequence[tuple[Any, ...]], log: list[str]) -> Engine:
    """An engine that gives the same rows always, and logs what it is told."""

    def ask(query: Query) -> list[tuple[Any, ...]]:
        log.append(f"{name} {query.name}")
        if not rows:
            raise ValueError("first line\nsecond line")
        return list(rows)

    return Engine(name, "1", ask, lambda: log.append("forget"), 1.5, 2_000_000)


def test_engines_are_asked_in_turn_and_losses_are_rows() -> None:
    log: list[str] = []

    def missing(_: object) -> list[Engine]:
        raise MissingPeerError("it cannot be imported")

    makers = {
        "first": lambda _: [engine("a", [(1, "x"), (2, "y")], log)],
        "second": missing,
        "third": lambda _: [
            engine("b", [(2, "y"), (1, "x")], log),
            engine("c", [(3, "x")], log),
            engine("d", [], log),
        ],
    }
    rows = warehouse.compared(makers, None, QUERIES[:2], SHORT, lambda _: None).rows
    loads = [row for row in rows if row["query"] == "load"]
    assert [row["engine"] for row in loads] == ["a", "second", "b", "c", "d"]
    assert loads[0]["MB"] == 2.0
    assert str(loads[1]["note"]).startswith("missing: ")
    of_first = [row for row in rows if row["query"] == "Q1.1"]
    same = {row["engine"]: row.get("same") for row in of_first}
    assert same == {"a": 1, "b": 1, "c": 0, "d": None}
    assert [r["note"] for r in of_first if "note" in r] == ["failed: first line"]
    assert {row.get("state") for row in of_first[:2]} == {"cold", "warm"}
    runs = SHORT.cold + SHORT.warm
    assert log.count("a Q1.1") == log.count("c Q1.2") == runs
    assert log[:2] == ["forget", "a Q1.1"]
    assert log.index("b Q1.1") < log.index("a Q1.2")


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
            assert chosen(claim.steps)


def test_a_page_keeps_what_is_around_the_marks(tmp_path: Path) -> None:
    page = pytest.importorskip("ssb.headlines.page", exc_type=ImportError)
    text = f"# Title\n\n{page.BEGIN}\nold\n{page.END}\n\nafter\n"
    found = page.between(text, "new", tmp_path / "page.md")
    assert found == text.replace("old", "new")
    assert page.between(found, "new", tmp_path / "page.md") == found
    for lacking in (text.replace(page.BEGIN, ""), text.replace(page.END, "")):
        with pytest.raises(SsbError, match=r"page.md' lacks a mark: accepted is"):
            page.between(lacking, "new", tmp_path / "page.md")


def test_the_page_of_the_docs_has_the_marks_and_begins_with_the_claims() -> None:
    page = pytest.importorskip("ssb.headlines.page", exc_type=ImportError)
    docs = ROOT / "docs" / "benchmark.md"
    before, _, after = page.between(docs.read_text(), "x", docs).partition("\nx\n")
    assert before.count("\n## ") == 1
    assert "\n## " in after
    assert "| claim | in the articles | measured | command |" in docs.read_text()


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few values of everything, and each once."""
    patched: dict[Any, dict[str, Any]] = {
        small_files: {"LEAST_ROWS": 3_000},
        warehouse: {"QUERIES": QUERIES[:3]},
        skipped: {
            "LAYOUTS": ("linear", "zorder", "hilbert"),
            "SETS": ("minmax", "bloom", "bitmap", "full"),
        },
        studies: {"COLUMNS": COLUMNS[:2], "SIZES": (1024,), "CUBES": (0.5,)},
        steps: {"SHORT": Effort(files=5, small=1, warm=1, cold=1, study=1, appends=2)},
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
        *small_files.steps(),
        *warehouse.steps(),
        *skipped.steps(7),
        *studies.steps(),
    ]
    run_steps(run, every)
    assert not list((tmp_path / "work").iterdir())
    measured = Measured(records)
    assert all(row["same"] for row in measured.rows(small_files.STUDY, state="warm"))
    asked = measured.rows(warehouse.STUDY, state="warm")
    assert {row["engine"] for row in asked} >= {"Spark", "Spark under enable"}
    assert all(row["same"] for row in asked)
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
    assert "not measured yet" not in text.lower()
    for name in page.PICTURES:
        assert f"(headlines-{name}.svg)" in text
        assert (tmp_path / f"headlines-{name}.svg").read_text().startswith("<svg")
