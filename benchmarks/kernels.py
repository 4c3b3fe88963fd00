"""Kernels: what it costs to build the indexes of one file, beside a reference."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pybloom_live import BloomFilter

import skipindex as sx
from benchmarks._report import Measure, best_seconds, show
from skipindex.expressions.domain import domain_of
from skipindex.indexes import EncodedColumn, IndexSpec
from skipindex.indexes.bit_slices.digits import Shape, pack_slices
from skipindex.indexes.filters.pybloom import fill
from skipindex.table.summaries import summarize


def encoded(values: pa.Array) -> EncodedColumn:
    """The column as every build begins with it: nothing is computed yet."""
    return EncodedColumn("c", values, domain_of(values.type))


def best(call: Callable[[], object], *, repeat: int = 5) -> float:
    """Seconds of this thread in the fastest of some runs."""
    return best_seconds(call, rounds=repeat, clock=time.thread_time)


def show_slices(n: int) -> None:
    """Bit slices from codes alone."""
    measures = []
    for n_distinct in (10, 256, 1000, n):
        codes = np.random.default_rng(1).integers(0, n_distinct, n).astype(np.uint32)
        shape = Shape.of(2, n_distinct, ranged=True)
        rate = n / best(lambda: pack_slices(codes, shape), repeat=15) / 1e6  # noqa: B023 (called here)
        what = f"{n_distinct:,} distinct"
        measures.append(Measure(what, rate, "M/s", 100, at_least=True))
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
        measures.append(Measure(what, seconds * 1e3, "ms", note=note))
    ratio = (decoded + indexed) / decoded
    measures += [
        Measure("decode and all but bloom, in decodes", ratio, limit=5),
        Measure("bloom alone, in decodes", filtered / decoded),
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
        what = f"bulk against add, error rate {error_rate}"
        note = f"{n / bulk / 1e6:.3g} and {n / one / 1e6:.3g} M keys a second"
        measures.append(Measure(what, one / bulk, "", 5, note, at_least=True))
    show(f"Bloom filters of {n:,} keys, the bits of BloomFilter.add", measures)


def main(n_rows: int = 60_000) -> None:
    """Print every table, for files of so many rows."""
    show_slices(n_rows)
    show_slices(1_000_000)
    show_six_columns(n_rows)
    show_bloom(n_rows)


if __name__ == "__main__":
    main()
