"""``python -m benchmarks.layout``: how many files each layout of SSB lets be skipped.

The flat table is written in as many files by every layout, as real Parquet: linear,
Z-order and Hilbert by four columns, a curve that the 13 queries choose and their
answers put together, and delta-rs' ``z_order`` by the same four columns where
``deltalake`` is installed.  Counted are the files that the 13 queries keep: by
min/max, and by row-level indexes, which keep exactly the files with a matching row
(``make ssb`` checks that), so one scan counts them.  *Others* are 13 queries of the
same shape with literals that no layout was fitted to, fixed in ``_OTHER_LITERALS``.
The same run times clustering against ``repartitionByRange`` on one column.
"""

from __future__ import annotations

import argparse
import math
import re
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from benchmarks._report import Measure, best_seconds, show
from skipindex.spark.placement.cluster import cluster
from ssb.data.generate import Dataset, Log, find_or_generate
from ssb.files import data_files
from ssb.grid.layouts import grid_layouts
from ssb.layouts import CLUSTER_BY
from ssb.progress import progress_lines
from ssb.queries import QUERIES, Query
from ssb.run import matches_per_file
from ssb.session import local_session

_RANGE_BY: Final = "lo_orderdate"
ANSWERS: Final = "answers together"
NAMES: Final = {
    "linear": "linear",
    "Z-order": "zorder",
    "Hilbert": "hilbert",
    "workload, curve": "workload-curve",
    ANSWERS: "workload-answers",
}
"""The layouts of the grid by what the table calls them."""
MOST_SEEN: Final = 35
MOST_UNSEEN: Final = 200
MOST_OF_ALL: Final = 1300
"""The most files that answers together should keep, of so many."""
_OTHER_LITERALS: Final = {
    "'ASIA'": "'EUROPE'",
    "'AMERICA'": "'AFRICA'",
    "'EUROPE'": "'MIDDLE EAST'",
    "'UNITED STATES'": "'CHINA'",
    "'UNITED KI1'": "'CHINA    3'",
    "'UNITED KI5'": "'CHINA    8'",
    "'MFGR#12'": "'MFGR#43'",
    "'MFGR#14'": "'MFGR#35'",
    "'MFGR#1'": "'MFGR#3'",
    "'MFGR#2'": "'MFGR#4'",
    "'MFGR#2221'": "'MFGR#4411'",
    "'MFGR#2228'": "'MFGR#4418'",
    "'Dec1997'": "'Mar1995'",
    "199401": "199606",
    "1992": "1993",
    "1993": "1995",
    "1994": "1996",
    "1997": "1994",
    "1998": "1995",
}


@dataclass(frozen=True, slots=True)
class Result:
    """What one layout lets the queries skip, all of them together.

    Args:
        name: of the layout.
        n_files: of the table.
        rows: of the smallest and of the largest file.
        kept: files kept by min/max.
        megabytes: of those files.
        matching: files that hold a matching row.
        others: files kept by min/max for queries with other literals.
        matching_others: files that hold a matching row of those queries.
        seconds: to write it; not a number if it was there.
    """

    name: str
    n_files: int
    rows: tuple[int, int]
    kept: int
    megabytes: float
    matching: int
    others: int
    matching_others: int
    seconds: float


