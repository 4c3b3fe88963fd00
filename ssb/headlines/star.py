"""Star joins: unchanged SQL over five tables, without and with skipping."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import skipindex as sx
from ssb.files import data_files, linked
from ssb.headlines.claims import Measured
from ssb.queries import FACT, QUERIES
from ssb.report.markdown import Cell, table
from ssb.report.text import geometric_mean
from ssb.star_form import FACT_INDEXES, looked_up, run_star
from ssb.steps import Context, Found, Step

STUDY: Final = "star joins"
UNORDERED: Final = "unordered"
BY_ATTRIBUTES: Final = "by attributes of dimensions"
LAYOUTS: Final = (UNORDERED, BY_ATTRIBUTES)


def steps() -> list[Step]:
    """A step for each layout of the fact table."""
    return [Step(f"{STUDY}/{name}", partial(_run, layout=name)) for name in LAYOUTS]


def _run(context: Context, layout: str) -> Found:
    spark, dataset = context.spark, context.dataset
    source = dataset.tables[FACT]
    if layout == BY_ATTRIBUTES:
        source = looked_up(spark, dataset)
    # Under the name of the fact table, by which its scans are counted.
    fact = context.work.resolve() / STUDY.replace(" ", "-") / Path(FACT)
    linked(data_files(source), fact)
    try:
        report = sx.build_indexes(fact, FACT_INDEXES, spark=spark)
        outcomes = run_star(
            spark, dataset, fact, QUERIES,
            repeat=context.effort.study, log=lambda line: context.log(f"  {line}"),
        )  # fmt: skip
        status = report.table.status()
    finally:
        shutil.rmtree(fact.parent, ignore_errors=True)
    data_bytes = sum(file.size for file in report.table.files)
    return Found([
        {
            "layout": layout,
            "query": one.query,
            "files": one.files,
            "read": one.read[0],
            "read with skipping": one.read[1],
            "oracle": one.oracle,
            "s": round(one.seconds[0], 4),
            "s with skipping": round(one.seconds[1], 4),
            "same": int(one.is_right),
            "index, of the data": round(status.index_bytes / data_bytes, 4),
            "build s": round(report.seconds, 2),
        }
        for one in outcomes
    ])  # fmt: skip


def lines(measured: Measured) -> Iterator[str]:
    """What the page says.

    Raises:
        NotMeasuredError: no layout was asked.
    """
    rows = measured.rows(STUDY)
    layouts = [one for one in LAYOUTS if any(row["layout"] == one for row in rows)]
    yield from table(
        (
            *("fact table", "files read", "with skipping", "that hold a row"),
            *("s", "with skipping", "times as fast", "at worst"),
            *("s to build", "indexes, of the data"),
        ),
        [(name, *_sums(measured, name)) for name in layouts],
    )
    yield ""
    yield (
        "Sums over the 13 queries in unchanged SQL over the fact table and its four "
        f"dimensions, medians of {measured.effort.study} runs in turns.  *Times as "
        "fast* is the geometric mean.  Milliseconds of each query:"
    )
    yield ""
    of = {(row["layout"], row["query"]): row for row in rows}
    yield from table(
        ("query", *(f"{one}{side}" for one in layouts for side in ("", ", skipping"))),
        [
            (
                query.name,
                *(
                    round(1e3 * of[one, query.name][key])
                    for one in layouts
                    for key in ("s", "s with skipping")
                ),
            )
            for query in QUERIES
            if all((one, query.name) in of for one in layouts)
        ],
    )


def _sums(measured: Measured, layout: str) -> Iterator[Cell]:
    rows = measured.rows(STUDY, layout=layout)
    for key in ("read", "read with skipping", "oracle"):
        yield sum(row[key] for row in rows)
    for key in ("s", "s with skipping"):
        yield round(sum(row[key] for row in rows), 2)
    gains = {row["query"]: row["s"] / row["s with skipping"] for row in rows}
    worst = min(gains, key=lambda query: gains[query])
    yield f"{geometric_mean(list(gains.values())):.2f}"
    yield f"{gains[worst]:.2f} ({worst})"
    yield rows[0]["build s"]
    yield f"{100 * rows[0]['index, of the data']:.0f} %"
