"""Queries as text, each with what it must cost, and what runs them.

The files are `queries/*.txt`, in the manner of sqllogictest.  The first line of a file
names the world of its tables, which `worlds.py` makes::

    world star

    -- Why it is so.
    set skipindex.firstRows = false
    SELECT count(*) FROM orders JOIN customers c ON customer = c.key
    WHERE city = 'city 3';
    SELECT count(*) FROM orders WHERE customer = 70;
    => reads orders 1 of 12

A query has the same rows with skipping as without, and costs what the lines with
``=>`` of its paragraph say (`COSTS`).  In its text ``{folder}`` is that of the world.
Settings hold for their paragraph, and those of one without queries until the next such
one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

import skipindex as sx
from skipindex.spark.pruning.query_plan import QueryPlan
from tests.quick_run import spread
from tests.spark.pruning.costs import (
    SWITCH,
    check_costs,
    cost_of_run,
    excess,
    jobs_since,
    n_jobs,
)
from tests.spark.pruning.scans import nodes, scans, set_for, shown
from tests.spark.pruning.worlds import World

FOLDER: Final = Path(__file__).parent / "queries"


@dataclass(frozen=True)
class Record:
    """A query of a file.

    Args:
        place: the file and the line.
        world: the name of its tables.
        text: of the query.
        costs: one line each, without ``=>``.
        settings: of the session.
        since: the first version of Spark that takes it.
    """

    place: str
    world: str
    text: str
    costs: Sequence[str]
    settings: Mapping[str, str]
    since: tuple[int, ...] = ()

    @property
    def kind(self) -> tuple[str, ...]:
        """The file, the settings, and what is said of the costs first."""
        file, _, _ = self.place.partition(":")
        return (file, _cost(self.costs[0]), *sorted(self.settings))


def records() -> list[Record]:
    """Those of all files."""
    paths = sorted(FOLDER.glob("*.txt"))
    return [one for path in paths for one in read(path.read_text("utf-8"), path.name)]


def quick(found: Sequence[Record]) -> set[str]:
    """The places of those in a quick run: some of each kind, and one at least."""
    kinds: dict[tuple[str, ...], list[Record]] = {}
    for one in found:
        kinds.setdefault(one.kind, []).append(one)
    return {
        same[i].place
        for same in kinds.values()
        for i in spread(len(same), 1 + len(same) // 12)
    }


def read(text: str, name: str) -> Iterator[Record]:
    """The records of a file.

    Raises:
        ValueError: a line that is neither query nor comment nor cost, by its place.
    """
    head, _, _ = text.partition("\n")
    if not head.startswith("world "):
        raise ValueError(f"{name}:1: {head!r} (a file begins with 'world NAME')")
    world, ours, number = head.removeprefix("world "), dict[str, str](), 1
    for paragraph in text.split("\n\n"):
        begin, number = number, number + paragraph.count("\n") + 2
        lines = [*enumerate(paragraph.splitlines(), begin)]
        lines = [x for x in lines if x[1] and not x[1].startswith(("--", "world "))]
        settings, costs, since = dict[str, str](), list[str](), tuple[int, ...]()
        queries: list[tuple[int, list[str]]] = []
        is_over = True
        for at, line in lines:
            word, _, rest = line.partition(" ")
            if word == "set":
                key, found, value = rest.partition(" = ")
                if not found:
                    raise ValueError(f"{name}:{at}: {line!r} (accepted: set NAME = X)")
                settings[key] = value
            elif word == "since":
                since = tuple(map(int, rest.split(".")))
            elif word == "=>":
                if not _cost(rest):
                    accepted = "; ".join(COSTS)
                    raise ValueError(f"{name}:{at}: {line!r} (accepted: {accepted})")
                costs.append(rest)
            elif costs:
                raise ValueError(f"{name}:{at}: {line!r} after what the query costs")
            else:
                if is_over:
                    queries.append((at, []))
                queries[-1][1].append(line.removesuffix(";"))
                is_over = line.endswith(";")
        if bool(queries) != bool(costs):
            raise ValueError(f"{name}:{begin}: no query, or no cost of it")
        for at, query in queries:
            whole = "\n".join(query)
            known = {**ours, **settings}
            yield Record(f"{name}:{at}", world, whole, costs, known, since)
        if lines and not queries:
            ours = settings


@dataclass(frozen=True)
class Run:
    """A query that ran.

    Args:
        text: of the query.
        df: the query.
        rows: in an order of their own.
        error: its class and message, if it fails.
        n_jobs: those of its jobs that have tasks.
        plans: of its scans.
        folder: of the world.
    """

    text: str
    df: DataFrame
    rows: list[str]
    error: str
    n_jobs: int
    plans: Sequence[QueryPlan]
    folder: Path

    @property
    def files(self) -> Counter[str]:
        """How many files were read of each folder of the world."""
        found: Counter[str] = Counter()
        for scan in scans(self.df):
            root = str(scan.relation().location().rootPaths().apply(0))
            name = root.partition(f"{self.folder}/")[2].partition("/")[0]
            found[name] += scan.metrics().apply("numFiles").value()
        return found

    @property
    def nodes(self) -> set[str]:
        """The classes of the plan's nodes."""
        return {node.getClass().getSimpleName() for node in nodes(self.df)}

    @property
    def schema(self) -> str:
        """That of the optimized plan."""
        return str(self.df._jdf.queryExecution().optimizedPlan().schema().json())

    def __str__(self) -> str:
        return str(self.df._jdf.queryExecution().toString())


