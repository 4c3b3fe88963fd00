"""The Java sources before ``javac``, with the jars of PySpark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skipindex.spark.driver import folders, jar_name, sources

ROOT: Final = Path(__file__).parents[3]
SOURCES: Final = ROOT / "src" / "skipindex" / "spark" / "java"
CLASSES: Final = SOURCES / "classes"

# Janino knows no generics, so that what javac takes for superfluous casts is not. The
# others are of Spark's jars, and of processors that there are none of.
LINT: Final = "-Xlint:all,-cast,-classfile,-options,-path,-processing"


class JavaError(Exception):
    """There is no compiler, or it does not take the sources."""


@dataclass(frozen=True, slots=True)
class Family:
    """Versions of Spark that the same classes are for.

    Args:
        spark: the version whose jars are compiled against.
        scala: its version of Scala.
    """

    spark: str
    scala: str

    @property
    def name(self) -> str:
        """What messages call it."""
        return "-".join(folders(self.spark, self.scala))

    @property
    def release(self) -> int:
        """The oldest Java that the versions of Spark run on."""
        return 8 if self.spark.startswith("3.") else 17

    @property
    def jar(self) -> str:
        """The name of the file that the driver looks for."""
        found = sources(self.spark, self.scala)
        return jar_name(self.spark, self.scala, found)


def family_of(jars: Path) -> Family:
    """The versions that a folder of jars has."""
    names = "\n".join(sorted(path.name for path in jars.glob("*.jar")))
    spark = re.search(r"^spark-core_[\d.]+-([\d.]+)\.jar$", names, re.MULTILINE)
    scala = re.search(r"^scala-library-([\d.]+)\.jar$", names, re.MULTILINE)
    if not spark or not scala:
        raise JavaError(f"{jars} has no jars of Spark")
    return Family(spark[1], scala[1])


def javac() -> str | None:
    """The compiler of ``JAVA_HOME``, or else that on the path, if there is one."""
    home = os.environ.get("JAVA_HOME")
    own = Path(home, "bin", "javac") if home else None
    return str(own) if own and own.exists() else shutil.which("javac")


def compile_sources(jars: Path, out: Path) -> Family:
    """Compile all sources of a family into a folder; a warning is an error.

    Args:
        jars: of a PySpark.
        out: gets the classes.

    Raises:
        JavaError: what the compiler says.
    """
    family = family_of(jars)
    places = (SOURCES, *(SOURCES / one for one in folders(family.spark, family.scala)))
    files = [path for place in places for path in sorted(place.glob("*.java"))]
    out.mkdir(parents=True, exist_ok=True)
    compile_files(files, jars, out)
    return family


def compile_files(files: Sequence[Path], jars: Path, out: Path) -> None:
    """Compile some sources.

    Raises:
        JavaError: what the compiler says.
    """
    command = javac()
    if command is None:
        raise JavaError("there is no javac in JAVA_HOME or on the path")
    family = family_of(jars)
    options = ["--release", str(family.release), LINT, "-Werror", "-proc:none"]
    done = subprocess.run(
        [command, *options, "-cp", f"{jars}/*", "-d", str(out), *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise JavaError(f"Spark {family.spark}: {done.stdout}{done.stderr}")


def format_sources(class_path: str) -> None:
    """Format all sources in place.

    Args:
        class_path: that of google-java-format, with what it needs.

    Raises:
        JavaError: what the formatter says.
    """
    command = javac()
    java = str(Path(command).with_name("java")) if command else "java"
    opened = [
        f"--add-exports=jdk.compiler/com.sun.tools.javac.{one}=ALL-UNNAMED"
        for one in ("api", "code", "file", "parser", "tree", "util")
    ]
    main = ["-cp", class_path, "com.google.googlejavaformat.java.Main"]
    files = map(str, sorted(SOURCES.rglob("*.java")))
    options = ["--skip-javadoc-formatting", "--replace"]
    done = subprocess.run(
        [java, *opened, *main, *options, *files],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise JavaError(done.stdout + done.stderr)


def classes(out: Path) -> Mapping[str, bytes]:
    """The compiled classes, by their names in a jar."""
    found = sorted(out.rglob("*.class"))
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in found}


def write_jar(path: Path, content: Mapping[str, bytes]) -> None:
    """The same bytes for the same classes, whenever they are written."""
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as jar:
        for name, body in content.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            jar.writestr(info, body)
