"""Running a mutant: its tests against a broken copy of the source, or a sweep."""

from __future__ import annotations

import ast
import compileall
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from tempfile import NamedTemporaryFile, TemporaryDirectory
from threading import Timer, get_ident
from types import CodeType
from typing import Any, Final

from tests.heavy.catalogue import Told, rounds
from tests.heavy.mutants.catalogue import BY_NAME
from tests.heavy.mutants.mutant import PACKAGE, ROOT, Mutant, mutated

_TESTS_FAILED: Final = 1
"""The exit code of pytest; others mean that no test was run to its end."""


@cache
def _compile() -> None:
    """Compile the package, so that no mutant compiles more than its own module."""
    compileall.compile_dir(PACKAGE, quiet=2)


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """The mutant of a function, in this process: for sweeps that must notice it."""
    path, names = mutant.module, mutant.function.split(".")
    there = len(path.parts)
    function: Any = import_module(".".join([PACKAGE.name, *names[:there]]))
    code = compile(mutated(mutant), str(path), "exec")
    for name in names[there:]:
        function = getattr(function, name)
        code = next(
            one
            for one in code.co_consts
            if isinstance(one, CodeType) and one.co_name == name
        )
    # Whoever has imported the function has the mutant too.
    function = getattr(function, "__func__", function)  # of a class method
    original, function.__code__ = function.__code__, code
    try:
        yield
    finally:
        function.__code__ = original


@contextmanager
def _broken(mutant: Mutant) -> Iterator[dict[str, str]]:
    """The environment of a process that imports a broken copy of the source."""
    text = ast.unparse(mutated(mutant))
    _compile()
    with TemporaryDirectory() as name:
        source = Path(name, "src")
        package = source / PACKAGE.name
        # What is compiled stays right: copies have the times of the originals.
        shutil.copytree(PACKAGE, package)
        broken = package / mutant.module
        for old in (broken.parent / "__pycache__").glob(f"{broken.stem}.*.pyc"):
            old.unlink()
        broken.write_text(text)
        yield {"PYTHONPATH": f"{source}{os.pathsep}{ROOT}"}


@cache
def _forking(_thread: int) -> Popen[str]:
    """A process that tests one mutant after the other for a thread."""
    # Each commit runs as many examples; tests are compiled once for all.
    own = {"HYPOTHESIS_PROFILE": "quick", "PYTHONDONTWRITEBYTECODE": ""}
    return Popen(
        (sys.executable, Path(__file__).with_name("forked.py")),
        cwd=ROOT,
        env={**os.environ, **own},
        stdin=PIPE,
        stdout=PIPE,
        text=True,
    )


def survives(mutant: Mutant) -> str:
    """Empty if a test fails with the mutant, else what pytest said."""
    arguments = (
        *("-x", "-q", "--no-header", "-p", "no:cacheprovider"),
        *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # of what is imported
        *("-m", "not spark and not slow", *mutant.tests),
    )
    process = _forking(get_ident())
    assert process.stdin is not None
    assert process.stdout is not None
    with _broken(mutant) as environment, NamedTemporaryFile("r") as output:
        task = {"environment": environment, "arguments": arguments}
        process.stdin.write(json.dumps({**task, "output": output.name}) + "\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        said = output.read()
    # An error of pytest itself has the same exit code, and no such summary.
    if code == _TESTS_FAILED and re.search(
        r"^1 (failed|error)\b.* in ", said, re.MULTILINE
    ):
        return ""
    return f"pytest ended with {code}\n{said[-2000:]}"


def found_by(mutant: Mutant, sweep: str, *, seed: int, seconds: float) -> str:
    """The first case of a sweep that fails with the mutant; empty if none does."""
    command = [sys.executable, "-m", "tests.heavy.case", sweep, "--json"]
    with _broken(mutant) as environment:
        process = Popen(
            [*command, "--seed", str(seed)],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=PIPE,
            stderr=DEVNULL,
            text=True,
            start_new_session=True,
        )
        end = Timer(seconds, lambda: os.killpg(process.pid, signal.SIGKILL))
        end.start()
        assert process.stdout is not None
        number = -1
        try:
            for number, line in enumerate(process.stdout):
                if failure := json.loads(line)["failure"]:
                    return f"case {number}: {' '.join(failure.split())}"
            if process.wait() != -signal.SIGKILL:
                return f"after {number + 1} cases it ended with {process.returncode}"
            return ""
        finally:
            end.cancel()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def cases(seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    """A mutant, whose tests must fail."""
    for mutant, _, only in rounds(BY_NAME, seed, first, parts):
        yield Told(1, survives(mutant), only)
