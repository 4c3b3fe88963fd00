"""The classes of the driver are loaded once, whoever asks."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any
from unittest.mock import MagicMock

import pytest

from skipindex.spark import driver


def test_threads_that_ask_at_once_get_one_loader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a class of two loaders, Py4J calls the methods of the one it saw first."""
    begin, made = threading.Barrier(4), []

    def compile_slowly(*_: Any) -> object:
        time.sleep(0.05)
        made.append(object())
        return made[-1]

    # The loader of a session of these tests stays remembered.
    fresh = lru_cache(maxsize=1)(driver._loaded.__wrapped__)
    monkeypatch.setattr(driver, "_loaded", fresh)
    monkeypatch.setattr(driver, "compile_classes", compile_slowly)
    monkeypatch.setattr(driver, "_versions", lambda _: ("4.9.0", "2.13.16"))
    gateway = MagicMock()

    def ask(_: int) -> Any:
        begin.wait()
        return driver._loader(gateway)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(4)))
    assert found == made * 4


def test_a_driver_that_compiles_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "skipindex")
    fresh = lru_cache(maxsize=1)(driver._loaded.__wrapped__)
    monkeypatch.setattr(driver, "compile_classes", lambda *_: object())
    monkeypatch.setattr(driver, "_versions", lambda _: ("4.9.0", "2.13.16"))
    gateway = MagicMock()
    assert fresh(gateway) is fresh(gateway)
    (line,) = caplog.messages
    assert line.startswith("the driver compiles the classes of skipindex for Spark 4.9")
