"""The Spark session of a command that needs one."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from skipindex.api.calls import needs_spark
from skipindex.cli.interrupts import while_spark_starts
from skipindex.errors import EngineError, first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session(options: SimpleNamespace) -> SparkSession:
    """A session with the settings of ``--master`` and ``--conf``.

    Raises:
        EngineError: PySpark or Java is missing, or the session does not start.
    """
    with needs_spark():
        sql = importlib.import_module("pyspark.sql")
    if not _has_java():
        raise EngineError(
            "Spark needs Java, and none is installed (accepted: the folder of a Java "
            "17 as JAVA_HOME, or java in the PATH)"
        )
    is_first = sql.SparkSession.getActiveSession() is None
    builder = sql.SparkSession.builder.appName("skipindex")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    if options.master is not None:
        builder = builder.master(options.master)
    for name, value in options.conf:
        builder = builder.config(name, value)
    try:
        with while_spark_starts():
            spark: SparkSession = builder.getOrCreate()
    except Exception as error:
        raise EngineError(f"cannot start Spark: {first_line(error)}") from error
    context = spark.sparkContext
    is_local = str(context.master).startswith("local")
    if is_local and "PYSPARK_PYTHON" not in os.environ:
        # Else workers run the first python3 of the PATH, which in cron is another one.
        context.pythonExec = sys.executable
    if is_first and not options.verbose:
        spark.sparkContext.setLogLevel("OFF")  # what fails is an exception here
    return spark


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    if home:
        return (Path(home) / "bin" / "java").exists()
    return shutil.which("java") is not None
