"""The package stands as ``docs/architecture.md`` draws it: imports go one way."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "skipindex"
LEVELS = (
    {"errors", "notebook"},
    {"expressions"},
    {"storage"},
    {"conditions"},
    {"log"},
    {"indexes", "source"},
    {"table"},
    {"build"},
    {"planner"},
    {"advice", "layout"},
    {"rewrite"},
    {"spark"},
    {"api"},
    {"cli"},
)
"""From the bottom to the top.  A part imports itself and lower levels, never a
neighbour."""
WITHIN: Mapping[str, tuple[set[str], ...]] = {
    "conditions": (
        {"bound_predicate", "budget", "columns"},
        {"simplify", "functions"},
        {"trees"},
        {"binding"},
        {"sql"},
    ),
    "planner": (
        {"engine", "recorded"},
        {"stages"},
        {"file_tasks", "metrics"},
        {"reports", "rows"},
        {"plan"},
        {"answers", "before_listing"},
    ),
    "source": (
        {"field_ids", "partitions"},
        {"log_statistics", "parquet"},
        {"formats", "iceberg_writing", "source"},
        {"delta", "folder", "iceberg"},
        {"opening"},
    ),
}
"""The same for the entries of these packages."""
MOST_ENTRIES = 17
"""Of a folder: modules and folders, without ``__init__`` and ``__main__``."""
BUDGETS = {
    "": 432,
    "advice": 2100,
    "api": 4796,
    "build": 2707,
    "cli": 1483,
    "conditions": 8656,
    "expressions": 1982,
    "indexes": 7516,
    "layout": 2427,
    "log": 2410,
    "planner": 10125,
    "rewrite": 2762,
    "source": 5915,
    "spark": 7727,
    "storage": 5579,
    "table": 3008,
}
"""Lines of Python of each package; those of "" lie beside the packages.  A change that
raises a number lowers another one by as much."""
BUDGETS_BESIDE = {"benchmarks": 4648, "ssb": 8539}
"""Lines of Python of the folders beside the package, as ``BUDGETS``."""
NO_PARTS = {"", "__main__"}
"""The public names, and the command."""

Graph = Mapping[str, set[str]]
"""By module, the modules that it imports: when it is loaded, later in a function, or
for types alone.  Names are relative to the package."""


def name_of(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@cache
def imports_of(text: str) -> tuple[tuple[str, str], ...]:
    return tuple(imported(ast.parse(text)))


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Modules, and what is imported from each of them, wherever the import stands."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from ((alias.name, "") for alias in names)
            case ast.ImportFrom(module, names, level):
                assert level == 0, f"relative import of {module}"
                yield from ((str(module), alias.name) for alias in names)


def graph_of(root: Path) -> Graph:
    paths = {name_of(path, root): path for path in sorted(root.rglob("*.py"))}
    found: dict[str, set[str]] = {}
    for name, path in paths.items():
        found[name] = set()
        for module, item in imports_of(path.read_text()):
            if module.partition(".")[0] != "skipindex":
                continue
            whole = f"{module}.{item}".removeprefix("skipindex").strip(".")
            part = module.removeprefix("skipindex").strip(".")
            found[name].add(whole if whole in paths else part)
    return found


@pytest.fixture(scope="module")
def graph() -> Graph:
    return graph_of(SOURCE)


def upwards(graph: Graph, levels: tuple[set[str], ...], below: str = "") -> list[str]:
    """The imports between the parts below a package that do not go down."""
    level = {part: i for i, parts in enumerate(levels) for part in parts}
    prefix = f"{below}." if below else ""
    wrong = []
    for name, targets in graph.items():
        for target in targets:
            if not (name.startswith(prefix) and target.startswith(prefix)):
                continue
            own, other = (
                module.removeprefix(prefix).partition(".")[0]
                for module in (name, target)
            )
            if own in NO_PARTS or own == other:
                continue
            if level.get(other, len(levels)) >= level[own]:
                wrong.append(f"{name} imports {target}")
    return wrong


def circle(graph: Graph) -> list[str]:
    """The modules of a circle of imports; empty if there is none."""
    done: set[str] = set()

    def search(name: str, way: list[str]) -> list[str]:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return []
        for target in sorted(graph.get(name, ())):
            found = search(target, [*way, name])
            if found:
                return found
        done.add(name)
        return []

    return next(filter(None, (search(name, []) for name in sorted(graph))), [])


def crowded(root: Path) -> list[str]:
    """Folders with more than ``MOST_ENTRIES`` entries."""
    wrong = []
    for folder in sorted({path.parent for path in root.rglob("*.py")}):
        entries = [
            entry.name
            for entry in folder.iterdir()
            if not entry.name.startswith("__")
            and any(
                one.suffix in {".py", ".java"} for one in (entry, *entry.rglob("*"))
            )
        ]
        if len(entries) > MOST_ENTRIES:
            wrong.append(f"{folder.relative_to(root)}: {len(entries)} entries")
    return wrong


def test_every_part_has_a_level(graph: Graph) -> None:
    parts = {name.partition(".")[0] for name in graph} - NO_PARTS
    assert parts == set().union(*LEVELS)
    for part, levels in WITHIN.items():
        inner = {name.split(".")[1] for name in graph if name.startswith(f"{part}.")}
        assert inner == set().union(*levels)


def test_imports_go_one_way(graph: Graph) -> None:
    assert upwards(graph, LEVELS) == []
    for part, levels in WITHIN.items():
        assert upwards(graph, levels, part) == []


def test_there_is_no_circle(graph: Graph) -> None:
    """Imports for types alone, and those in functions, count too."""
    assert circle(graph) == []


def test_no_folder_is_crowded() -> None:
    assert crowded(SOURCE) == []


def test_module_names_have_no_underscore_in_front(graph: Graph) -> None:
    """A package's ``__init__`` says what others import; ``_name`` is a module's own."""
    for name in graph:
        assert not name.rpartition(".")[2].startswith("_") or name == "__main__", name


@pytest.mark.parametrize(
    ("module", "line", "complaint"),
    [
        ("indexes/interface.py", "import skipindex.planner.plan", "upwards"),
        ("table/schema.py", "from skipindex.build import task", "upwards"),
        ("source/source.py", "from skipindex.indexes import file_map", "upwards"),
        ("planner/stages/limit.py", "from skipindex.planner import plan", "inner"),
        (
            "conditions/trees/times.py",
            "import skipindex.conditions.sql.parser",
            "inner",
        ),
        ("conditions/sql/tokens.py", "import skipindex.table", "upwards"),
        ("source/delta.py", "import skipindex.source.folder.folder", "inner"),
        (
            "storage/pack/format.py",
            "def f():\n    import skipindex.log",
            "circle",
        ),
        ("layout/curves.py", "from skipindex.advice import advise", "upwards"),
    ],
)
def test_a_broken_rule_is_noticed(
    tmp_path: Path, module: str, line: str, complaint: str
) -> None:
    copy = tmp_path / "skipindex"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    with (copy / module).open("a") as file:
        file.write(f"\n\n{line}\n")
    broken = graph_of(copy)
    match complaint:
        case "upwards":
            assert upwards(broken, LEVELS)
        case "inner":
            assert any(upwards(broken, WITHIN[part], part) for part in WITHIN)
        case _:
            assert circle(broken)


def test_a_crowded_folder_is_noticed(tmp_path: Path) -> None:
    for i in range(MOST_ENTRIES + 1):
        (tmp_path / f"module{i}.py").touch()
    assert crowded(tmp_path)


def test_law_8_indexes_never_import_the_planner(graph: Graph) -> None:
    for name, targets in graph.items():
        if name.startswith("indexes"):
            assert not any(target.startswith("planner") for target in targets), name


def test_one_room_reads_which_files_count(graph: Graph) -> None:
    """The driver's part passes on what ``source.folder`` says of a scan's files."""
    for name, targets in graph.items():
        if not name.startswith(("source.folder.", "spark.pruning.tables")):
            assert "source.folder.replacements" not in targets, name


def test_pyspark_is_imported_in_spark_alone() -> None:
    """Elsewhere for types alone."""
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        if "pyspark" not in text:
            continue
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                node.body = [ast.Pass()]
        uses = {module.partition(".")[0] for module, _ in imported(tree)}
        if name_of(path, SOURCE).partition(".")[0] != "spark":
            assert "pyspark" not in uses, path


def test_the_package_imports_no_tests_or_benchmarks() -> None:
    for path in SOURCE.rglob("*.py"):
        tops = {m.partition(".")[0] for m, _ in imports_of(path.read_text())}
        assert not tops & {"tests", "ssb", "benchmarks", "pytest", "hypothesis"}, path


def test_an_index_kind_is_one_file(graph: Graph) -> None:
    """What ``docs/architecture.md`` promises: it is found by being there."""
    kinds = {path.stem for path in (SOURCE / "indexes" / "kinds").glob("[a-z]*.py")}
    assert kinds == {
        *("bitmap", "bit_sliced", "bloom", "range_bitmap", "run_length"),
        *("ngram_bloom", "token_bloom", "exact"),
    }
    for name, targets in graph.items():
        if name in {"", "api"} or name.startswith("indexes.kinds."):
            continue
        for target in targets:
            assert not target.startswith("indexes.kinds."), name


def test_pytest_looks_into_every_folder_of_tests(pytestconfig: pytest.Config) -> None:
    """By default it passes over folders that are called build, dist or venv."""
    passed_over = pytestconfig.getini("norecursedirs")
    folders = {
        path.relative_to(ROOT / "tests").parts[:-1]
        for path in (ROOT / "tests").rglob("test_*.py")
    }
    left_out = [
        "/".join(folder)
        for folder in sorted(folders)
        if any(fnmatch(name, one) for name in folder for one in passed_over)
    ]
    assert not left_out


def test_the_drawing_names_every_part() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    drawing = text.partition("## Packages")[2].partition("## ")[0]
    for path in SOURCE.iterdir():
        if path.suffix == ".py" or (path / "__init__.py").exists():
            word = path.name if path.suffix else f"{path.name}/"
            assert re.search(rf"^\s*{re.escape(word)}\s", drawing, re.MULTILINE), word


def lines_of(part: str) -> int:
    """The lines of Python of a package, of a folder beside the package, or of modules.

    An empty ``part`` is the modules beside the packages.
    """
    folder = (ROOT if part in BUDGETS_BESIDE else SOURCE) / part
    paths = folder.rglob("*.py") if part else folder.glob("*.py")
    return sum(len(path.read_text().splitlines()) for path in paths)


def over_budget(budgets: Mapping[str, int]) -> list[str]:
    """What is wrong with each package that has more lines than its number."""
    wrong = []
    for part, most in budgets.items():
        n_lines = lines_of(part)
        if n_lines > most:
            name = f"{part} ({purpose_of(part)})" if part else "the top"
            wrong.append(f"{name}: {n_lines} lines, {n_lines - most} above its number")
    return wrong


def purpose_of(part: str) -> str:
    """What a package is for, in ``docs/architecture.md``."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    (result,) = re.findall(rf"^ *{part}/ +(\S.*)$", text, re.MULTILINE)
    return str(result)


def test_each_package_keeps_to_its_number_of_lines() -> None:
    assert over_budget({**BUDGETS, **BUDGETS_BESIDE}) == []
    assert set(BUDGETS) - {""} == {
        path.parent.name for path in SOURCE.glob("*/__init__.py")
    }


def test_a_package_above_its_number_is_told_by_how_much() -> None:
    most = {part: lines_of(part) - (part == "build") for part in BUDGETS}
    assert over_budget(most) == [
        (
            "build (building, merging, repairing and dropping indexes, each in one "
            f"commit): {lines_of('build')} lines, 1 above its number"
        )
    ]
