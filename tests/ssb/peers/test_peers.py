"""Every peer that is installed answers rightly; one that does not is shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ssb.peers import run
from ssb.peers.__main__ import main, write_merged
from ssb.peers.adapters.delta_rs import DeltaRsPeer
from ssb.peers.interface import (
    Answer,
    CannotSayError,
    Cost,
    MissingPeerError,
    Peer,
    library,
    linked,
)
from ssb.peers.run import (
    LEFT_OUT,
    PEERS,
    Results,
    fault_of,
    matches_of,
    run_peers,
)
from ssb.queries import Query

ONE_FILE = Query("one file", "lo_orderdate < 19970105", "count(*)")
ALL = Query("all files", "lo_quantity < 25 AND c_city = 'UNITED KI3'", "count(*)")
EITHER = Query("or", "lo_orderdate < 19970105 OR lo_orderdate > 19970150", "count(*)")
NONE = Query("none", "lo_orderdate > 19990101", "count(*)")
LIKE = Query("like", "c_city LIKE 'UNITED%'", "count(*)")
QUERIES = (ONE_FILE, ALL, EITHER, NONE)
COLUMNS = ("c_city", "lo_orderdate", "lo_quantity")
IN_DEVELOPMENT = {
    *("skipindex min/max", "skipindex all indexes"),
    *("delta-rs", "pyarrow footers", "DuckDB", "Polars"),
}
"""Whose libraries the extra ``dev`` installs, so that they never go untested."""


def made(name: str, work: Path) -> Peer:
    try:
        return PEERS[name](work)
    except MissingPeerError as error:
        assert name not in IN_DEVELOPMENT
        pytest.skip(f"{name}: {error}")


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_is_right(name: str, files: list[Path], tmp_path: Path) -> None:
    """No match is lost, the count is right, and something is skipped."""
    truth = matches_of(files, QUERIES)
    peer = made(name, tmp_path)
    assert peer.name == name
    cost = peer.build(files, COLUMNS)
    assert cost.seconds >= 0
    assert cost.n_bytes >= 0
    for query in QUERIES:
        answer = peer.ask(query)
        assert fault_of(answer, truth[query.name]) == "", query.name
        assert len(truth[query.name]) <= answer.kept <= answer.of == len(files)
    assert (peer.ask(ONE_FILE).kept, peer.ask(NONE).kept) == (1, 0)
    assert peer.ask(EITHER).kept == 2
    assert peer.ask(ALL).kept == len(files)


def test_the_truth_is_that_of_the_rows(files: list[Path]) -> None:
    found = matches_of(files, QUERIES)
    table = pa.concat_tables(map(pq.read_table, files)).to_pylist()
    n = sum(row["lo_quantity"] < 25 and row["c_city"] == "UNITED KI3" for row in table)
    assert sum(found["all files"].values()) == n > 0
    assert set(found["one file"]) == {"part-0.parquet"}
    assert found["none"] == {}


def test_delta_rs_has_statistics_of_every_column(tmp_path: Path) -> None:
    """Of the first 32 alone it has them by default."""
    for i in range(3):
        columns = {f"n{c:02}": [i * 10, i * 10 + 1] for c in range(40)}
        pq.write_table(pa.table(columns), tmp_path / f"{i}.parquet")
    peer = DeltaRsPeer(tmp_path / "work")
    peer.build(sorted(tmp_path.glob("*.parquet")), ["n39"])
    answer = peer.ask(Query("last", "n39 = 11", "count(*)"))
    assert answer.files == {"1.parquet"}


class Sample:
    """A peer that says what it is told to say."""

    name, version, unit = "sample", "1", "files"

    def __init__(self, says: Callable[[], Answer]) -> None:
        self._says = says

    def build(self, files: Sequence[Path], columns: Sequence[str]) -> Cost:
        assert files
        assert set(columns) == {"lo_orderdate"}
        return Cost(0.5, 1_500_000, "made up")

    def ask(self, query: Query) -> Answer:
        assert query is ONE_FILE
        return self._says()


def run_sample(
    says: Callable[[], Answer],
    files: Sequence[Path],
    work: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[dict[str, Any], Results]:
    monkeypatch.setattr(run, "PEERS", {"sample": lambda _: Sample(says)})
    results = run_peers({"sorted": files}, [ONE_FILE], work, names=["sample"])
    oracle, row = results.asked
    assert (oracle["peer"], oracle["kept"], oracle["of"]) == ("oracle", 1, len(files))
    return row, results


def test_a_lost_match_is_shown(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = Answer.of_files(frozenset({"part-1.parquet"}), 6, 0.001)
    row, results = run_sample(lambda: wrong, files, tmp_path, monkeypatch)
    assert row["answer_right"] is False
    assert row["note"].startswith("WRONG: 1 files with ")
    assert (row["kept"], row["planning_ms"]) == (1, 1.0)
    assert results.builds == [{
        "peer": "sample", "version": "1", "layout": "sorted", "build_seconds": 0.5,
        "index_MB": 1.5, "note": "made up",
    }]  # fmt: skip


def test_a_wrong_count_is_shown(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = Answer(1, 6, None, rows=1)
    row, _ = run_sample(lambda: wrong, files, tmp_path, monkeypatch)
    assert row["answer_right"] is False
    assert row["note"].startswith("WRONG: it counts 1 rows, ")
    assert row["planning_ms"] is None


@pytest.mark.parametrize("error", [CannotSayError("no OR"), RuntimeError("crash\nat")])
def test_what_a_peer_raises_is_its_answer(
    error: Exception,
    files: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def says() -> Answer:
        raise error

    row, _ = run_sample(says, files, tmp_path, monkeypatch)
    assert (row["kept"], row["answer_right"]) == (None, None)
    assert row["note"] in {"cannot say: no OR", "failed: crash"}


def test_an_answer_that_tells_nothing_is_no_answer() -> None:
    assert "neither" in fault_of(Answer(1, 1, None), {})
    assert fault_of(Answer(0, 1, None, rows=0), {}) == ""


def test_a_condition_that_delta_rs_cannot_express(
    files: list[Path], tmp_path: Path
) -> None:
    results = run_peers({"sorted": files}, [LIKE], tmp_path, names=["delta-rs"])
    _, row = results.asked
    assert (row["kept"], row["answer_right"]) == (None, None)
    assert row["note"].startswith("cannot say: ")


def test_a_missing_library_is_named() -> None:
    with pytest.raises(MissingPeerError, match=r"no_such_peer .* the extra 'peers'"):
        library("no_such_peer")


def test_linked_files_are_those_of_the_layout(
    files: list[Path], tmp_path: Path
) -> None:
    stale = tmp_path / "copy" / "old.parquet"
    stale.parent.mkdir()
    stale.touch()
    links = linked(files, tmp_path / "copy")
    assert sorted((tmp_path / "copy").iterdir()) == links
    assert [link.samefile(file) for link, file in zip(links, files, strict=True)]


def test_the_command_writes_and_prints(
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("ssb.peers.__main__.QUERIES", QUERIES)
    monkeypatch.setattr("ssb.peers.__main__.LOOKUPS", (LIKE,))
    names = ["delta-rs", "skipindex min/max"]
    arguments = ["--data", str(data), "--out", str(tmp_path / "results")]
    assert main([*arguments, "--peers", *names, "--repeat", "2"]) == 0
    rows = json.loads((tmp_path / "results" / "peers.json").read_text())
    by_peer = {p: [r for r in rows if r["peer"] == p] for p in (*names, "oracle")}
    assert {p: [r["kept"] for r in of] for p, of in by_peer.items()} == {
        "oracle": [1, 6, 2, 0, 6],
        "delta-rs": [1, 6, 2, 0, None],
        "skipindex min/max": [1, 6, 2, 0, 6],
    }
    assert all(row["of"] == 6 for row in rows if row["kept"] is not None)
    builds = json.loads((tmp_path / "results" / "peer_builds.json").read_text())
    assert [row["peer"] for row in builds] == [*names, *LEFT_OUT]
    printed = capsys.readouterr().out
    line = next(one for one in printed.splitlines() if " delta-rs " in one).split()
    assert line[:2] == ["unordered", "delta-rs"]
    assert line[4:10] == ["15", "30", "1", "4", "of", "4"]
    assert "missing: hudi-rs" in printed
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == [
        "peer_builds.json",
        "peers.json",
    ]


def test_a_wrong_question_is_refused(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path)]
    assert main(["--data", str(data), *out, "--queries", "Q9"]) == 2
    assert "no query 'Q9': accepted are Q1.1, " in capsys.readouterr().err
    assert main(["--data", str(tmp_path), *out]) == 2
    assert "accepted is an SSB data set" in capsys.readouterr().err


def test_results_of_other_peers_stay(tmp_path: Path) -> None:
    def row(peer: str, layout: str, note: str) -> dict[str, Any]:
        return {"peer": peer, "layout": layout, "note": note}

    def stored() -> list[tuple[str, ...]]:
        return [tuple(one.values()) for one in json.loads(path.read_text())]

    path = tmp_path / "rows.json"
    write_merged(path, [row("a", "x", "1"), row("b", "", "missing")])
    write_merged(path, [row("a", "y", "2"), row("b", "x", "3")])
    assert stored() == [("a", "x", "1"), ("a", "y", "2"), ("b", "x", "3")]
    write_merged(path, [row("a", "x", "4"), row("b", "", "missing")])
    assert stored() == [("a", "y", "2"), ("b", "x", "3"), ("a", "x", "4")]