def run(world: World, text: str) -> Run:
    """Run a query as the session is set now."""
    spark = world.session
    before, known = n_jobs(spark), set(map(id, sx.last_plans(spark)))
    df, error = spark.sql(text), ""
    try:
        rows = sorted(map(str, df.collect()))
    except Exception as problem:  # noqa: BLE001 (whatever Spark raises)
        rows, error = [], f"{type(problem).__name__}: {problem}"
    jobs = jobs_since(spark, before)
    plans = [plan for plan in sx.last_plans(spark) if id(plan) not in known]
    return Run(text, df, rows, error, jobs, plans, world.folder)


def differences(record: Record, world: World) -> str:
    """What is not as the record says, with its place and query; empty if nothing."""
    spark = world.session
    text = record.text.replace("{folder}", str(world.folder))
    plans: Sequence[QueryPlan] = ()
    with set_for(spark, record.settings):
        try:
            with set_for(spark, {SWITCH: "false"}):
                plain = run(world, text)
            one = run(world, text)
        except PySparkException as problem:
            told = [f"it is not understood: {str(problem)[:500]}"]
        else:
            plans, told = one.plans, _wrong_rows(record, one, plain)
            judged = [_judge(line, one, plain) for line in record.costs]
            told = told or [found for found in judged if found]
    if not told:
        return ""
    return "\n".join([f"{record.place}: {'; '.join(told)}", text, *map(str, plans)])


def _wrong_rows(record: Record, one: Run, plain: Run) -> list[str]:
    fails = any(line.startswith(("fails ", "may fail")) for line in record.costs)
    for found in (one, plain):
        if found.error and not fails:
            return [f"it fails: {found.error[:500]}"]
    if one.error.partition(":")[0] != plain.error.partition(":")[0]:
        return [f"error {one.error[:300]!r} for {plain.error[:300]!r}"]
    if one.rows == plain.rows:
        return []
    less, more = Counter(plain.rows), Counter(one.rows)
    lost, added = [*(less - more)][:3], [*(more - less)][:3]
    told = f"{len(one.rows)} rows for {len(plain.rows)}, lost {lost}, added {added}"
    return [told]


def _judge(line: str, one: Run, plain: Run) -> str:
    """What a cost line says wrongly."""
    pattern = _cost(line)
    found = re.fullmatch(pattern, line)
    assert found is not None
    told = COSTS[pattern](one, plain, *found.groups())
    return f"{line!r}, and it {told}" if told else ""


def _cost(line: str) -> str:
    return next((one for one in COSTS if re.fullmatch(one, line)), "")


def _reads(one: Run, plain: Run, tables: str) -> str:
    told = []
    for table in tables.split(", "):
        found = re.fullmatch(r"(.+?) (\d+)(?:-(\d+))?(?: of (\d+))?", table)
        if found is None:
            return f"is not understood: {table!r} (accepted: TABLE N, TABLE N of M)"
        name, least, most, of = found.groups()
        n, n_plain = one.files[name], plain.files[name]
        if not int(least) <= n <= int(most or least) or n_plain != int(of or n_plain):
            told.append(f"{name} {n} of {n_plain}")
    return f"reads {', '.join(told)}" if told else ""


def _from_indexes(one: Run, plain: Run) -> str:
    n, n_plain = one.files.total(), plain.files.total()
    known = any(plan.answered for plan in one.plans)
    if not known or not n == 0 < n_plain:
        return f"reads {n} of {n_plain}"
    return "" if one.schema == plain.schema else f"has the columns {one.schema}"


