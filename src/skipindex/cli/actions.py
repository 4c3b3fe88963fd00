"""What each command does, and the answer that it prints."""

from __future__ import annotations

import json
import logging
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import click
import pyarrow as pa
import pyarrow.parquet as pq
from click.shell_completion import get_completion_class

from skipindex.advice.questions import conditions_of
from skipindex.api import Clustering, Plan, Table, open_table, plan_files
from skipindex.api.calls import runner_of
from skipindex.api.checks import duration_in
from skipindex.api.functions import place_of, table_of_catalog
from skipindex.api.maintenance.policy import Budget, Policy
from skipindex.api.maintenance.run import maintain_all, passed_over, tables_below
from skipindex.api.progress import followed
from skipindex.api.types import BuildReport
from skipindex.build.wanted import SpecLike
from skipindex.cli.answer import Answer, shown, tell
from skipindex.cli.sample import write_events
from skipindex.cli.sessions import session
from skipindex.cli.tables import files, size, table
from skipindex.conditions.bound_predicate import shorten, unknowns
from skipindex.errors import (
    AdviceError,
    LayoutError,
    SkipIndexError,
    StorageError,
    TableError,
    UnknownIndexError,
    one_line,
)
from skipindex.indexes import parse_spec
from skipindex.layout import Workload
from skipindex.rewrite.verify_table import verify
from skipindex.source.folder.folder import LISTED
from skipindex.spark.driver import extension_settings
from skipindex.storage.file_system.location import location_of
from skipindex.storage.file_system.names import FOLDER
from skipindex.table import Status, TableState, status_of
from skipindex.table.queries import is_of_log

_SHOWN: Final = 20
"""Files that ``plan`` lists."""
_OF_OUTPUT: Final = {"json", "quiet", "verbose"}
"""Options that change no answer."""
_TOLD: Final = {
    True: "declared exclusive: only skipindex changes its files (--trust log)",
    False: "not declared exclusive",
}


def _opened(options: SimpleNamespace) -> Table:
    if options.catalog and options.schema is not None:
        raise TableError(
            "a table of the catalog has the columns of the catalog (accepted: --schema "
            "or --catalog)"
        )
    if options.catalog:
        return table_of_catalog(session(options), options.path, options.sidecar)
    trust: Any = getattr(options, "trust", "listing")
    return open_table(options.path, trust=trust, **_place(options))


def _place(options: SimpleNamespace) -> dict[str, Any]:
    result = {"plain": options.plain, "sidecar": options.sidecar}
    if options.schema is None:
        return result
    try:
        return {**result, "schema": pq.read_schema(options.schema)}
    except (OSError, pa.ArrowException) as error:
        raise TableError(
            f"no schema in {options.schema!r}: {one_line(str(error))} (accepted: a "
            "Parquet file that has all columns)"
        ) from error


def _tables(options: SimpleNamespace) -> tuple[list[str], list[str]] | None:
    """The tables below PATH, with indexes and without; None if PATH is a table."""
    if options.catalog:
        return None
    root = location_of(options.path)
    beside = root if options.sidecar is None else None
    if beside is None or not root.exists() or root.holds(root.full(FOLDER)):
        return None
    try:
        open_table(options.path, **_place(options))
    except (StorageError, TableError) as error:
        tables, without = tables_below(root, plain=options.plain)
        if tables:
            return tables, without
        if not without:
            raise
        raise TableError(
            f"no table below {options.path!r} has indexes ({passed_over(without)}; "
            "accepted: skipindex build TABLE first)"
        ) from error
    return None


def _statuses(
    paths: Sequence[str], without: Sequence[str], options: SimpleNamespace
) -> Answer:
    """A line for each table, first the one with the most bytes that lack an index."""
    rows, records = [], []
    for path in paths:
        try:
            state = _state(path, plain=options.plain)
        except SkipIndexError as error:
            rows.append((float("inf"), [path, "", "", "", one_line(str(error))]))
            records.append({"table": path, "error": str(error)})
            continue
        status = status_of(state)
        bare = int(state.sizes[state.rows < 0].sum())
        mean = max((one.mean for one in status.overlap.values() if one), default=0.0)
        what = [status.table, f"{status.files:,}", size(status.n_bytes)]
        lacks = "; ".join(_lacks(status)) or "up to date"
        rows.append((bare + mean, [*what, f"{mean:.1f}" if mean else "", lacks]))
        records.append(status.to_dict())
    rows.sort(key=lambda row: -row[0])
    names = ("table", "files", "size", "overlap", "")
    text = table(names, [cells for _, cells in rows], right=(1, 2, 3))
    lines = [text, passed_over(without)]
    record = {"tables": records, "without": without}
    return Answer("\n".join(filter(None, lines)), record)


