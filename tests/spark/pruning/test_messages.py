"""What the driver and the planner say to each other, and in which process."""

from __future__ import annotations

import io
import json
import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex import cli
from skipindex.errors import EngineError, PlanError
from skipindex.source.parquet.spark_json import ROW_METADATA
from skipindex.spark import driver
from skipindex.spark.columns import spark_schema
from skipindex.spark.driver import (
    FAMILIES,
    extension_settings,
    is_own_jar,
    jar_name,
    sources,
)
from skipindex.spark.pruning import protocol
from skipindex.spark.pruning.child import _ANSWER, _QUESTION, _SIGN, Server
from skipindex.spark.pruning.java_function import MAX_TEXTS, JavaFunction
from skipindex.spark.pruning.protocol import (
    VERSION,
    Dimension,
    First,
    Function,
    Order,
    Question,
    Read,
    read_report,
)
from skipindex.spark.pruning.query_planner import SETTINGS, QueryPlanner
from skipindex.spark.pruning.tables import Tables
from skipindex.storage import disk_cache
from skipindex.storage.file_system.names import FOLDER
from tests.spark.pruning.questions import CLASSES, equal, make
from tests.spark.pruning.scans import files_read
from tests.spark.reading.whole import settings
from tests.spark.versions import since
from tests.tables import put

PAGE = Path(__file__).parents[3] / "docs/reference/driver-protocol.md"
PLACE = {"scheme": None, "authority": None, "root": "/t"}
SCAN = {
    **PLACE,
    "data": '{"type": "struct", "fields": []}',
    "data_types": {"id": "bigint"},
    "partitions_types": {},
    "is_catalog_table": False,
    "reader": {},
    "options": {},
}
DIMENSION = {
    **SCAN,
    "key": "k",
    "paths": ["a"],
    "sizes": [1],
    "millis": [2],
    "conjuncts": "[]",
    "keys": [["b", [7]]],
}
QUESTION = {
    **SCAN,
    "version": protocol.VERSION,
    "settings": dict.fromkeys(SETTINGS),
    "keys": [["id", [1]], ["id", DIMENSION]],
}
OPTIONAL = {
    "offsets": [-2211753600, 3600],
    "derived": {"year": "year(t)"},
    "listing": 3,
    "listed": "01",
    "folders": ["p=1"],
    "first": {"n": 1, "order": {"column": "[]", "direction": "ASC", "nulls": ""}},
    "answer": {"group": None, "functions": [{"name": "count", "column": None}]},
}
READ = {"number": 1, "scan": 2, "listed": 3, "read": 4, "unknown": 5}
MESSAGES: dict[str, tuple[dict[str, Any], Callable[[str], Any]]] = {
    "question": (QUESTION | OPTIONAL, lambda text: Question.read(f"{text}\n[]")),
    "read": (READ, read_report),
    "problem": ({"problem": "why", "root": "/t", "number": 1}, read_report),
}
MAPS = {"settings", "reader", "options", "data_types", "partitions_types", "derived"}
"""Members that are objects of any names."""
MAY_LACK = {
    *("scheme", "authority", "order", "group", "column", "functions"),
    *("problem", "number", "root"),
    *OPTIONAL,
}
"""In one message at least."""


def objects(found: Any) -> Iterator[dict[str, Any]]:
    """All objects with members of ours in a message, itself among them."""
    if isinstance(found, list):
        for one in found:
            yield from objects(one)
    elif isinstance(found, dict):
        yield found
        yield from objects([value for name, value in found.items() if name not in MAPS])


@pytest.mark.parametrize("name", MESSAGES)
def test_a_member_that_lacks_or_is_another_is_named(name: str) -> None:
    message, read = MESSAGES[name]
    message = deepcopy(message)
    for one in objects(message):
        for member, value in list(one.items()):
            if member not in MAY_LACK:
                del one[member]
                with pytest.raises(PlanError, match=f"{member}.None"):
                    read(json.dumps(message))
            one[member] = 1.5
            with pytest.raises(PlanError, match=rf"{member}.1\.5"):
                read(json.dumps(message))
            one[member] = value
    read(json.dumps(message))


