"""The documentation is true: its code runs, its links work, its lists are whole.

A code block runs if the line before it is ``<!-- run -->``, or ``<!-- run: spark -->``
if it needs a session.  The blocks of a page run one after the other, as in a notebook.
"""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import skipindex as sx
from skipindex.build.runners import LocalRunner
from skipindex.cli.commands import COMMANDS
from skipindex.cli.sample import write_events
from tests import catalyst_page, cli_page
from tests.tables import api_members

if TYPE_CHECKING:  # the others need no PySpark
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob(".github/**/*.md"),
    ]
)
SOURCES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("src", "ssb", "benchmarks", "examples")
    for path in (ROOT / folder).rglob("*.py")
)
LINES = re.MULTILINE | re.DOTALL
BLOCK = re.compile(r"^<!-- run(: spark)? -->\n```python\n(.*?)^```$", LINES)
LINK = re.compile(r"\]\(([^)\s]+)\)")
SOURCE_FILE = re.compile(r"`((?:src/|tests/)?[a-z_]+(?:/[a-z_]+)*\.py)`")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
FACTOR = re.compile(r"\[([^]]*) times as\s+fast\]\([^)\s]*benchmark\.md#([\w-]+)\)")
FACTORS = {"times as fast", "layout alone", "skipping alone", "both"}
"""Heads of the columns that say how many times as fast something is."""
EXAMPLES = {
    "existing_folder": False,
    "explain": False,
    "daily_append": True,
    "write_and_cluster": True,
}
"""The scripts in ``examples``, and whether they start a session."""
QUICK = ("docs/guides/sql.md",)
"""The page of those that need Spark that has most of its calls in the least time."""
TEST = re.compile(r"^ *def test_(?:trap_c0*(\d+)|check_0*(\d+))", re.MULTILINE)
FORBIDDEN = re.compile(
    r"inside of|makes? no sense|nobody|somebody|whoever|settled|turned filters|"
    r"in the place of|orderly|hopeless",
    re.IGNORECASE,
)


def blocks(page: str, *, spark: bool) -> list[str]:
    """The blocks of a page that run, without those that need a session if asked so."""
    found = BLOCK.findall((ROOT / page).read_text())
    return [code for on_spark, code in found if spark or not on_spark]


def needs_spark(page: str) -> bool:
    return len(blocks(page, spark=True)) > len(blocks(page, spark=False))


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables are small, and processes take longer to start than to build."""
    monkeypatch.setattr(LocalRunner, "default", classmethod(lambda cls: cls(1)))


def events(folder: Path) -> None:
    """Small folders of the events that the pages are about."""
    write_events(folder / "events", files=12, rows=500)
    write_events(folder / "archive", files=2, rows=50)


def run(page: str, folder: Path, *, spark: bool) -> None:
    """Run the blocks of a page."""
    events(folder)
    names: dict[str, object] = {}
    for number, block in enumerate(blocks(page, spark=spark)):
        code = block.replace("/data/", f"{folder}/")
        exec(compile(code, f"{page}, block {number}", "exec"), names)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, spark=False)])
def test_the_code_runs(page: str, tmp_path: Path) -> None:
    run(page, tmp_path, spark=False)


@pytest.mark.spark
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=() if page in QUICK else pytest.mark.slow)
        for page in PAGES
        if needs_spark(page)
    ],
)
def test_the_code_runs_with_spark(
    page: str, tmp_path: Path, spark: SparkSession
) -> None:
    """With the session of the tests, which ``getOrCreate`` gives the pages."""
    run(page, tmp_path, spark=True)


def run_example(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a script as ``python examples/name.py folder/events`` does."""
    events(folder)
    monkeypatch.setattr(sys, "argv", [name, f"{folder}/events"])
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")


