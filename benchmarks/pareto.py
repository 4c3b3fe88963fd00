"""Bytes of indexes against files kept: the Pareto front of the advisor.

For caps from 1 % of the data's bytes to none at all, and for several workloads, the
advisor chooses.  Each choice is then judged on *every* file of the table: how many
files it keeps for queries that the advisor has not seen, next to the *oracle*, the
files that truly hold a matching row.  Nothing is written: payloads are built in memory,
asked and forgotten.  No Spark is needed.

    python -m benchmarks.pareto data/ssb-1/lineorder_flat_hilbert
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import skipindex as sx
from benchmarks._look_ups import LookUps
from skipindex.advice.advise import MARGIN, leaves_by_column, measure
from skipindex.advice.candidates import Candidate, built, spec_text
from skipindex.advice.questions import Question, bind_workload, vary_literals
from skipindex.advice.sample import LARGE_SAMPLE, SMALL_SAMPLE, take_sample
from skipindex.advice.selection import CandidateScores, Selection, choose
from skipindex.indexes.interface import IndexSpec
from ssb.queries import LOOKUPS, QUERIES
from ssb.report import aligned

COLUMNS: Final = (
    "d_year", "d_yearmonthnum", "d_yearmonth", "d_weeknuminyear", "lo_orderdate",
    "lo_discount", "lo_quantity", "lo_custkey", "lo_ordtotalprice",
    "lo_extendedprice", "lo_revenue", "c_region", "c_nation", "c_city", "s_region",
    "s_nation", "s_city", "p_mfgr", "p_category", "p_brand1", "lo_partkey",
    "lo_suppkey", "lo_commitdate", "lo_shipmode",
)  # fmt: skip
"""Those of ``benchmarks.sizes``: what queries and look-ups ask for, and keys."""

CAPS: Final = (0.01, 0.02, 0.05, 0.10, 0.15, 0.20, 0.39, math.inf)
"""Parts of the data's bytes.  0.39 is what full indexes take at scale 10."""

N_LOOK_UPS: Final = 100

