"""The 13 queries as a whole: each engine over each layout, by all files and by plans.

Layout and skipping are told apart: the queries run over the table as it was generated
and in better layouts, and over each by all files, by plans of min/max, and by plans of
all indexes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import skipindex as sx
from skipindex.build.column_requests import Request
from ssb.files import data_files, linked, size_of
from ssb.grid.records import Value
from ssb.headlines.engines import (
    INDEXED,
    MAKERS,
    RANGES,
    Answer,
    Indexed,
    Setting,
    Way,
)
from ssb.layouts import (
    ANSWERS,
    CURVE,
    INDEXES,
    STATISTICS_ALONE,
    UNORDERED,
    WORKLOAD,
    folder_of,
    seconds_to_write,
    written,
)
from ssb.peers.interface import MissingPeerError
from ssb.queries import QUERIES, Query
from ssb.steps import Context, Effort, Found, Row, Rows, Step, spread
from ssb.timing import SWITCH

STUDY: Final = "whole queries"
WRITE: Final = f"{STUDY} write"
ASK: Final = f"{STUDY}/"
"""How the names of the steps begin that ask the queries."""
LAYOUTS: Final = (UNORDERED, CURVE, WORKLOAD, ANSWERS)
SETS: Final[dict[str, Request]] = {RANGES: STATISTICS_ALONE, INDEXED: INDEXES}
_AGAIN: Final = "again"
"""A run that is not timed."""
_BUILT: Final = "_whole_queries"
"""The file in a folder with indexes that says how long they took to build."""


def steps() -> list[Step]:
    """Each layout is written and indexed; then each engine is asked over all."""
    return [
        *(Step(f"{WRITE}/{one}", partial(_write, layout=one)) for one in LAYOUTS),
        *(Step(f"{ASK}{one}", partial(_ask, engine=one), _remove) for one in MAKERS),
    ]


def layouts(effort: Effort) -> list[str]:
    """Those that an effort has."""
    return effort.having(f"{WRITE}/", LAYOUTS)


def _folder(context: Context) -> Path:
    return context.work.resolve() / STUDY.replace(" ", "-")


def _remove(context: Context) -> None:
    shutil.rmtree(_folder(context), ignore_errors=True)


def _indexed(context: Context, layout: str) -> list[Indexed]:
    """The layout with each set of indexes; what is there is not built again."""
    dataset, spark = context.dataset, context.spark
    source = dataset.flat
    if layout != UNORDERED:
        source = written(dataset, spark, log=context.log, name=layout)
    tables = []
    for name, request in SETS.items():
        path = _folder(context) / layout / name.replace("/", "")
        if not (path / _BUILT).exists():
            context.log(f"  {layout}: {name}")
            linked(data_files(source), path)
            report = sx.build_indexes(path, request, spark=spark)
            (path / _BUILT).write_text(f"{report.seconds:.1f}\n")
        tables.append(Indexed(layout, name, sx.open_table(path)))
    return tables


def _write(context: Context, layout: str) -> Found:
    """What a layout costs, and the files that plans of the 13 queries name."""
    tables = _indexed(context, layout)
    row: Row = {
        "layout": layout,
        "files": len(tables[0].table),
        "write s": seconds_to_write(folder_of(context.dataset, layout)),
        "MB": round(float(tables[0].table.state.sizes.sum()) / 1e6, 1),
    }
    for one in tables:
        kept = [len(one.table.plan(query.where).paths) for query in QUERIES]
        row |= {
            f"{one.indexes} files": sum(kept),
            f"{one.indexes} s": float((one.path / _BUILT).read_text()),
            f"{one.indexes} MB": round(size_of(one.path / "_skipindex") / 1e6, 1),
        }
    return Found([row])


def _ask(context: Context, engine: str) -> Found:
    names = layouts(context.effort)
    tables = [one for name in names for one in _indexed(context, name)]
    setting = Setting(context.spark, tables, _folder(context))
    sx.enable(context.spark)
    try:
        try:
            ways = MAKERS[engine](setting)
        except MissingPeerError as error:
            return Found([{"engine": engine, "note": f"missing: {error}"}])
        os.sync()
        return Found(asked(ways, QUERIES, context.effort, context.log))
    finally:
        context.spark.conf.unset(SWITCH)
        sx.disable(context.spark)


def asked(
    ways: Sequence[Way],
    queries: Sequence[Query],
    effort: Effort,
    log: Callable[[str], None],
) -> Rows:
    """Ask all queries in all ways, in turn, cold and then warm.

    A way that fails is a row that says so.

    Args:
        ways: to ask.
        queries: to ask.
        effort: how often.
        log: told about every query.
    """
    rows: Rows = []
    for number, query in enumerate(queries, 1):
        log(f"  {number} of {len(queries)}: {query.name}")
        rows += _in_turn(ways, query, effort)
    return rows


def _in_turn(ways: Sequence[Way], query: Query, effort: Effort) -> Rows:
    times: list[dict[str, list[float]]] = [{"cold": [], "warm": []} for _ in ways]
    answers = [""] * len(ways)
    failures = [""] * len(ways)
    # A cold run of one way takes from memory what the files of others share with it.
    for state in ["cold"] * effort.cold + [_AGAIN] + ["warm"] * effort.warm:
        for i, way in enumerate(ways):
            if failures[i]:
                continue
            if state == "cold":
                way.forget()
            began = time.perf_counter()
            try:
                answer = way.ask(query)
            except Exception as error:  # noqa: BLE001 (a failure is a result)
                failures[i] = f"failed: {str(error).partition(chr(10))[0][:200]}"
                continue
            if state != _AGAIN:
                times[i][state].append(time.perf_counter() - began)
            answers[i] = told(answer)
    return [
        {
            "engine": way.engine,
            "version": way.version,
            "layout": way.layout,
            "indexes": way.indexes,
            "query": query.name,
            "state": state,
            **way.loaded,
            **({"note": failed} if failed else {**spread(seconds), "answer": answer}),
        }
        for way, of, answer, failed in zip(ways, times, answers, failures, strict=True)
        for state, seconds in of.items()
    ]


def differing(rows: Iterable[Mapping[str, Value]]) -> list[str]:
    """The queries to which not all ways gave the same answer."""
    answers: dict[str, set[Value]] = {}
    for row in rows:
        if "answer" in row:
            answers.setdefault(str(row["query"]), set()).add(row["answer"])
    return [query for query, found in answers.items() if len(found) > 1]


def told(answer: Answer) -> str:
    """A checksum of rows that are equal if an answer is, whatever types engines give.

    The sum of no rows is NULL in some engines and 0 in others.

    >>> from decimal import Decimal
    >>> told([(Decimal(2), "b"), (None, "a")]) == told([(0, "a"), (2, "b")])
    True
    """
    rows = sorted(
        repr([v if isinstance(v, str) else int(v or 0) for v in row]) for row in answer
    )
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:12]
