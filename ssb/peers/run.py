"""All peers over all layouts: what each keeps, what it costs, and is it right."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ssb.peers.adapters.arrow import ArrowPeer
from ssb.peers.adapters.clickhouse import ClickHousePeer
from ssb.peers.adapters.delta_rs import DeltaRsPeer
from ssb.peers.adapters.iceberg import IcebergPeer
from ssb.peers.adapters.lance_format import LancePeer
from ssb.peers.adapters.paimon import PaimonPeer
from ssb.peers.adapters.readers import DataFusionPeer, DuckDbPeer, PolarsPeer
from ssb.peers.adapters.skip_index import SkipIndexPeer
from ssb.peers.interface import (
    Answer,
    CannotSayError,
    MissingPeerError,
    Peer,
    library,
)
from ssb.queries import Query, columns_of

Rows = list[dict[str, Any]]
"""Flat objects, as they are written."""
Truth = Mapping[str, Mapping[str, int]]
"""By query and name of a file, the matching rows; files without one are left out."""
Log = Callable[[str], None]

PEERS: Final[Mapping[str, Callable[[Path], Peer]]] = {
    "skipindex min/max": SkipIndexPeer.with_statistics,
    "skipindex all indexes": SkipIndexPeer.with_all_indexes,
    DeltaRsPeer.name: DeltaRsPeer,
    IcebergPeer.name: IcebergPeer,
    ArrowPeer.name: ArrowPeer,
    DuckDbPeer.name: DuckDbPeer,
    DataFusionPeer.name: DataFusionPeer,
    PolarsPeer.name: PolarsPeer,
    LancePeer.name: LancePeer,
    ClickHousePeer.name: ClickHousePeer,
    PaimonPeer.name: PaimonPeer,
}
"""By name, how each is made from a folder that it may write to."""
LEFT_OUT: Final[Mapping[str, str]] = {
    "hudi-rs": "it writes no table, and reads none without Hudi's own columns",
    "Daft": "on Parquet and Delta it plans all files; on Iceberg it is pyiceberg",
}
"""By name, why a peer is never asked."""
ORACLE: Final = "oracle"
"""Stands as a peer for the files that hold a match."""


@dataclass(frozen=True, slots=True)
class Results:
    """What a run found.

    Args:
        asked: a row for each peer, layout and query.
        builds: a row for each peer and layout.
        missing: by name, why a peer did not run.
    """

    asked: Rows
    builds: Rows
    missing: Mapping[str, str]


def run_peers(
    layouts: Mapping[str, Sequence[Path]],
    queries: Sequence[Query],
    work: Path,
    *,
    names: Sequence[str] = tuple(PEERS),
    repeat: int = 5,
    log: Log = lambda _: None,
) -> Results:
    """Build every peer for every layout, and ask it all queries.

    The peers take turns within a query, so that a slow moment of the machine falls on
    all of them alike.

    Args:
        layouts: by name, the Parquet files of each.
        queries: whose conditions are asked.
        work: a folder for what the peers write; it stays.
        names: of the peers.
        repeat: times that planning is measured; the median counts.
        log: told about every step.
    """
    columns = columns_of(queries)
    results = Results([], [], missing := dict(LEFT_OUT))
    peers = []
    for name in names:
        try:
            peers.append(PEERS[name](work))
        except MissingPeerError as error:
            missing[name] = str(error)
            log(f"missing: {error}")
    for layout, files in layouts.items():
        log(f"counting the matching rows of every file of {layout}")
        truth = matches_of(files, queries)
        of = len(files)
        results.asked.extend(
            _row(ORACLE, "", layout, q, Answer(len(truth[q.name]), of, None), "files")
            for q in queries
        )
        built = []
        for peer in peers:
            log(f"{layout}: building {peer.name}")
            row = _built(peer, layout, files, columns)
            results.builds.append(row)
            if row["build_seconds"] is not None:
                built.append(peer)
        for i, query in enumerate(queries, 1):
            for peer in built:
                found = _asked(peer, layout, query, truth[query.name], repeat)
                results.asked.append(found)
            log(f"{layout}: {i} of {len(queries)}: {query.name}")
    return results


def matches_of(files: Sequence[Path], queries: Sequence[Query]) -> Truth:
    """The matching rows of every file, by one scan without any filter.

    So no statistics can hide a row.  DuckDB evaluates the conditions.
    """
    counts = ", ".join(f"sum(CASE WHEN {q.where} THEN 1 ELSE 0 END)" for q in queries)
    relation = (
        library("duckdb")
        .connect()
        .read_parquet([str(file) for file in files], filename=True)
    )
    rows = relation.aggregate(f"filename, {counts}").fetchall()
    found: dict[str, dict[str, int]] = {query.name: {} for query in queries}
    for file, *numbers in rows:
        for query, number in zip(queries, numbers, strict=True):
            if number:
                found[query.name][Path(file).name] = int(number)
    return found


def _built(
    peer: Peer, layout: str, files: Sequence[Path], columns: Sequence[str]
) -> dict[str, Any]:
    row = {"peer": peer.name, "version": peer.version, "layout": layout}
    try:
        cost = peer.build(files, columns)
    except Exception as error:  # noqa: BLE001 (one peer's failure is a result)
        failed = {"build_seconds": None, "index_MB": None}
        return {**row, **failed, "note": f"failed: {_first_line(error)}"}
    return {
        **row,
        "build_seconds": round(cost.seconds, 3),
        "index_MB": round(cost.n_bytes / 1e6, 3),
        "note": cost.note,
    }


def _asked(
    peer: Peer, layout: str, query: Query, truth: Mapping[str, int], repeat: int
) -> dict[str, Any]:
    """One row; whatever a peer raises is its answer."""

    def row(answer: Answer | None, *, right: bool | None, note: str) -> dict[str, Any]:
        return _row(
            peer.name, peer.version, layout, query, answer, peer.unit, right, note
        )

    try:
        answers = [peer.ask(query)]
        while answers[0].seconds is not None and len(answers) < repeat:
            answers.append(peer.ask(query))
    except CannotSayError as error:
        return row(None, right=None, note=f"cannot say: {_first_line(error)}")
    except Exception as error:  # noqa: BLE001 (one peer's failure is a result)
        return row(None, right=None, note=f"failed: {_first_line(error)}")
    answer = answers[-1]
    complaint = fault_of(answer, truth)
    seconds = [one.seconds for one in answers if one.seconds is not None]
    answer = Answer(
        answer.kept, answer.of, statistics.median(seconds) if seconds else None
    )
    note = "; ".join(filter(None, [complaint, answers[-1].note]))
    return row(answer, right=not complaint, note=note)


def fault_of(answer: Answer, truth: Mapping[str, int]) -> str:
    """What is wrong with an answer; empty if nothing is.

    Args:
        answer: of a peer.
        truth: the matching rows by file.
    """
    expected = sum(truth.values())
    if answer.files is not None:
        lost = set(truth) - answer.files
        if lost:
            n_lost = sum(truth[name] for name in lost)
            return f"WRONG: {len(lost)} files with {n_lost} matching rows are skipped"
    if answer.rows is not None and answer.rows != expected:
        return f"WRONG: it counts {answer.rows} rows, {expected} match"
    if answer.files is None and answer.rows is None:
        return "WRONG: it tells neither files nor rows"
    return ""


def _row(
    peer: str,
    version: str,
    layout: str,
    query: Query,
    answer: Answer | None,
    unit: str,
    right: bool | None = True,  # noqa: FBT001, FBT002 (private)
    note: str = "",
) -> dict[str, Any]:
    seconds = None if answer is None else answer.seconds
    return {
        "peer": peer,
        "version": version,
        "layout": layout,
        "query": query.name,
        "unit": unit,
        "kept": None if answer is None else answer.kept,
        "of": None if answer is None else answer.of,
        "planning_ms": None if seconds is None else round(1000 * seconds, 3),
        "answer_right": right,
        "note": note,
    }


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200] or type(error).__name__