def _report(options: SimpleNamespace) -> Answer:
    given = {
        name: value
        for name in ("days", "verify", "queries")
        if (value := getattr(options, name)) is not None
    }
    if (below := _tables(options)) is None:
        reports, is_bad = [_opened(options).usage(**given)], False
    else:
        reports, is_bad = [], False
        for path in below[0]:
            try:
                reports.append(open_table(path, plain=options.plain).usage(**given))
            except (SkipIndexError, OSError) as error:  # the others are told of
                tell("error", f"{path}: {one_line(str(error))}")
                is_bad = True
    is_bad |= any(report.violations for report in reports)
    record = {"tables": [report.to_dict() for report in reports]}
    return Answer("\n".join(map(str, reports)), record, int(is_bad))


def _maintain(options: SimpleNamespace) -> Answer:
    pause = duration_in(options.every)
    if pause is None and options.every is not None:
        raise TableError(
            f"not a pause: {options.every!r} (accepted: a number with its unit, such "
            "as 90s, 30min, 12h or 7d)"
        )
    answer = _maintained(options)
    if pause is None:
        return answer
    idle = ""
    while True:
        steps = [step for one in answer.record["tables"] for step in one["steps"]]
        is_idle = not any(step["done"] for step in steps)
        if not is_idle or answer.text != idle:  # what was told is not told again
            idle = answer.text if is_idle else idle
            text = shown(answer.text, sys.stdout)
            line = json.dumps(answer.record) if options.json else text
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
        answer = _next_round(options, pause)


def _next_round(options: SimpleNamespace, pause: timedelta) -> Answer:
    """The next round that succeeds; what fails is reported, and tried again."""
    while True:
        time.sleep(pause.total_seconds())
        try:
            return _maintained(options)
        except SkipIndexError as error:
            told = f"skipindex: error: {one_line(str(error))}\n"
            sys.stderr.write(shown(told, sys.stderr))


def _maintained(options: SimpleNamespace) -> Answer:
    """One round over a table, or over the tables below a folder."""
    below = _tables(options)
    paths, without = below or ((), ())
    tables: list[tuple[str, Callable[[], TableState]]]
    tables = [(one, partial(_state, one, plain=options.plain)) for one in paths]
    if below is None:
        state = _opened(options).state.refresh()
        tables.append((state.folder, lambda: state))
    reports = maintain_all(
        tables,
        Policy.of(options.policy),
        Budget.of(options.budget),
        dry_run=options.dry_run,
        session=None if options.no_spark else partial(session, options),
        workers=options.workers,
    )
    every = sorted(reports, key=lambda one: -one.n_bytes)
    wrong = [step for one in every for step in one.steps if step.failed]
    for one in wrong:
        tell("error", f"{one.table}: {one.step} was {one.note}")
    lines = [*map(str, every), *filter(None, [passed_over(without)])]
    records = [one.to_dict() for one in every]
    record = {"tables": records, "without": list(without)}
    return Answer("\n".join(lines), record, int(bool(wrong)))


def _state(path: str, *, plain: bool) -> TableState:
    return open_table(path, plain=plain).state


def _status(options: SimpleNamespace) -> Answer:
    if below := _tables(options):
        return _statuses(*below, options)
    opened = _opened(options)
    status = opened.status()
    at = f"commit {status.version}" if status.version >= 0 else "no commit yet"
    kinds = sum(len(column.indexes) for column in status.columns)
    known = f"{files(status.indexed_files)} with {status.indexed_rows:,} rows"
    of = "" if status.source == LISTED.described else f" of {status.source}"
    lines = [
        f"{status.table}: {files(status.files)}{of}, {size(status.n_bytes)}",
        f"indexes: {kinds} on {known}, {size(status.index_bytes)}, {at}",
        *_lacks(status),
    ]
    if status.superseded_bytes:
        lines.append(
            f"{size(status.superseded_bytes)} of superseded index files are freed by: "
            f"{_command('vacuum', options)}"
        )
    if status.fresh:
        lines.append("up to date")
    elif not opened.state.snapshot.unknown:
        call = "refresh" if status.indexed_files else "build"
        lines.append(f"to bring them up to date: {_command(call, options)}")
    return Answer("\n".join(lines), status.to_dict())


