"""What a plan takes beside reading the files: ``python -m benchmarks.price``.

Two tables.  The first has the price of every kind of leaf for one file, by the number
of distinct values in the file and of values in the list.  The second has whole plans
over many files, whatever the condition.  Both are CPU seconds of one process, beside
those of reading the same files with pyarrow.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import skipindex as sx

DISTINCT: Final = (1, 100, 10_000)
LISTED: Final = (1, 100, 10_000, 100_000)
ROWS: Final = 12_000
SPACE: Final = 1 << 40
"""Values are drawn from so many, so that lists and files have hardly one in common."""
INDEXES: Final = {"a": "bitmap", "b": "bit_sliced", "s": "bitmap", "d": "bitmap"}


def write(folder: Path, *, n_files: int, distinct: int) -> sx.Table:
    """A table of files with so many distinct values, and its indexes."""
    rng = np.random.default_rng(distinct)
    for i in range(n_files):
        values = rng.integers(0, SPACE, distinct)
        some = values[rng.integers(0, distinct, ROWS)]
        days = pa.array((some % 10_000_000).astype("datetime64[s]").astype("M8[us]"))
        columns = {
            "a": some,
            "b": some // 1000,
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
    moments = (str(np.datetime64(v % 10_000_000, "s")) for v in numbers)
    clocks = ", ".join(f"TIMESTAMP_NTZ '{text.replace('T', ' ')}'" for text in moments)
    yield "a IN (…)", f"a IN ({ints})"
    yield "a NOT IN (…)", f"a NOT IN ({ints})"
    yield "b IN (…), bit_sliced", f"b IN ({ints})"
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
        *("a = 5", "s = 'x'", "a > 5 AND s LIKE 'x%'", "s LIKE '%zz%'"),
        *("lower(s) = 'name zzz'", "length(s) = 14", "a % 1000007 = 1000008"),
        *("substring(s, 3, 4) = 'zzzz'", "CAST(a AS STRING) LIKE '%x%'"),
        *("upper(trim(s)) LIKE '%QQ%'", "date_format(d, 'yyyy') = '1950'"),
        "lower(s) = 'x' OR length(s) = 3 OR a % 7 = 9 OR upper(s) = 'y'",
    ]
    yield from ((text, text) for text in short)
    likes = ("s LIKE '%a%e%'", "s NOT LIKE '%a%e%'", "s LIKE '____%'", "s LIKE '_%_'")
    yield from ((text, text) for text in likes)
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


def cpu(call: Callable[..., object], *arguments: object, **options: object) -> float:
    """The CPU seconds of a call."""
    began = time.process_time()
    call(*arguments, **options)
    return time.process_time() - began


def read(table: sx.Table, folder: Path) -> None:
    """Read all files, as one core does."""
    for path in table.paths:
        pq.read_table(folder / path, use_threads=False)


def sweep(folder: Path, n_files: int) -> None:
    """Print the price of every kind of leaf, for one file."""
    print(f"CPU of a second plan, ms a file of {ROWS:,} rows (times that of reading)\n")
    listed = " | ".join(f"{n:,}" for n in LISTED)
    print(f"| distinct | reading | leaf | {listed} |")
    print("|---|---|---|" + "---|" * len(LISTED))
    for distinct in DISTINCT:
        own = folder / f"d{distinct}"
        own.mkdir()
        table = write(own, n_files=n_files, distinct=distinct)
        reading = min(cpu(read, table, own) for _ in range(2))
        rows: dict[str, list[str]] = {}
        for n in LISTED:
            for name, text in leaves(n):
                parsing = cpu(table.plan, text, kinds=["minmax"])
                table.plan(text)
                taken = cpu(table.plan, text) - parsing
                taken = max(taken, 0.0)
                cell = f"{taken / n_files * 1e3:.2f} ({taken / reading:.2f})"
                rows.setdefault(name, []).append(cell)
        for name, cells in rows.items():
            shown = f"{reading / n_files * 1e3:.1f} ms"
            print(f"| {distinct:,} | {shown} | `{name}` | {' | '.join(cells)} |")


def plans(folder: Path, n_files: int) -> bool:
    """Print the CPU of plans over many files; whether none is beyond reading or 3 s."""
    own = folder / "many"
    own.mkdir()
    table = write(own, n_files=n_files, distinct=10_000)
    reading = cpu(read, table, own)
    print(f"\n{n_files:,} files; reading them takes {reading:.2f} s of CPU\n")
    print("| condition | first plan, s | second, s | files kept | left out |")
    print("|---|---|---|---|---|")
    is_fine = True
    for name, text in conditions():
        first = cpu(table.plan, text)
        second = cpu(table.plan, text)
        plan = table.plan(text)
        stages = [stage.name for stage in plan.stages if "not worth" in stage.note]
        some = [note for note in plan.notes if "not tested" in note]
        left_out = ", ".join([*stages, *(["tests of values"] if some else [])])
        kept = np.count_nonzero(plan.kept)
        print(f"| `{name}` | {first:.2f} | {second:.2f} | {kept} | {left_out} |")
        is_fine &= max(first, second) <= min(reading, 3.0)
    return is_fine


def main() -> int:
    """Print both tables; 1 if a plan takes longer than reading, or than 3 s."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000, help="of the second table")
    parser.add_argument("--sample", type=int, default=20, help="files of the first one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        sweep(Path(name), options.sample)
        return int(not plans(Path(name), options.files))


if __name__ == "__main__":
    raise SystemExit(main())
