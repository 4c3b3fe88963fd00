"""What indexes cost in bytes, what is chosen for a tenth of the data, and what for.

On the flat SSB table, as it was generated and clustered: bytes by column and kind,
then the choice for 24 columns, without a workload and with the 13 queries, and the
files that it keeps next to the *oracle*, the files that truly hold a matching row.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import skipindex as sx
from benchmarks._report import Measure, show
from skipindex.advice.sample import take_sample
from skipindex.build.column_requests import Request
from skipindex.errors import UnsupportedTypeError
from skipindex.indexes import index_types
from ssb.data.generate import find_dataset, find_or_generate
from ssb.files import linked
from ssb.layouts import INDEXES, layouts
from ssb.progress import progress_lines
from ssb.queries import LOOKUPS, QUERIES, Query
from ssb.run import matches_per_file
from ssb.session import local_session

COLUMNS: Final = (*INDEXES, "lo_partkey", "lo_suppkey", "lo_commitdate", "lo_shipmode")
"""The columns that the queries and look-ups ask for, and keys beside them: 24."""

CAP: Final = 0.10
_OVER_ORACLE: Final = 1.02

_REFERENCES: Final[Mapping[tuple[str, str], float]] = {
    ("lo_extendedprice", "bit_sliced"): 21e6 / 6_001_215,
    ("c_city", "bitmap"): 7e6 / 6_001_215,
}
"""Bytes a row that Apache Paimon's best file index takes of the unordered table at
scale 1, rounded up."""


def main() -> None:
    """Measure at ``BENCH_SCALE`` on the data in ``BENCH_DATA``."""
    log = progress_lines()
    scale = float(os.environ.get("BENCH_SCALE", "1"))
    data = Path(os.environ.get("BENCH_DATA", f"data/ssb-{scale:g}"))
    spark = local_session("bench sizes", conf={"spark.sql.session.timeZone": "UTC"})
    dataset = find_dataset(data) or find_or_generate(
        data, scale=scale, seed=4, files=100, spark=spark, log=log
    )
    queries = (*QUERIES, *LOOKUPS)
    for name, table in layouts(dataset, spark, log=log).items():
        with _copied(table) as plain:
            where = f"{name}, scale {scale:g}"
            limits = _REFERENCES if scale == 1 and name == "unordered" else {}
            show(f"bytes a row, {where}", _by_kind(plain, limits))
            truth = matches_per_file(spark, plain, queries)
            everything: Request = dict.fromkeys(COLUMNS, "bit_sliced")
            choices = {
                what: plain.advise(
                    columns=COLUMNS, queries=asked and [q.where for q in asked]
                )
                for what, asked in (
                    ("no workload", None),
                    ("the 13 queries", QUERIES),
                    ("all 21 queries", queries),
                )
            }
            measures = []
            for choice, advice in choices.items():
                log(f"{name}: building what is chosen for {choice}")
                measures += _judged(plain, choice, advice.request, truth)
            log(f"{name}: building everything")
            measures += _judged(plain, "every column in full", everything, truth)
            show(f"the choice under a cap of {CAP:.0%}, {where}", measures)
    spark.stop()


@contextmanager
def _copied(table: sx.Table) -> Iterator[sx.Table]:
    """The data files of a table without its indexes, in a folder of their own."""
    source = Path(table.state.location.full(""))
    with tempfile.TemporaryDirectory(prefix="bench-", dir=source.parent) as folder:
        linked([source / path for path in table.paths], Path(folder))
        yield sx.open_table(folder)


def _by_kind(table: sx.Table, limits: Mapping[tuple[str, str], float]) -> list[Measure]:
    sample = take_sample(table.state, [table.state.resolve(name) for name in COLUMNS])
    n_rows = sum(sample.n_rows)
    measures = []
    for name, column in sample.columns.items():
        for kind in index_types().values():
            if kind.name == "range_bitmap" and column.n_distinct > 64:
                continue  # a bit a row and value
            try:
                kind.check(column.domain)
                built = [kind.spec().build(one) for one in column.files]
            except UnsupportedTypeError:
                continue
            measures.append(
                Measure(
                    what=f"{name} {kind.name}",
                    figure=sum(len(part) for parts in built for part in parts) / n_rows,
                    unit="B",
                    limit=limits.get((name, kind.name)),
                    note=f"{column.n_distinct:,.0f} distinct values in a file",
                )
            )
    return measures


def _judged(
    plain: sx.Table,
    choice: str,
    request: Request,
    truth: Mapping[str, Collection[str]],
) -> list[Measure]:
    """Build, plan, and forget what was built.

    Args:
        plain: the table.
        choice: in words.
        request: what to build.
        truth: of every query, the files with a matching row.
    """
    report = sx.build_indexes(plain, request)
    table = report.table
    share = report.n_bytes / int(table.state.sizes.sum())
    capped = choice != "every column in full"
    measures = [
        Measure(
            what=f"{choice}: indexes to data",
            figure=share,
            limit=CAP if capped else None,
            note=f"{report.n_bytes / 1e6:.1f} MB, built in {report.seconds:.0f} s",
        )
    ]
    for what, queries in (("13 queries", QUERIES), ("8 look-ups", LOOKUPS)):
        kept = _kept(table, queries, truth)
        by_minmax = _kept(table, queries, truth, kinds=("minmax",))
        true = sum(len(truth[query.name]) for query in queries)
        measures.append(
            Measure(
                what=f"{choice}: files kept over the {what}",
                figure=kept,
                # What is built for some queries need not serve others.
                limit=None if _is_of_others(choice, what) else _OVER_ORACLE * true,
                note=f"oracle {true}, min/max {by_minmax}",
            )
        )
    table.drop_indexes()
    return measures


def _is_of_others(choice: str, what: str) -> bool:
    return choice == "the 13 queries" and what != "13 queries"


def _kept(
    table: sx.Table,
    queries: Sequence[Query],
    truth: Mapping[str, Collection[str]],
    *,
    kinds: Sequence[str] | None = None,
) -> int:
    """How many files the plans keep, all with a matching row among them."""
    kept = 0
    for query in queries:
        paths = table.plan(query.where, kinds=kinds).paths
        lost = set(truth[query.name]).difference(map(os.path.basename, paths))
        if lost:
            raise RuntimeError(
                f"{query.name}: {len(lost)} files with a matching row were skipped, "
                f"{min(lost)} among them"
            )
        kept += len(paths)
    return kept


if __name__ == "__main__":
    main()
