"""The page of the command line, made of what ``skipindex`` prints.

``python -m tests.cli_page`` writes ``docs/reference/cli.md``; with Spark, or else the
example of ``optimize`` stays as it is.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from unittest import mock

from skipindex import cli
from skipindex.cli.commands import COMMANDS
from skipindex.cli.sample import write_events

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
PLACE: Final = "/data/events"
HEAD = """\
# Command line

`pip install 'skipindex[cli]'` or `'skipindex[spark]'` installs the command
`skipindex`, which is also `python -m skipindex`.

| exit code | meaning |
|---|---|
| 0 | success |
| 1 | damaged or stale indexes (`verify`), or an unreadable file (`build`, `refresh`) |
| 2 | wrong arguments; one line names them, and what is accepted |
| 130 | Ctrl-C |

Results are tables on the standard output.  In a pipe or a file no cell is cut, and
every row is one line.  Progress is on the standard error: a bar with rate and remaining
time in a terminal, a line every ten seconds elsewhere.

Line breaks and control characters in names are escaped, such as `\\n` and `\\x1b`, as
are characters that the output cannot encode.  Bytes that are not UTF-8 are shown as
U+FFFD.  `--json` prints [JSON](cli-json.md) in ASCII, with the names of Python.

PATH is a folder, or a URI such as `s3://bucket/events`.  With `--catalog` it is the
name of a table in the catalog of a Spark session with the settings of `--master` and
`--conf`:
`skipindex status sales.orders --catalog --conf spark.sql.catalogImplementation=hive`.

`python -m tests.cli_page` writes this page.  The examples use the folder that
`skipindex sample /data/events` writes.  All commands on a table have these options, and
the other commands the last four of them:
"""
EXAMPLES: Final = (
    "advise /data/events --columns user,status",
    "build /data/events --index user=bloom --index status=bitmap",
    "status /data/events",
    "describe /data/events",
    'plan /data/events "user = 123 AND status = 500"',
    'explain /data/events "user = 123 AND status = 500"',
    "report /data/events",
    "maintain /data/events --dry-run",
    "refresh /data/events",
    "verify /data/events",
    "merge /data/events",
    "history /data/events",
    "drop /data/events --columns status --kinds bitmap",
    "exclusive /data/events",
    "vacuum /data/events --dry-run",
    "remove /data/events --dry-run",
    "optimize /data/events --by user,moment --rows-per-file 100000 --in-place",
)
"""In this order: each works on what those before it have left."""
LINES: Final = re.MULTILINE | re.DOTALL
WITHOUT: Final = {"sample", "spark-conf", "completion", "warm"}
"""Commands whose answer is of no table, or of the machine."""


def printed(*arguments: str) -> str:
    """What a command prints, in lines of 80 characters and without colours."""
    out = io.StringIO()
    settings = {"COLUMNS": "80", "NO_COLOR": "1", "PYSPARK_PYTHON": sys.executable}
    with (
        mock.patch.dict(os.environ, settings),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        cli.main(arguments)
    return out.getvalue().rstrip()


def answers(folder: Path, *, spark: bool) -> Mapping[str, str]:
    """What the examples print, by command; ``folder`` is where they work."""
    write_events(folder)
    found = {}
    for example in EXAMPLES:
        name = example.partition(" ")[0]
        if name == "optimize" and not spark:
            found[name] = _block(name)
            continue
        arguments = [one.replace(PLACE, str(folder)) for one in shlex.split(example)]
        told = printed(*arguments, *(["--workers", "1"] if name == "build" else []))
        found[name] = f"$ skipindex {example}\n{told}".replace(str(folder), PLACE)
    return found


def _block(name: str) -> str:
    """The answer that stands in the page."""
    text = PAGE.read_text() if PAGE.exists() else ""
    match = re.search(rf"^\$ skipindex {name} .*?(?=\n```)", text, LINES)
    return match[0] if match else ""


def options(text: str) -> dict[str, str]:
    """The lines of each option of a help text, by its names."""
    _, _, rest = text.partition("\nOptions:\n")
    block, _, _ = rest.partition("\n\n")
    parts = re.split(r"^(?=  -)", block, flags=re.MULTILINE)[1:]
    return {re.split(r" {2,}", part.strip())[0]: part.rstrip() for part in parts}


def own_help(command: str, shared: Iterable[str]) -> str:
    """The help of a command without the options of all commands."""
    text = printed(*command.split(), "--help")
    found = options(text)
    before, _, rest = text.partition("\nOptions:\n")
    own = [lines for name, lines in found.items() if name not in shared]
    listed = "\n".join(["\nOptions:", *own, ""]) if own else ""
    _, _, after = rest.partition("\n\n")
    return f"{before}{listed}\n{after}"


def sections(found: Mapping[str, str]) -> Iterator[str]:
    shared = options(printed("merge", "--help"))
    yield HEAD
    yield "```text\n" + "\n".join(shared.values()) + "\n```\n"
    yield f"## skipindex\n\n```text\n{printed('--help')}\n```\n"
    for command in COMMANDS:
        text = own_help(command, shared)
        yield f"## skipindex {command}\n\n```text\n{text}\n```\n"
        if found.get(command):
            yield f"```text\n{found[command]}\n```\n"


def page(folder: Path, *, spark: bool = False) -> str:
    return "\n".join(sections(answers(folder, spark=spark)))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        with_spark = find_spec("pyspark") is not None
        written = page(Path(scratch) / "events", spark=with_spark)
    PAGE.write_text(written)
    sys.stdout.write(f"{PAGE}\n")
