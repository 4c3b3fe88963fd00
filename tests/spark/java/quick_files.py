"""Settings of sessions of the tests, whose files need no process of ``chmod`` each.

Hadoop starts two for each file that Spark writes, where its native library is not
there, and one for each folder: a fifth of what the tests with Spark take.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.spark.java.javac import JavaError, compiled_once

_NAME: Final = "QuickFiles"


def settings() -> Mapping[str, str]:
    """Of a session that has not started; none where there is no compiler."""
    source = Path(__file__).with_name(f"{_NAME}.java").read_text()
    try:
        folder = compiled_once(_NAME, source)
    except JavaError:
        return {}
    return {
        "spark.driver.extraClassPath": str(folder),
        "spark.hadoop.fs.file.impl": _NAME,
    }
