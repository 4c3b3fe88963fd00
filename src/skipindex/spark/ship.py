"""Sending the package to executors that may not have it installed."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

from pyspark import SparkContext, SparkFiles
from pyspark.sql import SparkSession

from skipindex.errors import EngineError

PACKAGE: Final = "skipindex"

_LOCAL_MASTER = re.compile(r"local(\[.*\])?")
_lock = threading.Lock()
_shipped: set[str] = set()

_PROBE: Final = (
    f"import sys; print('\\n%d %d' % sys.version_info[:2]); import {PACKAGE}"
)
_VERSION: Final = re.compile(r"^(\d+) (\d+)$", re.MULTILINE)
"""The line of the probe among those that Python prints as it starts and ends."""
_PROBE_SECONDS: Final = 60.0
_checked: set[tuple[str, str]] = set()
"""Interpreters that can import the package, and the paths that they look in."""


def has_driver(spark: SparkSession) -> bool:
    """Whether the driver is in reach; that of Spark Connect is behind a server."""
    return hasattr(spark, "_jsparkSession")


def ship_package(spark: SparkSession) -> None:
    """Let every executor of the session import this version of the package.

    The files go out once for each Spark application, or session of Spark Connect.
    They come first on the executors' path, so another version installed there is not
    used.  In ``local[...]`` mode nothing is sent: the workers run on this machine.
    What the package itself imports (numpy, pyarrow, pyroaring and so on) must be
    installed on the executors, because compiled code cannot be sent like this.
    """
    if not has_driver(spark):
        remote: Any = spark
        if not hasattr(remote, "registerProgressHandler"):
            raise EngineError(
                "a client of Spark Connect before 4.0 runs no tasks of skipindex "
                "(accepted: Spark Connect 4.0 or newer, or a classic session)"
            )
        send = partial(remote.addArtifacts, pyfile=True)
        _ship_once(f"session {remote.session_id}", send)
        return
    context = spark.sparkContext
    if _LOCAL_MASTER.fullmatch(context.master or ""):
        _check_workers(context)
        return
    _ship_once(context.applicationId, context.addPyFile)


def _check_workers(context: SparkContext) -> None:
    """Raise ``EngineError`` if workers on this machine cannot import the package."""
    # Unless ``PYSPARK_PYTHON`` is set, workers run the ``python3`` of the path, and
    # Spark would tell of a missing package in a traceback for each task.
    python = context.pythonExec
    result = shutil.which(python)
    if result is not None and _is_this(result):
        return
    root = SparkFiles.getRootDirectory()
    paths = [f"{root}/{name}" for name in context._python_includes or ()]  # noqa: SLF001 (no public name)
    path = os.pathsep.join([*paths, root, os.environ.get("PYTHONPATH", "")])
    if (python, path) in _checked:
        return
    problem = "is not there" if result is None else _problem_of(result, path)
    if problem:
        raise EngineError(
            f"Spark's Python workers run {python!r}, which {problem} (set "
            f"PYSPARK_PYTHON={sys.executable} before the session starts)"
        )
    _checked.add((python, path))


def _is_this(python: str) -> bool:
    """Whether it is the interpreter of this process, in the same environment."""
    ours, other = Path(sys.executable).absolute(), Path(python).absolute()
    return ours.parent == other.parent and ours.resolve() == other.resolve()


def _problem_of(python: str, path: str) -> str:
    """Why workers of an interpreter would fail; empty if nothing tells that."""
    try:
        done = subprocess.run(  # noqa: S603 (what Spark would run)
            [python, "-c", _PROBE],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    ours = "{}.{}".format(*sys.version_info)
    match = _VERSION.search(done.stdout)
    if match and (version := ".".join(match.groups())) != ours:
        return f"is Python {version}, and this is {ours}"
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return f"cannot import {PACKAGE}: {lines[-1]}"
    return ""


def _ship_once(receiver: str, send: Callable[[str], None]) -> None:
    with _lock:
        if receiver not in _shipped:
            send(str(_write_archive()))
            _shipped.add(receiver)


def _write_archive() -> Path:
    """Zip the package into a folder that lives as long as this process."""
    # Spark does not copy the file, it serves it from there.
    folder = Path(tempfile.mkdtemp(prefix=f"{PACKAGE}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = folder / f"{PACKAGE}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in _sources(resources.files(PACKAGE), PACKAGE):
            target.writestr(name, content)
    return archive


def _sources(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        entry_name = f"{name}/{entry.name}"
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _sources(entry, entry_name)
        elif not entry.name.endswith((".pyc", ".pyo")):
            yield entry_name, entry.read_bytes()
