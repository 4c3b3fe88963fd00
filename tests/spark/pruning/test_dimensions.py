"""Which keys a dimension leaves, without a driver: it is written here."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skipindex.conditions.functions.zones import listed_offsets
from skipindex.planner.rows.condition import condition_of
from skipindex.planner.rows.dataset import dataset_of
from skipindex.planner.stages.pack_cache import DEFAULT_SESSION
from skipindex.spark.pruning import dimensions as module
from skipindex.spark.pruning.dimensions import Dimensions
from skipindex.spark.pruning.protocol import Dimension
from skipindex.storage.deadline import Deadline, running_until
from tests.spark.pruning.sides import (
    CLASSES,
    age,
    asks,
    attribute,
    both,
    keys_of,
    schema,
    session,
    side,
)
from tests.tables import put

TYPES = {"k": "long", "a": "string", "b": "integer", "z": "timestamp"}
IS_X = asks("EqualTo", "a", "string", "x")
AT_THREE = both(
    "EqualTo",
    {
        "c": f"{CLASSES}.Hour",
        "t": "int",
        "a": [attribute("z", "timestamp")],
        "x": ["Europe/Rome"],
    },
    {"c": f"{CLASSES}.Literal", "t": "int", "v": 3},
)
"""Whether the clocks of a zone with rules show three o'clock."""
UNKNOWN = asks("No", "a", "string", "x")
"""A function that the planner does not know."""


def write(folder: Path, **others: Any) -> Path:
    times = pa.array([0, 10**15, None, 0], pa.timestamp("us", "UTC"))
    columns = {
        "k": [1, 2, 3, None],
        "a": ["x", "y", "z", "x"],
        "b": pa.array([5, 6, None, 5], pa.int32()),
        "z": times,
    }
    put(folder / "0.parquet", {**columns, **others})
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "d")


@pytest.mark.parametrize(
    ("conjunct", "expected"),
    [
        (IS_X, [1]),
        (both("Not", IS_X), [2, 3]),
        (asks("IsNull", "b", "integer"), [3]),
        (both("Not", asks("EqualTo", "b", "integer", 5)), [2]),
        (asks("GreaterThan", "b", "integer", 5), [2]),
        (asks("LessThan", "z", "timestamp", 5), [1]),
        (asks("In", "k", "long", 1, 3, 7), [1, 3]),
        (both("And", IS_X, asks("EqualTo", "k", "long", 2)), []),
        (both("Or", IS_X, asks("EqualTo", "k", "long", 2)), [1, 2]),
        (asks("EqualTo", "b", "integer", None), []),
        # What Spark alone can evaluate may be TRUE.
        (both("And", IS_X, UNKNOWN), "alone"),
        (both("Or", IS_X, UNKNOWN), "alone"),
        (UNKNOWN, "alone"),
        (asks("IsNull", "unknown", "string"), "alone"),
    ],
)
def test_keys_of_rows_for_which_a_condition_is_true(
    folder: Path, conjunct: dict[str, Any], expected: list[int] | str
) -> None:
    found = keys_of(side(folder, TYPES, conjunct))
    if isinstance(expected, str):
        assert expected in found
    else:
        assert found == expected


def test_a_condition_that_is_not_understood_leaves_the_others(folder: Path) -> None:
    assert keys_of(side(folder, TYPES, UNKNOWN, both("Not", IS_X))) == [2, 3]


def test_a_long_list_is_evaluated(folder: Path) -> None:
    listed = {
        "c": f"{CLASSES}.InSet",
        "t": "boolean",
        "a": [attribute("b", "integer")],
        "v": [None, *range(6, 1000)],
    }
    assert keys_of(side(folder, TYPES, listed)) == [2]


