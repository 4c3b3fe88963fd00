"""Java sources compiled in the driver, by the compiler that Spark generates code with.

The classes are known to the driver's JVM alone, and to what it is given of them: no jar
is installed, and executors need nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

_SEQ: Final = ("scala.collection.Seq", "scala.collection.immutable.Seq")
"""What ``Seq`` is in Spark's signatures under Scala 2.12, and since 2.13."""
_MAP: Final = "scala.collection.immutable.Map"


def source_of(package: str, name: str) -> str:
    """The Java source of a class that a package of skipindex brings.

    ``name`` is the class, after the folders below the package, if any.
    """
    return (files(package) / f"{name}.java").read_text(encoding="utf-8")


def compile_classes(jvm: Any, sources: Mapping[str, str]) -> Any:
    """The class loader of the compiled sources; its parent has Spark's classes.

    The classes, given by their names with the package, may name one another.  A class
    is compiled when it is first loaded.

    Raises:
        Py4JError: the JVM has no Janino, or, when a class is loaded, its source is not
            accepted.
    """
    resource = jvm.org.codehaus.commons.compiler.util.resource
    found = jvm.java.util.HashMap()
    for name, source in sources.items():
        found.put(name.replace(".", "/") + ".java", source.encode())
    parent = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return jvm.org.codehaus.janino.JavaSourceClassLoader(
        parent, resource.MapResourceFinder(found), "UTF-8"
    )


def new_object(gateway: Any, sources: Mapping[str, str]) -> Any:
    """An object of the last of some classes, compiled for the Scala of the driver.

    In the sources ``SEQ`` is what ``Seq`` is in Spark's signatures, ``TO_SEQ`` makes
    one of a Java list, and ``NO_OPTIONS`` is an empty map.

    Raises:
        Py4JError: as for ``compile_classes``.
    """
    scala = gateway.jvm.scala.util.Properties.versionNumberString()
    words = {
        "TO_SEQ": "(SEQ) org.apache.spark.api.python.PythonUtils.toSeq",
        "SEQ": _SEQ[scala.startswith("2.13")],
        "NO_OPTIONS": f"({_MAP}) {_MAP}$.MODULE$.empty()",
    }
    compiled = {}
    for name, source in sources.items():
        text = source
        for word, meaning in words.items():
            text = text.replace(word, meaning)
        compiled[name] = text
    loader = compile_classes(gateway.jvm, compiled)
    (constructor,) = [loader.loadClass(name) for name in compiled][-1].getConstructors()
    return constructor.newInstance(gateway.new_array(gateway.jvm.java.lang.Object, 0))