@pytest.mark.parametrize("name", [n for n, spark in EXAMPLES.items() if not spark])
def test_an_example_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_example(name, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", [n for n, spark in EXAMPLES.items() if spark])
def test_an_example_runs_with_spark(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    run_example(name, tmp_path, monkeypatch)


def test_every_example_is_run() -> None:
    scripts = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert scripts == {*EXAMPLES}


def slugs(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MkDocs make them."""
    plain = re.sub(r"^```.*?^```$", "", page.read_text(), flags=LINES)
    return set(map(slug, HEADING.findall(plain)))


def slug(heading: str) -> str:
    """The anchor of a heading."""
    return "-".join(re.sub(r"[^\w\s-]", "", heading.lower()).split())


@pytest.mark.parametrize("page", PAGES)
def test_every_local_link_leads_somewhere(page: str) -> None:
    for link in LINK.findall((ROOT / page).read_text()):
        if re.match(r"https?:|mailto:", link):
            continue
        path, _, anchor = link.partition("#")
        target = ((ROOT / page).parent / path) if path else ROOT / page
        assert target.exists(), f"{page}: {link}"
        assert not anchor or anchor in slugs(target), f"{page}: {link}"


def factors(anchor: str) -> set[str]:
    """How many times as fast: the figures of a section of the benchmark's page."""
    heads: list[str] = []
    result = set()
    for line in section("docs/benchmark.md", anchor).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != len(heads):  # the first line of a table, or of none
            heads = cells
        for head, cell in zip(heads, cells, strict=True):
            if head in FACTORS and re.fullmatch(r"[\d.]+", cell):
                value = float(cell)
                result |= {f"{value:.0f}", f"{value:.1f}"}
    return result


def section(page: str, anchor: str) -> str:
    """The text below a heading of the second level."""
    parts = re.split(r"^## +", (ROOT / page).read_text(), flags=re.MULTILINE)
    (text,) = (part for part in parts if slug(part.partition("\n")[0]) == anchor)
    return text


@pytest.mark.parametrize("page", PAGES)
def test_a_figure_of_the_benchmark_is_the_one_on_its_page(page: str) -> None:
    for figures, anchor in FACTOR.findall((ROOT / page).read_text()):
        said = set(re.findall(r"[\d.]+", figures))
        assert said <= factors(anchor), f"{page}: {figures}"


def test_the_front_page_has_figures_of_the_benchmark() -> None:
    result = FACTOR.findall((ROOT / "docs/index.md").read_text())
    assert sum(len(re.findall(r"[\d.]+", one)) for one, _ in result) >= 5


def test_the_tables_of_the_readme_are_those_of_the_benchmark() -> None:
    """Each figure is one of the section that the table names, perhaps rounded."""
    _, *parts = section("README.md", "what-you-gain").split("(docs/benchmark.md#")
    assert len(parts) == 2
    for part in parts:
        of = section("docs/benchmark.md", part.partition(")")[0])
        known = [float(one) for one in re.findall(r"\d+(?:\.\d+)?", of)]
        figures = re.findall(r"(?<=\| )\d+\.\d+(?= \|)", part)
        assert len(figures) >= 12
        for figure in figures:
            half = 0.5 * 10.0 ** -len(figure.partition(".")[2]) + 1e-9
            assert any(abs(one - float(figure)) <= half for one in known), figure


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_is_named_exists(page: str) -> None:
    for path in SOURCE_FILE.findall((ROOT / page).read_text()):
        places = (ROOT, ROOT / "src" / "skipindex", ROOT / "tests")
        assert any((place / path).exists() for place in places), f"{page}: {path}"


def test_the_words_are_plain() -> None:
    found = {
        page: words
        for page in (*PAGES, *SOURCES)
        if (words := FORBIDDEN.findall((ROOT / page).read_text()))
    }
    assert found == {}


@pytest.mark.slow
def test_the_page_of_the_command_line_is_what_it_prints(tmp_path: Path) -> None:
    """But for sizes and times, and for where versions of click break lines."""
    pages = cli_page.page(tmp_path / "events"), cli_page.PAGE.read_text()
    expected, found = (re.sub(r"[\d.,]+", "0", page).split() for page in pages)
    assert found == expected, "run: python -m tests.cli_page"
    assert all(
        f"$ skipindex {command} " in pages[1]
        for command in COMMANDS.keys() - cli_page.WITHOUT
    )


def test_the_page_of_expressions_is_what_the_tables_say() -> None:
    found = catalyst_page.PAGE.read_text()
    assert found == catalyst_page.page(), "run: python -m tests.catalyst_page"


def test_every_public_name_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text()
    named = set(re.findall(r"^::: skipindex\.(\w+)$", page, re.MULTILINE))
    assert set(sx.__all__) - {"__version__"} <= named
    of_table = page.partition("::: skipindex.Table\n")[2].partition(":::")[0]
    members = {n for n in api_members(sx.Table) if not n.startswith("_")}
    listed = set(re.findall(r"\w+", of_table)) | vars(sx.Table).keys()
    assert members - {"of"} <= listed


def test_every_setting_is_on_its_page() -> None:
    """The names that the source reads, in Python and in Java; and no others."""
    source = ROOT / "src" / "skipindex"
    files = [*source.rglob("*.py"), *(source / "spark" / "java").glob("*.java")]
    name = r"(?:spark\.)?skipindex\.[a-z][\w.]*|SKIPINDEX_[A-Z_]+"
    literal = re.compile(f'"({name})"')
    of = {path: {*literal.findall(path.read_text())} for path in files}
    counters = of.pop(source / "planner" / "metrics.py")
    operate = (ROOT / "docs" / "guides" / "operate.md").read_text()
    assert all(f"`{one}`" in operate for one in counters)
    named = set[str]().union(*of.values())
    others = {one for one in named if one.startswith("skipindex.spark.")}
    settings = named - others - {"skipindex.time.", "SKIPINDEX_ICEBERG_JAR"}
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    told = set(re.findall(f"`({name})[`<]", page))
    assert {one for one in told if not one.startswith("skipindex.api.")} == settings


def test_the_picture_of_curves_is_what_they_make() -> None:
    drawn = runpy.run_path(str(ROOT / "docs" / "curves.py"))["picture"]()
    found = (ROOT / "docs" / "curves.svg").read_text("utf-8")
    assert found == drawn, "run: python docs/curves.py"


def test_the_picture_of_files_is_what_plans_say() -> None:
    drawn = runpy.run_path(str(ROOT / "docs" / "files.py"))["picture"]()
    found = (ROOT / "docs" / "files.svg").read_text("utf-8")
    assert found == drawn, "run: python -m docs.files"
    assert "40 of 40 files are read" in drawn
    assert "2 of 40 files are read" in drawn


def test_the_front_page_names_the_version() -> None:
    page = (ROOT / "docs" / "index.md").read_text()
    assert f"This is version {sx.__version__}." in page


def traps() -> Iterator[tuple[str, str]]:
    """The tests of each trap and worked example: its number, and the test's file."""
    for path in (ROOT / "tests").rglob("*.py"):
        file = path.relative_to(ROOT / "tests").as_posix()
        for trap, check in TEST.findall(path.read_text()):
            yield (f"C-{int(trap):02}" if trap else f"{int(check):02}"), file


def test_every_trap_names_its_tests() -> None:
    rows = {}
    for line in (ROOT / "docs" / "traps.md").read_text().splitlines():
        if match := re.match(r"\| (C-\d\d|\d\d) \|", line):
            assert match[1] not in rows, f"{match[1]} is there twice"
            rows[match[1]] = line
    for number, file in sorted(set(traps())):
        assert f"`{file}`" in rows[number], f"{number} lacks {file}"
    for number, row in rows.items():
        for file in re.findall(r"`([\w/]+\.py)`", row):
            assert (ROOT / "tests" / file).exists(), f"{number} names {file}"
