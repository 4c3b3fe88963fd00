"""``python -m ssb.latency --data DIR --out RESULTS``: queries behind a slow store.

The rows of a layout are cut into many files, which an S3 server of this machine serves.
A proxy in front of it delays every request and counts.  ``RESULTS/latency.json`` has a
row for each reader, query and state of the caches.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.moto_server import folder_server
from benchmarks.proxy import proxy
from skipindex.errors import SkipIndexError
from ssb.latency.data import BUCKET, FOLDER, cut, indexed
from ssb.latency.readers import READERS, Store, reader_of
from ssb.latency.run import measure
from ssb.layouts import INDEXES
from ssb.peers.__main__ import add_query_options, layouts_of
from ssb.peers.asked import queries_of
from ssb.progress import progress_lines
from ssb.queries import columns_of
from ssb.report.text import aligned, geometric_mean

SELECTIVE: Final = 0.2
"""The share of the files that a selective query reads at most."""
_LEFT: Final = {0, 1, 2, 3}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, write and print; 1 if an answer is wrong, 2 is a wrong question."""
    parser = argparse.ArgumentParser(prog="python -m ssb.latency", description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="an SSB data set"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="RESULTS")
    parser.add_argument(
        "--layout", default="lineorder_flat_hilbert", metavar="FOLDER",
        help="of the data (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--files", type=int, default=1000, metavar="N", help="default: %(default)s"
    )
    parser.add_argument(
        "--delay", type=float, default=0.03, metavar="SECONDS",
        help="of every request (default: %(default)s)",
    )  # fmt: skip
    add_query_options(parser)
    parser.add_argument(
        "--readers", nargs="+", metavar="NAME", default=list(READERS),
        help=f"default: {', '.join(READERS)}",
    )  # fmt: skip
    parser.add_argument(
        "--repeat", type=int, default=3, metavar="N",
        help="rounds, of which the medians count (default: %(default)s)",
    )  # fmt: skip
    parsed = parser.parse_args(arguments)
    try:
        rows = run(parsed)
    except SkipIndexError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(table_of(rows))
    return 0 if all(row["answer_right"] for row in rows) else 1


def run(parsed: argparse.Namespace) -> list[dict[str, Any]]:
    """Serve the files, and measure; every row is written when it is known."""
    log = progress_lines()
    queries = queries_of(
        parsed.data, parsed.queries, lookups=parsed.lookups, seed=parsed.seed
    )
    readers = {name: reader_of(name) for name in parsed.readers}
    ((layout, files),) = layouts_of(parsed.data, [parsed.layout]).items()
    parsed.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parsed.out, prefix="latency-") as work:
        log(f"cutting {len(files)} files into {parsed.files}")
        cut(files, Path(work, BUCKET, FOLDER), parsed.files)
        with folder_server(Path(work).resolve()) as server:
            log("building the indexes, without delay")
            request = {
                c: INDEXES.get(c, ["bitmap", "bloom"]) for c in columns_of(queries)
            }
            log(indexed(Store(f"{BUCKET}/{FOLDER}", server.options), request))
            with proxy(server.port, parsed.delay) as slow:
                options = {**server.options, "endpoint": slow.endpoint}
                rows = []
                for row in measure(
                    Store(f"{BUCKET}/{FOLDER}", options), slow, readers, queries,
                    layout=layout, repeat=parsed.repeat, log=log,
                ):  # fmt: skip
                    rows.append(row)
                    text = ",\n ".join(map(json.dumps, rows))
                    written = parsed.out / "latency.json"
                    written.write_text(f"[{text}]\n", encoding="utf-8")
                return rows


def table_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """One line a row, and below it the gains of each reader."""
    head = list(rows[0])
    lines = [[_cell(row[name]) for name in head] for row in rows]
    text = aligned([head, *lines], left=_LEFT)
    for reader, state in dict.fromkeys((row["reader"], row["state"]) for row in rows):
        own = [row for row in rows if (row["reader"], row["state"]) == (reader, state)]
        few = [row for row in own if row["files_plan"] <= SELECTIVE * row["files"]]
        text.append(
            f"{reader}, {state}: all {len(own)} queries {_mean(own)}, the {len(few)} "
            f"that read at most {SELECTIVE:.0%} of the files {_mean(few)}"
        )
    return "\n".join(text)


def _mean(rows: Sequence[Mapping[str, Any]]) -> str:
    """The geometric mean of the gains."""
    if not rows:
        return "-"
    return f"{geometric_mean([row['gain'] for row in rows]):.1f} times as fast"


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    sys.exit(main())
