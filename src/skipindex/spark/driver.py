"""The classes of ``java`` in the driver, by the compiler that Spark itself uses.

They are known to the driver's JVM alone, and to what it is given of them: no jar is
installed, and executors need nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

_PACKAGE: Final = "skipindex"
"""The package of the Java classes."""
_SEQ: Final = ("scala.collection.Seq", "scala.collection.immutable.Seq")
"""What ``Seq`` is in Spark's signatures under Scala 2.12, and since 2.13."""
_MAP: Final = "scala.collection.immutable.Map"
_SESSION: Final = (
    "org.apache.spark.sql.SparkSession",
    "org.apache.spark.sql.classic.SparkSession",
)
"""The class of a session with a driver in Spark 3, and since 4.0."""


def new_object(gateway: Any, name: str) -> Any:
    """An object of one of the classes, by its name without the package.

    Raises:
        Py4JError: the JVM has no Janino, or takes no source of a class that is needed.
    """
    return object_of(gateway, _loader(gateway), f"{_PACKAGE}.{name}")


def load_all(gateway: Any) -> None:
    """Compile all classes, so that none fails in the middle of a query.

    Raises:
        Py4JError: as for ``new_object``.
    """
    loader = _loader(gateway)
    for name in _sources():
        loader.loadClass(name)


def object_of(gateway: Any, loader: Any, name: str) -> Any:
    """An object of a class that a loader has, which is made of nothing."""
    (constructor,) = loader.loadClass(name).getConstructors()
    return constructor.newInstance(gateway.new_array(gateway.jvm.java.lang.Object, 0))


def expressions_json(gateway: Any, expressions: Sequence[Any]) -> str:
    """The Java objects, which are expressions of one session, as JSON.

    Raises:
        Py4JError: as for ``new_object``.
    """
    listed = gateway.jvm.java.util.ArrayList()
    for expression in expressions:
        listed.add(expression)
    as_seq = gateway.jvm.org.apache.spark.api.python.PythonUtils.toSeq
    arguments = gateway.new_array(gateway.jvm.java.lang.Object, 1)
    arguments[0] = as_seq(listed)
    return str(_json(gateway).invoke(None, arguments))


def compile_classes(gateway: Any, sources: Mapping[str, str], parent: Any) -> Any:
    """The class loader of sources, which are given by the names of their classes.

    The classes may name one another, and those that ``parent`` has.  A class is
    compiled when it is first loaded.

    Raises:
        Py4JError: the JVM has no Janino, or, when a class is loaded, its source is not
            accepted.
    """
    jvm = gateway.jvm
    resource = jvm.org.codehaus.commons.compiler.util.resource
    words = _words(jvm)
    found = jvm.java.util.HashMap()
    for name, source in sources.items():
        text = source
        for word, meaning in words.items():
            text = text.replace(word, meaning)
        found.put(name.replace(".", "/") + ".java", text.encode())
    return jvm.org.codehaus.janino.JavaSourceClassLoader(
        parent, resource.MapResourceFinder(found), "UTF-8"
    )


@lru_cache(maxsize=1)
def _loader(gateway: Any) -> Any:
    """One for every JVM: Py4J takes classes of one name for one class."""
    # Its parent has Spark's classes.
    parent = gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return compile_classes(gateway, _sources(), parent)


@lru_cache(maxsize=1)
def _sources() -> Mapping[str, str]:
    """The sources by the names of their classes."""
    return {
        f"{_PACKAGE}.{path.name.removesuffix('.java')}": path.read_text("utf-8")
        for path in (files(__package__) / "java").iterdir()
    }


@lru_cache(maxsize=1)
def _json(gateway: Any) -> Any:
    """``ExpressionJson.json``."""
    lang = gateway.jvm.java.lang
    takes = gateway.new_array(lang.Class, 1)
    takes[0] = lang.Class.forName("scala.collection.Seq")
    found = _loader(gateway).loadClass(f"{_PACKAGE}.ExpressionJson")
    return found.getMethod("json", takes)


def _words(jvm: Any) -> Mapping[str, str]:
    """Words of the sources that mean something else in each version of Spark."""
    scala = jvm.scala.util.Properties.versionNumberString()
    spark = int(jvm.org.apache.spark.package.SPARK_VERSION().partition(".")[0])
    return {
        "TO_SEQ": "(SEQ) org.apache.spark.api.python.PythonUtils.toSeq",
        "SEQ": _SEQ[scala.startswith("2.13")],
        "NO_OPTIONS": f"({_MAP}) {_MAP}$.MODULE$.empty()",
        " SCAN_STREAM": ", scan.stream()" if spark >= 4 else "",
        "(SESSION": f"({_SESSION[spark >= 4]}",
    }
