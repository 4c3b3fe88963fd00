"""The classes of ``java`` in the driver, once for every JVM.

``make setup`` and ``make dist`` compile them, into one jar for each family of Spark.
They are known to the driver's JVM alone, and to what it is given of them: executors
need nothing.
"""

from __future__ import annotations

import atexit
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

from skipindex.errors import EngineError

_PACKAGE: Final = "skipindex"
"""The package of the Java classes."""
_SOURCES: Final = files(__package__) / "java"
_CLASSES: Final = _SOURCES / "classes"
_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+(\.|$)")
FAMILIES: Final = (("3.5", "2.12"), ("3.5", "2.13"), ("4.0", "2.13"))
"""Versions of Spark and Scala for which classes differ."""

_LOADING: Final = threading.Lock()
"""Held while the classes are loaded."""
_FILES: Final = ExitStack()
"""The jars that were unpacked of an archive of the package, until Python ends."""
atexit.register(_FILES.close)


def new_object(gateway: Any, name: str) -> Any:
    """An object of one of the classes, by its name without the package.

    Raises:
        EngineError: no classes are compiled for this Spark, or they do not link.
    """
    return object_of(gateway, _loader(gateway), f"{_PACKAGE}.{name}")


def object_of(gateway: Any, loader: Any, name: str) -> Any:
    """An object of a class that a loader has, which is made of nothing."""
    (constructor,) = loader.loadClass(name).getConstructors()
    return constructor.newInstance(gateway.new_array(gateway.jvm.java.lang.Object, 0))


def expressions_json(gateway: Any, expressions: Sequence[Any]) -> str:
    """The Java objects, which are expressions of one session, as JSON."""
    listed = gateway.jvm.java.util.ArrayList()
    for expression in expressions:
        listed.add(expression)
    as_seq = gateway.jvm.org.apache.spark.api.python.PythonUtils.toSeq
    arguments = gateway.new_array(gateway.jvm.java.lang.Object, 1)
    arguments[0] = as_seq(listed)
    return str(_json(gateway).invoke(None, arguments))


def class_loader(gateway: Any, jar: Path) -> Any:
    """The loader of the classes of a jar, which may name those of Spark."""
    jvm = gateway.jvm
    urls = gateway.new_array(jvm.java.net.URL, 1)
    urls[0] = jvm.java.io.File(str(jar)).toURI().toURL()
    parent = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return jvm.java.net.URLClassLoader(urls, parent)


def family(spark: str, scala: str) -> tuple[str, str]:
    """The folder of the sources for a version of Spark alone, and the name of Scala's.

    Example:
        >>> family("3.5.8", "2.12.18"), family("4.10.0", "2.13.16")
        (('spark_3_5', 'scala_2_12'), ('spark_4', 'scala_2_13'))
    """
    is_new = _numbers(spark) >= (4, 0)
    is_213 = _numbers(scala) >= (2, 13)
    return (
        "spark_4" if is_new else "spark_3_5",
        "scala_2_13" if is_213 else "scala_2_12",
    )


def _numbers(version: str) -> tuple[int, ...]:
    """Major and minor."""
    return tuple(map(int, version.split(".")[:2]))


def _loader(gateway: Any) -> Any:
    """One for every JVM: Py4J takes classes of one name for one class."""
    with _LOADING:  # threads that ask at once get one, too
        return _loaded(gateway)


@lru_cache(maxsize=1)
def _loaded(gateway: Any) -> Any:
    """The class loader, if all of its classes link with this Spark."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - a planner's process has none

    versions = _versions(gateway.jvm)
    jar = _CLASSES / jar_name(*versions, sources(*versions))
    if not jar.is_file():
        raise EngineError(_no_classes(f"{versions[0]} with Scala {versions[1]}"))
    result = class_loader(gateway, _FILES.enter_context(as_file(jar)))
    try:
        missing = missing_of(gateway, result)
    except Py4JError as error:
        missing = " ".join(str(error).splitlines()[:2])  # the call, and the reason
    if missing:
        raise EngineError(
            f"the classes of skipindex do not link with Spark {versions[0]}: {missing} "
            "(accepted: an unchanged Spark 3.5 to 4.3 on Java 17 or newer)"
        )
    return result


def missing_of(gateway: Any, loader: Any) -> str | None:
    """What ``Links`` finds missing; Py4J would call that of another loader."""
    lang = gateway.jvm.java.lang
    method = loader.loadClass(f"{_PACKAGE}.Links").getMethod(
        "missing", gateway.new_array(lang.Class, 0)
    )
    result: str | None = method.invoke(None, gateway.new_array(lang.Object, 0))
    return result


def _no_classes(spark: str) -> str:
    """The error for a version of Spark without a jar."""
    return (
        f"no classes for Spark {spark} are compiled (accepted: a released wheel, for "
        "Spark 3.5 with Scala 2.12 and for Spark 4; in a checkout type: make java)"
    )


def _versions(jvm: Any) -> tuple[str, str]:
    """Spark's and Scala's in the driver."""
    spark = jvm.org.apache.spark.package.SPARK_VERSION()
    return spark, jvm.scala.util.Properties.versionNumberString()


def jar_name(spark: str, scala: str, names: Mapping[str, str]) -> str:
    """The file that has the classes of just these sources, if a wheel brings them."""
    digest = sha256()
    for name in sorted(names):
        digest.update(f"{name}\0{names[name]}\0".encode())
    return f"{'-'.join(family(spark, scala))}-{digest.hexdigest()[:16]}.jar"


def sources(spark: str, scala: str) -> Mapping[str, str]:
    """The Java sources for a version of Spark and Scala, by their classes."""
    places = (_SOURCES, _SOURCES / family(spark, scala)[0])
    return {
        f"{_PACKAGE}.{path.name.removesuffix('.java')}": path.read_text("utf-8")
        for place in places
        for path in place.iterdir()
        if path.name.endswith(".java")
    }


@lru_cache(maxsize=1)
def _json(gateway: Any) -> Any:
    """``ExpressionJson.json``."""
    lang = gateway.jvm.java.lang
    takes = gateway.new_array(lang.Class, 1)
    takes[0] = lang.Class.forName("scala.collection.Seq")
    result = _loader(gateway).loadClass(f"{_PACKAGE}.ExpressionJson")
    return result.getMethod("json", takes)


def is_own_jar(name: str) -> bool:
    """Whether a file of classes, by its name, is one that this version brings."""
    return any(name == jar_name(*one, sources(*one)) for one in FAMILIES)


def extension_settings(spark: str | None = None) -> dict[str, str]:
    """The settings by which Spark prunes without Python in its driver, by their names.

    ``spark`` is its version; None is that of PySpark here.
    """
    result = spark or _pyspark()
    if _VERSION.match(result) is None:
        raise EngineError(
            f"not a Spark version: {result!r} (accepted: such as '3.5' or '4.1')"
        )
    scala = "2.13" if _numbers(result) >= (4, 0) else "2.12"
    jar = _CLASSES / jar_name(result, scala, sources(result, scala))
    if not (isinstance(jar, Path) and jar.exists()):
        raise EngineError(_no_classes(result))
    return {
        "spark.sql.extensions": f"{_PACKAGE}.Extension",
        "spark.jars": str(jar),
        "spark.skipindex.python": sys.executable,
    }


def _pyspark() -> str:
    """The version that is installed."""
    try:
        return version("pyspark")
    except PackageNotFoundError:
        raise EngineError(
            "PySpark is not installed here, so the version of Spark is unknown "
            "(accepted: the version, such as '3.5' or '4.1')"
        ) from None