def _lacks(status: Status) -> list[str]:
    """What is not as it should be, in a line each."""
    lines = [f"{files(n)}: {reason}" for reason, n in status.gaps.items()]
    if status.vanished_files:
        lines.append(f"{files(status.vanished_files)}: indexed, and deleted or changed")
    if status.unclustered_files:
        lines.append(f"{files(status.unclustered_files)}: not clustered by the layout")
    return [*lines, *filter(None, [status.waiting]), *status.notes]


def _describe(options: SimpleNamespace) -> Answer:
    opened = _opened(options)
    status = opened.status()
    head, *rest = str(status).splitlines()
    types = {
        column.name: column.domain.name
        for column in opened.state.leaves
        if column.domain is not None
    }
    rows = []
    for column in status.columns:
        named = [column.name, types.get(column.name, "-")]
        if not column.indexes:
            why = "" if column.statistics else column.why
            kind = "min/max" if column.statistics else "-"
            rows.append([*named, kind, "", str(column.statistics or ""), why])
        for kind, n in column.indexes.items():
            what = size(column.index_bytes[kind])
            encodings = ", ".join(column.encodings_of(kind))
            rows.append([*named, kind, what, str(n), encodings])
    names = ("column", "type", "index", "size", "files", "")
    below = [line for line in rest if not line.startswith("  ")]
    text = "\n".join([head, "", table(names, rows, right=(3, 4)), "", *below])
    return Answer(text.rstrip(), status.to_dict())


def _queries(options: SimpleNamespace) -> str | None:
    """The text of the file of queries, or what names a record; None if none is."""
    if options.queries is None or is_of_log(options.queries):
        return str(options.queries) if options.queries else None
    try:
        return Path(options.queries).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AdviceError(f"cannot read the queries: {error}") from error


def _choice(options: SimpleNamespace) -> dict[str, Any]:
    text = _queries(options)
    return {
        "queries": text if text is None or is_of_log(text) else [text],
        "columns": options.columns,
        "max_bytes_ratio": options.max_bytes_ratio,
        "timezone": options.timezone,
    }


def _advise(options: SimpleNamespace) -> Answer:
    shown = not options.quiet
    advice = _opened(options).advise(**_choice(options), progress=shown)
    lines = [advice.to_text(), f"to build: {_command('build', options)}"]
    if options.verbose:
        lines += ["", advice.details()]
    else:
        lines.append("why: the same command with -v")
    return Answer("\n".join(lines), advice.to_dict())


def _command(name: str, options: SimpleNamespace) -> str:
    """Another command for a shell, with all options that this one has in common."""
    context = click.get_current_context().parent
    assert context is not None
    assert isinstance(context.command, click.Group)
    words: list[str] = []
    arguments: list[str] = []
    for one in context.command.commands[name].params:
        value = getattr(options, str(one.name), None)
        if isinstance(one, click.Argument):
            arguments.append(str(value))
        elif value is True and one.name not in _OF_OUTPUT:
            words.append(one.opts[0])
        elif isinstance(value, tuple):
            words += [word for pair in value for word in (one.opts[0], "=".join(pair))]
        elif not isinstance(value, bool | None) and value != one.default:
            text = ",".join(value) if isinstance(value, list) else str(value)
            words += [one.opts[0], text]
    if any(argument.startswith("-") for argument in arguments):
        return shlex.join(["skipindex", name, *words, "--", *arguments])
    return shlex.join(["skipindex", name, *arguments, *words])


def _build(options: SimpleNamespace) -> Answer:
    indexes: dict[str, list[SpecLike]] = {}
    for column, kind in options.index:
        indexes.setdefault(column, []).append(parse_spec(kind) if "(" in kind else kind)
    asked = {"indexes": indexes or None, **_choice(options)}
    asked |= _work(options)
    return _built(_opened(options).build_indexes(**asked))


def _refresh(options: SimpleNamespace) -> Answer:
    return _built(_opened(options).refresh_indexes(**_work(options)))


