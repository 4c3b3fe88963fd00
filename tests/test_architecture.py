"""The house stands as ``docs/architecture.md`` draws it: imports go one way."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "skipindex"
MODULES = sorted(SOURCE.rglob("*.py"))
LEVELS = (
    {"errors"},
    {"atoms", "bounds", "predicate"},
    {"patterns"},
    {"domain"},
    {"storage"},
    {"partition_types", "partitions", "indexes", "schema", "stored", "table"},
    {"planner", "layout"},
    {"advice", "rewrite"},
    {"api"},
    {"spark", "cli"},
    {"__main__"},
)
"""From the cellar to the roof; a part imports its own level and those below."""

LATE = {
    ("table._table", "skipindex.planner.plan"),
    ("table._table", "skipindex.spark.columns"),
    ("planner.plan", "skipindex.spark.read"),
    ("planner.verify", "skipindex.spark.read"),
    ("planner.plan", "skipindex.spark.condition"),
    ("api", "skipindex.spark.runner"),
}
"""Looked up inside of a function: a method of a value that leads up the stairs."""


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports(path: Path, *, late: bool) -> Iterator[str]:
    """Modules that are imported when the file is loaded, or later in a function."""
    tree = ast.parse(path.read_text())
    for node, inside, typing in walk(tree, inside=False, typing=False):
        if typing or inside != late:
            continue
        match node:
            case ast.Import(names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(str(module), names, level):
                assert level == 0, f"{path}: imports are absolute"
                yield module


def walk(
    node: ast.AST, *, inside: bool, typing: bool
) -> Iterator[tuple[ast.AST, bool, bool]]:
    for child in ast.iter_child_nodes(node):
        deeper = inside or isinstance(child, ast.FunctionDef)
        checked = typing or (
            isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        )
        yield child, deeper, checked
        yield from walk(child, inside=deeper, typing=checked)


def level(module: str) -> int:
    part = module.removeprefix("skipindex").strip(".").partition(".")[0]
    (found,) = [i for i, parts in enumerate(LEVELS) if part in parts] or [len(LEVELS)]
    return found


def ours(names: Iterator[str]) -> list[str]:
    return [name for name in names if name.partition(".")[0] == "skipindex"]


def test_every_part_of_the_house_has_a_level() -> None:
    parts = {name_of(path).partition(".")[0] for path in MODULES} - {""}
    assert parts == set().union(*LEVELS)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_one_way(path: Path) -> None:
    own = level(name_of(path)) if name_of(path) else len(LEVELS)
    for imported in ours(imports(path, late=False)):
        assert level(imported) <= own, f"{name_of(path)} imports {imported}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_late_imports_upwards_are_the_known_ones(path: Path) -> None:
    for imported in ours(imports(path, late=True)):
        if level(imported) > level(name_of(path)):
            assert (name_of(path), imported) in LATE


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_law_8_indexes_never_import_the_planner(path: Path) -> None:
    if not name_of(path).startswith("indexes"):
        return
    for late in (False, True):
        for imported in ours(imports(path, late=late)):
            assert not imported.startswith("skipindex.planner")


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_pyspark_is_imported_in_spark_alone(path: Path) -> None:
    found = [*imports(path, late=False), *imports(path, late=True)]
    uses = any(name.partition(".")[0] == "pyspark" for name in found)
    assert not uses or name_of(path).startswith("spark.")


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_other_peoples_packages_are_the_declared_ones(path: Path) -> None:
    """Tests, benchmarks and the Star Schema Benchmark are not among them."""
    for late in (False, True):
        tops = {name.partition(".")[0] for name in imports(path, late=late)}
        assert not tops & {"tests", "ssb", "benchmarks", "pytest", "hypothesis"}


def test_planner_and_indexes_meet_in_the_protocol_alone() -> None:
    """The planner knows no kind by its module."""
    for path in (SOURCE / "planner").glob("*.py"):
        for imported in ours(imports(path, late=False)):
            if imported.startswith("skipindex.indexes."):
                assert imported.rpartition(".")[2] in {
                    "_base",
                    "_column",
                    "_file_map",
                }, path.name


def test_an_index_kind_is_one_file() -> None:
    """What ``docs/architecture.md`` promises: it is found by being there."""
    kinds = {
        path.stem
        for path in (SOURCE / "indexes").glob("*.py")
        if not path.stem.startswith("_") and path.stem not in {"build", "minmax"}
    }
    assert kinds == {
        *("bitmap", "bit_sliced", "bloom", "range_bitmap", "run_length"),
        *("ngram_bloom", "token_bloom", "key_set"),
    }
    for path in MODULES:
        if name_of(path) in {"", *(f"indexes.{kind}" for kind in kinds)}:
            continue
        for imported in ours(imports(path, late=False)):
            assert imported.rpartition(".")[2] not in kinds, name_of(path)


def test_the_drawing_names_every_part() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    house = text.partition("## The house")[2].partition("## ")[0]
    for path in SOURCE.iterdir():
        if path.suffix == ".py" or (path / "__init__.py").exists():
            word = path.name if path.suffix else f"{path.name}/"
            assert re.search(rf"^\s*{re.escape(word)}\s", house, re.MULTILINE), word
