"""What a commit costs: ``python -m benchmarks.commits [--files N] [--appends N]``.

With ``--tables`` the appends are those of a table that is opened from its log: rows are
written and indexed, committed under hidden names, published, and the table is opened
and planned again.  The files that were there before are nowhere but in the log.

A log of synthetic statistics and packs, to which files are appended one after another.
A read after each hundredth append is compared with what was appended.  Printed are CPU
seconds and bytes of the first and last appends, and the space that they take before
and after a vacuum.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import resource
import sys
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import skipindex as sx
from benchmarks._report import Measure, show
from skipindex.build.builder import index_files
from skipindex.build.runners import LocalRunner
from skipindex.expressions.domain import Domain
from skipindex.log import Snapshot, read_snapshot
from skipindex.log.manifest import Manifest, StatsColumn, summary_type
from skipindex.log.properties import TableProperties
from skipindex.rewrite.arrival import arrive
from skipindex.rewrite.vacuum import vacuum
from skipindex.source import commit
from skipindex.source.folder.exclusive import DECLARED
from skipindex.source.folder.new_files import SaveMode
from skipindex.storage.blobs import PackInfo
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import FOLDER, LOG, MANIFESTS
from skipindex.storage.pack import BlobEntry, BlobMeta
from ssb.files import size_of

N_NUMBERS = 7
N_TEXTS = 3
PER_PACK = 8192
"""Files of a pack of the table, as merging leaves them."""
KINDS = ("bitmap", "bloom")


def files_of(first: int, n: int, *, per_pack: int = PER_PACK) -> Manifest:
    """The manifest that a build of files ``first`` to ``first + n`` would return."""
    rng = np.random.default_rng(first)
    every = np.arange(first, first + n)
    number = np.arange(n) // per_pack
    lists = {
        name: pa.ListArray.from_arrays(
            np.arange(n + 1, dtype=np.int32), values.astype(np.int32)
        )
        for name, values in (("packs", number), ("slots", np.arange(n) % per_pack))
    }
    known = {
        "path": pa.array([f"day={i // 100}/part-{i:08}.parquet" for i in every]),
        "size": rng.integers(10**6, 10**8, n),
        "mtime": rng.integers(10**18, 2 * 10**18, n),
        "footer_crc": rng.integers(0, 1 << 32, n).astype(np.uint32),
        "n_rows": rng.integers(10**5, 10**6, n),
        **lists,
    }
    schema = Manifest.empty().files.schema
    files = pa.table(
        {
            field.name: known.get(field.name, pa.nulls(n, field.type))
            for field in schema
        },
        schema=schema,
    )
    columns = [*(f"n{i}" for i in range(N_NUMBERS)), *(f"s{i}" for i in range(N_TEXTS))]
    stats = {name: _statistics(name, rng, n) for name in columns}
    packs = [_pack(first + PER_PACK * i, columns) for i in range(int(number[-1]) + 1)]
    return Manifest(files, stats, tuple(packs))


def _statistics(name: str, rng: np.random.Generator, n: int) -> StatsColumn:
    domain = Domain("int" if name.startswith("n") else "string")
    low = rng.integers(0, 1 << 40, n)
    high = low + rng.integers(0, 1 << 30, n)
    bounds = [pa.array(values) for values in (low, high)]
    if domain.name == "string":
        words = ([f"name-{i:013}" for i in values] for values in (low, high))
        bounds = [pa.array(texts, pa.large_binary()) for texts in words]
    zeros, yes = pa.array(np.zeros(n, np.int64)), pa.array(np.ones(n, np.bool_))
    kind = summary_type(domain)
    values = pa.StructArray.from_arrays(
        [zeros, zeros, *bounds, yes, yes], fields=list(kind)
    )
    return StatsColumn(domain.tag, values)


def _pack(number: int, columns: Sequence[str]) -> PackInfo:
    blobs = [
        BlobEntry(
            BlobMeta(kind, 1, name, "int", {"kind": kind}), 4096 * i, 4096, number
        )
        for i, (name, kind) in enumerate((n, k) for n in columns for k in KINDS)
    ]
    name = hashlib.sha256(str(number).encode()).hexdigest()[:32] + ".puffin"
    return PackInfo(name, 4096 * (len(blobs) + 1), tuple(blobs))


def append(location: Location, fresh: Manifest, known: Snapshot | None) -> Snapshot:
    """Commit these files too."""

    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        return base.manifest.merge(fresh), base.properties

    return commit(location, change, operation="append", known=known)


def is_right(found: Manifest, n_files: int, n_appends: int) -> bool:
    """Whether the manifest says of each file what was appended."""
    last = n_files + n_appends
    expected = Manifest.concat(
        [files_of(0, n_files), *(files_of(i, 1) for i in range(n_files, last))]
    )
    found, expected = (
        one.take(np.argsort(one.files["path"].to_numpy(zero_copy_only=False)))
        for one in (found, expected)
    )
    names = [name for name in found.files.column_names if name != "packs"]
    served = [[pack.name for pack in one.packs] for one in (found, expected)]
    refs, others = found.refs(), expected.refs()
    return bool(
        found.files.select(names).equals(expected.files.select(names))
        and all(
            found.stats[name].plain.equals(column.plain)
            for name, column in expected.stats.items()
        )
        and (np.array(served[0])[refs.packs] == np.array(served[1])[others.packs]).all()
    )


NEW: Final = 10**15
"""Values from here on are in appended files alone."""


def columns_of(i: int) -> dict[str, list[object]]:
    """The two rows of append ``i``."""
    return {
        **{f"n{k}": [NEW + i, NEW + i] for k in range(N_NUMBERS)},
        **{f"s{k}": [f"new-{i:013}"] * 2 for k in range(N_TEXTS)},
    }


def grown(table: sx.Table, i: int) -> sx.Table:
    """The table with one more file, as ``skipindex.append`` adds it, without Spark."""
    root, opened = Path(table.state.location.root), table.refresh()

    def write(staged: str) -> int:
        folder = root / staged / f"day={i % 1000}"
        folder.mkdir(parents=True)
        name = "part-00000-x.c000.snappy.parquet"
        pq.write_table(pa.table(columns_of(i)), folder / name)
        return 2

    def index(files: Sequence[FileInfo]) -> tuple[Manifest, TableProperties]:
        request = {"*": "minmax", "n0": ["bitmap"]}
        made = index_files(opened.state.over(files), request, runner=LocalRunner(1))
        return made, TableProperties()

    arrive(
        table.state.location,
        SaveMode.APPEND,
        write=write,
        index=index,
        known=opened.state.snapshot,
    )
    return opened.refresh()


def is_planned(table: sx.Table, i: int) -> bool:
    """Whether plans find the file of append ``i``, and no other, and none too much."""
    one = table.plan(f"n0 = {NEW + i}").paths
    text = table.plan(f"s1 = 'new-{i:013}'").paths
    return len(one) == 1 and one == text and f"day={i % 1000}/" in one[0]


def measure_tables(folder: Path, n_files: int, n_appends: int) -> list[Measure]:
    """Append files by the path that users take, but for Spark."""
    location = Location(str(folder))
    base = files_of(0, n_files)
    first = folder / base.files["path"][0].as_py()
    first.parent.mkdir(parents=True)
    pq.write_table(pa.table(columns_of(0)), first)  # what the columns are taken from
    mark = TableProperties(layout={"cluster_by": []}, exclusive=DECLARED)
    commit(location, lambda _: (base, mark), operation="build")
    whole = size_of(folder)
    table = sx.open_table(folder, trust="log")
    seconds, n_segments, wrong = [], [], 0
    sizes = [size_of(folder)]
    for i in range(n_appends):
        began = _cpu()
        table = grown(table, i)
        seconds.append(_cpu() - began)
        n_segments.append(len(table.state.snapshot.segments))
        if (i + 1) % 100 == 0 or i + 1 == n_appends:
            again = sx.open_table(folder, trust="log")
            wrong += len(again) != n_files + i + 1 or again.notes != ()
            wrong += sum(not is_planned(again, k) for k in range(0, i + 1, 37))
            wrong += len(again.plan(f"n3 >= {NEW}").paths) != i + 1
            sizes.append(size_of(folder))
    some = min(100, max(1, n_appends // 2))
    firsts, lasts = (float(np.median(x)) for x in (seconds[:some], seconds[-some:]))
    newest = max((folder / LOG).iterdir()).stat().st_size
    began = _cpu()
    sx.open_table(folder, trust="log")
    cold = _cpu() - began
    per_append = (sizes[-1] - whole) / n_appends
    return [
        *_growth(firsts, lasts, max(seconds)),
        Measure(what="log before, bytes", figure=whole / 1e6, unit="MB"),
        Measure(what="an append, bytes", figure=per_append / 1e3, unit="kB"),
        Measure(what="newest commit, bytes", figure=newest / 1e3, unit="kB"),
        Measure(what="most segments", figure=max(n_segments)),
        Measure(what="open, CPU", figure=1e3 * cold, unit="ms"),
        Measure(what="plans that were wrong", figure=wrong, limit=0),
    ]


def _growth(first: float, last: float, most: float) -> list[Measure]:
    """What the first and the last appends took, and the dearest; given in seconds."""
    return [
        Measure(what="first appends, CPU each", figure=1e3 * first, unit="ms"),
        Measure(
            what="last appends, CPU each",
            figure=1e3 * last,
            unit="ms",
            limit=2e3 * first,
            note="twice the first",
        ),
        Measure(what="dearest append, CPU", figure=1e3 * most, unit="ms"),
    ]


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(folder: Path, n_files: int, n_appends: int) -> list[Measure]:
    """Append files one by one, and look what each append took."""
    location = Location(str(folder))
    base = files_of(0, n_files)
    began = _cpu()
    known = append(location, base, None)
    first_build = _cpu() - began
    whole = size_of(folder)
    seconds, n_bytes, n_segments = [], [], []
    wrong = 0
    for i in range(n_files, n_files + n_appends):
        fresh = files_of(i, 1)
        before = size_of(folder)
        began = _cpu()
        known = append(location, fresh, known)
        seconds.append(_cpu() - began)
        n_bytes.append(size_of(folder) - before)
        n_segments.append(len(known.segments))
        done = i - n_files + 1
        if done % 100 == 0 or done == n_appends:
            read = read_snapshot(location)
            wrong += not is_right(read.manifest, n_files, done)
            gc.collect()  # what the check leaves is not collected in an append
    began = _cpu()
    opened = read_snapshot(location)
    cold = _cpu() - began
    began = _cpu()
    read_snapshot(location, known=opened)
    again = _cpu() - began
    full = size_of(folder)
    vacuum(location, retention=timedelta(0))
    left, commits = size_of(folder / MANIFESTS), size_of(folder / LOG)
    at_once = len(known.manifest.to_bytes())
    some = min(100, max(1, n_appends // 2))
    first, last = (float(np.mean(x)) for x in (seconds[:some], seconds[-some:]))
    first_bytes, last_bytes = (
        float(np.mean(x)) for x in (n_bytes[:some], n_bytes[-some:])
    )
    return [
        Measure(what="first build, CPU", figure=first_build, unit="s"),
        *_growth(first, last, max(seconds)),
        Measure(what="cheapest append, CPU", figure=1e3 * min(seconds), unit="ms"),
        Measure(what="first build, bytes", figure=whole / 1e6, unit="MB"),
        Measure(what="first appends, bytes each", figure=first_bytes / 1e3, unit="kB"),
        Measure(what="last appends, bytes each", figure=last_bytes / 1e3, unit="kB"),
        Measure(what="most segments", figure=max(n_segments)),
        Measure(what="log and segments", figure=full / 1e6, unit="MB"),
        Measure(
            what="segments after a vacuum",
            figure=left / 1e6,
            unit="MB",
            limit=2 * at_once / 1e6,
            note="twice one segment of all",
        ),
        Measure(
            what="commits after a vacuum",
            figure=commits / 1e6,
            unit="MB",
            note="those of the last hour stay",
        ),
        Measure(what="open, CPU", figure=1e3 * cold, unit="ms"),
        Measure(
            what="open again, CPU", figure=1e3 * again, unit="ms", limit=1e3 * cold
        ),
        Measure(what="reads that were wrong", figure=wrong, limit=0),
    ]


def main(arguments: Sequence[str] = ()) -> None:
    """Measure a table of one size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--appends", type=int, default=1000)
    parser.add_argument("--tables", action="store_true", help="opened from their log")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as work:
        table = Path(work) / "table"
        (table / FOLDER).mkdir(parents=True)
        run = measure_tables if given.tables else measure
        found = run(table, given.files, given.appends)
    show(f"{given.appends} appends to {given.files} files", found)


if __name__ == "__main__":
    main(sys.argv[1:])
