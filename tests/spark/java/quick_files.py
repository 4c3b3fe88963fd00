"""Settings of sessions of the tests, whose files need no process of ``chmod`` each.

Hadoop starts two for each file that Spark writes, where its native library is not
there, and one for each folder: a fifth of what the tests with Spark take.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from zlib import crc32

from tests.spark.java.javac import ROOT, JavaError, compile_files, installed

_SOURCE: Final = Path(__file__).with_name("QuickFiles.java")


def settings() -> Mapping[str, str]:
    """Of a session that has not started; none where there is no compiler."""
    try:
        folder = _compiled()
    except JavaError:
        return {}
    return {
        "spark.driver.extraClassPath": str(folder),
        "spark.hadoop.fs.file.impl": "QuickFiles",
    }


def _compiled() -> Path:
    """The folder of the class, compiled once for all runs in a checkout."""
    jars = installed()
    key = crc32(str(jars).encode(), crc32(_SOURCE.read_bytes()))
    folder = ROOT / ".pytest_cache" / f"quick-files-{key:08x}"
    if not folder.exists():
        folder.parent.mkdir(exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=folder.parent))
        compile_files([_SOURCE], jars, part)
        try:
            part.rename(folder)
        except OSError:
            if not folder.exists():
                raise
            shutil.rmtree(part)  # another process was first
    return folder
