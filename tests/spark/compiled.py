"""Java of a test in the driver."""

from __future__ import annotations

from typing import Any

from skipindex.spark.driver import compile_classes, object_of


def java_object(gateway: Any, name: str, source: str) -> Any:
    """An object of a class of the package ``skipindex.test``, of its source."""
    full = f"skipindex.test.{name}"
    parent = gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return object_of(gateway, compile_classes(gateway, {full: source}, parent), full)
