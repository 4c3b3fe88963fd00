"""The Java sources are valid, and the driver takes classes made of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from skipindex.spark import driver
from skipindex.spark.driver import folders, jar_name, sources
from tests.matrix.cells import CELLS
from tests.spark.java.__main__ import installed
from tests.spark.java.javac import (
    JavaError,
    classes,
    compile_files,
    compile_sources,
    family_of,
    javac,
    write_jar,
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
    return next(installed())


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
def test_classes_run_on_the_oldest_java_of_their_spark(
    jars: Path, compiled: Path
) -> None:
    majors = {int.from_bytes(body[6:8], "big") for body in classes(compiled).values()}
    assert majors == {44 + family_of(jars).release}


@pytest.mark.slow
def test_the_driver_takes_classes_of_these_very_sources(
    spark: SparkSession,
    jars: Path,
    compiled: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gateway = spark.sparkContext._gateway
    fresh = driver._loaded.__wrapped__
    monkeypatch.setattr(driver, "_CLASSES", tmp_path)
    write_jar(tmp_path / "spark_4-scala_2_13-0123456789abcdef.jar", classes(compiled))
    assert "janino" in fresh(gateway).getClass().getName()
    write_jar(tmp_path / family_of(jars).jar, classes(compiled))
    loader = fresh(gateway)
    assert loader.getClass().getName() == "java.net.URLClassLoader"
    found = loader.loadClass("skipindex.SkipRule")
    assert found.getClassLoader().equals(loader)
    family = family_of(jars)
    vendor = (f"{family.spark}-vendor-1", family.scala)
    monkeypatch.setattr(driver, "_versions", lambda _: vendor)
    assert jar_name(*vendor, sources(*vendor)) == family.jar
    assert "janino" in fresh(gateway).getClass().getName()


def test_classes_of_other_sources_have_another_name() -> None:
    found = dict(sources("4.3.0", "2.13.18"))
    name = jar_name("4.3.0", "2.13.18", found)
    assert name == jar_name("4.0.1", "2.13.16", sources("4.0.1", "2.13.16"))
    assert name != jar_name("3.5.1", "2.12.18", sources("3.5.1", "2.12.18"))
    found["skipindex.Scala"] += " "
    assert name != jar_name("4.3.0", "2.13.18", found)


def test_classes_are_for_the_versions_that_the_matrix_tests() -> None:
    tested = [f"{cell.spark}.0" for cell in CELLS if cell.spark]
    assert all(re.fullmatch(driver._COMPILED, one) for one in tested)
    newest = max(tuple(map(int, one.split("."))) for one in tested)
    assert not re.fullmatch(driver._COMPILED, f"{newest[0]}.{newest[1] + 1}.0")


def test_versions_are_compared_as_numbers() -> None:
    assert folders("10.0.0", "2.13.18") == ("spark_4", "scala_2_13")
    assert folders("3.5.8", "2.13.8") == ("spark_3_5", "scala_2_13")
