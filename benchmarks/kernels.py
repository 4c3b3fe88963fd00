"""Kernels: what it costs to build, to keep and to ask an index of one file.

python -m benchmarks.kernels [--rows 60000]
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from crc32c import crc32c
from pybloom_live import BloomFilter
from pyroaring import BitMap

import skipindex as sx
from benchmarks._report import Measure, best_seconds, show
from skipindex.expressions.atoms import (
    Atom,
    IntegerSet,
    Matches,
    OneOf,
    Range,
    Wildcard,
)
from skipindex.expressions.domain import domain_of
from skipindex.indexes import EncodedColumn, Index, IndexSpec, index_type
from skipindex.indexes.bit_slices.digits import Shape, pack_slices
from skipindex.indexes.filters.pybloom import fill
from skipindex.storage.parts import MemoryParts
from skipindex.table.summaries import summarize

SPECS: tuple[IndexSpec, ...] = (
    sx.BitSliced(),
    sx.BitSliced(base=10, encoding="equality"),
    sx.Bitmap(),
    sx.RangeBitmap(),
    sx.Bloom(),
    sx.KeySet(),
)
ORDERS = ("random", "clustered", "sorted")


class CheckedParts(MemoryParts):
    """A payload in memory, checked by crc32c as one in a pack is."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        super().__init__(parts)
        self._crcs = [crc32c(part) for part in parts]

    def read(self, start: int, stop: int) -> list[memoryview]:
        """Parts ``start .. stop - 1``."""
        found = super().read(start, stop)
        assert [crc32c(part) for part in found] == self._crcs[start:stop]
        return found


def encoded(values: pa.Array) -> EncodedColumn:
    """The column as every build begins with it: nothing is computed yet."""
    return EncodedColumn("c", values, domain_of(values.type))


def opened(spec: IndexSpec, values: pa.Array) -> Index:
    """The index of ``values``."""
    column = encoded(values)
    parts = CheckedParts(spec.build(column))
    return index_type(spec.kind).open(parts, column.domain, column.n_rows)