def _work(options: SimpleNamespace) -> dict[str, Any]:
    return {
        "workers": options.workers,
        "memory": options.memory,
        "repair": options.repair or None,
        "progress": not options.quiet,
    }


def _built(report: BuildReport[Table]) -> Answer:
    return Answer(str(report), report.to_dict(), 1 if report.unread else 0)


def _drop(options: SimpleNamespace) -> Answer:
    if options.all == bool(options.columns or options.kinds):
        raise UnknownIndexError(
            "no indexes to drop are named (accepted: --columns, --kinds or "
            "both, or --all)"
        )
    before = _opened(options)
    after = before.drop_indexes(columns=options.columns, kinds=options.kinds)
    kept = {(one.column, one.kind) for one in after.indexes}
    gone = [one for one in before.indexes if (one.column, one.kind) not in kept]
    rows = [[one.column, one.kind, size(one.n_bytes), str(one.files)] for one in gone]
    text = "no index was dropped"
    if rows:
        names = ("column", "dropped", "size", "files")
        freed = size(sum(one.n_bytes for one in gone))
        text = (
            f"{table(names, rows, right=(2, 3))}\n"
            f"{freed} are freed later, or now with --purge, by: "
            f"{_command('vacuum', options)}"
        )
    return Answer(text, {"dropped": [one.to_dict() for one in gone]})


def _planned(options: SimpleNamespace) -> Plan:
    return plan_files(
        options.predicate,
        table=_opened(options),
        kinds=options.kinds,
        timezone=options.timezone,
    )


def _plan(options: SimpleNamespace) -> Answer:
    plan = _planned(options)
    if options.json:  # which has a proof for each file
        return Answer("", plan.to_dict())
    if options.files:
        return Answer("\n".join(map(one_line, plan.files)), None)
    low, high = plan.count_bounds
    matching = f"{low:,} to unknown" if high is None else _between(low, high)
    n_bytes = sum(task.size for task in plan.tasks)
    head = (
        f"{len(plan.tasks):,} of {files(len(plan.table))}, {size(n_bytes)} of "
        f"{size(plan.table.n_bytes)}, for: {plan.where}"
    )
    rows = [
        [
            task.path,
            size(task.size),
            "not known" if task.matching is None else _between(*task.matching),
        ]
        for task in plan.tasks[:_SHOWN]
    ]
    lines = [head, f"rows that match: {matching}"]
    if options.timezone is None:
        lines += [
            f"not judged without --timezone: {shorten(one.text)}"
            for one in dict.fromkeys(unknowns(plan.tree))
            if "the session's time zone" in one.reason
        ]
    if rows:
        names = ("file", "size", "rows that match")
        lines += ["", table(names, rows, right=(1, 2))]
    if len(plan.tasks) > _SHOWN:
        lines.append(f"and {len(plan.tasks) - _SHOWN:,} more, which --files lists")
    lines += ["", f"why: {_command('explain', options)}"]
    return Answer("\n".join(lines), None)


