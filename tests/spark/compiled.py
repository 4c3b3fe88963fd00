"""Java of a test in the driver."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from skipindex.spark.driver import class_loader, object_of
from tests.spark.java.javac import classes, compile_files, installed, write_jar


def java_object(gateway: Any, name: str, source: str) -> Any:
    """An object of a class of the package ``skipindex.test``, of its source."""
    folder = Path(tempfile.mkdtemp())
    file = folder / f"{name}.java"
    file.write_text(source)
    compile_files([file], installed(), folder / "classes", ["-nowarn"])
    write_jar(folder / "test.jar", classes(folder / "classes"))
    loader = class_loader(gateway, folder / "test.jar")
    return object_of(gateway, loader, f"skipindex.test.{name}")