def test_the_parts_of_a_question() -> None:
    found = Question.read(f"{json.dumps(QUESTION | OPTIONAL)}\n[7]")
    assert found.conjuncts == "[7]"
    assert found.location().root == "/t"
    (_, keys), (_, side) = found.keys
    assert keys == [1]
    assert isinstance(side, Dimension)
    assert (side.key, side.sizes, side.keys) == ("k", [1], [("b", [7])])
    assert found.is_listed(2).tolist() == [False, True]
    assert found.first == First(
        n=1, order=Order(column="[]", direction="ASC", nulls="")
    )
    assert found.answer is not None
    assert found.answer.functions == [Function(name="count", column=None)]
    plain = Question.read(json.dumps(QUESTION))
    assert (plain.listing, plain.first, plain.answer) == (None, None, None)
    assert plain.is_listed(2).tolist() == [True, True]
    assert read_report(json.dumps(READ)) == Read(
        number=1, scan=2, listed=3, read=4, unknown=5
    )


def test_a_driver_of_another_version_reads_all(tmp_path: Path) -> None:
    make(tmp_path)
    planner = QueryPlanner(Tables())
    for version, n_records in ((1, 1), (None, 2)):
        question = {**QUESTION, "root": str(tmp_path), "version": version, "keys": []}
        text = f"read 1 60 0\n{json.dumps(question)}\n{json.dumps([equal('id', 1)])}"
        assert planner.answer(text) == protocol.NO_ANSWER
        assert len(planner.records) == n_records
        assert f"the driver has version {version}" in planner.records[-1].problem


def test_a_session_chooses_the_cache_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_cache, "_given", [])
    make(tmp_path / "t")
    question = {**QUESTION, "root": str(tmp_path / "t"), "keys": []}
    for folder in ("cache", None):
        path = folder and str(tmp_path / folder)
        question["settings"] = {**dict.fromkeys(SETTINGS), disk_cache.DIR_SETTING: path}
        text = f"read 1 60 0\n{json.dumps(question)}\n{json.dumps([equal('month', 1)])}"
        assert QueryPlanner(Tables()).answer(text) != protocol.NO_ANSWER
        assert list((tmp_path / "cache").iterdir())


def test_the_driver_has_the_same_version() -> None:
    text = sources("4.3.0", "2.13.18")["skipindex.Question"]
    found = re.search(r"VERSION = (\d+)", text)
    assert found is not None
    assert int(found[1]) == protocol.VERSION


def test_the_page_names_every_member() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"in version {protocol.VERSION}." in page
    for message, _ in MESSAGES.values():
        for one in objects(message):
            for member in one:
                assert f"`{member}`" in page, member


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


def told() -> tuple[JavaFunction, list[str]]:
    """A function, and the texts that reach it."""
    texts: list[str] = []

    def function(text: str) -> bytes | None:
        texts.append(text)
        return text.encode()

    return JavaFunction(function), texts


@pytest.mark.spark
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


@pytest.mark.spark
@pytest.mark.parametrize("wrong", ["1 2 last\nc", "1 0 last\nc", "9 1 last\nc"])
def test_a_text_without_a_piece_is_no_text(wrong: str) -> None:
    function, texts = told()
    function.apply("1 0 more\na")
    with pytest.raises(EngineError, match="without its piece"):
        function.apply(wrong)
    assert texts == []


@pytest.mark.spark
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


@pytest.mark.spark
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


@pytest.mark.spark
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


INVENTED: Final[Sequence[tuple[Any, str]]] = (
    ("timestamp_ntz(9)", "timestamp_ntz(9)"),
    ("hologram", "hologram"),
    ("decimal(99,3)", "decimal(99,3)"),
    ("interval week", "interval week"),
    ({"type": "hologram", "of": "long"}, "hologram<bigint>"),
    ({"type": "udt", "class": "a.B", "sqlType": "long"}, "bigint"),
    (
        {"type": "array", "elementType": "hologram", "containsNull": True},
        "array<hologram>",
    ),
)
"""As Spark's JSON would spell a type, and as a catalog would."""
LONG: Final = ("long", "bigint")
NAMES: Final = ("a", "b", "c", "d")
FIELDS: Final = ("x", "y")


def field(name: str, spelled: Any) -> dict[str, Any]:
    return {"name": name, "type": spelled, "nullable": True, "metadata": {}}


