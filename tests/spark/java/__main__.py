"""``python -m tests.spark.java``: compile the Java sources with javac.

Exits with 1 if it complains.

The jars are those of this Python's PySpark, of the environments that the matrix has
made, and of the folders that ``--jars`` names.  The classes go where the driver looks
for them, and ``make dist`` takes them into the wheel.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.heavy.matrix.environments import FOLDER
from tests.spark.java.javac import (
    CLASSES,
    JavaError,
    classes,
    compile_sources,
    installed,
    write_jar,
)

WANTED = {"spark_3_5-scala_2_12": "3.5", "spark_4-scala_2_13": "4.3"}
"""The families that a release carries, and a cell of the matrix that has the jars."""


def main(arguments: list[str]) -> int:
    """Compile; 0 if all that was found is valid."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.java")
    parser.add_argument("--jars", action="append", type=Path, default=[])
    parser.add_argument("--all", action="store_true", help="no family may be missing")
    options = parser.parse_args(arguments)
    found: dict[str, tuple[str, Mapping[str, bytes]]] = {}
    try:
        for jars in dict.fromkeys([installed(), *of_the_matrix(), *options.jars]):
            add(found, jars)
    except JavaError as error:
        print(error, file=sys.stderr)
        return 1
    missing = [name for name in WANTED if name not in found]
    for name in missing:
        cell = f"spark-{WANTED[name]}"
        print(
            f"{name}: no jars of it here, so queries of its Spark read all files "
            f'(make test-matrix MATRIX="--cell {cell} --install" installs them)'
        )
    if options.all and missing:
        return 1
    shutil.rmtree(CLASSES, ignore_errors=True)
    for jar, content in found.values():
        write_jar(CLASSES / jar, content)
        print(f"wrote {jar}")
    return 0


def add(found: dict[str, tuple[str, Mapping[str, bytes]]], jars: Path) -> None:
    """Compile with some jars; versions of a family give the same classes.

    Raises:
        JavaError: they do not, or the sources are not valid.
    """
    with tempfile.TemporaryDirectory() as folder:
        family = compile_sources(jars, Path(folder))
        content = classes(Path(folder))
    print(f"{family.name}: Spark {family.spark} takes {len(content)} classes")
    _, known = found.setdefault(family.name, (family.jar, content))
    if known != content:
        raise JavaError(
            f"Spark {family.spark} needs other classes than those of {family.name}"
        )


def of_the_matrix() -> Iterator[Path]:
    """The jars of PySpark in the environments of the matrix."""
    for jars in sorted(FOLDER.glob("spark-*/lib/python*/site-packages/pyspark/jars")):
        if jars.is_dir():
            yield jars


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
