"""The Java sources before ``javac``, with the jars of PySpark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from zlib import crc32

from skipindex.spark.driver import family, is_own_jar, jar_name, sources

ROOT: Final = Path(__file__).parents[3]
SOURCES: Final = ROOT / "src" / "skipindex" / "spark" / "java"
CLASSES: Final = SOURCES / "classes"

_LINT: Final = (
    "cast,dep-ann,deprecation,divzero,empty,fallthrough,finally,overrides,rawtypes,"
    "removal,serial,static,try,unchecked,varargs"
)
STRICT: Final = (f"-Xlint:{_LINT}", "-Werror")
"""The categories have names, as a newer compiler has more of them."""
RELEASE: Final = 17
"""The oldest Java that takes the classes."""


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
        return "-".join(family(self.spark, self.scala))

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
    versions = family_of(jars)
    places = (SOURCES, SOURCES / family(versions.spark, versions.scala)[0])
    files = [path for place in places for path in sorted(place.glob("*.java"))]
    out.mkdir(parents=True, exist_ok=True)
    compile_files(files, jars, out)
    return versions


def compile_files(
    files: Sequence[Path], jars: Path, out: Path, options: Sequence[str] = STRICT
) -> None:
    """Compile some sources.

    Raises:
        JavaError: what the compiler says.
    """
    command = javac()
    if command is None:
        raise JavaError("there is no javac in JAVA_HOME or on the path")
    target = ["--release", str(RELEASE), "-proc:none", "-cp", f"{jars}/*"]
    done = subprocess.run(
        [command, *target, *options, "-d", str(out), *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise JavaError(f"{jars}: {done.stdout}{done.stderr}")


def compiled_once(name: str, source: str, options: Sequence[str] = STRICT) -> Path:
    """The folder of the classes of a source, compiled once for all runs in a checkout.

    Raises:
        JavaError: what the compiler says.
    """
    jars = installed()
    key = crc32(f"{jars} {options} {source}".encode())
    folder = ROOT / ".pytest_cache" / f"java-{name}-{key:08x}"
    if not folder.exists():
        folder.parent.mkdir(exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=folder.parent))
        (part / f"{name}.java").write_text(source)
        compile_files([part / f"{name}.java"], jars, part / "classes", options)
        try:
            (part / "classes").rename(folder)
        except OSError:
            if not folder.exists():
                raise  # else another process was first
        shutil.rmtree(part)
    return folder


def classes(out: Path) -> Mapping[str, bytes]:
    """The compiled classes, by their names in a jar."""
    found = sorted(out.rglob("*.class"))
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in found}


def write_jar(path: Path, content: Mapping[str, bytes]) -> None:
    """The same bytes for the same classes, whenever they are written."""
    path.parent.mkdir(exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}")  # drivers load what is there
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as jar:
        for name, body in content.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            jar.writestr(info, body)
    part.replace(path)


def installed() -> Path:
    """The jars of this Python's PySpark.

    Raises:
        JavaError: it has none.
    """
    spec = find_spec("pyspark")
    jars = Path(spec.origin).with_name("jars") if spec and spec.origin else None
    if jars is None or not jars.is_dir():
        raise JavaError("this Python has no PySpark with jars")
    return jars


def write_missing() -> None:
    """Compile for this Python's PySpark, unless that was done for these very sources.

    Raises:
        JavaError: what the compiler says.
    """
    jars = installed()
    jar = CLASSES / family_of(jars).jar
    if jar.exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        compile_sources(jars, Path(folder))
        write_jar(jar, classes(Path(folder)))
    for path in CLASSES.iterdir():
        if path.suffix == ".jar" and not is_own_jar(path.name):
            path.unlink(missing_ok=True)  # of other sources