def struct(fields: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def node(kind: str, dtype: str, **more: Any) -> dict[str, Any]:
    return {"c": f"{CLASSES}.{kind}", "t": dtype, **more}


def unknown_equal(column: dict[str, Any]) -> dict[str, Any]:
    """That a column has a value of the second file alone."""
    value = node("Literal", column["t"], v=15)
    return node("EqualTo", "boolean", a=[column, value])


class Drawn:
    """Four columns and a struct of two, some with invented types."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        kinds = dict.fromkeys((*NAMES, *FIELDS), LONG)
        for name in draw.sample(sorted(kinds), draw.randint(1, 4)):
            kinds[name] = draw.choice(INVENTED)
        self.invented = {name for name, kind in kinds.items() if kind is not LONG}
        inner = ",".join(f"{name}:{kinds[name][1]}" for name in FIELDS)
        self.types = {name: kinds[name][1] for name in NAMES}
        self.types["s"] = f"struct<{inner}>"
        fields = [field(name, kinds[name][0]) for name in NAMES]
        held = struct([field(name, kinds[name][0]) for name in FIELDS])
        self.schema = struct([*fields, field("s", held)])

    def column(self, name: str) -> dict[str, Any]:
        """As an expression: one of the four columns, or a field of the struct."""
        own = "s" if name in FIELDS else name
        kind = self.types[own]
        found = node("AttributeReference", kind, x=[own, kind, True, "{}"])
        if name in FIELDS:
            return node("GetStructField", "bigint", a=[found], x=[0, name], n=name)
        return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("files")
    for i in range(4):
        values = pa.array(range(10 * i, 10 * i + 10))
        pairs = [{"x": v, "y": v} for v in values.to_pylist()]
        columns = {**dict.fromkeys(NAMES, values), "s": pa.array(pairs)}
        put(root / f"{i}.parquet", columns)
    sx.build_indexes(root, {"*": ["bitmap"]}, workers=1)
    return root


@pytest.mark.parametrize("seed", range(12))
def test_only_columns_of_unknown_types_are_not_judged(
    planner: QueryPlanner, files: Path, seed: int
) -> None:
    drawn = Drawn(seed)
    question = {
        "version": VERSION,
        "root": str(files),
        "scheme": "file",
        "authority": None,
        "is_catalog_table": False,
        "data": json.dumps(drawn.schema),
        "data_types": drawn.types,
        "partitions": json.dumps(struct([])),
        "partitions_types": {},
        "settings": dict.fromkeys(SETTINGS),
        "reader": {},
        "options": {},
        "keys": [],
    }
    for name in (*NAMES, *FIELDS):
        asked = json.dumps([unknown_equal(drawn.column(name))])
        planner.answer(f"read 1 60 0\n{json.dumps(question)}\n{asked}")
        record = planner.records[-1]
        assert record.problem == ""
        assert record.n_skipped == (0 if name in drawn.invented else 3), name


@pytest.mark.parametrize("seed", range(12))
def test_a_schema_of_unknown_types_is_told_as_it_was_read(seed: int) -> None:
    drawn = Drawn(seed)
    text = json.dumps(drawn.schema)
    found = spark_schema(pa.schema([], {ROW_METADATA: text}))
    assert json.loads(found.json()) == drawn.schema
    known = [name for name in NAMES if name not in drawn.invented]
    assert {found[name].dataType.simpleString() for name in known} <= {"bigint"}


NANOS = {"spark.sql.timestampNanosTypes.enabled": "true"}


@pytest.mark.spark
@since(4, 3, what="a timestamp_ntz(9) that its own parser in Python does not know")
def test_a_preview_type_of_the_driver(pruned: SparkSession, tmp_path: Path) -> None:
    for i in range(4):
        times = pa.array([10**18 + i, None], pa.timestamp("ns"))
        path = tmp_path / f"p={i % 2}" / f"{i}.parquet"
        put(path, {"id": [2 * i, 2 * i + 1], "n": times})
    sx.build_indexes(tmp_path, {"id": "bitmap"}, workers=1)
    with settings(pruned, NANOS):
        rows = pruned.read.parquet(str(tmp_path)).where("id = 5").select("id", "p")
        assert [tuple(row) for row in rows.collect()] == [(5, 0)]
        assert sx.last_plans(pruned)[-1].n_skipped == 3
        read = sx.read(tmp_path, "id = 5", spark=pruned).select("id", "p")
        assert [tuple(row) for row in read.collect()] == [(5, 0)]