def numbers(n: int, n_distinct: int, order: str) -> pa.Array:
    """Integers, some 100 apart."""
    rng = np.random.default_rng(n + n_distinct)
    codes = rng.integers(0, n_distinct, n)
    if order == "clustered":
        codes = np.repeat(codes[: n // 50 + 1], 50)[:n]
    return pa.array((np.sort(codes) if order == "sorted" else codes) * 100)


def cardinalities(n: int) -> list[int]:
    """Few, some, many, and about as many distinct values as rows."""
    return [10, 256, 1000, n]


def best(call: Callable[[], object], *, repeat: int = 5) -> float:
    """Seconds of this thread in the fastest of some runs."""
    return best_seconds(call, rounds=repeat, clock=time.thread_time)


def name_of(spec: IndexSpec) -> str:
    """The kind, and the base of bit slices."""
    base = getattr(spec, "base", None)
    return f"{spec.kind} of base {base}" if base else spec.kind


def show_builds(n: int) -> None:
    """Rows a second and bytes a row, by kind, cardinality and order."""
    measures = []
    for spec in SPECS:
        for n_distinct in cardinalities(n):
            for order in ORDERS:
                values = numbers(n, n_distinct, order)
                seconds = best(lambda: spec.build(encoded(values)), repeat=3)  # noqa: B023 (called here)
                size = sum(map(len, spec.build(encoded(values))))
                what = f"{name_of(spec)}, {n_distinct:,} distinct, {order}"
                rate, note = n / seconds / 1e6, f"{size / n:.3g} bytes a row"
                measures.append(Measure(what=what, figure=rate, unit="M/s", note=note))
    show(f"Rows built a second from Arrow, files of {n:,} rows", measures)


def show_slices(n: int) -> None:
    """Bit slices from codes alone."""
    measures = []
    for n_distinct in cardinalities(n):
        codes = np.random.default_rng(1).integers(0, n_distinct, n).astype(np.uint32)
        shape = Shape.of(2, n_distinct, ranged=True)
        rate = n / best(lambda: pack_slices(codes, shape), repeat=15) / 1e6  # noqa: B023 (called here)
        measures.append(
            Measure(
                what=f"{n_distinct:,} distinct",
                figure=rate,
                unit="M/s",
                limit=100,
                at_least=True,
            )
        )
    title = f"Rows a second from codes to bit slices, base 2, {n:,} rows"
    show(title, measures)


def six_columns(n: int) -> dict[str, tuple[pa.Array, IndexSpec | None]]:
    """Of six shapes, each with the kind that fits it."""
    rng = np.random.default_rng(6)
    cities = np.array([f"UNITED KI{i:03d}" for i in range(250)])
    cents = rng.integers(10_000, 10_000_000, n)
    decimals = pa.array(cents).cast(pa.decimal128(21, 0))
    return {
        "key": (pa.array(np.sort(rng.integers(0, 4 * n, n))), None),
        "part": (pa.array(rng.integers(0, 26_000, n)), sx.BitSliced()),
        "day": (
            pa.array(rng.integers(8000, 10_500, n).astype(np.int32)).cast(pa.date32()),
            sx.BitSliced(),
        ),
        "city": (pa.array(cities[rng.integers(0, 250, n)]), sx.Bitmap()),
        "price": (decimals.cast(pa.decimal128(12, 0)), sx.BitSliced()),
        "hash": (pa.array([f"{v:032x}" for v in cents * 7919]), sx.Bloom()),
    }


def show_six_columns(n: int) -> None:
    """A whole file, against the decode of the same columns."""
    columns = six_columns(n)
    file = io.BytesIO()
    table = pa.table({name: values for name, (values, _) in columns.items()})
    pq.write_table(table, file, store_decimal_as_integer=True)
    source = pa.BufferReader(file.getvalue())

    def decode(name: str) -> pa.ChunkedArray:
        reader = pq.ParquetFile(source)
        return reader.read(columns=[name], use_threads=False).column(name)

    measures = []
    decoded = indexed = filtered = 0.0
    for name, (_, spec) in columns.items():
        chunks = decode(name)

        def index(chunks: Any = chunks, spec: IndexSpec | None = spec) -> None:
            column = encoded(chunks)
            summarize(column)
            if spec is not None:
                spec.build(column)

        decoding = best(lambda: decode(name), repeat=9)  # noqa: B023 (called here)
        seconds = best(index, repeat=9)
        decoded += decoding
        if isinstance(spec, sx.Bloom):
            filtered = seconds
        else:
            indexed += seconds
        kind = "min/max" if spec is None else spec.kind
        note = f"decode {decoding * 1e3:.3g} ms"
        what = f"{kind} of {name}"
        measures.append(Measure(what=what, figure=seconds * 1e3, unit="ms", note=note))
    measures += [
        Measure(
            what="decode and all but bloom, in decodes",
            figure=(decoded + indexed) / decoded,
            limit=5,
        ),
        Measure(what="bloom alone, in decodes", figure=filtered / decoded),
    ]
    show(f"Six columns of a file of {n:,} rows, against their decode", measures)


def show_bloom(n: int) -> None:
    """Filters filled in bulk, against ``BloomFilter.add``."""
    measures = []
    for error_rate in (0.01, 0.001):
        keys = [b"Customer#%09d" % i for i in range(n)]
        texts = [key.decode() for key in keys]

        def add(texts: list[str] = texts, error_rate: float = error_rate) -> None:
            bloom = BloomFilter(len(texts), error_rate)
            for text in texts:
                bloom.add(text)

        one = best(add, repeat=2)
        bulk = best(lambda: fill(BloomFilter(n, error_rate), keys), repeat=5)  # noqa: B023 (called here)
        measures.append(
            Measure(
                what=f"bulk against add, error rate {error_rate}",
                figure=one / bulk,
                limit=5,
                at_least=True,
                note=f"{n / bulk / 1e6:.3g} and {n / one / 1e6:.3g} M keys a second",
            )
        )
    show(f"Bloom filters of {n:,} keys, the bits of BloomFilter.add", measures)


def questions(values: pa.Array) -> Iterator[tuple[str, Atom]]:
    """``=``, IN and ranges over integers."""
    known = np.unique(values.to_numpy())
    middle, count = int(known[len(known) // 2]), len(known)
    ten, thousand = (
        tuple(int(v) for v in known[:: max(1, count // n)][:n]) for n in (10, 1000)
    )
    yield "=", OneOf("c", (middle,))
    yield "= absent", OneOf("c", (middle + 1,))
    yield "IN 10", OneOf("c", ten)
    if count > len(thousand):
        yield "IN 1000", OneOf("c", thousand)
    yield "<", Range("c", None, middle)
    yield "6 %", Range("c", int(known[count // 3]), int(known[count * 40 // 100]))


def show_probes(n: int) -> None:
    """Microseconds from bytes to the rows, crc32c and look-up included."""
    measures = []
    for n_distinct in (10, 1000, n):
        values = numbers(n, n_distinct, "random")
        for spec in SPECS:
            index = opened(spec, values)
            for question, atom in questions(values):
                if index.probe(atom) is None:
                    continue
                what = f"{name_of(spec)}, {n_distinct:,} distinct, {question}"
                took = _microseconds(lambda: index.probe(atom))  # noqa: B023 (called here)
                measures.append(Measure(what=what, figure=took, unit="µs"))
    dense = BitMap(range(0, n, 2)).serialize()
    took = _microseconds(lambda: BitMap.deserialize(dense))
    what = "reference: one bitmap of every other row"
    measures.append(Measure(what=what, figure=took, unit="µs"))
    show(f"Probes from bytes to rows, files of {n:,} rows", measures)


def show_special_probes(n: int) -> None:
    """Key sets of a join, and LIKE in the middle of a text."""
    rng = np.random.default_rng(8)
    wanted = IntegerSet(rng.integers(0, 50 * n, 1_000_000) * 100 + 1)
    keys = numbers(n, n, "random")
    words = np.array(["disk", "fan", "node", "error", "slow", "full", "link", "up"])
    lines = pa.array(
        [" ".join(words[picked]) for picked in rng.integers(0, 8, (n, 6)).tolist()]
    )
    absent = Matches("c", (Wildcard.ANY_TEXT, b" disk full link fan ups"))
    cases: list[tuple[str, IndexSpec, pa.Array, Atom]] = [
        ("1,000,000 keys", sx.KeySet(), keys, OneOf("c", wanted)),
        ("LIKE '%…%'", sx.NGramBloom(n=4), lines, absent),
        ("LIKE '%…%'", sx.TokenBloom(), lines, absent),
        ("LIKE '%…%'", sx.Bitmap(), lines, absent),
    ]
    measures = []
    for name, spec, values, atom in cases:
        seconds = best(lambda: spec.build(encoded(values)), repeat=3)  # noqa: B023 (called here)
        size = sum(map(len, spec.build(encoded(values))))
        index = opened(spec, values)
        note = f"built at {n / seconds / 1e6:.3g} M/s, {size / n:.3g} bytes a row"
        took = _microseconds(lambda: index.probe(atom))  # noqa: B023 (called here)
        measures.append(
            Measure(what=f"{name} on {spec.kind}", figure=took, unit="µs", note=note)
        )
    show(f"Probes of keys and texts, files of {n:,} rows", measures)


def _microseconds(call: Callable[[], object]) -> float:
    return best(lambda: [call() for _ in range(10)], repeat=7) * 1e5


def main(n_rows: int = 60_000) -> None:
    """Print every table, for files of so many rows."""
    show_slices(n_rows)
    show_slices(1_000_000)
    show_six_columns(n_rows)
    show_bloom(n_rows)
    show_probes(n_rows)
    show_special_probes(n_rows)
    show_builds(n_rows)


if __name__ == "__main__":
    main()
