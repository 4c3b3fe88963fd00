"""The page of the command line, made of what ``skipindex --help`` says.

``python -m tests.cli_page`` writes ``docs/reference/cli.md``.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from skipindex import cli

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
HEAD = """\
# Command line

`pip install skipindex` brings the command `skipindex`; `python -m skipindex` is the
same.

The exit code is 0 if the command did what it says, 1 if `verify` found something that
is damaged or stale, or `build` or `refresh` could not read a file, and 2 if the
arguments are wrong.

This page is written by `python -m tests.cli_page`.
"""


def help_of(*arguments: str) -> str:
    """What ``--help`` prints, in lines of 88 characters and without colours."""
    printed = io.StringIO()
    settings = {"COLUMNS": "88", "NO_COLOR": "1"}
    with (
        mock.patch.dict(os.environ, settings),
        contextlib.redirect_stdout(printed),
        contextlib.suppress(SystemExit),
    ):
        cli.main([*arguments, "--help"])
    return printed.getvalue().rstrip()


def commands() -> list[str]:
    """The names of the commands, in their order."""
    return re.findall(r"^    ([a-z][a-z-]*)(?= |$)", help_of(), re.MULTILINE)


def sections() -> Iterator[str]:
    yield HEAD
    for command in ["", *commands()]:
        name = f"skipindex {command}".strip()
        yield f"## {name}\n\n```\n{help_of(*command.split())}\n```\n"


def page() -> str:
    return "\n".join(sections())


if __name__ == "__main__":
    PAGE.write_text(page())
