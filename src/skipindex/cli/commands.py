"""The commands of the command line: options, help, and the calls from click.

The module ``actions`` runs a command; it is imported only when one runs.
"""

from __future__ import annotations

import functools
import json
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

import click

from skipindex.cli.answer import Answer, shown, tell
from skipindex.cli.interrupts import at_work, exit_interrupted, was_pressed
from skipindex.errors import SkipIndexError

_PROG: Final = "skipindex"
Option = click.Parameter

_SHELLS: Final = ("bash", "zsh", "fish")


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the command line.

    Args:
        text: the help, in one line.
        example: example arguments.
        options: its own options, besides those of all commands.
        on_table: whether its first argument is a table.
    """

    text: str
    example: str
    options: Sequence[Option] = ()
    on_table: bool = True


def _flag(name: str, text: str) -> Option:
    return click.Option([name], is_flag=True, help=text)


def _option(name: str, metavar: str | None, text: str, **more: Any) -> Option:
    return click.Option([name], metavar=metavar, help=text, **more)


def _names(value: str) -> list[str]:
    """Names with commas between them."""
    names = [name.strip() for name in value.split(",") if name.strip()]
    if not names:
        raise click.BadParameter(f"{value!r} has no name (accepted: such as A or A,B)")
    return names


def _setting(value: str) -> tuple[str, str]:
    return _parted(value.partition("="), value, "NAME=VALUE")


def _index(value: str) -> tuple[str, str]:
    match = re.fullmatch(r"(.+)(=)([^=()]+(?:\(.*\)\s*)?)", value, re.DOTALL)
    parts = ("", "", "") if match is None else (match[1], match[2], match[3])
    return _parted(parts, value, "COLUMN=KIND")


def _parted(parts: tuple[str, str, str], value: str, form: str) -> tuple[str, str]:
    """The parts before and after the sign between them."""
    if not (parts[0].strip() and parts[2].strip()):
        raise click.BadParameter(f"{value!r} (accepted: {form})")
    return parts[0], parts[2]


_ALL: Final = (
    _flag("--json", "print JSON, documented in docs/reference/cli-json.md"),
    _option("--quiet", None, "print no progress and no warnings", is_flag=True),
    click.Option(["--verbose", "-v"], is_flag=True, help="print each step"),
)
_PATH: Final = (click.Argument(["path"], metavar="PATH", type=click.Path()),)
_ON_TABLE: Final = (
    _flag("--plain", "read a table of another format as plain Parquet files"),
    _option(
        "--sidecar", "FOLDER",
        "folder of the indexes, if not in the table's folder; a path or URI",
    ),
    _option(
        "--schema", "FILE.parquet",
        "a file with all columns, where columns were added later than some files",
        type=click.Path(),
    ),
    _flag("--catalog", "PATH is the name of a table in the catalog of Spark"),
    _option("--master", "URL", "master of the Spark session, such as local[4]"),
    _option(
        "--conf", "NAME=VALUE", "setting of the Spark session; may be repeated",
        multiple=True, type=_setting,
    ),
)  # fmt: skip
_TRUST: Final = _option(
    "--trust", None,
    "source of the list of files; log needs a table that is declared exclusive",
    type=click.Choice(["listing", "log"]), default="listing", show_default=True,
)  # fmt: skip
_ZONE: Final = _option(
    "--timezone", "ZONE", "time zone of the queries, such as Europe/Rome"
)
_QUERIES: Final = _option(
    "--queries", "FILE.sql",
    "file of queries: conditions or SELECT statements, separated by ;  or log: the "
    "queries that are recorded beside the table",
    type=click.Path(),
)  # fmt: skip
_CHOICE: Final = (
    _QUERIES,
    _option("--columns", "A,B", "choose indexes only for these columns", type=_names),
    _option(
        "--max-bytes-ratio", "R", "maximum bytes of the indexes, per byte of data",
        type=float, default=0.1, show_default=True,
    ),
    _ZONE,
)  # fmt: skip
_WORKERS: Final = _option(
    "--workers", "N", "number of processes; by default one for each core", type=int
)
_WORK: Final = (
    _WORKERS,
    _option(
        "--memory", "SIZE",
        "maximum memory of each process, such as 2GB  [default: half of the machine's "
        "memory divided by the processes, at most 4GB]",
    ),
    _flag(
        "--repair",
        "read every byte of the existing indexes, and rebuild damaged ones",
    ),
)  # fmt: skip
_CONDITION: Final = (
    click.Argument(["predicate"], metavar="PREDICATE"),
    _option("--kinds", "A,B", "use only these kinds of index", type=_names),
    _ZONE,
    _TRUST,
)
_DRY_RUN: Final = _flag("--dry-run", "print what would be done, and change nothing")

COMMANDS: Final[Mapping[str, Command]] = {
    "status": Command(
        "print whether indexes are up to date; of a folder of tables, a line each",
        "/data/events",
        (_TRUST,),
    ),
    "describe": Command(
        "print the files, columns, indexes and layout of a table",
        "/data/events",
        (_TRUST,),
    ),
    "advise": Command(
        "print which indexes to build, measured on a few files",
        "/data/events --queries queries.sql",
        _CHOICE,
    ),
    "build": Command(
        "build missing indexes: named, requested before, or advised",
        "/data/events --index user_id=bitmap --index amount=bit_sliced",
        (
            _option(
                "--index", "COLUMN=KIND",
                "index to build; may be repeated, and * is every column; KIND may have "
                "arguments, such as 'bloom(error_rate=0.001)'",
                multiple=True, type=_index,
            ),
            *_WORK,
            *_CHOICE,
        ),
    ),
    "refresh": Command(
        "bring the indexes of a table up to date with its files",
        "/data/events --repair",
        _WORK,
    ),
    "maintain": Command(
        "do what a table, or each table below a folder, needs next",
        "/data/events --budget 10min,50GB --dry-run",
        (
            _option(
                "--budget", "LIMIT",
                "maximum time, or bytes to read and write, such as 10min or 10min,50GB",
            ),
            _option("--policy", "FILE", "limits, as TOML", type=click.Path()),
            _option("--every", "TIME", "repeat after a pause, such as 1h"),
            _flag("--no-spark", "rewrite no data files"),
            _WORKERS,
            _DRY_RUN,
        ),
    ),
    "report": Command(
        "print what the recorded queries of a table, or of each below a folder, skip",
        "/data/events --days 7",
        (
            _option("--days", "N", "of so many days; by default 7", type=float),
            _option("--verify", "N", "compare so many plans with rows", type=int),
            _QUERIES,
        ),
    ),
    "drop": Command(
        "drop indexes of some columns or kinds, or --all",
        "/data/events --columns user_id --kinds bloom",
        (
            _option("--columns", "A,B", "drop indexes of these columns", type=_names),
            _option(
                "--kinds", "A,B", "drop these kinds; minmax are the statistics",
                type=_names,
            ),
            _flag("--all", "drop all indexes"),
        ),
    ),
    "plan": Command(
        "print the files that can hold a row that matches a predicate",
        """/data/events "user_id = 7 AND day >= '2024-01-01'" """,
        (*_CONDITION, _flag("--files", "print only the paths, of all files")),
    ),
    "explain": Command(
        "print how many files each index ruled out, and why others stay",
        '/data/events "user_id = 7" --file day=2024-01-01/part-0.parquet',
        (
            *_CONDITION,
            _option("--file", "FILE", "explain one file, by its path in the table"),
        ),
    ),
    "verify": Command(
        "find damaged and stale indexes, and leftover files",
        "/data/events --workers 4",
        (_WORKERS,),
    ),
    "warm": Command(
        "read indexes of an object store into the cache on disk",
        "s3://bucket/events --columns user_id",
        (_option("--columns", "A,B", "read indexes of these columns", type=_names),),
    ),
    "merge": Command(
        "merge small index files into few large ones",
        "/data/events",
    ),
    "optimize": Command(
        "rewrite files, with Spark, so that more of them can be skipped",
        "/data/events --by user_id,day --in-place --budget 10GB",
        (
            _option("--by", "A,B", "cluster by these columns", type=_names),
            _QUERIES,
            _option("--curve", "NAME", "hilbert, zorder or linear"),
            _option("--where", "PREDICATE", "rewrite only these partitions"),
            _option(
                "--mode", None, "cluster new files, or all files",
                type=click.Choice(["incremental", "full"]), default="incremental",
                show_default=True,
            ),
            _option("--budget", "SIZE", "maximum bytes to rewrite, such as 10GB"),
            _option("--rows-per-file", "N", "rows of each new file", type=int),
            _flag("--in-place", "rewrite a table that skipindex has not written"),
            _flag("--publish", "show the new files to all readers, and delete the old"),
            _option("--into", "PATH", "write an optimized copy to this folder instead"),
            _ZONE,
        ),
    ),
    "vacuum": Command(
        "publish rewritten files, and delete files that no reader needs",
        "/data/events --retention 7d --dry-run",
        (
            _option(
                "--retention", "TIME",
                "how long replaced files stay for readers, such as 12h or 7d",
            ),
            _flag("--purge", "erase every value and path of deleted data"),
            _DRY_RUN,
        ),
    ),
    "history": Command(
        "list the commits, the newest first",
        "/data/events",
    ),
    "exclusive": Command(
        "declare that only skipindex changes the files of a table",
        "/data/events",
        (_flag("--off", "remove the declaration"),),
    ),
    "remove": Command(
        "delete everything that skipindex stores beside the data",
        "/data/events --dry-run",
        (_DRY_RUN,),
    ),
    "sample": Command(
        "write the example data of the documentation: 40 files, 35 MB",
        "/data/events",
        (click.Argument(["folder"], metavar="FOLDER", type=click.Path()),),
        on_table=False,
    ),
    "spark-conf": Command(
        "print the settings that prune Spark's queries without Python code",
        "--spark 3.5",
        (
            _option(
                "--spark", "VERSION",
                "version of Spark, such as 3.5; by default the installed one",
            ),
        ),
        on_table=False,
    ),
    "completion": Command(
        "print a script that completes commands and options in a shell",
        "bash >> ~/.bashrc",
        (click.Argument(["shell"], type=click.Choice(_SHELLS)),),
        on_table=False,
    ),
}  # fmt: skip


def _click_command(name: str, one: Command) -> click.Command:
    return click.Command(
        name,
        params=[
            *(_PATH if one.on_table else ()),
            *one.options,
            *(_ON_TABLE if one.on_table else ()),
            *_ALL,
        ],
        callback=functools.partial(_run, name),
        help=f"{one.text[0].upper()}{one.text[1:]}.",
        short_help=one.text,
        epilog=f"\b\nExample:\n  {_PROG} {name} {one.example.rstrip()}",
    )


class _Group(click.Group):
    """The commands in their order, and not by the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """See ``click.Group``."""
        return list(COMMANDS)


