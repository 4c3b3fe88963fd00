"""Tables that are spoiled, planned and vacuumed: rows and other files stay."""

from __future__ import annotations

import random
import resource
import shutil
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

import skipindex as sx
from skipindex.errors import IndexVersionError, StorageError, TableError
from skipindex.rewrite.vacuum import vacuum
from tests.heavy.catalogue import Told, check_parts
from tests.heavy.hostile.spoil import SPOILS
from tests.heavy.hostile.templates import (
    N_ROWS,
    NOW,
    TABLE,
    TEMPLATES,
    canary,
    copy,
    make,
)
from tests.rewrite.seen import listed

MEMORY: Final = 4 << 30
_TABLES: Final = 10**6
"""Of one seed."""
NEWER: Final = "newer than ours", "does not know", "which version 0.1.0 wrote"
"""What is said of a commit that another version of the library wrote."""
QUERIES: Final = ("x = 5", "x >= 0 AND s = 'v1'", "NOT (i < 2) OR s LIKE 'v%'")


def case(seed: int, templates: Path, work: Path) -> dict[str, Any]:
    """Spoil one table, and see what is wrong after it is planned and vacuumed."""
    rng = random.Random(seed)
    template = rng.choice(list(TEMPLATES))
    place = work / "case"
    if place.exists():
        shutil.rmtree(place)
    copy(templates / template, place)
    table = place / TABLE
    spoiled = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        name = rng.choice(list(SPOILS))
        SPOILS[name](table, rng)
        spoiled.append(name)
    before = canary(place)
    wrong: list[str] = []
    told = {"seed": seed, "template": template, "spoils": spoiled, "wrong": wrong}
    for step in ("plan", "vacuum", "plan", "vacuum now", "plan"):
        try:
            if step == "plan":
                for query in QUERIES:
                    plan = sx.plan_files(query, table=table)
                    plan.explain()
                    assert plan.count_bounds[0] >= 0
            else:
                week = timedelta(days=7)
                vacuum(table, retention=NOW if "now" in step else week)
        except Exception as error:  # noqa: BLE001 (told, whatever it is)
            newer = isinstance(error.__cause__, IndexVersionError)
            refused = "vacuum" in step and isinstance(error, TableError) and newer
            # Rows that only a commit of a newer library counts: no plan may lack them.
            unknown = isinstance(error, StorageError) and "may name" in str(error)
            if refused or (unknown and any(text in str(error) for text in NEWER)):
                told["refused"] = True
                continue
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {str(error)[:200]} ({where.name})"
            wrong.append(f"{step}: {text}")
    if canary(place) != before:
        wrong.append(f"touched: {sorted(_changed(before, canary(place)))}")
    n_rows = sum(_rows(table / path) for path in listed(table))
    if n_rows < N_ROWS:
        wrong.append(f"{N_ROWS - n_rows} rows are gone")
    return told


def _rows(path: Path) -> int:
    try:
        return int(pq.ParquetFile(path).metadata.num_rows)
    except Exception:  # noqa: BLE001 (what a spoil has put there)
        return 0


def _changed(before: Any, after: Any) -> set[str]:
    return {path for path in {*before, *after} if before.get(path) != after.get(path)}


def cases(seed: int, first: int, parts: Sequence[str]) -> Iterator[Told]:
    """A table that is spoiled, planned and vacuumed, in a process with limits."""
    check_parts(parts)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as work:
        templates = Path(work, "templates")
        for name in TEMPLATES:
            make(name, templates / name)
        for number in count(seed * _TABLES + first):
            told = case(number, templates, Path(work))
            yield Told(1, str(told) if told["wrong"] else "")
