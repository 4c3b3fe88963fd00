"""What a plan takes beside reading the files: ``python -m benchmarks.price``.

Whole plans over many files, whatever the condition, with short and long lists: CPU
seconds of one process, beside those of reading the same files with pyarrow.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import skipindex as sx
from benchmarks._report import Measure, best_seconds, show

DISTINCT: Final = 10_000
"""Values of a file."""
ROWS: Final = 12_000
SPACE: Final = 1 << 40
"""Values are drawn from so many, so that lists and files have hardly one in common."""
KEYS: Final = 1_000_000
"""Keys of a join, of which each file has many."""
INDEXES: Final = {"b": "bit_sliced", "k": "exact"} | dict.fromkeys("asd", "bitmap")


def write(folder: Path, n_files: int) -> sx.Table:
    """A table of files of near-unique values, and its indexes."""
    rng = np.random.default_rng(DISTINCT)
    for i in range(n_files):
        values = rng.integers(0, SPACE, DISTINCT)
        some = values[rng.integers(0, DISTINCT, ROWS)]
        days = pa.array((some % 10_000_000).astype("datetime64[s]").astype("M8[us]"))
        columns = {
            "a": some,
            "b": some // 1000,
            "k": some % KEYS,
            "s": pa.array([f"Name {v:010x}" for v in some.tolist()]),
            "d": days,
        }
        pq.write_table(pa.table(columns), folder / f"{i:06}.parquet")
    return sx.build_indexes(folder, INDEXES, workers=1).table


def leaves(n: int) -> Iterator[tuple[str, str]]:
    """A name and a condition for every kind of leaf, with lists of ``n`` values."""
    rng = np.random.default_rng(n)
    numbers = rng.integers(0, SPACE, n).tolist()
    ints = ", ".join(map(str, numbers))
    texts = ", ".join(f"'Name {v:010x}'" for v in numbers)
    lower = ", ".join(f"'name {v:010x}'" for v in numbers)
    keys = ", ".join(str(v % KEYS) for v in numbers)
    moments = (str(np.datetime64(v % 10_000_000, "s")) for v in numbers)
    clocks = ", ".join(f"TIMESTAMP_NTZ '{text.replace('T', ' ')}'" for text in moments)
    yield "a IN (…)", f"a IN ({ints})"
    yield "a NOT IN (…)", f"a NOT IN ({ints})"
    yield "b IN (…), bit_sliced", f"b IN ({ints})"
    yield "k IN (…), exact", f"k IN ({keys})"
    yield "s IN (…)", f"s IN ({texts})"
    yield "s NOT IN (…)", f"s NOT IN ({texts})"
    yield "d IN (…)", f"d IN ({clocks})"
    yield "CAST(a AS DECIMAL(20)) IN (…)", f"CAST(a AS DECIMAL(20)) IN ({ints})"
    yield "a % 1000003 IN (…)", f"a % 1000003 IN ({ints})"
    yield "lower(s) IN (…)", f"lower(s) IN ({lower})"
    yield "greatest(a, 5) IN (…)", f"greatest(a, 5L) IN ({ints})"
    yield "CASE … IN (…)", f"CASE WHEN a > 5 THEN 1 ELSE 2 END = 1 AND a IN ({ints})"


def conditions() -> Iterator[tuple[str, str]]:
    """A name and a condition for every sort of plan that might take long."""
    short = [
        *("a = 5", "s = 'x'", "a > 5 AND s LIKE 'x%'", "s LIKE '%zz%'", "b > a"),
        *("lower(s) = 'name zzz'", "length(s) = 14", "a % 1000007 = 1000008"),
        *("substring(s, 3, 4) = 'zzzz'", "CAST(a AS STRING) LIKE '%x%'"),
        *("upper(trim(s)) LIKE '%QQ%'", "date_format(d, 'yyyy') = '1950'"),
        "lower(s) = 'x' OR length(s) = 3 OR a % 7 = 9 OR upper(s) = 'y'",
        *("s LIKE '%a%e%'", "s NOT LIKE '%a%e%'", "s LIKE '____%'", "s LIKE '_%_'"),
    ]
    yield from ((text, text) for text in short)
    branches = " ".join(f"WHEN a = {i} THEN {i % 9}" for i in range(300))
    yield "CASE of 300 branches", f"CASE {branches} END = 5"
    nested = " ".join(f"WHEN lower(s) = 'x{i}' THEN {i}" for i in range(100))
    yield "CASE of 100 functions", f"CASE {nested} ELSE 0 END = 7"
    yield "300 alternatives", " OR ".join(f"a = {i} AND b > {i}" for i in range(300))
    pairs = (f"a = {i} AND b > {i}" for i in range(10_000))
    yield "10,000 alternatives", " OR ".join(pairs)
    yield "LIKE of 20,000 _", f"s LIKE '{'_' * 20_000}'"
    for n in (1_000, 10_000, 100_000):
        for name, text in leaves(n):
            yield f"{name} of {n:,}", text


def cpu(call: Callable[[], object]) -> float:
    """The CPU seconds of a call."""
    return best_seconds(call, rounds=1, warm_up=False, clock=time.process_time)


def plans(folder: Path, n_files: int) -> Iterator[Measure]:
    """The CPU of a first and a second plan, whichever is more; none is beyond reading.

    Nor is any beyond three seconds.
    """
    table = write(folder, n_files)

    def read() -> None:
        for path in table.paths:
            pq.read_table(folder / path, use_threads=False)

    reading = cpu(read)
    yield Measure("reading all files", reading, "s")
    for name, text in conditions():
        taken = [cpu(lambda: table.plan(text)) for _ in range(2)]  # noqa: B023 (called here)
        plan = table.plan(text)
        left_out = [stage.name for stage in plan.stages if "not worth" in stage.note]
        if any("not tested" in note for note in plan.notes):
            left_out.append("tests of values")
        note = f"{len(plan.paths)} files kept, left out: {', '.join(left_out) or '-'}"
        yield Measure(name, max(taken), "s", min(reading, 3.0), note)


def main(arguments: Sequence[str] = ()) -> int:
    """Print the table; 1 if a plan takes longer than reading, or than 3 s."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        measures = list(plans(Path(name), options.files))
    show(f"CPU of a plan over {options.files:,} files of {ROWS:,} rows", measures)
    return int(any(one.verdict == "missed" for one in measures))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
