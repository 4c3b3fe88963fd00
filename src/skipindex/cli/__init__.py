"""``skipindex COMMAND PATH …``: indexes and plans from a shell.

The exit code is 0 if the command did what it says, 1 if it found a problem (``verify``
something that is damaged or stale, ``build`` or ``refresh`` a file that they could not
read), 2 if the question was wrong, and 130 after Ctrl-C.

Importing this module, and ``--help``, load neither pyarrow nor numpy.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

from skipindex.cli.interrupts import exit_interrupted, interruptible

_NEEDED: Final = ("click", "rich")
"""What ``skipindex[cli]`` installs."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; None is what the shell has given."""
    with interruptible(is_all=arguments is None):
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        missing = [name for name in _NEEDED if find_spec(name) is None]
        if missing:
            sys.stderr.write(
                f"skipindex: error: the command line needs {' and '.join(_NEEDED)}, "
                f"and {' and '.join(missing)} is not installed (type: pip install "
                "'skipindex[cli]')\n"
            )
            return 2
        from skipindex.cli.commands import run  # noqa: PLC0415 (as just looked at)

        code = run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return exit_interrupted()
    except BrokenPipeError:  # head has seen enough; nothing more is to be flushed
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code