def _left(one: Run, _: Run) -> str:
    answered = [plan.answered for plan in one.plans if plan.answered]
    return "" if scans(one.df) and not answered else f"has no scan, or {answered}"


def _whole(one: Run, _: Run) -> str:
    return "has ranges" if "RowGroups" in one.nodes else ""


def _planner_reads(one: Run, _: Run) -> str:
    left, plans = len(scans(one.df)), [x for x in one.plans if x.n_rows is not None]
    if left or not plans:
        return f"has {left} scans, and {len(plans)} plans with rows"
    return ""


def _metrics(one: Run, _: Run) -> str:
    (plan,) = [x for x in one.plans if x.n_rows is not None]
    metrics = {
        "files with rows of the planner": plan.n_read,
        "rows of the planner": plan.n_rows,
        "bytes read by the planner": plan.n_bytes,
    }
    return "" if shown(one.df) == metrics else f"has {shown(one.df)} for {metrics}"


def _row_groups(one: Run, _: Run, n: str, of: str) -> str:
    ours = shown(one.df)
    found = (
        ours.get("row groups that can match"),
        ours.get("row groups of files read in part"),
    )
    return "" if found == (int(n), int(of)) else f"reads {found[0]} of {found[1]}"


def _rows_read(one: Run, _: Run, n: str) -> str:
    read = sum(scan.metrics().apply("numOutputRows").value() for scan in scans(one.df))
    return "" if read == int(n) else f"reads {read}"


def _no_more(one: Run, plain: Run) -> str:
    if excess(cost_of_run(one.df, one.n_jobs), cost_of_run(plain.df, plain.n_jobs)):
        spark = one.df.sparkSession
        try:  # again, as what adaptive plans run depends on which stage ends first
            check_costs(spark, lambda: spark.sql(one.text))
        except AssertionError as error:
            return f"costs too much: {error}"
    return ""


def _has(one: Run, _: Run, text: str) -> str:
    return "" if text in str(one) else "has it not"


def _lacks(one: Run, _: Run, text: str) -> str:
    return "has it" if text in str(one) else ""


def _gains(one: Run, plain: Run, text: str) -> str:
    return "" if text in str(one) and text not in str(plain) else "does not"


def _tells(one: Run, _: Run, text: str) -> str:
    told = [f"{plan}" for plan in one.plans]
    return "" if any(text in plan for plan in told) else "does not"


def _silent(one: Run, _: Run, text: str) -> str:
    return "does" if any(text in f"{plan}" for plan in one.plans) else ""


def _count(one: Run, _: Run, n: str) -> str:
    return "" if len(one.rows) == int(n) else f"has {len(one.rows)}"


def _jobs(one: Run, _: Run, n: str) -> str:
    return "" if one.n_jobs == int(n) else f"has {one.n_jobs}"


def _fails(one: Run, _: Run, text: str) -> str:
    return "" if text in one.error else f"has the error {one.error[:300]!r}"


COSTS: Final[Mapping[str, Callable[..., str]]] = {
    r"reads (.+ \d.*)": _reads,
    "from indexes": _from_indexes,
    "planner reads": _planner_reads,
    "metrics of the planner": _metrics,
    "left to Spark": _left,
    "whole files": _whole,
    r"row groups (\d+) of (\d+)": _row_groups,
    r"rows read (\d+)": _rows_read,
    r"rows (\d+)": _count,
    r"jobs (\d+)": _jobs,
    "no more work": _no_more,
    "plan has (.+)": _has,
    "plan lacks (.+)": _lacks,
    "plan gains (.+)": _gains,
    "tells no (.+)": _silent,
    "tells (.+)": _tells,
    "fails (.+)": _fails,
    "may fail": lambda *_: "",
}
"""What a query costs:

- ``reads orders 1 of 12, parts 0-1`` files of folders, of those without skipping;
- ``from indexes``: no file, as indexes know the results;
- ``planner reads``: no scan is left, as the planner has read the rows, and with
  ``metrics of the planner`` the node's metrics are the plan's;
- ``left to Spark``: with a scan, and no result from indexes;
- ``row groups 4 of 20`` of the files that are read in part; ``rows read 200`` by scans;
  ``whole files``: no file is read in part;
- ``rows 3`` it has; ``jobs 0`` it runs;
- ``no more work``: no job, exchange or file more than without (`check_costs`);
- ``plan has X``, ``lacks X``; ``gains X``, which it lacks without skipping;
- ``tells X`` in `last_plans`, ``tells no X``;
- ``fails X`` with skipping and without, or ``may fail`` alike.
"""
