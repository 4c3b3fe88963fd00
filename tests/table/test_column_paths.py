"""A column is a path of names: a dot in a name is no way into a struct."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa
import pytest

import skipindex as sx
from skipindex.expressions import (
    Comparison,
    IsNull,
    Operator,
    Predicate,
    Reference,
    name_parts,
    stored_name,
)
from tests.tables import build, kept, put, put_all

ROWS = 3
SHAPES: tuple[Any, ...] = (
    *("a.b", "a", "b", "a`b", "`a.b`", "`a`.b", "", "a.", ".b", "a b", "'a.b'", '"a"'),
    *({"a": ("b",)}, {"a": ("b.c", "b")}, {"a.b": ("c",)}, {"a": ({"b": ("c",)},)}),
    *({"a": ("",)}, {"a`": ("`b", "b")}, {"": ("b",)}),
)
"""Columns: a text is a number of that name, a mapping a struct with such fields."""

Values: TypeAlias = Mapping[tuple[str, ...], list[int]]


def test_no_two_paths_have_one_stored_name() -> None:
    random = Random(3)
    paths = {
        tuple("".join(random.choices("a.` ", k=random.randint(0, 3))) for _ in range(n))
        for n in (1, 2, 3)
        for _ in range(300)
    }
    assert len({stored_name(path) for path in paths}) == len(paths)
    for path in paths:
        if all(path):
            assert name_parts(stored_name(path)) == path
    assert stored_name(("größe", "order by")) == "größe.order by"


@pytest.mark.parametrize("kinds", ["minmax", "bitmap", "bloom"])
def test_a_reader_that_asks_for_the_struct_alone(tmp_path: Path, kinds: str) -> None:
    """The files hold a column of the name that the path of the field would have."""
    struct = pa.struct([("b", pa.int64())])
    files = [
        {"a.b": [i] * 3, "a": pa.array([{"b": 100 + i}] * 3, struct)} for i in range(3)
    ]
    put_all(tmp_path, files)
    both = build(tmp_path, {"*": kinds})
    alone = sx.open_table(tmp_path, schema=pa.schema([("a", struct)]))
    flat = sx.open_table(tmp_path, schema=pa.schema([("a.b", pa.int64())]))
    for table in (both, alone):
        assert kept(table, "a.b = 101") == ["1.parquet"]
        assert kept(table, "a.b < 50") == []
        assert table.plan("a.b IS NOT NULL").count_bounds[1] == 9
    for table in (both, flat):
        assert kept(table, "`a.b` = 1") == ["1.parquet"]
    assert kept(both, "`a.b` = 1 AND a.b = 101") == ["1.parquet"]
    for case_sensitive in (False, True):
        with pytest.raises(sx.PredicateError):
            alone.plan("`a.b` = 1", case_sensitive=case_sensitive)


def test_a_request_names_either_column(tmp_path: Path) -> None:
    """As in SQL, a dot reaches into the struct; without one, it is a part of a name."""
    struct = pa.struct([("b", pa.int64())])
    put(tmp_path / "0.parquet", {"a.b": [1], "a": pa.array([{"b": 2}], struct)})
    table = build(tmp_path, {"a.b": "bitmap", "`a.b`": "bloom"})
    found = {(one.column, one.kind) for one in table.indexes if one.kind != "minmax"}
    assert found == {("a.b", "bitmap"), ("`a.b`", "bloom")}
    report = table.refresh_indexes()
    assert report.files == 0
    table = table.drop_indexes(columns=["a.b"])
    assert {one.column for one in table.indexes} == {"`a.b`"}
    flat = put(tmp_path / "flat" / "0.parquet", {"a.b": [1]}).parent
    assert {one.column for one in build(flat, {"a.b": "bitmap"}).indexes} == {"`a.b`"}


@pytest.mark.few(4)
@pytest.mark.parametrize("kinds", ["minmax", "bitmap", "bloom"])
@pytest.mark.parametrize("seed", range(4))
def test_indexes_of_a_path_are_not_those_of_another(
    tmp_path: Path, seed: int, kinds: str
) -> None:
    random = Random(seed)
    for case in range(3):
        folder = tmp_path / f"{case}"
        shapes = distinct(random.sample(SHAPES, 6))
        whole = pa.schema([field(shape) for shape in shapes])
        files = [draw(random, shapes) for _ in range(3)]
        for i, (columns, _) in enumerate(files):
            put(folder / f"{i}.parquet", columns)
        build_with(folder, whole, kinds)
        for reader in (whole, pa.schema(random.sample(list(whole), 2))):
            table = sx.open_table(folder, schema=reader)
            for path in paths_of(reader):
                for condition, test in conditions(random, path):
                    expected = [
                        sum(map(test, values.get(path, [None] * ROWS)))
                        for _, values in files
                    ]
                    plan = table.plan(condition)
                    needed = [f"{i}.parquet" for i, n in enumerate(expected) if n]
                    where = (shapes, reader.names, condition)
                    assert set(needed) <= set(plan.paths), where
                    low, high = plan.count_bounds
                    assert low <= sum(expected) <= high, where
                    if kinds == "bitmap":
                        assert plan.paths == needed, where


def build_with(folder: Path, schema: pa.Schema, kinds: str) -> None:
    table = sx.open_table(folder, schema=schema)
    report = sx.build_indexes(table, {"*": kinds}, workers=1)
    assert report.notes == ()


def distinct(shapes: list[Any]) -> list[Any]:
    """The shapes without those whose name another one has."""
    return list({name_of(shape): shape for shape in shapes}.values())


def name_of(shape: Any) -> str:
    return shape if isinstance(shape, str) else str(next(iter(shape)))


def field(shape: Any) -> pa.Field:
    if isinstance(shape, str):
        return pa.field(shape, pa.int64())
    ((name, inner),) = shape.items()
    return pa.field(name, pa.struct([field(one) for one in inner]))


def draw(random: Random, shapes: list[Any]) -> tuple[pa.Table, Values]:
    """A file with some of the columns, and the values at each path."""
    mine = random.sample(shapes, random.randint(1, len(shapes)))
    values: dict[tuple[str, ...], list[int]] = {}
    arrays = [filled(random, field(shape), (), values) for shape in mine]
    return pa.table(arrays, schema=pa.schema([field(s) for s in mine])), values


def filled(
    random: Random,
    one: pa.Field,
    above: tuple[str, ...],
    values: dict[tuple[str, ...], list[int]],
) -> pa.Array:
    path = (*above, one.name)
    if not pa.types.is_struct(one.type):
        values[path] = [random.randint(0, 9) for _ in range(ROWS)]
        return pa.array(values[path], pa.int64())
    inner = [one.type.field(i) for i in range(one.type.num_fields)]
    arrays = [filled(random, each, path, values) for each in inner]
    return pa.StructArray.from_arrays(arrays, fields=inner)


def paths_of(schema: pa.Schema) -> Iterator[tuple[str, ...]]:
    pending = [((one.name,), one.type) for one in schema]
    while pending:
        path, dtype = pending.pop()
        if not pa.types.is_struct(dtype):
            yield path
            continue
        inner = [dtype.field(i) for i in range(dtype.num_fields)]
        pending += [((*path, one.name), one.type) for one in inner]


def conditions(
    random: Random, path: tuple[str, ...]
) -> Iterator[tuple[Predicate, Any]]:
    column, least = Reference(path), random.randint(0, 9)
    yield Comparison(column, Operator.EQ, least), lambda v: v == least
    yield (
        Comparison(column, Operator.GE, least),
        lambda v: v is not None and v >= least,
    )
    yield IsNull(column), lambda v: v is None
