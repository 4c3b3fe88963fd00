"""The runtime of Iceberg for Spark 3.5, where it is installed.

It is the jar that SKIPINDEX_ICEBERG_JAR names, or that of the package
``snowpark-connect-deps-iceberg``.  That one lacks the classes of Jackson under the
names that Iceberg has for them, and has them under those of its Parquet.
"""

from __future__ import annotations

import os
import struct
import tempfile
import zipfile
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pyspark

NAME: Final = "iceberg-spark-runtime-3.5_2.12-*.jar"
_SHADED: Final = "org/apache/iceberg/shaded"
_OWN: Final = f"{_SHADED}/com/fasterxml/jackson"
_OTHER: Final = f"{_SHADED}/org/apache/parquet/shaded/com/fasterxml/jackson"
_LENGTHS: Final = {7: 3, 8: 3, 15: 4, 16: 3, 19: 3, 20: 3, 5: 9, 6: 9}
"""Bytes of constants of a class, by their tags; others have five."""


def jar() -> Path | None:
    """The jar; None if it is not there, or is of another Spark."""
    if not pyspark.__version__.startswith("3.5."):
        return None
    if given := os.environ.get("SKIPINDEX_ICEBERG_JAR"):
        return Path(given)
    spec = find_spec("snowpark_connect_deps_iceberg")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0])
    return next(iter(sorted(folder.glob(f"jars/{NAME}"))), None)


@cache
def settings() -> Mapping[str, str]:
    """A session's, with the catalog ``ice``; empty if there is no Iceberg."""
    path = jar()
    if path is None:
        return {}
    folder = Path(tempfile.mkdtemp(prefix="skipindex-iceberg-"))
    return {
        "spark.jars": f"{path},{_jackson(path, folder)}",
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(folder / "warehouse"),
    }


def metadata(name: str) -> str:
    """The newest metadata of a table of the namespace ``db``."""
    folder = Path(settings()["spark.sql.catalog.ice.warehouse"], "db", name, "metadata")
    version = (folder / "version-hint.text").read_text().strip()
    return str(folder / f"v{version}.metadata.json")


def _jackson(path: Path, folder: Path) -> Path:
    """A jar of the missing classes; an empty one if there are none."""
    result = folder / "jackson.jar"
    with zipfile.ZipFile(path) as runtime, zipfile.ZipFile(result, "w") as made:
        names = runtime.namelist()
        if not any(name.startswith(_OWN) for name in names):
            for name in names:
                if name.startswith(_OTHER) and name.endswith(".class"):
                    body = _renamed(runtime.read(name))
                    made.writestr(name.replace(_OTHER, _OWN), body)
    return result


def _renamed(body: bytes) -> bytes:
    """The class with the other names in its constants."""
    (n_constants,) = struct.unpack_from(">H", body, 8)
    parts, at, i = [body[:10]], 10, 1
    while i < n_constants:
        tag = body[at]
        if tag == 1:
            (length,) = struct.unpack_from(">H", body, at + 1)
            text = body[at + 3 : at + 3 + length]
            for old, new in ((_OTHER, _OWN), (_dots(_OTHER), _dots(_OWN))):
                text = text.replace(old.encode(), new.encode())
            parts.append(struct.pack(">BH", 1, len(text)) + text)
            at += 3 + length
        else:
            length = _LENGTHS.get(tag, 5)
            parts.append(body[at : at + length])
            at += length
        i += 1 + (tag in {5, 6})
    return b"".join(parts) + body[at:]


def _dots(name: str) -> str:
    return name.replace("/", ".")
