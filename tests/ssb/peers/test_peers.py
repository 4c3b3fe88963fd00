"""Every peer that is installed answers rightly; one that does not is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ssb.peers import run
from ssb.peers.interface import (
    Answer,
    CannotSayError,
    Cost,
    MissingPeerError,
    Peer,
)
from ssb.peers.run import (
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


@pytest.mark.few(4)
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