def other_queries() -> list[Query]:
    """The 13 queries with other literals; every one still finds its shape."""
    literal = re.compile(
        "|".join(map(re.escape, sorted(_OTHER_LITERALS, key=len)[::-1]))
    )
    return [
        Query(q.name, literal.sub(lambda m: _OTHER_LITERALS[m[0]], q.where), q.select)
        for q in QUERIES
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--out", type=Path, required=True, help="folder of the data")
    parser.add_argument("--work", type=Path, help="folder of the layouts; emptied")
    parser.add_argument(
        "--repeat", type=int, default=2, help="writes that are timed; the best counts"
    )
    parsed = parser.parse_args(arguments)
    log = progress_lines()
    memory = "4g" if parsed.scale >= 1 else "2g"  # room for the largest sort
    spark = local_session("bench layout", memory=memory)
    dataset = find_or_generate(
        parsed.out, scale=parsed.scale, files=parsed.files, spark=spark, log=log
    )
    work: Path = parsed.work or parsed.out / "layouts"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    results = []
    for name, path, seconds in written(spark, dataset, work, log):
        results.append(measure(spark, name, path, seconds, log))
        show(name, told(results[-1]))
    ratios = [clustering_cost(spark, dataset, work, log) for _ in range(parsed.repeat)]
    cost = min(hilbert for hilbert, _ in ratios) / min(plain for _, plain in ratios)
    shutil.rmtree(work)
    targets = verdict(results, cost)
    show("targets", targets)
    return int(any(one.verdict == "missed" for one in targets))


def written(
    spark: SparkSession, dataset: Dataset, work: Path, log: Log
) -> Sequence[tuple[str, Path, float]]:
    """Write every layout; its name, its folder and the seconds it took."""
    # A copy, because the data set is not ours to index.
    unordered = work / "unordered"
    shutil.copytree(dataset.flat, unordered, ignore=shutil.ignore_patterns("_*"))
    found = [("unordered", unordered, math.nan)]
    if find_spec("deltalake"):
        log("writing delta-rs z_order")
        path = work / "delta"
        found.append(("delta-rs z_order", path, z_order(dataset, path)))
    else:
        log("no deltalake here: pip install 'skipindex[bench]' compares with delta-rs")
    for name, layout in NAMES.items():
        log(f"writing {name}")
        path = work / layout
        seconds = grid_layouts()[layout].write(spark, dataset, path)
        found.append((name, path, seconds))
    return found


def z_order(dataset: Dataset, path: Path) -> float:
    """Write what delta-rs makes of the table as plain Parquet; seconds of the sort.

    It counts files by compressed bytes, which it only knows afterwards, so it is
    asked again with what the first answer taught.
    """
    from deltalake import DeltaTable, convert_to_deltalake  # noqa: PLC0415

    n_files, files = dataset.n_files, data_files(dataset.flat)
    target = sum(file.stat().st_size for file in files) // n_files
    seconds = 0.0
    for _ in range(2):
        delta = path.with_name("delta_log")
        shutil.rmtree(delta, ignore_errors=True)
        delta.mkdir()
        for file in files:
            shutil.copy(file, delta)
        convert_to_deltalake(str(delta))
        began = time.perf_counter()
        table = DeltaTable(str(delta))
        table.optimize.z_order(list(CLUSTER_BY), target_size=target)
        seconds = time.perf_counter() - began
        made = table.file_uris()
        target = target * len(made) // n_files
        if abs(len(made) - n_files) <= n_files // 20:
            break
    path.mkdir()
    for uri in made:
        file = Path(uri.removeprefix("file://"))
        file.rename(path / file.name)
    shutil.rmtree(delta)
    return seconds


def measure(
    spark: SparkSession, name: str, path: Path, seconds: float, log: Log
) -> Result:
    """Count what the queries keep of one layout."""
    log(f"measuring {name}")
    others = other_queries()
    asked = {
        info.name: "minmax"
        for info in sx.open_table(path).columns
        if any(info.name in query.where for query in (*QUERIES, *others))
    }
    table = sx.build_indexes(path, asked, spark=spark).table
    plans = [table.plan(query.where, kinds=["minmax"]) for query in QUERIES]
    truth = matches_per_file(spark, table, QUERIES)
    truth_of_others = matches_per_file(spark, table, others)
    for query, plan in zip(QUERIES, plans, strict=True):
        kept = {Path(file).name for file in plan.paths}
        assert truth[query.name].keys() <= kept, f"{name} lost rows of {query.name}"
    sizes = [pq.read_metadata(file).num_rows for file in data_files(path)]
    return Result(
        name,
        len(table),
        (min(sizes), max(sizes)),
        sum(len(plan.paths) for plan in plans),
        sum(task.size for plan in plans for task in plan.tasks) / 1e6,
        sum(map(len, truth.values())),
        sum(len(table.plan(q.where, kinds=["minmax"]).paths) for q in others),
        sum(map(len, truth_of_others.values())),
        seconds,
    )


def clustering_cost(
    spark: SparkSession, dataset: Dataset, work: Path, log: Log
) -> tuple[float, float]:
    """Time the Hilbert layout, and a range partition written and sorted alike."""
    whole = spark.read.parquet(str(dataset.flat))
    n_files = dataset.n_files

    def timed(make: Callable[[], DataFrame]) -> float:
        path = str(work / "timed")
        once = lambda: make().write.mode("overwrite").parquet(path)  # noqa: E731
        return best_seconds(once, rounds=1, warm_up=False)

    log("timing a Hilbert curve over four columns, and a range of one")
    hilbert = timed(
        lambda: cluster(whole, by=CLUSTER_BY, n_files=n_files, n_rows=dataset.n_rows)
    )
    plain = timed(
        lambda: whole.repartitionByRange(n_files, _RANGE_BY).sortWithinPartitions(
            _RANGE_BY
        )
    )
    return hilbert, plain


def told(result: Result) -> list[Measure]:
    """The figures of one layout."""
    low, high = result.rows
    note = f"{low:,} to {high:,} rows each, {result.megabytes:,.0f} MB kept by min/max"
    return [
        Measure("files", result.n_files, note=note),
        Measure("kept by min/max", result.kept),
        Measure("kept by row-level indexes", result.matching),
        Measure("kept by min/max, other literals", result.others),
        Measure("kept by row-level indexes, other literals", result.matching_others),
        Measure("written in", result.seconds, "s"),
    ]


def verdict(results: Sequence[Result], cost: float) -> list[Measure]:
    """The targets."""
    kept = {result.name: result.kept for result in results}
    curve = min(kept[name] for name in ("linear", "Z-order", "Hilbert"))
    answers = next(result for result in results if result.name == ANSWERS)
    share = answers.n_files * len(QUERIES) / MOST_OF_ALL
    seen, unseen = MOST_SEEN * share, MOST_UNSEEN * share
    targets = [
        Measure(
            "files of the workload's curve", kept["workload, curve"], "", curve / 2
        ),
        Measure("files of answers together", answers.matching, "", seen),
        Measure("and for other literals", answers.matching_others, "", unseen),
        Measure("Hilbert to a range partition, seconds", cost, "x", 1.5),
    ]
    if (delta := kept.get("delta-rs z_order")) is not None:
        targets.append(Measure("files of the best curve", curve, "", 0.8 * delta))
    return targets


if __name__ == "__main__":
    sys.exit(main())
