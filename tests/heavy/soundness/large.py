"""The sweep of files of many rows, which small ones stand for only in part.

What is worth its while only where there are many rows (bitmaps of several containers,
questions about the few rows that are left, lists of values that decode all rows, parts
of dictionaries, filters of wide words) is done here as it is done in production.  The
judge is numpy, over the values themselves.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import skipindex as sx
from tests.heavy.soundness.matrix import Result, judge

Mask = npt.NDArray[np.bool_]

REQUESTS: Final[Mapping[str, Any]] = {
    "bitmap": "bitmap",
    "run_length": "run_length",
    "bit_sliced": "bit_sliced",
    "base 10": sx.BitSliced(base=10, encoding="equality"),
    "top slices": sx.BitSliced(max_slices=5),
    "top digits": sx.BitSliced(base=4, max_slices=9),
    "range_bitmap": sx.RangeBitmap(max_bitmaps=40),
    "filters": ["bloom", "exact"],
}
"""By label, what is built on every column."""

MIXED: Final = ("mixed 1", "mixed 4", "mixed 7")
"""Labels of requests that take these by turns, beginning with another one each."""

LABELS: Final = (*REQUESTS, *MIXED)

_NULLS: Final = 0.04


@dataclass(frozen=True)
class Truth:
    """The rows for which a condition is TRUE, and for which it is FALSE."""

    true: Mask
    false: Mask


@dataclass(frozen=True)
class Column:
    """One column of all files: values, where there are any, and how SQL writes one."""

    name: str
    values: npt.NDArray[Any]
    valid: Mask
    literal: Callable[[Any], str]

    def known(self, mask: Mask) -> Truth:
        """A comparison that is ``mask`` where there is a value."""
        return Truth(mask & self.valid, ~mask & self.valid)


class LargeTable:
    """Files of many rows on disk, and the same rows in memory.

    Args:
        folder: where they are written.
        n_files: of the table.
        n_rows: of every file.
        seed: of the values.
    """

    def __init__(self, folder: Path, *, n_files: int, n_rows: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        n = n_files * n_rows
        file = np.repeat(np.arange(n_files), n_rows)
        wide = rng.integers(-(1 << 50), 1 << 50, n)
        numbers = {
            "few": rng.integers(0, 7, n),
            "many": rng.integers(0, 1000, n) * 3,
            "day": file * 9 + np.sort(rng.integers(0, 12, n)),
            "runs": np.repeat(rng.integers(0, 90, -(-n // 40)), 40)[:n],
            "wide": wide,
        }
        texts = {
            "city": rng.integers(0, 250, n),
            "key": rng.integers(0, 1 << 30, n),
        }
        self.columns = [
            Column(name, values, rng.random(n) >= _NULLS, str)
            for name, values in numbers.items()
        ]
        self.columns += [
            Column(
                name,
                np.char.add(f"{name}-", np.char.zfill(values.astype("U"), 10)),
                rng.random(n) >= _NULLS,
                lambda text: f"'{text}'",
            )
            for name, values in texts.items()
        ]
        self.n_files, self.n_rows = n_files, n_rows
        self.folder = folder
        for i in range(n_files):
            rows = slice(i * n_rows, (i + 1) * n_rows)
            arrays = {
                c.name: pa.array(c.values[rows], mask=~c.valid[rows])
                for c in self.columns
            }
            pq.write_table(pa.table(arrays), folder / f"{i:03d}.parquet")

    def counts(self, mask: Mask) -> npt.NDArray[np.int64]:
        """How many rows of every file are in ``mask``."""
        return mask.reshape(self.n_files, self.n_rows).sum(axis=1, dtype=np.int64)

    def request(self, label: str) -> dict[str, Any]:
        """What to build on every column that can have it."""
        specs = list(REQUESTS.values())
        request = {}
        for i, column in enumerate(self.columns):
            turn = int(label.split()[1]) + i if label in MIXED else 0
            spec = specs[turn % len(specs)] if label in MIXED else REQUESTS[label]
            # Key sets are of numbers.
            if spec != REQUESTS["filters"] or column.literal is str:
                request[column.name] = spec
        return request


def condition(rng: random.Random, table: LargeTable, depth: int) -> tuple[str, Truth]:
    """A random condition as SQL, and its truth for every row."""
    if not depth:
        return _leaf(rng, rng.choice(table.columns))
    kind = rng.choice(["AND", "AND", "AND", "OR", "NOT"])
    if kind == "AND" and depth == 1 and rng.random() < 0.7:
        # Few rows are left to the second.
        text, truth = _leaf(rng, rng.choice(table.columns[1:]), "=")
    else:
        text, truth = condition(rng, table, depth - 1)
    if kind == "NOT":
        return f"NOT ({text})", Truth(truth.false, truth.true)
    other, second = condition(rng, table, depth - 1)
    text = f"({text}) {kind} ({other})"
    if kind == "AND":
        return text, Truth(truth.true & second.true, truth.false | second.false)
    return text, Truth(truth.true | second.true, truth.false & second.false)


def _leaf(
    rng: random.Random, column: Column, kind: str | None = None
) -> tuple[str, Truth]:
    def value() -> Any:
        return column.values[rng.randrange(len(column.values))].item()

    name, write, values = column.name, column.literal, column.values
    kinds = ["=", "range", "range", "in", "long in", "not in", "<", "null"]
    match kind or rng.choice(kinds):
        case "=":
            one = value()
            return f"{name} = {write(one)}", column.known(values == one)
        case "range":
            low, high = sorted((value(), value()))
            if rng.random() < 0.6 and column.literal is str:
                high = low + (high - low) // rng.choice([3, 50, 1000, 10**6])
            text = f"{name} BETWEEN {write(low)} AND {write(high)}"
            return text, column.known((values >= low) & (values <= high))
        case "<":
            one = value()
            return f"{name} < {write(one)}", column.known(values < one)
        case "null":
            if rng.random() < 0.5:
                return f"{name} IS NULL", Truth(~column.valid, column.valid)
            return f"{name} IS NOT NULL", Truth(column.valid, ~column.valid)
        case what:
            n = rng.choice([60, 300]) if what == "long in" else rng.choice([2, 5, 12])
            some = sorted({value() for _ in range(n)})
            listed = ", ".join(map(write, some))
            truth = column.known(np.isin(values, some))
            if what == "not in":
                return f"{name} NOT IN ({listed})", Truth(truth.false, truth.true)
            return f"{name} IN ({listed})", truth


def sweep_large(
    *,
    n: int,
    seed: int,
    result: Result,
    labels: Sequence[str] = LABELS,
    n_files: int = 9,
    n_rows: int = 70_000,
) -> None:
    """Check ``n`` conditions with every request, and without statistics too.

    Args:
        n: conditions.
        seed: of the values and of the conditions.
        result: is added to.
        labels: of the requests.
        n_files: of the table; 8 or more are enough for filters that are turned.
        n_rows: of every file.
    """
    with tempfile.TemporaryDirectory() as name:
        table = LargeTable(Path(name), n_files=n_files, n_rows=n_rows, seed=seed)
        rng = random.Random(seed)
        depths = [rng.choice([0, 1, 1, 2, 2, 3]) for _ in range(n)]
        asked = [condition(rng, table, depth) for depth in depths]
        result.n_predicates += n
        everywhere = np.full(n_files, n_rows)
        for label in labels:
            sx.build_indexes(table.folder, table.request(label), workers=1)
            indexed = sx.open_table(table.folder).compact_indexes()
            for i, (text, truth) in enumerate(asked):
                counts = table.counts(truth.true)
                plan = indexed.plan(text, without="minmax" if i % 2 else ())
                tally, failures = judge(
                    plan, counts, counts, everywhere, n_indexed=n_files
                )
                form = "one condition" if text.count("(") < 2 else "trees"
                result.cells["large files", form, label].add(tally)
                where = f"large files, {label}, "
                result.failures += [where + failure[:600] for failure in failures]
            indexed.drop_indexes()
