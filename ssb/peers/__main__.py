"""``python -m ssb.peers --data DIR --out RESULTS``: skipindex beside other systems.

Every folder ``lineorder_flat…`` of the data is a layout.  ``RESULTS/peers.json`` has
what each peer keeps for each query, ``RESULTS/peer_builds.json`` what it needed for
that.  A run of some peers leaves the results of the others as they are.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from skipindex.errors import SkipIndexError
from ssb import SsbError
from ssb.peers.run import ORACLE, PEERS, Results, Rows, choose, run_peers
from ssb.progress import progress_lines
from ssb.queries import LOOKUPS, QUERIES
from ssb.report import aligned

_FLAT: Final = "lineorder_flat"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, write and print; 1 if an answer is wrong, 2 is a wrong question."""
    parser = argparse.ArgumentParser(prog="python -m ssb.peers", description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="an SSB data set"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="RESULTS")
    parser.add_argument("--queries", nargs="+", metavar="NAME", help="default: all")
    parser.add_argument(
        "--peers", nargs="+", metavar="NAME", choices=list(PEERS), default=list(PEERS),
        help=f"default: all of {', '.join(PEERS)}",
    )  # fmt: skip
    parser.add_argument(
        "--layouts", nargs="+", metavar="FOLDER", help="of the data; default: all"
    )
    parser.add_argument(
        "--work", type=Path, metavar="DIR",
        help="where peers write, on the disk of the data; default: for the time being",
    )  # fmt: skip
    parser.add_argument("--repeat", type=int, default=5, metavar="N")
    parsed = parser.parse_args(arguments)
    try:
        layouts = layouts_of(parsed.data, parsed.layouts)
        queries = choose((*QUERIES, *LOOKUPS), parsed.queries)
        parsed.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=parsed.out, prefix="peers-") as scratch:
            results = run_peers(
                layouts, queries, parsed.work or Path(scratch).resolve(),
                names=parsed.peers, repeat=parsed.repeat, log=progress_lines(),
            )  # fmt: skip
    except SkipIndexError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write_merged(parsed.out / "peers.json", results.asked)
    missing = [missing_row(name, why) for name, why in results.missing.items()]
    write_merged(parsed.out / "peer_builds.json", [*results.builds, *missing])
    print(table_of(results))
    return 1 if any(row["answer_right"] is False for row in results.asked) else 0


def layouts_of(
    data: Path, names: Sequence[str] | None = None
) -> dict[str, Sequence[Path]]:
    """By name, the Parquet files of every flat layout of a data set.

    Raises:
        SsbError: there is none, or one of ``names`` is not there.
    """
    folders = (
        sorted(data.resolve().glob(f"{_FLAT}*"))
        if names is None
        else [data.resolve() / name for name in names]
    )
    found: dict[str, Sequence[Path]] = {}
    for folder in folders:
        files = sorted(path for path in folder.glob("[!._]*") if path.is_file())
        if files:
            name = folder.name.removeprefix(_FLAT).lstrip("_") or "unordered"
            found[name] = files
        elif names is not None:
            raise SsbError(f"no files in {folder}: accepted is a layout of the data")
    if not found:
        raise SsbError(f"no folder {_FLAT!r} in {data}: accepted is an SSB data set")
    return found


def write_merged(path: Path, rows: Rows) -> None:
    """Write the rows, and those that are there of other peers and layouts.

    A peer that is missing now keeps what it answered in another environment.
    """
    stored: Rows = json.loads(path.read_text("utf-8")) if path.exists() else []
    answered = {row["peer"] for row in stored if row["layout"]}
    new = [row for row in rows if row["layout"] or row["peer"] not in answered]
    replaced = {(row["peer"], layout) for row in new for layout in (row["layout"], "")}
    old = [row for row in stored if (row["peer"], row["layout"]) not in replaced]
    text = ",\n ".join(json.dumps(row, ensure_ascii=False) for row in [*old, *new])
    path.write_text(f"[{text}]\n", encoding="utf-8")


def missing_row(name: str, why: str) -> dict[str, Any]:
    """The row of a peer that did not run, among what the others needed."""
    figures = {"build_seconds": None, "index_MB": None, "note": f"missing: {why}"}
    return {"peer": name, "version": "", "layout": "", **figures}


def table_of(results: Results) -> str:
    """One line a layout and peer, and one for each that is missing.

    What a peer cannot say it reads whole, and so it counts here.
    """
    head = ["layout", "peer", "version", "unit", "kept", "of", "cannot say"]
    lines = [[*head, "right", "plan ms", "max", "build s", "index MB"]]
    costs = {(row["layout"], row["peer"]): row for row in results.builds}
    keys = dict.fromkeys((row["layout"], row["peer"]) for row in results.asked)
    for layout, peer in keys:
        rows = [r for r in results.asked if (r["layout"], r["peer"]) == (layout, peer)]
        said = [row for row in rows if row["kept"] is not None]
        of = max((row["of"] for row in said), default=0)
        kept = sum(row["kept"] for row in said) + of * (len(rows) - len(said))
        times = [row["planning_ms"] for row in said if row["planning_ms"] is not None]
        cost = costs.get((layout, peer), {})
        spent = [cost.get("build_seconds"), cost.get("index_MB")]
        n_right = sum(row["answer_right"] for row in said)
        lines.append([
            layout, peer, rows[0]["version"], rows[0]["unit"],
            f"{kept:,}", f"{of * len(rows):,}", f"{len(rows) - len(said)}",
            "" if peer == ORACLE else f"{n_right} of {len(said)}",
            f"{statistics.median(times):.2f}" if times else "-",
            f"{max(times):.2f}" if times else "-",
            *("-" if figure is None else f"{figure:.2f}" for figure in spent),
        ])  # fmt: skip
    text = aligned(lines, left={0, 1, 2, 3})
    text += [f"missing: {name}: {why}" for name, why in results.missing.items()]
    failed = [row for row in results.builds if row["build_seconds"] is None]
    text += [f"{row['peer']}, {row['layout']}: {row['note']}" for row in failed]
    noted = [row for row in results.asked if row["answer_right"] is not True]
    text += [
        f"{row['peer']}, {row['layout']}, {row['query']}: {row['note']}"
        for row in noted
    ]
    return "\n".join(text)


if __name__ == "__main__":
    sys.exit(main())
