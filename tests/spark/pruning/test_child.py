"""The planner as a process of its own, without its driver."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from skipindex import cli
from skipindex.errors import EngineError
from skipindex.spark import driver
from skipindex.spark.driver import (
    FAMILIES,
    extension_settings,
    is_own_jar,
    jar_name,
    sources,
)
from skipindex.spark.pruning.child import _ANSWER, _QUESTION, _SIGN, Server
from skipindex.spark.pruning.query_planner import SETTINGS, QueryPlanner
from skipindex.spark.pruning.tables import Tables
from skipindex.storage.file_system.names import FOLDER

SHELL = ["/bin/sh", "-c", 'exec "$@" 3<&0 4>&1 1>&2', "sh", sys.executable]
"""Gives the process its descriptors, as ``Child.java`` does."""
OLD, NEW = jar_name(*FAMILIES[0], sources(*FAMILIES[0])), "spark_4-scala_2_13-00.jar"


class Answers(io.BytesIO):
    """What a server has said, by the number of the question."""

    def by_number(self) -> dict[int, bytes | None]:
        data, found = self.getvalue(), dict[int, bytes | None]()
        while data:
            number, length = _ANSWER.unpack(data[: _ANSWER.size])
            data = data[_ANSWER.size :]
            found[number] = None if length < 0 else data[:length]
            data = data[max(length, 0) :]
        return found


def question(number: int, text: str) -> bytes:
    data = f"{number} 0 last\n{text}".encode()
    return _QUESTION.pack(number, len(data)) + data


def serve(server: Server, asked: list[bytes]) -> None:
    """Until all questions are answered, each by a thread of its own."""
    before = set(threading.enumerate())
    server.serve(io.BytesIO(b"".join(asked)))
    for thread in set(threading.enumerate()) - before:
        thread.join()


class Echo(QueryPlanner):
    """Answers with what it was asked, but for some texts."""

    def answer(self, text: str) -> bytes | None:
        if text == "fail":
            raise ValueError(text)
        return None if text == "none" else text.upper().encode()


def test_questions_are_answered_by_their_numbers() -> None:
    answers = Answers()
    server = Server(Echo(Tables()), SETTINGS, answers)
    texts = {1: "a\u00fc", 2: "", 3: "b" * 9000}
    asked = [question(n, text) for n, text in [*texts.items(), (7, "none")]]
    serve(server, asked)
    hello = "\n".join([FOLDER, *SETTINGS]).encode()
    assert answers.by_number() == {
        **{n: text.upper().encode() for n, text in texts.items()},
        0: hello,
        7: None,
    }


def test_a_question_that_fails_is_answered_with_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answers = Answers()
    server = Server(Echo(Tables()), SETTINGS, answers)
    serve(server, [question(1, "fail"), question(2, "x"), question(3, "x")[:-1]])
    assert {n: a for n, a in answers.by_number().items() if n} == {1: None, 2: b"X"}
    assert "a question of the driver failed: fail" in caplog.text


def test_the_process_ends_with_its_input_and_needs_no_pyspark() -> None:
    code = (
        "import runpy, sys; sys.modules['pyspark'] = sys.modules['py4j'] = None; "
        "runpy.run_module('skipindex.spark.pruning.child', run_name='__main__')"
    )
    command = [*SHELL, "-c", code, OLD]
    done = subprocess.run(command, input=b"", capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(_SIGN)
    assert done.stdout.endswith("\n".join(SETTINGS).encode())


def test_classes_of_other_sources_are_not_its_own() -> None:
    assert is_own_jar(OLD)
    assert not is_own_jar(NEW)


@pytest.mark.slow
def test_the_process_ends_where_the_classes_are_of_other_sources() -> None:
    command = [*SHELL, "-m", "skipindex.spark.pruning.child", NEW]
    done = subprocess.run(command, input=b"", capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, _SIGN)
    assert b"have different versions" in done.stderr


def test_the_settings_name_the_classes_of_the_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(driver, "_CLASSES", tmp_path)
    with pytest.raises(EngineError, match=r"no classes for Spark 3\.5\.8 are"):
        extension_settings("3.5.8")
    (tmp_path / OLD).touch()
    expected = {
        "spark.sql.extensions": "skipindex.Extension",
        "spark.jars": str(tmp_path / OLD),
        "spark.skipindex.python": sys.executable,
    }
    assert extension_settings("3.5.8") == expected
    assert cli.main(["spark-conf", "--spark", "3.5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert dict(line.split(" ") for line in lines) == expected
    assert cli.main(["spark-conf", "--spark", "latest"]) == 2
    assert "not a Spark version: 'latest'" in capsys.readouterr().err
