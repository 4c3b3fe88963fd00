"""The package itself, sent to executors that may not have it installed."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

PACKAGE: Final = "skipindex"

_LOCAL_MASTER = re.compile(r"local(\[.*\])?")
_lock = threading.Lock()
_shipped: set[str] = set()


def has_driver(spark: SparkSession) -> bool:
    """Whether the driver is in reach; that of Spark Connect is behind a server."""
    return hasattr(spark, "_jsparkSession")


def ship_package(spark: SparkSession) -> None:
    """Let every executor of the session import this version of the package.

    The files go out once for each Spark application, or session of Spark Connect.
    They come first on the executors' path, so another version installed there is not
    used.  In ``local[...]`` mode nothing is sent: the workers are children of this
    process.  What the package itself imports (numpy, pyarrow, pyroaring and so on)
    must be installed on the executors, because compiled code cannot be sent like this.
    """
    if not has_driver(spark):
        remote: Any = spark
        send = partial(remote.addArtifacts, pyfile=True)
        _ship_once(f"session {remote.session_id}", send)
        return
    context = spark.sparkContext
    if _LOCAL_MASTER.fullmatch(context.master or ""):
        return
    _ship_once(context.applicationId, context.addPyFile)


def _ship_once(receiver: str, send: Callable[[str], None]) -> None:
    with _lock:
        if receiver not in _shipped:
            send(str(_write_archive()))
            _shipped.add(receiver)


def _write_archive() -> Path:
    """Zip the package into a folder that lives as long as this process.

    Spark does not copy the file, it serves it from there.
    """
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
