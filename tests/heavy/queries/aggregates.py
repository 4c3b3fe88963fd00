"""Aggregates and first rows, and the setting that lets indexes answer them.

They come at the end of a script, and are drawn apart from it, so that the scripts of
former seeds stay what they are.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from tests.heavy.queries.scripts import Script, Step
from tests.heavy.queries.tables import Made
from tests.heavy.queries.texts import Draft, Source, Writer

SETTING: Final = "skipindex.answers"
ROWS: Final = "skipindex.rowsFromPlanner"
GROUPS: Final = "skipindex.rowGroups"
OPEN: Final = "spark.sql.files.openCostInBytes"
"""Row groups closer to each other than that are read together."""
_FORMS: Final = (
    "SELECT count(*), min({a}), max({b}), count({a}) FROM v WHERE «0»",
    "SELECT min({a}), max({a}), count(1) + 1 FROM v",
    "SELECT {a} AS g, count(*) AS n FROM v WHERE «0» GROUP BY {a}",
    "SELECT {a}, count(1) FROM v GROUP BY {a} HAVING count(1) > 1",
    "SELECT DISTINCT {a} FROM v WHERE «0»",
    "SELECT count(*) FROM (SELECT {a} AS x, id FROM v WHERE «0») WHERE x IS NOT NULL",
    "SELECT id FROM v WHERE «0» AND id >= (SELECT max(id) - 9 FROM v WHERE «1»)",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM v WHERE «0»)",
)
_TOP: Final = (
    "SELECT id, {a} FROM v WHERE «0» ORDER BY {a}{way}, id LIMIT {n}",
    "SELECT {a} FROM v WHERE «0» ORDER BY {a}{way} LIMIT {n} OFFSET 2",
    "SELECT x FROM (SELECT {a} AS x, id FROM v) ORDER BY x{way}, id DESC LIMIT {n}",
)
_FAMILIES: Final = ("integer", "string", "date", "boolean", "decimal", "moment")
_USES: Final = ("collect", "count", "explain", "cache")


def with_answers(script: Script, made: Made, rng: Random) -> Script:
    """The script with some more queries, and often with answers by indexes.

    A frame that has been planned has its answers, so that a script which uses one
    again after files have changed goes without.
    """
    if script.passed != "text":
        return script
    writer = Writer(rng, (Source("v", made.refs()),))
    steps = [Step("sql", _draft(writer)) for _ in range(rng.choice([0, 1, 1, 2]))]
    settings = dict(script.settings)
    if rng.random() < 0.6 and not _uses_what_is_planned(script):
        settings[SETTING] = "true"
    return replace(script, steps=(*script.steps, *steps), settings=settings)


def with_rows(script: Script, rng: Random) -> Script:
    """The script with limits for the rows and row groups that are read.

    A frame that has been planned has its rows too.
    """
    limit = rng.choice(("0", "300", "5000", "4m", "4m", "4m"))
    if _uses_what_is_planned(script):
        limit = "0"
    groups = rng.choice(("true", "true", "true", "false"))
    cost = rng.choice(("0", "0", "1000", "4194304"))
    drawn = {ROWS: limit, GROUPS: groups, OPEN: cost}
    return replace(script, settings={**script.settings, **drawn})


def _uses_what_is_planned(script: Script) -> bool:
    uses = [i for i, step in enumerate(script.steps) if step.kind in _USES]
    between = script.steps[uses[0] : uses[-1]] if uses else ()
    return any(step.kind in ("change", "write", "do") for step in between)


def _draft(writer: Writer) -> Draft:
    rng, (source,) = writer.rng, writer.sources
    is_top = rng.random() < 0.4
    form = rng.choice(_TOP if is_top else _FORMS)
    text = form.format(
        a=writer.simple(source, *_FAMILIES).text,
        b=writer.simple(source, *_FAMILIES).text,
        way=rng.choice(["", " DESC", " NULLS LAST", " DESC NULLS FIRST"]),
        n=rng.choice([1, 3, 10, 50]),
    )
    conditions = [writer.ask(source.refs, 1) for i in range(2) if f"«{i}»" in text]
    return Draft(text, tuple(conditions), ordered=is_top)
