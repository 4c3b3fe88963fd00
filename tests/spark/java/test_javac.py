"""The Java sources are valid, and the driver takes classes made of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from skipindex.spark.driver import (
    class_loader,
    family,
    jar_name,
    missing_of,
    sources,
)
from tests.spark.java.javac import (
    CLASSES,
    RELEASE,
    JavaError,
    classes,
    compile_files,
    compile_sources,
    family_of,
    installed,
    javac,
    write_jar,
    write_missing,
)

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(javac() is None, reason="there is no javac on this machine"),
]

RAW = """
package skipindex;

class Raw {
  java.util.List all;
}
"""


@pytest.fixture(scope="module")
def jars() -> Path:
    return installed()


@pytest.fixture(scope="module")
def compiled(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The classes for the PySpark of the tests."""
    out = tmp_path_factory.mktemp("classes")
    compile_sources(jars, out)
    return out


@pytest.mark.slow
def test_javac_takes_the_sources_without_a_warning(compiled: Path) -> None:
    assert "skipindex/SkipRule.class" in classes(compiled)


@pytest.mark.slow
def test_a_warning_is_an_error(jars: Path, tmp_path: Path) -> None:
    (tmp_path / "Raw.java").write_text(RAW)
    with pytest.raises(JavaError, match="rawtypes"):
        compile_files([tmp_path / "Raw.java"], jars, tmp_path)


@pytest.mark.slow
def test_classes_run_on_the_oldest_java(compiled: Path) -> None:
    majors = {int.from_bytes(body[6:8], "big") for body in classes(compiled).values()}
    assert majors == {44 + RELEASE}


def test_classes_are_written_once(monkeypatch: pytest.MonkeyPatch, jars: Path) -> None:
    """The run of these tests has written them."""
    monkeypatch.setattr("tests.spark.java.javac.compile_sources", pytest.fail)
    write_missing()
    assert (CLASSES / family_of(jars).jar).exists()


STUBS = {
    "NoSuchMethodException": """
package org.apache.spark.sql;
public interface Row { static void later() {} }
""",
    "NoSuchFieldException": """
package org.apache.spark.sql;
public class Column { public static int later; }
""",
    "ClassNotFoundException": """
package org.apache.spark.sql;
public class Later { public static void run() {} }
""",
    "ClassNotFoundException.*Unknown": """
package org.apache.spark.sql;
public class Unknown {}
""",
    "Row is no longer a class": """
package org.apache.spark.sql;
public class Row { public static int size() { return 0; } }
""",
    "abstract": """
package org.apache.spark.sql.execution.datasources;
public interface FileIndex {}
""",
}
"""What another Spark has, by what its absence is called."""
USES = {
    "NoSuchMethodException": "org.apache.spark.sql.Row.later();",
    "NoSuchFieldException": "org.apache.spark.sql.Column.later = 1;",
    "ClassNotFoundException": "org.apache.spark.sql.Later.run();",
    "ClassNotFoundException.*Unknown": (
        "Object any = this; if (any instanceof org.apache.spark.sql.Unknown) return;"
    ),
    "Row is no longer a class": "org.apache.spark.sql.Row.size();",
    "abstract": "new org.apache.spark.sql.execution.datasources.FileIndex() {};",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", STUBS)
def test_classes_of_another_spark_do_not_link(
    spark: SparkSession, compiled: Path, tmp_path: Path, kind: str, jars: Path
) -> None:
    text = f"package skipindex; class Uses {{ void use() {{ {USES[kind]} }} }}"
    (tmp_path / "Uses.java").write_text(text)
    public = re.search(r"(?:interface|class) (\w+)", STUBS[kind])
    assert public is not None
    (tmp_path / f"{public[1]}.java").write_text(STUBS[kind])
    files = [tmp_path / f"{public[1]}.java", tmp_path / "Uses.java"]
    compile_files(files, jars, tmp_path / "out", ["-nowarn"])
    own = {
        name: body
        for name, body in classes(tmp_path / "out").items()
        if name.startswith("skipindex/")
    }
    gateway = spark.sparkContext._gateway
    write_jar(tmp_path / "good.jar", classes(compiled))
    write_jar(tmp_path / "bad.jar", {**classes(compiled), **own})
    for name, expected in (("good", None), ("bad", kind)):
        loader = class_loader(gateway, tmp_path / f"{name}.jar")
        missing = missing_of(gateway, loader)
        assert (missing is None) == (expected is None), missing
        if expected is not None:
            assert re.match(f"skipindex/Uses.*{expected}", missing or "")


def test_classes_of_other_sources_have_another_name() -> None:
    found = dict(sources("4.3.0", "2.13.18"))
    name = jar_name("4.3.0", "2.13.18", found)
    assert name == jar_name("4.0.1", "2.13.16", sources("4.0.1", "2.13.16"))
    assert name != jar_name("3.5.1", "2.12.18", sources("3.5.1", "2.12.18"))
    found["skipindex.Scala"] += " "
    assert name != jar_name("4.3.0", "2.13.18", found)


def test_versions_are_compared_as_numbers() -> None:
    assert family("10.0.0", "2.13.18") == ("spark_4", "scala_2_13")
    assert family("3.5.8", "2.13.8") == ("spark_3_5", "scala_2_13")