def _between(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _explain(options: SimpleNamespace) -> Answer:
    plan = _planned(options)
    file = options.file
    if options.json:
        return Answer("", plan.to_dict(file=file))
    return Answer(plan.explain(file=file), None)


def _verify(options: SimpleNamespace) -> Answer:
    runner = runner_of(None, 1 if options.workers is None else options.workers)
    # Not ``Table.verify``, which lists the files once more.
    place = (
        _opened(options).state
        if options.catalog
        else place_of(options.path, sidecar=options.sidecar)
    )
    with followed(not options.quiet, "checking", "parts") as count:
        report = verify(place, plain=options.plain, runner=runner, progress=count)
    return Answer(str(report), report.to_dict(), 0 if report.ok else 1)


def _warm(options: SimpleNamespace) -> Answer:
    progress = not options.quiet
    n_bytes = _opened(options).warm(columns=options.columns, progress=progress)
    return Answer(f"{size(n_bytes)} of indexes are cached on disk", {"bytes": n_bytes})


def _merge(options: SimpleNamespace) -> Answer:
    before = _opened(options)
    after = before.compact_indexes()
    counts = [len(one.state.snapshot.manifest.packs) for one in (before, after)]
    text = f"merged {counts[0]:,} index files into {counts[1]:,}"
    record = {"before": counts[0], "after": counts[1], "notes": list(after.notes)}
    return Answer("\n".join([text, *after.notes]), record)


def _optimize(options: SimpleNamespace) -> Answer:
    by: list[str] | Workload | None = options.by
    text = _queries(options)
    if text is not None:
        if by:
            raise LayoutError(
                "--by and --queries both choose the layout (accepted: one)"
            )
        queries = text if is_of_log(text) else conditions_of(text)
        by = Workload(queries, timezone=options.timezone)
    layout = Clustering(by, curve=options.curve, rows_per_file=options.rows_per_file)
    opened = _opened(options)
    for column in options.by or ():
        opened.state.resolve(column)  # before Spark takes seconds to start
    spark = session(options)
    report = opened.optimize(
        spark,
        layout=layout,
        predicate=options.where,
        mode=options.mode,
        budget=options.budget,
        into=options.into,
        in_place=options.in_place,
        publish=options.publish,
        progress=not options.quiet,
    )
    return Answer(str(report), report.to_dict())


def _vacuum(options: SimpleNamespace) -> Answer:
    report = _opened(options).vacuum(
        retention=options.retention,
        dry_run=options.dry_run,
        purge=options.purge,
    )
    return Answer(str(report), report.to_dict())


def _history(options: SimpleNamespace) -> Answer:
    commits = _opened(options).history()
    rows = [
        [
            str(one.version),
            one.time,
            one.operation,
            "" if one.files is None else f"{one.files:,}",
            one.note,
        ]
        for one in commits
    ]
    text = "no commit yet"
    if rows:
        names = ("commit", "time", "operation", "files", "")
        text = table(names, rows, right=(0, 3))
    return Answer(text, {"commits": [one.to_dict() for one in commits]})


def _exclusive(options: SimpleNamespace) -> Answer:
    opened = _opened(options)
    is_now = opened.declare_exclusive(not options.off).status().exclusive
    return Answer(f"{opened.folder}: {_TOLD[is_now]}", {"exclusive": is_now})


def _remove(options: SimpleNamespace) -> Answer:
    report = _opened(options).remove_indexes(dry_run=options.dry_run)
    return Answer(str(report), report.to_dict())


def _sample(options: SimpleNamespace) -> Answer:
    n = write_events(options.folder)
    text = f"{options.folder}: {files(n)} of events; to index them: "
    command = shlex.join(["skipindex", "build", options.folder])
    return Answer(text + command, {"folder": options.folder, "files": n})


def _spark_conf(options: SimpleNamespace) -> Answer:
    settings = extension_settings(options.spark)
    text = "\n".join(f"{name} {value}" for name, value in settings.items())
    return Answer(text, settings)


def _completion(options: SimpleNamespace) -> Answer:
    kind = get_completion_class(options.shell)
    assert kind is not None
    group: Any = None  # it is asked when the shell completes
    script = kind(group, {}, "skipindex", "_SKIPINDEX_COMPLETE").source().strip()
    return Answer(script, {"shell": options.shell, "script": script})


def run(name: str, options: SimpleNamespace) -> Answer:
    """Do what a command says.

    Raises:
        SkipIndexError: it cannot be done.
    """
    with _logged() if options.verbose else nullcontext():
        return _ACTIONS[name](options)


class _Formatter(logging.Formatter):
    """Lines of a log whose names steer no terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """See ``logging.Formatter``."""
        return shown(super().format(record), sys.stderr)


@contextmanager
def _logged() -> Iterator[None]:
    """What the log of skipindex tells goes to stderr."""
    log = logging.getLogger("skipindex")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("skipindex: %(message)s"))
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(handler)


_ACTIONS: Final[Mapping[str, Callable[[SimpleNamespace], Answer]]] = {
    "status": _status,
    "describe": _describe,
    "advise": _advise,
    "build": _build,
    "refresh": _refresh,
    "maintain": _maintain,
    "drop": _drop,
    "plan": _plan,
    "explain": _explain,
    "report": _report,
    "verify": _verify,
    "warm": _warm,
    "merge": _merge,
    "optimize": _optimize,
    "vacuum": _vacuum,
    "history": _history,
    "exclusive": _exclusive,
    "remove": _remove,
    "sample": _sample,
    "spark-conf": _spark_conf,
    "completion": _completion,
}