Specs = tuple[IndexSpec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One choice of the advisor, judged on all files.

    Args:
        workload: what the advisor was given.
        cap: in parts of the data's bytes; None is no cap.
        share: of the indexes in the data's bytes, as they were built.
        n_bytes: of the indexes.
        kept: files kept, by group of queries.
        advice_seconds: to sample and to weigh, once for all caps.
        build_seconds: to build the choice in one process, without reading columns.
        specs: what was chosen, by column; columns with min/max alone are left out.
    """

    workload: str
    cap: float | None
    share: float
    n_bytes: int
    kept: Mapping[str, int]
    advice_seconds: float
    build_seconds: float
    specs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Choice:
    """What the advisor chose, by column."""

    workload: str
    cap: float
    specs: Mapping[str, Specs]
    seconds: float


def groups_of(table: sx.Table, seed: int) -> dict[str, list[Question]]:
    """The queries that choices are judged by."""
    drawn = LookUps(table.state, COLUMNS, seed).draw(N_LOOK_UPS)
    texts = {
        "13 queries": [query.where for query in QUERIES],
        "8 look-ups": [query.where for query in LOOKUPS],
        f"{N_LOOK_UPS} drawn": drawn,
    }
    return {name: _bound(table, asked) for name, asked in texts.items()}


def _bound(table: sx.Table, texts: Sequence[str]) -> list[Question]:
    bound = bind_workload(table.state, texts, timezone=None)
    if bound.notes:
        raise ValueError("; ".join(bound.notes))
    return bound.questions


def workloads(table: sx.Table, seed: int) -> dict[str, list[Question]]:
    """What the advisor is given: never a query that it is judged by, but for "same"."""
    other = LookUps(table.state, COLUMNS, seed + 1)
    known = _bound(table, [query.where for query in (*QUERIES, *LOOKUPS)])
    varied = vary_literals(known, other.sample, seed + 2)
    alike = [
        Question(one.text, one.tree) for one in varied[:: len(varied) // len(known)]
    ]
    return {
        "none": [],
        "other literals": alike,
        "other look-ups": [*alike, *_bound(table, other.draw(N_LOOK_UPS))],
        "same": known,
    }


def choices(table: sx.Table, workload: str, asked: Sequence[Question]) -> list[Choice]:
    """What the advisor chooses under every cap."""
    began = time.perf_counter()
    columns = [table.state.resolve(name) for name in COLUMNS]
    if asked:
        wanted = leaves_by_column(asked)
        columns = [column for column in columns if column.name in wanted]
    size = LARGE_SAMPLE if asked else SMALL_SAMPLE
    scores = measure(take_sample(table.state, columns, size), asked, [])
    seconds = time.perf_counter() - began
    found = []
    for cap in CAPS:
        selection = choose(scores, MARGIN * cap * scores.sample.n_bytes)
        specs = {
            name: scores.candidates[name][at].specs for name, at in selection.items()
        }
        found.append(Choice(workload, cap, specs, seconds))
    return found


@dataclass
class Judged:
    """Sums over the files of a table.

    Args:
        kept: by group, of every choice.
        oracle: by group.
        n_bytes: of every column and its specs.
        seconds: to build them.
    """

    kept: dict[str, list[int]]
    oracle: dict[str, int]
    n_bytes: dict[tuple[str, Specs], int]
    seconds: dict[tuple[str, Specs], float]


def judge(
    table: sx.Table,
    places: Sequence[int],
    chosen: Sequence[Mapping[str, Specs]],
    groups: Mapping[str, Sequence[Question]],
) -> Judged:
    """Every choice, on the files at ``places``, one after another."""
    wanted: dict[str, dict[Specs, int]] = {name: {(): 0} for name in COLUMNS}
    for choice in chosen:
        for name, specs in choice.items():
            wanted[name].setdefault(specs, len(wanted[name]))
    exact: Specs = (sx.BitSliced(),)
    for each in wanted.values():
        each[exact] = each.pop(exact, -1)  # last, which is the richest
    order = {
        name: {specs: i for i, specs in enumerate(each)}
        for name, each in wanted.items()
    }
    questions = [question for group in groups.values() for question in group]
    leaves = leaves_by_column(questions)
    sums = Judged(
        {name: [0] * len(chosen) for name in groups}, dict.fromkeys(groups, 0), {}, {}
    )
    selections: list[Selection] = [
        {name: order[name][choice.get(name, ())] for name in COLUMNS}
        for choice in chosen
    ]
    infos = [table.state.resolve(name) for name in COLUMNS]
    for at in places:
        sample = take_sample(table.state, infos, places=[at])
        found: dict[str, list[Candidate]] = {}
        for name, column in sample.columns.items():
            one = column.files[0]
            _ = one.codes, one.counts  # ranks are of no index alone
            asked = leaves.get(name, [])
            nothing = Candidate((), 0, {leaf: [None] for leaf in asked})
            found[name] = []
            for specs in order[name]:
                began = time.perf_counter()
                built_all = nothing
                for spec in specs:
                    (candidate,) = built(column, spec, asked, [])
                    built_all = built_all | candidate
                key = (name, specs)
                sums.seconds[key] = (
                    sums.seconds.get(key, 0) + time.perf_counter() - began
                )
                sums.n_bytes[key] = sums.n_bytes.get(key, 0) + built_all.n_bytes
                found[name].append(built_all)
        scores = CandidateScores(sample, questions, found)
        first = 0
        for name, group in groups.items():
            numbers = range(first, first + len(group))
            first += len(group)
            sums.oracle[name] += sum(scores.matching[i] for i in numbers)
            for c, selection in enumerate(selections):
                sums.kept[name][c] += sum(scores.kept(i, selection) for i in numbers)
    return sums


def points(
    table: sx.Table, seed: int, n_files: int | None
) -> tuple[list[Point], dict[str, int]]:
    """The advisor's choices under all caps for all workloads, and the oracle."""
    groups = groups_of(table, seed)
    chosen = [
        one
        for name, asked in workloads(table, seed).items()
        for one in choices(table, name, asked)
    ]
    n = min(len(table), n_files or len(table))
    places = [int((i + 0.5) * len(table) / n) for i in range(n)]
    judged = judge(table, places, [{}, *(one.specs for one in chosen)], groups)
    data = int(table.state.sizes[places].sum())
    found = []
    for i, one in enumerate([Choice("min/max", 0, {}, 0), *chosen]):
        keys = [(name, specs) for name, specs in one.specs.items() if specs]
        n_bytes = sum(judged.n_bytes[key] for key in keys)
        found.append(
            Point(
                workload=one.workload,
                cap=None if math.isinf(one.cap) else one.cap,
                share=n_bytes / data,
                n_bytes=n_bytes,
                kept={name: kept[i] for name, kept in judged.kept.items()},
                advice_seconds=one.seconds,
                build_seconds=sum(judged.seconds[key] for key in keys),
                specs={name: " + ".join(map(spec_text, specs)) for name, specs in keys},
            )
        )
    return found, judged.oracle


def text_of(found: Sequence[Point], oracle: Mapping[str, int]) -> str:
    """The points as a table."""
    rows = [["workload", "cap", "share", "MB", *oracle, "advice", "build"]]
    rows += [
        [
            one.workload,
            "none" if one.cap is None else f"{one.cap:.0%}",
            f"{one.share:.1%}",
            f"{one.n_bytes / 1e6:.1f}",
            *(str(kept) for kept in one.kept.values()),
            f"{one.advice_seconds:.1f} s",
            f"{one.build_seconds:.1f} s",
        ]
        for one in found
    ]
    rows.append(["oracle", "", "", "", *map(str, oracle.values()), "", ""])
    return "\n".join(aligned(rows))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the front of each table, and write it as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pareto")
    parser.add_argument("tables", nargs="+", type=Path, metavar="TABLE")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, metavar="N", help="judge on N files")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parsed = parser.parse_args(arguments)
    record = {}
    for path in parsed.tables:
        found, oracle = points(sx.open_table(path), parsed.seed, parsed.files)
        print(
            f"\n{path.name}, seed {parsed.seed}\n\n{text_of(found, oracle)}", flush=True
        )
        record[path.name] = {
            "seed": parsed.seed,
            "oracle": oracle,
            "points": [asdict(one) for one in found],
        }
    if parsed.json:
        parsed.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
