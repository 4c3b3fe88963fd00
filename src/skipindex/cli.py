"""``skipindex COMMAND PATH …``: indexes and plans from a shell.

The exit code is 0 if the command did what it says, 1 if ``verify`` found something that
is damaged or stale, or ``build`` or ``refresh`` could not read a file, and 2 if the
question was wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from skipindex.advice import MAX_BYTES_RATIO
from skipindex.api import Table, build_indexes, open_table, plan_files
from skipindex.api.types import BuildReport
from skipindex.errors import AdviceError, SkipIndexError, UnknownIndexError
from skipindex.rewrite.verify_table import verify
from skipindex.spark.driver import extension_settings

Answer = str | tuple[str, int]
"""What a command prints, and its exit code if that may be other than 0."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="skipindex", description="Read only the Parquet files that can match."
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (run, text, *options) in _COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        for add in options if name in _WITHOUT_TABLE else (_add_table, *options):
            add(command)
        command.set_defaults(run=run)
    parsed = parser.parse_args(arguments)
    try:
        answer: Answer = parsed.run(parsed)
    except SkipIndexError as error:
        sys.stderr.write(f"skipindex: error: {error}\n")
        return 2
    text, code = (answer, 0) if isinstance(answer, str) else answer
    sys.stdout.write(text + "\n")
    return code


def _add_table(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="folder or URI of the table")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--plain", action="store_true",
        help="take a table of another format for a plain folder of Parquet files",
    )  # fmt: skip


def _add_trust(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--trust", choices=("listing", "log"), default="listing",
        help="what says which files there are; the log only where it is recorded that "
        "they change through skipindex alone (default: %(default)s)",
    )  # fmt: skip


def _opened(parsed: argparse.Namespace) -> Table:
    return open_table(parsed.path, plain=parsed.plain, trust=parsed.trust)


def _add_choice(parser: argparse.ArgumentParser) -> None:
    """Add what a choice of indexes is made by."""
    parser.add_argument(
        "--queries", type=Path, metavar="FILE.sql",
        help="a workload: conditions or whole SELECTs, with ; between them",
    )  # fmt: skip
    parser.add_argument(
        "--columns", metavar="A,B", help="choose for these columns alone"
    )
    parser.add_argument(
        "--max-bytes-ratio", type=float, default=MAX_BYTES_RATIO, metavar="R",
        help="cap of the indexes, as a part of the data's bytes "
        "(default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--timezone", metavar="ZONE", help="of the session that asks the queries"
    )


def _choice(parsed: argparse.Namespace) -> dict[str, Any]:
    queries = None
    if parsed.queries is not None:
        try:
            queries = [parsed.queries.read_text(encoding="utf-8")]
        except (OSError, UnicodeDecodeError) as error:
            raise AdviceError(f"cannot read the queries: {error}") from error
    return {
        "queries": queries,
        "columns": _split(parsed.columns),
        "max_bytes_ratio": parsed.max_bytes_ratio,
        "timezone": parsed.timezone,
    }


def _split(names: str | None) -> list[str] | None:
    if names is None:
        return None
    return [name.strip() for name in names.split(",") if name.strip()]


def _json(value: object) -> str:
    return json.dumps(value, indent=2, default=str)


def _advise(parsed: argparse.Namespace) -> str:
    table = open_table(parsed.path, plain=parsed.plain)
    advice = table.advise(**_choice(parsed))
    return _json(advice.to_dict()) if parsed.json else str(advice)


def _add_index(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--index", action="append", default=[], metavar="COLUMN=KIND",
        help="build this one; may be repeated, and * is every column",
    )  # fmt: skip


def _add_work(parser: argparse.ArgumentParser) -> None:
    """Add how indexes are built."""
    parser.add_argument("--workers", type=int, metavar="N", help="processes")
    parser.add_argument(
        "--memory", metavar="SIZE",
        help="what each process may take, such as 2GB (default: half of the machine's "
        "memory divided by the processes, at most 4GB)",
    )  # fmt: skip
    parser.add_argument(
        "--repair", action="store_true", default=None,
        help="read every byte of the indexes that are there, and build damaged ones "
        "again",
    )  # fmt: skip


def _work(parsed: argparse.Namespace) -> dict[str, Any]:
    return {
        "workers": parsed.workers,
        "memory": parsed.memory,
        "progress": _progress if sys.stderr.isatty() else None,
        "repair": parsed.repair,
    }


