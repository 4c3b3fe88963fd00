"""The classes of the driver are loaded once, whoever asks."""

from __future__ import annotations

import re
import threading
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JError

from skipindex.errors import EngineError
from skipindex.spark import driver
from skipindex.spark.driver import jar_name, sources

VERSIONS = ("4.9.0", "2.13.16")


@pytest.fixture
def loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[MagicMock], Any]:
    """``_loaded`` of a new JVM, whose Spark has a jar."""
    # The loader of a session of these tests stays remembered.
    fresh = lru_cache(maxsize=1)(driver._loaded.__wrapped__)
    monkeypatch.setattr(driver, "_loaded", fresh)
    monkeypatch.setattr(driver, "_versions", lambda _: VERSIONS)
    monkeypatch.setattr(driver, "_CLASSES", tmp_path)
    (tmp_path / jar_name(*VERSIONS, sources(*VERSIONS))).touch()
    return fresh


def links(monkeypatch: pytest.MonkeyPatch, missing: Callable[[], str | None]) -> None:
    """Let the self-check of the classes say what is missing."""
    monkeypatch.setattr(driver, "missing_of", lambda *_: missing())


def test_threads_that_ask_at_once_get_one_loader(
    monkeypatch: pytest.MonkeyPatch, loaded: object
) -> None:
    """Of a class of two loaders, Py4J calls the methods of the one it saw first."""
    begin, made = threading.Barrier(4), []

    def load_slowly(*_: Any) -> object:
        time.sleep(0.05)
        made.append(object())
        return made[-1]

    monkeypatch.setattr(driver, "class_loader", load_slowly)
    links(monkeypatch, lambda: None)
    gateway = MagicMock()

    def ask(_: int) -> Any:
        begin.wait()
        return driver._loader(gateway)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(4)))
    assert found == made * 4


def test_a_jar_of_an_archive_is_unpacked(
    monkeypatch: pytest.MonkeyPatch, loaded: Callable[[MagicMock], Any], tmp_path: Path
) -> None:
    """As of a wheel that Spark was given instead of installing it."""
    name = jar_name(*VERSIONS, sources(*VERSIONS))
    with zipfile.ZipFile(tmp_path / "package.whl", "w") as archive:
        archive.writestr(f"classes/{name}", b"the jar")
    packed = zipfile.Path(tmp_path / "package.whl", "classes/")
    monkeypatch.setattr(driver, "_CLASSES", packed)
    monkeypatch.setattr(driver, "class_loader", lambda _, jar: jar.read_bytes())
    links(monkeypatch, lambda: None)
    assert loaded(MagicMock()) == b"the jar"


def test_a_spark_without_compiled_classes_is_refused(
    monkeypatch: pytest.MonkeyPatch, loaded: Callable[[MagicMock], Any], tmp_path: Path
) -> None:
    (jar,) = tmp_path.iterdir()
    jar.rename(tmp_path / re.sub("[0-9a-f]{16}", "0" * 16, jar.name))  # other sources
    expected = r"no classes for Spark 4\.9\.0 with Scala 2\.13\.16 .* type: make java\)"
    with pytest.raises(EngineError, match=expected):
        loaded(MagicMock())


def test_a_spark_whose_classes_do_not_link_is_refused(
    monkeypatch: pytest.MonkeyPatch, loaded: Callable[[MagicMock], Any]
) -> None:
    links(monkeypatch, lambda: "skipindex/SkipRule.class: no method x")
    with pytest.raises(
        EngineError, match=r"link with Spark 4\.9\.0: .*: no method x \("
    ):
        loaded(MagicMock())

    def refused() -> str:
        raise Py4JError("An error occurred.\n: an older Java\n\tat a line")

    links(monkeypatch, refused)
    with pytest.raises(EngineError, match=r"occurred\. : an older Java \(accepted"):
        loaded(MagicMock())
