"""The 13 queries behind an object store: all files, and those of the plan.

The rows of the Hilbert layout lie in an S3 server of this machine, behind a proxy that
delays every request, and sends all answers at a bandwidth that they share.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from benchmarks.moto_server import folder_server
from benchmarks.proxy import proxy
from ssb.files import data_files
from ssb.headlines.claims import Measured, NotMeasuredError, listed
from ssb.latency.data import BUCKET, FOLDER, cut, indexed
from ssb.latency.readers import READERS, Store
from ssb.latency.run import measure
from ssb.layouts import CURVE, INDEXES, written
from ssb.peers.interface import MissingPeerError, library
from ssb.queries import QUERIES, columns_of
from ssb.report.markdown import Cell, table
from ssb.report.text import geometric_mean
from ssb.steps import Context, Found, Step

STUDY: Final = "behind a store"
DELAY: Final = 0.03
"""Seconds of every request."""
BANDWIDTH: Final = 100e6
"""Bytes a second, of all answers together."""
ROUNDS: Final = 1
SELECTIVE: Final = 0.2
"""The part of the files that a selective query reads at most."""


def steps() -> list[Step]:
    """A step for each reader."""
    return [Step(f"{STUDY}/{name}", partial(_run, reader=name)) for name in READERS]


def _run(context: Context, reader: str) -> Found:
    try:
        for name in ("localbucket", reader.lower()):
            library(name, "the extra 'headlines'")
    except MissingPeerError as error:
        return Found([{"reader": reader, "note": f"missing: {error}"}])
    dataset = context.dataset
    layout = written(dataset, context.spark, log=context.log, name=CURVE)
    files = data_files(layout)
    n_files = len(files) * max(1, context.effort.store // len(files))
    work = context.work.resolve() / STUDY.replace(" ", "-")
    context.log(f"  cutting {len(files)} files into {n_files}")
    cut(files, work / BUCKET / FOLDER, n_files)
    request = {name: INDEXES[name] for name in columns_of(QUERIES)}
    try:
        with (
            folder_server(work) as server,
            proxy(server.port, DELAY, BANDWIDTH) as slow,
        ):
            context.log("  building the indexes, without delay")
            indexed(Store(f"{BUCKET}/{FOLDER}", server.options), request)
            store = Store(
                f"{BUCKET}/{FOLDER}", {**server.options, "endpoint": slow.endpoint}
            )
            asked = {reader: READERS[reader]}
            log = context.log
            return Found(
                list(measure(store, slow, asked, QUERIES, repeat=ROUNDS, log=log))
            )
    finally:
        shutil.rmtree(work, ignore_errors=True)


def lines(measured: Measured) -> Iterator[str]:
    """What the page says.

    Raises:
        NotMeasuredError: no reader was asked.
    """
    every = measured.rows(STUDY)
    rows = [row for row in every if "s_all" in row]
    if not rows:
        raise NotMeasuredError(STUDY)
    yield (
        f"The Hilbert layout in {rows[0]['files']:,} files on an S3 server of this "
        f"machine; every request takes {1e3 * DELAY:.0f} ms longer, and answers share "
        f"{BANDWIDTH / 1e6:.0f} MB a second.  *Cold* opens and lists everything; "
        "*warm* is the same query again.  Sums over the 13 queries: seconds, requests, "
        "those that wait for another's answer, and MB, over all files and over the "
        "files of the plan with its own requests."
    )
    yield ""
    ways = list(dict.fromkeys((row["reader"], row["state"]) for row in rows))
    yield from table(
        (
            *("reader", "", "s, all files", "s, plan", "times as fast"),
            *("if few files match", "requests, all files", "plan"),
            *("waits, all files", "plan", "MB, all files", "plan"),
        ),
        [(*way, *_sums([r for r in rows if _way(r) == way])) for way in ways],
    )
    yield ""
    yield (
        "*Times as fast* is the geometric mean of the queries, and *if few files "
        f"match* that of the queries whose plan has at most {SELECTIVE:.0%} of the "
        "files.  Seconds of each query, over all files and over the plan's:"
    )
    yield ""
    queries = list(dict.fromkeys(row["query"] for row in rows))
    of = {(*_way(row), row["query"]): row for row in rows}
    kept = {row["query"]: row["files_plan"] for row in rows}
    yield from table(
        ("query", "files", *(", ".join(way) for way in ways)),
        [
            (query, kept[query], *(_both(of.get((*way, query))) for way in ways))
            for query in queries
        ],
    )
    notes = [f"{row['reader']}: {row['note']}" for row in every if "note" in row]
    if notes:
        yield from ("", f"{listed(notes)}.")


def _way(row: Any) -> tuple[str, str]:
    return row["reader"], row["state"]


def _both(row: Any) -> str:
    return "-" if row is None else f"{row['s_all']:.2f} to {row['s_plan']:.2f}"


def _sums(rows: Sequence[Any]) -> Iterator[Cell]:
    for one in ("all", "plan"):
        yield round(sum(row[f"s_{one}"] for row in rows), 2)
    few = [row for row in rows if row["files_plan"] <= SELECTIVE * row["files"]]
    for some in (rows, few):
        gains = [row["s_all"] / row["s_plan"] for row in some]
        yield f"{geometric_mean(gains):.1f}" if gains else None
    for what in ("requests", "waits", "MB"):
        for one in ("all", "plan"):
            total = sum(row[f"{what}_{one}"] for row in rows)
            yield round(total) if what == "MB" else total