def group() -> click.Group:
    """All commands."""
    result = _Group(
        _PROG,
        commands=[_click_command(name, one) for name, one in COMMANDS.items()],
        help="Read only the Parquet files that can hold a matching row.",
        epilog="\b\nExample:\n  skipindex build /data/events --index user_id=bitmap\n"
        '  skipindex plan /data/events "user_id = 7"',
        context_settings={"help_option_names": ["-h", "--help"]},
        no_args_is_help=True,
    )
    return click.version_option(package_name=_PROG, message=f"{_PROG} %(version)s")(
        result
    )


def run(arguments: Sequence[str] | None) -> int:
    """Run one command and return its exit code.

    Raises:
        KeyboardInterrupt: the user pressed Ctrl-C.
    """
    try:
        code = group().main(
            None if arguments is None else list(arguments),
            prog_name=_PROG,
            standalone_mode=False,
        )
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx is not None else _PROG
        told = error.format_message().rstrip(".").replace("\n", " ")
        tell("error", f"{told[0].lower()}{told[1:]} (see: {where} --help)")
        return 2
    except click.Abort as error:
        raise KeyboardInterrupt from error
    except SkipIndexError as error:
        tell("error", str(error))
        return 2
    return code if isinstance(code, int) else 0


def _run(name: str, **given: Any) -> int:
    """Do what a command says, and print its answer."""
    from skipindex.cli import actions  # noqa: PLC0415 (it imports pyarrow)

    options = SimpleNamespace(**given)
    try:
        with at_work(), warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: (
                None if options.quiet else tell("warning", str(message))
            )
            answer: Answer = actions.run(name, options)
    except KeyboardInterrupt:  # to which click would add an empty line
        return exit_interrupted()
    except Exception:
        if was_pressed():  # as where Spark says that its job was cancelled
            return exit_interrupted()
        raise
    text = shown(answer.text, sys.stdout)
    if options.json:  # which is ASCII, and has escapes of its own
        text = json.dumps(answer.record, indent=2, default=str)
        text = text.replace("\x7f", "\\u007f")
    if text:
        sys.stdout.write(text + "\n")
    return answer.code
