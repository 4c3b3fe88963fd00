"""Texts of the driver: whole ones alone reach the planner, and none waits for TCP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.errors import EngineError
from skipindex.spark.pruning.java_function import MAX_TEXTS, JavaFunction
from tests.spark.pruning.scans import files_read

pytestmark = pytest.mark.spark


def told() -> tuple[JavaFunction, list[str]]:
    """A function, and the texts that reach it."""
    texts: list[str] = []

    def function(text: str) -> bytes | None:
        texts.append(text)
        return text.encode()

    return JavaFunction(function), texts


def test_a_text_is_its_pieces() -> None:
    function, texts = told()
    assert function.apply("1 0 last\n") == b""
    assert function.apply("2 0 more\na\nb") is None
    assert function.apply("3 0 more\nother") is None
    assert function.apply("2 1 more\n\n") is None
    assert function.apply("2 2 last\nc d") == b"a\nb\nc d"
    assert function.apply("3 1 last\n") == b"other"
    assert texts == ["", "a\nb\nc d", "other"]
    assert not function._begun


@pytest.mark.parametrize("wrong", ["1 2 last\nc", "1 0 last\nc", "9 1 last\nc"])
def test_a_text_without_a_piece_is_no_text(wrong: str) -> None:
    function, texts = told()
    function.apply("1 0 more\na")
    with pytest.raises(EngineError, match="without its piece"):
        function.apply(wrong)
    assert texts == []


def test_texts_that_never_end_are_forgotten() -> None:
    function, texts = told()
    for name in range(3 * MAX_TEXTS):
        function.apply(f"{name} 0 more\na")
    assert len(function._begun) == MAX_TEXTS
    with pytest.raises(EngineError):
        function.apply("0 1 last\nb")
    function.apply(f"{3 * MAX_TEXTS - 1} 1 last\nb")
    assert texts == ["ab"]


@pytest.fixture
def sent(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """All that the driver sends, while queries are pruned."""
    arguments: list[str] = []
    lock = threading.Lock()
    apply = JavaFunction.apply

    def seen(self: JavaFunction, argument: str) -> bytes | None:
        with lock:
            arguments.append(argument)
        return apply(self, argument)

    monkeypatch.setattr(JavaFunction, "apply", seen)
    sx.enable(spark)
    yield arguments
    sx.disable(spark)


def write(folder: Path, files: list[dict[str, list[Any]]]) -> None:
    folder.mkdir()
    for i, columns in enumerate(files):
        pq.write_table(pa.table(columns), folder / f"{i}.parquet")
    sx.build_indexes(folder, {"key": "bitmap"}, workers=1)


@pytest.mark.slow
def test_long_questions_are_sent_in_pieces_that_tcp_sends_at_once(
    spark: SparkSession, sent: list[str], tmp_path: Path
) -> None:
    """Of a table with many columns, and of a condition with many values."""
    wide = {f"a_column_of_many_{i}": [0] for i in range(300)}
    write(tmp_path / "t", [{"key": [f"{i}"], **wide} for i in range(3)])
    values = ", ".join(f"'{i}'" for i in range(2, 2000))
    df = spark.read.parquet(str(tmp_path / "t")).where(f"key IN ({values})")
    assert files_read(df) == 1
    assert sum(map(len, sent)) > 30_000
    doubled = [text.replace("\\", "\\\\").replace("\n", "\\n") for text in sent]
    assert max(len(text.encode()) for text in doubled) < 8192 - 100


def test_questions_are_ascii(
    spark: SparkSession, sent: list[str], tmp_path: Path
) -> None:
    """Of a character that is cut in two, Py4J would send question marks."""
    keys = [f"{'🦉' * 3000}{i}" for i in range(4)]
    write(tmp_path / "🦉 é", [{"key": [key], "🦉": [key]} for key in keys])
    df = spark.read.parquet(str(tmp_path / "🦉 é"))
    for i, key in enumerate(keys):
        found = df.where(f"key IN ('{'x' * i}', '{key}') AND `🦉` IS NOT NULL")
        assert files_read(found) == 1
        assert [row.key for row in found.collect()] == [key]
    assert "".join(sent).isascii()
