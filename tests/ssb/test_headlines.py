"""The headlines: steps that are stored, engines that are compared, and the page."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ssb import SsbError
from ssb.__main__ import main
from ssb.data.generate import Dataset
from ssb.grid.records import Records, StepRecord, step_key
from ssb.grid.setting import Setting, write_run
from ssb.grid.studies import COLUMNS
from ssb.headlines import skipped, small_files, steps, studies, warehouse
from ssb.headlines.claims import CLAIMS, Measured
from ssb.headlines.command import all_steps, chosen
from ssb.headlines.engines import Engine, wide_sums
from ssb.headlines.steps import (
    SHORT,
    Context,
    Effort,
    Found,
    Meter,
    Step,
    forget,
    run_steps,
    spread,
)
from ssb.peers.interface import MissingPeerError
from ssb.queries import QUERIES, Query

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


def test_a_step_comes_back_as_it_was(tmp_path: Path) -> None:
    Records(tmp_path, SETTING).add(STEP)
    again = Records(tmp_path, SETTING)
    assert list(again) == [STEP]
    assert step_key("one/a") in again
    assert list(Records(tmp_path, SETTING | {"scale": 1})) == []


def test_a_step_is_run_once_and_what_it_wrote_goes_after_the_last(
    tmp_path: Path,
) -> None:
    told: list[str] = []
    done: list[str] = []

    def step(name: str) -> Step:
        def run(_: Context) -> Found:
            done.append(name)
            return Found([{"value": len(done)}], (name,))

        return Step(name, run, after=clean)

    def clean(_: Context) -> None:
        done.append("clean")

    made = [step("one/a"), step("one/b")]
    run_steps(context(tmp_path, told.append), made, chosen=made[:1])
    assert done == ["one/a"]
    again = context(tmp_path, told.append)
    run_steps(again, made, warm_up=lambda: done.append("warm"))
    assert done == ["one/a", "warm", "one/b", "clean"]
    assert again.rows("one/b") == ({"value": 3},)
    run_steps(context(tmp_path), made, warm_up=lambda: done.append("warm"))
    assert len(done) == 4
    assert told == ["1 of 1: one/a", "1 of 1: one/b"]


def test_a_step_that_fails_is_not_stored(tmp_path: Path) -> None:
    def fail(_: Context) -> Found:
        raise SsbError("no")

    run = context(tmp_path)
    with pytest.raises(SsbError, match="no"):
        run_steps(run, [Step("one", fail)])
    assert list(run.records) == []


def test_the_work_of_this_process_is_no_others() -> None:
    meter = Meter()
    sum(range(3_000_000))
    others = meter.others()
    assert others is None or 0 <= others <= 1
    assert meter.seconds() > 0


def test_a_spread_is_the_median_and_both_ends() -> None:
    assert spread([3.0, 1.0, 2.0]) == {"seconds": 2.0, "least": 1.0, "most": 3.0}
    assert spread([1.0, 2.0])["seconds"] == 1.5


def test_files_that_are_forgotten_stay(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    file = tmp_path / "below" / "a"
    file.write_bytes(b"abc")
    forget(tmp_path)
    assert file.read_bytes() == b"abc"


@pytest.mark.parametrize(
    ("n_rows", "n_files", "files"),
    [(6_001_215, 100, 10_000), (600_572, 100, 1_000), (60_175, 10, 100)],
)
def test_small_files_are_as_many_as_the_rows_allow(
    n_rows: int, n_files: int, files: int
) -> None:
    rows = small_files.small_rows(n_rows, n_files)
    assert rows >= small_files.LEAST_ROWS
    assert n_files * -(-n_rows // n_files // rows) == files


def test_times_of_a_cold_run_are_summed_with_the_opening() -> None:
    sides = {"layout alone": {"opening": [1.0, 1.5], "Q3.1": [2.0, 4.0]}}
    total, *parts = small_files.cold_rows("zorder", sides)
    assert total["query"] == "all"
    assert (total["least"], total["most"]) == (3.0, 5.5)
    assert [part["query"] for part in parts] == ["opening", "Q3.1"]


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


def test_a_sum_is_wide_enough_for_polars() -> None:
    texts = [wide_sums(query.sql("flat")) for query in QUERIES]
    assert all(text.count("sum(CAST(lo_") == text.count("sum(") for text in texts)


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


def test_a_claim_that_is_not_measured_says_which_step_is_missing(
    tmp_path: Path,
) -> None:
    measured = Measured(Records(tmp_path, SETTING))
    told = [claim.told(measured) for claim in CLAIMS if not claim.test]
    assert all(text.startswith("not measured yet: the step '") for text in told)
    assert len(told) > 8


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


def test_steps_beside_other_work_are_told(tmp_path: Path) -> None:
    page = pytest.importorskip("ssb.headlines.page", exc_type=ImportError)
    records = Records(tmp_path, SETTING)
    records.add(dataclasses.replace(STEP, busy=0.01))
    run = {
        "setting": SETTING,
        "machine": {
            "cores": 2,
            "processor": "p",
            "memory (GiB)": 8.0,
            "system": "Linux",
        },
        "versions": {"skipindex": "1"},
    }
    assert len(list(page.setting_lines(run, records))) == 1
    records.add(dataclasses.replace(STEP, step="one/b"))
    *_, line = page.setting_lines(run, records)
    assert line.startswith("1 steps ran beside other work, which took up to 25 %")


def test_the_page_says_where_80_percent_hold_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = pytest.importorskip("ssb.headlines.page", exc_type=ImportError)
    records = Records(tmp_path, SETTING)
    found = {"linear": (0.5, 0.7), "zorder": (0.6, 0.9), "hilbert": (0.85, 0.95)}
    monkeypatch.setattr(skipped, "LAYOUTS", tuple(found))
    for layout, parts in found.items():
        rows = [
            {"layout": layout, "indexes": name, "group": "ssb", "skipped": part}
            for name, part in zip(("minmax", skipped.ORACLE), parts, strict=True)
        ]
        step = f"{skipped.STUDY}/{layout}"
        records.add(dataclasses.replace(STEP, step=step, rows=tuple(rows)))
    lines = list(page.why_eighty(Measured(records)))
    assert [line.partition(":")[0] for line in lines] == [
        "The 80 % are reached by hilbert.",
        "Only row-level indexes reach them for zorder",
        "No index reaches them for linear",
    ]
    (eighty,) = [claim for claim in CLAIMS if claim.ours.__name__ == "_eighty"]
    assert eighty.told(Measured(records)).endswith(
        "linear 50 % (not met; 70 % possible), zorder 60 % (not met; 90 % possible), "
        "hilbert 85 % (met; 95 % possible)"
    )


def test_a_table_of_markdown_sets_numbers_to_the_right() -> None:
    page = pytest.importorskip("ssb.headlines.page", exc_type=ImportError)
    assert page.table(("a", "n"), [("x|y", 1), ("z", None)]) == [
        "| a | n |",
        "|---|--:|",
        "| x\\|y | 1 |",
        "| z | - |",
    ]


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