KEYS = {
    "short": pa.array([1, 2, 3, None], pa.int16()),
    "string": ["a", "b\u00e4", "", None],
    "date": pa.array([0, 1, -1, None], pa.int32()).cast(pa.date32()),
    "decimal(9,2)": pa.array(
        [Decimal("1.10"), Decimal("-2.00"), Decimal(0), None], pa.decimal128(9, 2)
    ),
}
WITHOUT_X: Mapping[str, list[Any]] = {
    "short": [2, 3],
    "string": ["", "b\u00e4"],
    "date": [date(1969, 12, 31), date(1970, 1, 2)],
    "decimal(9,2)": [Decimal(-2), Decimal(0)],
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_each_type(tmp_path: Path, kind: str) -> None:
    folder = write(tmp_path / "d", k=KEYS[kind])
    assert (
        keys_of(side(folder, {**TYPES, "k": kind}, both("Not", IS_X)))
        == (WITHOUT_X[kind])
    )


def test_text_that_is_no_utf8_is_no_key(tmp_path: Path) -> None:
    keys = pa.array([b"a", b"\xff", b"b", None])
    folder = write(tmp_path / "d", k=keys)
    found = keys_of(side(folder, {**TYPES, "k": "string"}, both("Not", IS_X)))
    assert isinstance(found, str)


# -- files under other types ---------------------------------------------------------


def test_a_file_that_lacks_a_column_has_null(folder: Path) -> None:
    put(folder / "1.parquet", {"k": [7, 8], "a": ["x", "y"]})
    assert keys_of(side(folder, TYPES, asks("IsNull", "b", "integer"))) == [3, 7, 8]
    put(folder / "2.parquet", {"a": ["x"]})
    assert keys_of(side(folder, TYPES, IS_X)) == [1, 7]


def test_a_file_that_lacks_a_column_with_a_default_is_not_read(folder: Path) -> None:
    put(folder / "1.parquet", {"k": [7, 8], "a": ["x", "y"]})
    data = schema(TYPES, {"b": {"EXISTS_DEFAULT": "6"}})
    asked = asks("EqualTo", "b", "integer", 6)
    assert "DEFAULT" in keys_of(side(folder, TYPES, asked, data=data))
    # The column does not matter to another condition.
    assert keys_of(side(folder, TYPES, IS_X, data=data)) == [1, 7]


OTHERS = {
    "narrow": (pa.array([7, 8], pa.int32()), [1, 7]),
    "text": (pa.array(["7", "8"]), None),
    "time": (pa.array([7, 8], pa.timestamp("us")), None),
    "double": (pa.array([7.0, 8.5]), None),
    "unsigned": (pa.array([7, 2**64 - 1], pa.uint64()), None),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_key_under_another_type(folder: Path, name: str) -> None:
    keys, expected = OTHERS[name]
    put(folder / "1.parquet", {"k": keys, "a": ["x", "y"]})
    found = keys_of(side(folder, TYPES, IS_X))
    assert found == expected if expected else isinstance(found, str)


def test_numbers_that_do_not_fit_the_type_are_not_read(folder: Path) -> None:
    """Spark cuts their bits."""
    put(folder / "1.parquet", {"k": [2**32 + 5], "a": ["x"]})
    assert isinstance(keys_of(side(folder, {**TYPES, "k": "integer"}, IS_X)), str)


def test_decimals_of_another_scale_are_not_read(tmp_path: Path) -> None:
    folder = write(tmp_path / "d", k=KEYS["decimal(9,2)"])
    keys = pa.array([Decimal("1.5")], pa.decimal128(9, 1))
    put(folder / "1.parquet", {"k": keys, "a": ["x"]})
    asked = side(folder, {**TYPES, "k": "decimal(9,2)"}, IS_X)
    assert isinstance(keys_of(asked), str)


def test_capitals(folder: Path) -> None:
    put(folder / "1.parquet", {"K": [7], "a": ["x"]})
    asked = side(folder, TYPES, IS_X)
    assert "spelled" in keys_of(asked)  # Spark reads 7, and Arrow would read NULL
    assert keys_of(asked, settings=session(case_sensitive=True)) == [1]


def test_two_columns_that_differ_in_capitals(folder: Path) -> None:
    types = {**TYPES, "K": "long"}
    assert "ambiguous" in keys_of(side(folder, types, IS_X))
    assert keys_of(side(folder, types, IS_X), settings=session(case_sensitive=True))


@pytest.mark.parametrize(
    "notes", [{"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}, {"__COLLATIONS": "UTF8_LCASE"}]
)
def test_text_that_spark_compares_otherwise(
    tmp_path: Path, notes: Mapping[str, str]
) -> None:
    folder = write(tmp_path / "d", k=KEYS["string"])
    types = {**TYPES, "k": "string"}
    data = schema(types, {"a": notes})
    found = keys_of(side(folder, types, both("Not", IS_X), data=data))
    assert "alone" in found
    data = schema(types, {"k": notes})
    assert "no keys" in keys_of(side(folder, types, both("Not", IS_X), data=data))


def with_types(**types: str) -> dict[str, str]:
    return {"data": schema(TYPES | types)}


@pytest.mark.parametrize(
    "others",
    [
        {"key": "unknown"},
        {"root": "/nowhere"},
        {"scheme": "s3a", "authority": "bucket"},
        {"scheme": "no-store", "authority": "a"},
        {"paths": ["1.parquet"]},
        {"sizes": [7]},
        {"millis": [0]},
        {"paths": [], "sizes": [], "millis": []},
        {"options": {"datetimerebasemode": "LEGACY"}},
        {"reader": {"spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY"}},
        {"reader": {"spark.sql.caseSensitive": "true"}},
        {"data": "{}"},
        with_types(a="string collate UTF8_LCASE"),
        {"partitions_types": {"a": "string"}},
        {"partitions_types": {"k": "bigint"}},
        {"conjuncts": "[]"},
    ],
)
def test_a_dimension_that_cannot_be_read_as_spark_reads_it(
    folder: Path, others: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without a region, that of the bucket is looked for in the network for seconds.
    monkeypatch.setenv("AWS_REGION", "eu-test-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://127.0.0.1:1")
    assert keys_of(side(folder, TYPES, IS_X)) == [1]
    assert isinstance(keys_of(side(folder, TYPES, IS_X, **others)), str)


def test_dates_of_the_old_calendar_are_not_read(folder: Path) -> None:
    path = folder / "0.parquet"
    old = pq.read_table(path).replace_schema_metadata(
        {"org.apache.spark.version": "2.4.8"}
    )
    pq.write_table(old, path)
    asked = asks("LessThan", "z", "timestamp", 5)
    assert "calendar" in keys_of(side(folder, TYPES, asked))
    assert keys_of(side(folder, TYPES, IS_X)) == [1]


def test_times_of_a_zone_are_by_the_rules_of_the_driver(folder: Path) -> None:
    """It is three o'clock at midnight UTC where the clocks are three hours ahead."""
    asked = side(folder, TYPES, AT_THREE)
    for ahead, expected in ((0, []), (3 * 3600, [1])):
        offsets = listed_offsets("Europe/Rome", (-(10**10), ahead))
        found = keys_of(asked, settings=session("Europe/Rome", offsets))
        assert found == expected
    assert "alone" in keys_of(asked, settings=session("Europe/Rome"))


# -- partitions ----------------------------------------------------------------------


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    for part, keys in ((1, [1, 2]), (2, [3, 4])):
        put(tmp_path / f"p={part}" / "0.parquet", {"k": keys, "a": ["x", "y"]})
    return tmp_path


IS_1 = asks("EqualTo", "p", "integer", 1)
IN_PARTS = {"k": "long", "a": "string"}


def test_folders_have_values_and_keys(parts: Path) -> None:
    named = {"partitions_types": {"p": "int"}}
    assert keys_of(side(parts, IN_PARTS, IS_1, **named)) == [1, 2]
    assert keys_of(side(parts, IN_PARTS, IS_1, IS_X, **named)) == [1]
    asked = asks("GreaterThan", "k", "long", 2)
    assert keys_of(side(parts, IN_PARTS, asked, key="p", **named)) == [2]


@pytest.mark.parametrize(
    "others",
    [
        {"partitions_types": {"p": "bigint"}},
        {"partitions_types": {}},
        {"partitions_types": {"p": "int"}, "is_catalog_table": True},
    ],
)
def test_folders_whose_values_spark_takes_otherwise(
    parts: Path, others: Mapping[str, Any]
) -> None:
    assert "alone" in keys_of(side(parts, IN_PARTS, IS_1, **others))
    assert keys_of(side(parts, IN_PARTS, IS_1, IS_X, **others)) == [1, 3]


# -- chains --------------------------------------------------------------------------


def test_a_dimension_of_a_dimension(folder: Path, tmp_path: Path) -> None:
    far = put(tmp_path / "far/0.parquet", {"k": [5, 9, None], "a": ["x", "y", "x"]})
    other = Dimension(**side(far.parent, IN_PARTS, IS_X))
    asked = side(folder, TYPES)
    assert keys_of({**asked, "keys": [("b", other)]}) == [1]
    assert keys_of({**asked, "keys": [("b", [6, 7])]}) == [2]
    assert keys_of({**asked, "keys": [("a", ["z"])]}) == [3]
    open_side = Dimension(**side(far.parent, IN_PARTS, UNKNOWN))
    assert "alone" in keys_of({**asked, "keys": [("b", open_side)]})


# -- bounds --------------------------------------------------------------------------


def test_too_many_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "d")
    assert keys_of(side(folder, TYPES, both("Not", IS_X))) == [2, 3]
    monkeypatch.setattr(module, "MAX_KEYS", 1)
    assert "2 keys" in keys_of(side(folder, TYPES, both("Not", IS_X)))


def test_too_many_bytes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that is stored once may take much memory."""
    put(folder / "1.parquet", {"k": range(5000), "a": ["x" * 1000] * 5000})
    assert sum(file.stat().st_size for file in folder.iterdir()) < 100_000
    monkeypatch.setattr(module, "MAX_BYTES", 1_000_000)
    assert "bytes" in keys_of(side(folder, TYPES, IS_X))
    assert keys_of(side(folder, TYPES, asks("EqualTo", "k", "long", 3))) == [3]


def test_the_price_is_asked_before_the_columns_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "d")
    read = []

    class Closed:
        def __init__(self, found: Any) -> None:
            self.found = found

        def get_fragments(self) -> Any:
            return self.found.get_fragments()

        def to_batches(self, **options: Any) -> Any:
            read.append(options)
            raise AssertionError

    monkeypatch.setattr(
        module, "dataset_of", lambda *a, **o: Closed(dataset_of(*a, **o))
    )
    found = keys_of(side(folder, TYPES, IS_X), settings=session(most_bytes=10))
    assert "not worth it" in found
    assert not read


# -- in memory -----------------------------------------------------------------------


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The columns that are read of files from now on."""
    found: list[list[str]] = []

    def counted(state: Any, *rest: Any, **options: Any) -> Any:
        found.append([field.name for field in state.schema])
        return dataset_of(state, *rest, **options)

    monkeypatch.setattr(module, "dataset_of", counted)
    return found


def test_columns_stay_in_memory(folder: Path, reads: list[list[str]]) -> None:
    age(folder)
    dimensions = Dimensions()
    assert keys_of(side(folder, TYPES, IS_X), dimensions) == [1]
    assert keys_of(side(folder, TYPES, both("Not", IS_X)), dimensions) == [2, 3]
    assert reads == [["k", "a"]]
    asked = asks("EqualTo", "b", "integer", 6)
    assert keys_of(side(folder, TYPES, asked), dimensions) == [2]
    assert reads == [["k", "a"], ["b"]]
    # A scan for which reading would not pay has what is there.
    found = keys_of(side(folder, TYPES, IS_X), dimensions, session(most_bytes=0))
    assert found == [1]
    DEFAULT_SESSION.clear()
    assert keys_of(side(folder, TYPES, IS_X), dimensions) == [1]
    assert len(reads) == 3


def test_columns_in_memory_are_of_one_type(tmp_path: Path) -> None:
    keys = [Decimal("12345.67"), Decimal(1), None, None]
    folder = write(tmp_path / "d", k=pa.array(keys, pa.decimal128(9, 2)))
    age(folder)
    dimensions = Dimensions()
    for digits in (9, 5):
        types = {**TYPES, "k": f"decimal({digits},2)"}
        found = keys_of(side(folder, types, IS_X), dimensions)
        assert found == [Decimal("12345.67")] if digits == 9 else isinstance(found, str)


def rewrite(folder: Path) -> None:
    path = folder / "0.parquet"
    before = path.stat()
    pq.write_table(
        pq.read_table(path).set_column(0, "k", pa.array([2, 1, 3, None])), path
    )
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 10_000_000))


def within_the_millisecond(folder: Path) -> None:
    """Spark has no finer times, so its listing looks as it did."""
    path = folder / "0.parquet"
    before = path.stat().st_mtime_ns
    rewrite(folder)
    later = before // 1_000_000 * 1_000_000 + 1
    os.utime(path, ns=(later, later + (later == before)))


def at_the_same_time(folder: Path) -> None:
    """As ``cp -p`` does."""
    path = folder / "0.parquet"
    before = path.stat()
    rewrite(folder)
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def with_another_file(folder: Path) -> None:
    """It is prepared elsewhere and moved there."""
    path, other = folder / "0.parquet", folder.parent / "0.parquet"
    shutil.copy2(path, other)
    at_the_same_time(folder.parent)
    other.replace(path)


@pytest.mark.parametrize(
    "change",
    [rewrite, within_the_millisecond, at_the_same_time, with_another_file],
)
def test_a_dimension_that_changed_is_read_anew(
    folder: Path, change: Callable[[Path], None]
) -> None:
    age(folder)
    dimensions = Dimensions()
    before = side(folder, TYPES, IS_X)
    assert keys_of(before, dimensions) == [1]
    change(folder)
    assert keys_of(side(folder, TYPES, IS_X), dimensions) == [2]
    if change is rewrite:
        assert "has listed" in keys_of(before, dimensions)


def test_a_dimension_of_a_store_that_changed_is_read_anew(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files have sizes, times and tags, and no more."""
    monkeypatch.setattr(module._SideReader, "_nodes_now", lambda _: ())
    age(folder)
    dimensions = Dimensions()
    assert keys_of(side(folder, TYPES, IS_X), dimensions) == [1]
    rewrite(folder)
    assert keys_of(side(folder, TYPES, IS_X), dimensions) == [2]


def test_a_file_that_was_just_written_is_not_kept(
    folder: Path, reads: list[list[str]]
) -> None:
    """It may change once more within one tick of the clock."""
    dimensions = Dimensions()
    for _ in range(2):
        assert keys_of(side(folder, TYPES, IS_X), dimensions) == [1]
    assert len(reads) == 2


@pytest.mark.parametrize(
    "change",
    [rewrite, within_the_millisecond, at_the_same_time, with_another_file],
)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_dimension_that_changes_while_it_is_read(
    folder: Path,
    change: Callable[[Path], None],
    moment: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before its files are opened, or after they were."""

    def changing(*given: Any, **options: Any) -> Any:
        if moment == "before":
            change(folder)
        result = dataset_of(*given, **options)
        if moment == "after":
            change(folder)
        return result

    asked = side(folder, TYPES, IS_X)
    monkeypatch.setattr(module, "dataset_of", changing)
    has_its_time = change in {at_the_same_time, with_another_file}
    expected = "has listed" if change is rewrite else "changed while"
    if moment == "before" and not has_its_time:
        expected = "was replaced"
    assert expected in keys_of(asked)


def test_queries_at_once_read_it_once(folder: Path, reads: list[list[str]]) -> None:
    age(folder)
    dimensions = Dimensions()
    asked = side(folder, TYPES, IS_X)
    with ThreadPoolExecutor(40) as pool:
        found = list(pool.map(lambda _: keys_of(asked, dimensions), range(40)))
    assert found == [[1]] * 40
    assert len(reads) == 1


# -- keys in memory ------------------------------------------------------------------


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The conditions that are evaluated from now on."""
    trees: list[Any] = []

    def counted(tree: Any, *rest: Any) -> Any:
        trees.append(tree)
        return condition_of(tree, *rest)

    monkeypatch.setattr(module, "condition_of", counted)
    return trees


def test_keys_stay_in_memory(folder: Path, evaluated: list[Any]) -> None:
    age(folder)
    dimensions = Dimensions()
    for _ in range(3):
        assert keys_of(side(folder, TYPES, IS_X), dimensions) == [1]
    assert len(evaluated) == 1
    assert keys_of(side(folder, TYPES, both("Not", IS_X)), dimensions) == [2, 3]
    assert keys_of(side(folder, TYPES, IS_X, key="b"), dimensions) == [5]
    assert len(evaluated) == 3
    DEFAULT_SESSION.clear()
    assert keys_of(side(folder, TYPES, IS_X), dimensions) == [1]
    assert len(evaluated) == 4


def test_keys_in_memory_are_of_one_kind_of_table(parts: Path) -> None:
    """A catalog may say that a folder has another value than its name."""
    age(parts)
    dimensions = Dimensions()
    for is_catalog_table, expected in ((False, [1]), (True, [1, 3]), (False, [1])):
        asked = side(
            parts,
            IN_PARTS,
            IS_1,
            IS_X,
            partitions_types={"p": "int"},
            is_catalog_table=is_catalog_table,
        )
        assert keys_of(asked, dimensions) == expected


@pytest.fixture
def far(tmp_path: Path) -> Path:
    """What a dimension is joined with by its column ``b``."""
    path = put(tmp_path / "far/0.parquet", {"k": [5, 9, None], "a": ["x", "y", "x"]})
    age(path.parent)
    return path.parent


def test_keys_in_memory_are_of_the_same_chain(
    folder: Path, far: Path, evaluated: list[Any]
) -> None:
    age(folder)
    dimensions = Dimensions()

    def keys(far_condition: Any) -> Any:
        other = Dimension(**side(far, IN_PARTS, far_condition))
        return keys_of({**side(folder, TYPES), "keys": [("b", other)]}, dimensions)

    assert keys(IS_X) == [1]
    assert keys(both("Not", IS_X)) == []
    n_evaluated = len(evaluated)
    assert keys(IS_X) == [1]
    assert len(evaluated) == n_evaluated
    for given, expected in (([5], [1]), ([6, 7], [2]), ([5], [1])):
        asked = {**side(folder, TYPES), "keys": [("b", given)]}
        assert keys_of(asked, dimensions) == expected
    put(far / "0.parquet", {"k": [6, 9, None], "a": ["x", "y", "x"]})
    assert keys(IS_X) == [2]


def test_keys_of_a_chain_that_was_just_written_are_not_kept(
    folder: Path, far: Path, evaluated: list[Any]
) -> None:
    age(folder)
    os.utime(far / "0.parquet")
    dimensions = Dimensions()
    for n in (1, 2):
        other = Dimension(**side(far, IN_PARTS, IS_X))
        asked = {**side(folder, TYPES), "keys": [("b", other)]}
        assert keys_of(asked, dimensions) == [1]
        assert len(evaluated) == n


def test_keys_without_a_part_of_the_chain_are_not_kept(folder: Path, far: Path) -> None:
    age(folder)
    dimensions = Dimensions()
    asked = side(folder, TYPES, both("Not", asks("EqualTo", "b", "integer", 99)))
    assert keys_of(asked, dimensions) == [1, 2]
    asked["keys"] = [("b", Dimension(**side(far, IN_PARTS, IS_X)))]
    # The far columns cost too much for the first of these scans.
    assert keys_of(asked, dimensions, session(most_bytes=1)) == [1, 2]
    assert keys_of(asked, dimensions) == [1]


def test_keys_by_the_rules_of_a_zone_are_not_kept(folder: Path) -> None:
    age(folder)
    other = side(folder, TYPES, AT_THREE)
    asked = side(folder, TYPES, keys=[("k", Dimension(**other))])
    dimensions = Dimensions()
    for ahead, expected in ((0, []), (3 * 3600, [1])):
        offsets = listed_offsets("Europe/Rome", (-(10**10), ahead))
        settings = session("Europe/Rome", offsets)
        assert keys_of(other, dimensions, settings) == expected
        assert keys_of(asked, dimensions, settings) == expected


# -- slow and unreadable -------------------------------------------------------------


def test_a_slow_dimension_takes_half_of_the_time_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = threading.Event()

    def slow(*given: Any, **options: Any) -> Any:
        ends.wait(60)
        return dataset_of(*given, **options)

    monkeypatch.setattr(module, "dataset_of", slow)
    dimensions = Dimensions()
    asked = side(folder, TYPES, IS_X)
    start = time.monotonic()
    with running_until(Deadline(1.0)):
        assert "too long" in keys_of(asked, dimensions)
    assert 0.4 < time.monotonic() - start < 0.9
    with running_until(Deadline(10.0)):
        assert "too long" in keys_of(asked, dimensions)
    assert time.monotonic() - start < 2
    ends.set()
    deadline = time.monotonic() + 30
    while isinstance(keys_of(asked, dimensions), str) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert keys_of(asked, dimensions) == [1]


def test_an_unreadable_file(folder: Path) -> None:
    path = folder / "1.parquet"
    path.write_bytes(b"PAR1" + b"x" * 100 + b"PAR1")
    assert "Parquet" in keys_of(side(folder, TYPES, IS_X))