def _build(parsed: argparse.Namespace) -> Answer:
    indexes: dict[str, list[str]] = {}
    for one in parsed.index:
        column, equals, kind = one.rpartition("=")
        if not equals or not column:
            raise UnknownIndexError(f"no index: {one!r} (accepted: COLUMN=KIND)")
        indexes.setdefault(column, []).append(kind)
    report = build_indexes(
        parsed.path,
        indexes or None,
        plain=parsed.plain,
        **_work(parsed),
        **_choice(parsed),
    )
    return _report(report, parsed)


def _refresh(parsed: argparse.Namespace) -> Answer:
    table = open_table(parsed.path, plain=parsed.plain)
    return _report(table.refresh_indexes(**_work(parsed)), parsed)


def _report(report: BuildReport[Table], parsed: argparse.Namespace) -> Answer:
    told = {
        "files": report.files,
        "unchanged": report.unchanged,
        "unread": report.unread,
        "bytes": report.n_bytes,
        "seconds": report.seconds,
        "notes": list(report.notes),
    }
    return _json(told) if parsed.json else str(report), 1 if report.unread else 0


def _progress(done: int, of: int) -> None:
    sys.stderr.write(f"\rindexing: {done} of {of} tasks" + "\n" * (done == of))
    sys.stderr.flush()


def _add_condition(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("predicate", metavar="PREDICATE", help="as after WHERE")
    parser.add_argument("--kinds", metavar="A,B", help="use these kinds of index alone")
    parser.add_argument(
        "--timezone", metavar="ZONE", help="of the session that will read"
    )
    parser.add_argument(
        "--files", action="store_true", help="print the files to read, and no more"
    )


def _plan(parsed: argparse.Namespace) -> str:
    plan = plan_files(
        parsed.predicate,
        table=_opened(parsed),
        kinds=_split(parsed.kinds),
        timezone=parsed.timezone,
    )
    if parsed.json:
        return _json(plan.to_dict())
    return "\n".join(plan.files) if parsed.files else plan.explain()


def _describe(parsed: argparse.Namespace) -> str:
    status = _opened(parsed).status()
    return _json(status.to_dict()) if parsed.json else str(status)


def _verify(parsed: argparse.Namespace) -> tuple[str, int]:
    report = verify(parsed.path, plain=parsed.plain)
    text = _json(report.to_dict()) if parsed.json else str(report)
    return text, 0 if report.ok else 1


def _add_dry_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dry-run", action="store_true", help="only say what would be deleted"
    )


def _remove(parsed: argparse.Namespace) -> str:
    table = open_table(parsed.path, plain=parsed.plain)
    report = table.remove_indexes(dry_run=parsed.dry_run)
    return _json(report.to_dict()) if parsed.json else str(report)


def _add_off(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--off", action="store_true", help="take the record back")


def _exclusive(parsed: argparse.Namespace) -> str:
    table = open_table(parsed.path, plain=parsed.plain)
    is_now = table.declare_exclusive(not parsed.off).status().exclusive
    if parsed.json:
        return _json({"exclusive": is_now})
    return f"{table.folder}: {_TOLD[is_now]}"


def _add_spark(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--spark", metavar="VERSION",
        help="of Spark, such as 3.5 or 4.1; by default that of PySpark here",
    )  # fmt: skip


def _spark_conf(parsed: argparse.Namespace) -> str:
    settings = extension_settings(parsed.spark)
    return "\n".join(f"{name} {value}" for name, value in settings.items())


_WITHOUT_TABLE: Final = {"spark-conf"}
_TOLD: Final = {
    True: "recorded as changing only through skipindex (--trust log)",
    False: "not recorded as changing only through skipindex",
}

_COMMANDS: Final[dict[str, tuple[Any, ...]]] = {
    "advise": (
        _advise,
        "say which indexes are worth their bytes, measured on a few files",
        _add_choice,
    ),
    "build": (
        _build,
        "build the indexes that are missing: those named, those there, or advised",
        *(_add_index, _add_work, _add_choice),
    ),
    "refresh": (
        _refresh,
        "bring the indexes that a table has up to date with its files",
        _add_work,
    ),
    "plan": (
        _plan,
        "say which files can hold a row for which a predicate is true",
        *(_add_condition, _add_trust),
    ),
    "describe": (
        _describe,
        "say what a table is made of, and what indexes it has",
        _add_trust,
    ),
    "exclusive": (
        _exclusive,
        "record that the files of a table change only through skipindex",
        _add_off,
    ),
    "spark-conf": (
        _spark_conf,
        "print the settings by which Spark prunes queries without a line of Python",
        _add_spark,
    ),
    "remove": (
        _remove,
        "delete all that skipindex stores beside the data, and no data file",
        _add_dry_run,
    ),
    "verify": (
        _verify,
        "find all that is damaged, stale or orphaned of what is stored of a table",
    ),
}
"""What runs a command, what it does, and what adds its arguments, by name."""
