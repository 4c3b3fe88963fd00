"""A local Spark session in which everything of this library runs.

Four defaults of Spark get in the way of a first try: the Python workers run
whatever ``python3`` is on the path, a missing or old Java ends in a stack trace, a
laptop on a foreign network cannot reach itself under its own host name, and every
folder that it is started in gets a ``spark-warehouse``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from skipindex.errors import SkipIndexError

MIN_JAVA: Final = 17

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def local_session(
    app: str = "skipindex",
    *,
    cores: int | str = "*",
    memory: str = "4g",
    conf: Mapping[str, str] | None = None,
    master: str | None = None,
) -> SparkSession:
    """A local session whose Python workers run this very interpreter.

    A session that runs already is returned as it is, with what Spark can still
    change of ``conf`` set on it.  The time zone stays Spark's own choice.

    Args:
        app: name of the application.
        cores: worker threads; ``"*"`` for one a processor.
        memory: heap of the JVM, which holds driver and workers in one.
        conf: Spark settings that win over everything set here.  A short-lived
            session starts faster with ``spark.driver.extraJavaOptions`` of
            ``-XX:+UseSerialGC -XX:TieredStopAtLevel=1``.
        master: instead of ``local[cores]``, e.g. ``local-cluster[2,1,1024]``.

    Raises:
        SkipIndexError: if there is no Java that Spark can run on.
    """
    builder = SparkSession.builder
    if SparkContext._active_spark_context is None:  # noqa: SLF001 - no public name
        require_java()
        # Absolute, because local-cluster workers start in folders of their own; not
        # resolved, because a virtual environment is known by its link.
        python = str(Path(sys.executable).absolute())
        os.environ["PYSPARK_PYTHON"] = python
        os.environ["PYSPARK_DRIVER_PYTHON"] = python
        n_cores = os.cpu_count() or 1 if cores == "*" else int(cores)
        warehouse = Path(tempfile.gettempdir(), f"skipindex-warehouse-{os.getpid()}")
        master = master or f"local[{cores}]"
        builder = builder.appName(app).master(master)
        loopback = {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
        }
        conf = {
            **(loopback if master.startswith("local") else {}),
            "spark.driver.memory": memory,
            "spark.log.level": "ERROR",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
            # From 4.2 an Arrow function right on a scan gets the scan's small
            # batches instead, at twice the cost.
            "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
            "spark.sql.shuffle.partitions": str(max(4, 2 * n_cores)),
            "spark.sql.warehouse.dir": str(warehouse),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            **(conf or {}),
        }
    for key, value in (conf or {}).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def scaled_session(app: str, *, scale: float, memory: str | None) -> SparkSession:
    """A session with one clock for plans and for what reads them, and a heap that fits.

    Above scale 1 the dimensions, which joins hold in memory, are large themselves.

    Args:
        app: name of the application.
        scale: of the data.
        memory: the heap; None is 4 GB, and above scale 1 8 GB.
    """
    return local_session(
        app,
        memory=memory or ("4g" if scale <= 1 else "8g"),
        conf={"spark.sql.session.timeZone": "UTC"},
    )


def require_java() -> Path:
    """The ``java`` command that Spark will start, at least `MIN_JAVA`.

    Spark takes the one of ``JAVA_HOME``, else the first on the path.

    Raises:
        SkipIndexError: if there is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin")) if home else None)
    accepted = (
        f"Spark needs Java {MIN_JAVA} or newer, in JAVA_HOME or as 'java' on the path"
    )
    if found is None:
        where = f"in JAVA_HOME {home!r}" if home else "on the path"
        raise SkipIndexError(f"no java command {where}: {accepted}")
    answer = subprocess.run(  # noqa: S603 - the command that Spark would run itself
        [found, "-version"], capture_output=True, text=True, check=False
    )
    match = _VERSION.search(answer.stderr)
    if match is None:
        raise SkipIndexError(f"{found!r} does not tell a Java version: {accepted}")
    if int(match[1]) < MIN_JAVA:
        raise SkipIndexError(f"{found!r} is Java {match[1]}: {accepted}")
    return Path(found)
