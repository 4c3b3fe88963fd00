"""The 13 queries in other engines, on the same machine and in one run."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import skipindex as sx
from ssb.grid.layouts import grid_layouts
from ssb.headlines.engines import MAKERS, Answer, Engine, Files
from ssb.layouts import INDEXES
from ssb.peers.interface import MissingPeerError
from ssb.queries import QUERIES, Query
from ssb.steps import Context, Effort, Found, Row, Rows, Step, spread
from ssb.timing import SWITCH

STUDY: Final = "beside a warehouse"
LAYOUT: Final = "hilbert"
LOAD: Final = "load"


def steps() -> list[Step]:
    """One step, so that all engines are asked in one run."""
    return [Step(STUDY, _run)]


def _run(context: Context) -> Found:
    path = context.work.resolve() / LAYOUT
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    written = grid_layouts()[LAYOUT].write(context.spark, context.dataset, path)
    shutil.rmtree(path / "_skipindex")
    built = sx.build_indexes(path, INDEXES, spark=context.spark)
    files = Files(context.spark, built.table, built.seconds, path.parent)
    row: Row = {
        "engine": "the Parquet files",
        "query": LOAD,
        "load s": round(written, 2),
        "MB": round(files.data_bytes / 1e6, 2),
        "note": "written along a Hilbert curve over four columns, for all that "
        "read Parquet",
    }
    sx.enable(context.spark)
    try:
        found = compared(MAKERS, files, QUERIES, context.effort, context.log)
    finally:
        context.spark.conf.unset(SWITCH)
        sx.disable(context.spark)
        shutil.rmtree(path.parent, ignore_errors=True)
    return Found([row, *found.rows])


def compared(
    makers: Mapping[str, Callable[[Any], Sequence[Engine]]],
    files: Any,
    queries: Sequence[Query],
    effort: Effort,
    log: Callable[[str], None],
) -> Found:
    """Ask each engine all queries, cold and warm, in turn query by query.

    An engine that is missing or fails is a row that says so.  Answers are compared
    with those of the first engine.

    Args:
        makers: by the name of an engine, what makes its ways to ask.
        files: that the makers take.
        queries: to ask.
        effort: how often.
        log: told about every query.
    """
    engines: list[Engine] = []
    rows: Rows = []
    for name, make in makers.items():
        log(f"  {name}: loading")
        try:
            found = make(files)
        except MissingPeerError as error:
            rows.append({"engine": name, "query": LOAD, "note": f"missing: {error}"})
            continue
        engines += found
        rows += [
            {
                "engine": engine.name,
                "query": LOAD,
                "version": engine.version,
                "load s": round(engine.load_seconds, 2),
                "MB": round(engine.n_bytes / 1e6, 2),
                "note": engine.note,
            }
            for engine in found
        ]
    os.sync()
    for number, query in enumerate(queries, 1):
        log(f"  {number} of {len(queries)}: {query.name}")
        rows += _asked(engines, query, effort)
    return Found(rows)


def _asked(engines: Sequence[Engine], query: Query, effort: Effort) -> Rows:
    """The rows of a query: the runs of an engine are cold first, and then warm."""
    rows: Rows = []
    expected: list[str] | None = None
    for engine in engines:
        times: dict[str, list[float]] = {"cold": [], "warm": []}
        try:
            for state in ["cold"] * effort.cold + ["warm"] * effort.warm:
                if state == "cold":
                    engine.forget()
                began = time.perf_counter()
                answer = engine.ask(query)
                times[state].append(time.perf_counter() - began)
        except Exception as error:  # noqa: BLE001 (an engine's failure is a result)
            note = f"failed: {str(error).partition(chr(10))[0][:200]}"
            rows.append({"engine": engine.name, "query": query.name, "note": note})
            continue
        found = comparable(answer)
        expected = found if expected is None else expected
        rows += [
            {
                "engine": engine.name,
                "query": query.name,
                "state": state,
                **spread(seconds),
                "same": int(found == expected),
            }
            for state, seconds in times.items()
        ]
    return rows


def comparable(answer: Answer) -> list[str]:
    """Rows that are equal if an answer is, whatever types an engine gives.

    The sum of no rows is NULL in some engines and 0 in others.

    >>> from decimal import Decimal
    >>> comparable([(Decimal(2), "b"), (None, "a")]) == comparable([(0, "a"), (2, "b")])
    True
    """
    return sorted(
        repr([v if isinstance(v, str) else int(v or 0) for v in row]) for row in answer
    )
