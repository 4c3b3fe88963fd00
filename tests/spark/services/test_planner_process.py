"""The process of a planner, as ``Child.java`` starts it, with Pythons of all kinds."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from skipindex.spark import driver
from skipindex.spark.pruning import child as planner
from skipindex.spark.pruning.query_planner import SETTINGS
from skipindex.storage.file_system.names import FOLDER

pytestmark = pytest.mark.spark

JAR: Final = driver.jar_name(*driver.FAMILIES[0], driver.sources(*driver.FAMILIES[0]))
REAL: Final = (sys.executable, "-P", "-m", planner.__name__, JAR)
SECOND: Final = 1_000_000_000
GREETING: Final = f"""
import os, struct, sys, time
def write(number, text):
    os.write(4, struct.pack('>ii', number, len(text)) + text)
def read():
    number, length = struct.unpack('>ii', os.read(3, 8))
    return number, os.read(3, length)
os.write(4, {planner._SIGN!r})
write(0, b'folder\\na\\nb')
"""
"""How a planner begins, in a script that has its protocol by hand."""


class Process:
    """A ``Child``, whose members are of its package alone."""

    def __init__(self, spark: SparkSession, *command: str) -> None:
        gateway = spark.sparkContext._gateway
        self._jvm: Any = gateway.jvm
        self._new_array: Callable[..., Any] = gateway.new_array
        self._class = driver._loader(gateway).loadClass("skipindex.Child")
        words = self._array(self._jvm.String, *command)
        (made,) = self._class.getDeclaredConstructors()
        made.setAccessible(True)
        self._child = made.newInstance(self._array(self._jvm.Object, words))

    def _array(self, kind: Any, *values: Any) -> Any:
        found = self._new_array(kind, len(values))
        for i, value in enumerate(values):
            found[i] = value
        return found

    def _call(self, name: str, *arguments: Any) -> Any:
        lang = self._jvm.java.lang
        (method,) = (
            one for one in self._class.getDeclaredMethods() if one.getName() == name
        )
        method.setAccessible(True)
        return method.invoke(self._child, self._array(lang.Object, *arguments))

    def begins(self, seconds: float = 20) -> bool:
        return bool(self._call("hasBegun", self._nanos(seconds)))

    def hello(self) -> list[str]:
        return list(self._call("hello", self._nanos(20)))

    def _nanos(self, seconds: float) -> Any:
        return self._jvm.java.lang.Long.valueOf(str(int(seconds * SECOND)))

    def ask(self, text: str) -> bytes | None:
        found: bytes | None = self._call("ask", text)
        return found

    @property
    def is_alive(self) -> bool:
        return self._call("end") is None

    @property
    def id(self) -> int:
        field = self._class.getDeclaredField("process")
        field.setAccessible(True)
        return int(field.get(self._child).pid())

    def kill(self) -> None:
        self._call("kill")


Start: TypeAlias = Callable[..., Process]


@pytest.fixture
def start(spark: SparkSession) -> Iterator[Start]:
    """Starts a command."""
    begun: list[Process] = []

    def process(*command: str) -> Process:
        begun.append(Process(spark, *command))
        return begun[-1]

    yield process
    for one in begun:
        one.kill()


def by_hand(what_it_does: str) -> tuple[str, ...]:
    """The command of a process that greets as a planner, and then does something."""
    return sys.executable, "-c", GREETING + what_it_does


def failure(call: Callable[..., object], *arguments: object) -> str:
    """Why a call fails, which it does soon."""
    begun = time.monotonic()
    with pytest.raises(Py4JJavaError) as error:
        call(*arguments)
    assert time.monotonic() - begun < 3
    return str(error.value)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "site",
    [
        "print('loading the configuration of the site')",
        "print('ok', flush=True)",
        "import os; os.system('echo ok'); os.write(1, bytes(8))",
        "import sys; sys.stdin.read(); print('read all')",
        "import sys; sys.stderr.write('flood' * 200_000)",
        "import atexit; atexit.register(print, 'bye'); print('x' * 200_000)",
    ],
)
def test_what_python_prints_is_no_answer(
    start: Start, tmp_path: Path, site: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(site)
    process = start("/usr/bin/env", f"PYTHONPATH={tmp_path}", *REAL)
    assert process.begins()
    assert process.hello() == [FOLDER, "\n".join(SETTINGS)]
    question = "1 0 last\nread 1 10.0 0.0\n{}"
    assert process.ask(question) == b""  # it says that it has no answer
    assert process.is_alive


def test_answers_come_from_a_descriptor_of_their_own(start: Start) -> None:
    process = start(
        *by_hand("""
while True:
    print('printed', flush=True)
    number, text = read()
    write(number, text.upper())
""")
    )
    assert process.hello() == ["folder", "a\nb"]
    for text in ("x", "y" * 3000):
        assert process.ask(f"{text}") == text.upper().encode()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["/no/python"], "ended with exit code 127"),
        (["/bin/true"], "ended with exit code 0"),
        (["/bin/sh", "-c", "kill -9 $$"], "ended with exit code 137"),
        (["/bin/sh", "-c", "echo 'other words' >&4"], "first bytes are not those"),
        (["/bin/sh", "-c", "exec 4>&-; exec sleep 9"], "closed its output"),
        # The shell that stays has its descriptors.
        (["/bin/sh", "-c", "sleep 9 & exit 5"], "ended with exit code 5"),
    ],
)
def test_a_process_that_is_no_planner_fails_soon(
    start: Start, command: list[str], why: str
) -> None:
    process = start(*command)
    assert why in failure(process.begins)
    assert not process.is_alive
    assert why in failure(process.ask, "a question")


def test_a_python_that_hangs_has_not_begun(start: Start, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import time; time.sleep(60)")
    process = start("/usr/bin/env", f"PYTHONPATH={tmp_path}", *REAL)
    begun = time.monotonic()
    assert not process.begins(seconds=0.2)
    assert time.monotonic() - begun < 2
    assert process.is_alive


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("os._exit(3)", "ended with exit code 3"),
        ("os.write(4, struct.pack('>iih', number, 100, 0)); os._exit(4)", "code 4"),
        ("os.write(4, struct.pack('>ii', number, 2**31 - 1))", "an answer has 2147"),
        ("os.write(4, struct.pack('>ii', number, -2))", "an answer has -2 bytes"),
        ("os.write(4, b'no answer')", "an answer has 1853060965 bytes"),
        ("if os.fork() == 0: time.sleep(9)\nos._exit(6)", "ended with exit code 6"),
    ],
)
def test_a_question_fails_soon_where_the_planner_breaks(
    start: Start, answer: str, why: str
) -> None:
    process = start(*by_hand(f"number, _ = read()\n{answer}\ntime.sleep(9)"))
    process.hello()
    assert why in failure(process.ask, "a question")
    assert not process.is_alive
    assert why in failure(process.ask, "another one")


def test_answers_without_a_question_and_late_ones_are_left_out(start: Start) -> None:
    process = start(
        *by_hand("""
while True:
    number, text = read()
    write(number + 50, b'of nobody')
    time.sleep(0.3)
    write(number, text)
    write(number, b'once more')
""")
    )
    assert [process.ask("1"), process.ask("2")] == [b"1", b"2"]


def test_the_interrupt_of_a_terminal_does_not_end_it(start: Start) -> None:
    process = start(*REAL)
    assert process.begins()
    os.kill(process.id, signal.SIGINT)
    assert process.hello()[0] == FOLDER
    os.kill(process.id, signal.SIGINT)
    assert process.ask("1 0 last\nread 1 10.0 0.0\n{}") == b""
