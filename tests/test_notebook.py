"""What notebooks show of tables, plans, advice and reports."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import skipindex as sx
from skipindex.notebook import boxes, listed, record, table
from skipindex.spark.pruning.query_plan import QueryPlan
from tests.tables import put_all

CHROMIUM = shutil.which("chromium")
ODD = "<b>&'\""
"""The name of a column, and a text that is asked for."""


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> sx.Table:
    folder = tmp_path_factory.mktemp("shown")
    put_all(folder, [{"a": [i, i + 40], ODD: ["x", "y"]} for i in range(40)])
    return sx.build_indexes(folder, {"a": "bitmap"}, workers=1).table


def shown(events: sx.Table) -> Iterator[tuple[str, Any]]:
    """An object of each kind that is drawn."""
    plan = events.plan("a = 3")
    yield "table", events
    yield "status", events.status()
    yield "plan", plan
    yield "plan of nothing", events.plan("a = 1000")
    yield "odd plan", events.plan(f"`{ODD}` = '<i>'")
    yield "advice", events.advise()
    yield "advice for queries", events.advise(queries=["a = 3"])
    yield "verified table", events.verify()
    yield "verified plan", plan.verify()
    yield "vacuum", events.vacuum(dry_run=True)
    yield "removal", events.remove_indexes(dry_run=True)
    yield "build", events.refresh_indexes()
    yield "quality", events.layout_quality()
    yield "quality for queries", events.layout_quality(["a = 3"])
    yield "query", QueryPlan("/t", "a = 3", 40, 39, 0.1, plan=plan)
    yield "failed query", QueryPlan("/t", "", 0, 0, 0.0, problem="<none>")


class Elements(HTMLParser):
    """Says whether each element ends, and in its place."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert not {"style", "class"} & {name for name, _ in attrs}
        self.found.append(tag)
        self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.found.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_everything_is_whole_and_has_no_style(events: sx.Table) -> None:
    for name, one in shown(events):
        found = Elements(one._repr_html_())
        assert set(found.found) <= {
            *("div", "p", "b", "pre", "details", "summary"),
            *("table", "tr", "th", "td", "svg", "title", "rect"),
        }, name
        if "plan" not in name and name != "table":
            assert str(one).splitlines()[0] in found.text, name


def test_a_plan_has_a_full_box_for_each_file_that_is_read(events: sx.Table) -> None:
    plan = events.plan("a IN (3, 4, 7)")
    html = plan._repr_html_()
    assert "3 of 40 files for: a IN (3, 4, 7)" in html
    drawing = html[html.index("<svg") : html.index("</svg>")]
    opacity = re.findall(r'fill-opacity="([0-9.]+)"', drawing)
    assert (len(opacity), opacity.count("1")) == (40, 3)
    names = [file.path for file in events.files]
    full = [name for name, one in zip(names, opacity, strict=True) if one == "1"]
    assert full == plan.paths


def test_a_plan_of_some_rows_shows_the_files_that_it_reads(events: sx.Table) -> None:
    plan = events.plan("a >= 0", limit=3)
    assert 0 < len(plan.paths) < 40
    html = plan._repr_html_()
    drawing = html[html.index("<svg") : html.index("</svg>")]
    assert drawing.count('fill-opacity="1"') == len(plan.paths)
    assert f"{len(plan.paths)} of 40 files for" in html
    assert f"files to read ({len(plan.paths)})" in html


def test_very_many_files_share_boxes() -> None:
    drawn = boxes([i % 100 == 0 for i in range(12_345)], "many")
    opacity = [float(one) for one in re.findall(r'opacity="([0-9.]+)"', drawn.svg)]
    assert len(opacity) == 950
    assert set(opacity) == {0.15}
    assert boxes([], "none").svg.count("<rect") == 0


def test_long_lists_are_cut() -> None:
    assert listed(map(str, range(1234))).endswith("19\nand 1,214 more</pre>")
    html = record("found\nmore", {"n": 1200, "names": ("<a>",), "none": None, "m": {}})
    assert "<p><b>found</b></p>" in html
    assert '<td>n</td><td align="right">1,200</td>' in html
    assert "<summary>names (1)</summary><pre>&lt;a&gt;</pre>" in html
    assert "True" in table((), [(True,)])


def test_an_error_shows_the_cell_and_the_message(events: sx.Table) -> None:
    """As IPython asks for it, with its own frames around that of the cell."""
    cell = compile("events.plan('aa = 3')", "/tmp/ipykernel_7/1.py", "exec")
    runner = "def run(cell, events):\n    exec(cell, {'events': events})\n"
    shell: dict[str, Any] = {}
    path = "/lib/python3/site-packages/IPython/core/interactiveshell.py"
    exec(compile(runner, path, "exec"), shell)
    with pytest.raises(sx.PredicateError) as raised:
        shell["run"](cell, events)
    shown = [line for line in raised.value._render_traceback_() if __file__ not in line]
    assert shown[0] == '  File "/tmp/ipykernel_7/1.py", line 1, in <module>'
    assert shown[1].startswith("skipindex.errors.PredicateError: no column 'aa' in")
    assert len(shown) == 2


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
def test_a_browser_shows_the_same(events: sx.Table, tmp_path: Path) -> None:
    parts = [one._repr_html_() for _, one in shown(events)]
    page = tmp_path / "page.html"
    page.write_text(f"<meta charset='utf-8'><body>{''.join(parts)}</body>")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    done = subprocess.run(
        [str(CHROMIUM), *options, page.as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    expected = Elements("".join(parts))
    body = done.stdout[done.stdout.index("<body>") :].replace("<tbody>", "")
    seen = Elements(body[6 : body.index("</body>")].replace("</tbody>", ""))
    assert seen.found == expected.found
    assert seen.text == expected.text
