"""Java of a test in the driver."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from skipindex.spark.driver import class_loader, object_of
from tests.spark.java.javac import classes, compiled_once, write_jar


def java_object(gateway: Any, name: str, source: str) -> Any:
    """An object of a class of the package ``skipindex.test``, of its source."""
    jar = Path(tempfile.mkdtemp(), "test.jar")
    write_jar(jar, classes(compiled_once(name, source, ["-nowarn"])))
    loader = class_loader(gateway, jar)
    return object_of(gateway, loader, f"skipindex.test.{name}")
