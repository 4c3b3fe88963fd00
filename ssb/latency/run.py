"""Every query over all files and over those of the plan, behind the same latency."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import skipindex as sx
from benchmarks.proxy import Proxy, round_trips
from skipindex.planner.stages.pack_cache import CacheSession
from skipindex.storage.disk_cache import set_cache_dir
from ssb.grid.records import Value
from ssb.latency.readers import Opened, Reader, Rows, Store
from ssb.queries import Query

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Reading:
    """One query, from the first request to the rows of the answer.

    Args:
        seconds: in all.
        plan_seconds: of them, to open the table and plan.
        files: that were read.
        requests: to the store.
        n_bytes: that it sent.
        waits: requests that had to wait for another one's answer.
        rows: of the answer.
    """

    seconds: float
    plan_seconds: float
    files: int
    requests: int
    n_bytes: int
    waits: int
    rows: Rows


def measure(
    store: Store,
    proxy: Proxy,
    readers: dict[str, Reader],
    queries: Sequence[Query],
    *,
    repeat: int,
    log: Log = lambda _: None,
) -> Iterator[dict[str, Value]]:
    """A row for each reader, query and state of the caches.

    *Cold* is a first query: nothing is open, and the folder is listed.  *Warm* is the
    same query again, with the listing, footers and indexes that are held by then.  Both
    ways of a query take turns, and of ``repeat`` rounds the medians count.

    Args:
        store: behind the proxy.
        proxy: which counts.
        readers: by name.
        queries: to run.
        repeat: rounds.
        log: told about every query.
    """
    set_cache_dir(None)
    for reader in readers.values():  # libraries are loaded when they are first used
        pruned(store, proxy, reader, queries[0])
    for query in queries:
        expected: Rows | None = None
        for name, reader in readers.items():
            rounds = [
                (
                    whole(store, proxy, reader, query),
                    pruned(store, proxy, reader, query),
                )
                for _ in range(repeat)
            ]
            expected = rounds[0][0][0].rows if expected is None else expected
            key = {"reader": name, "query": query.name}
            for i, state in enumerate(("cold", "warm")):
                alls = [before[i] for before, _ in rounds]
                plans = [after[i] for _, after in rounds]
                row = {**key, "state": state, **compared(alls, plans, expected)}
                yield row
                log(
                    f"{query.name}, {name}, {state}: {row['s_all']} s, of the plan "
                    f"{row['s_plan']} s"
                )


def compared(
    alls: Sequence[Reading], plans: Sequence[Reading], expected: Rows
) -> dict[str, Value]:
    """The figures of both ways side by side.

    Args:
        alls: the rounds over all files.
        plans: the rounds over the files of the plan.
        expected: the answer.
    """
    before = statistics.median(one.seconds for one in alls)
    after = statistics.median(one.seconds for one in plans)
    first, then = alls[0], plans[0]
    planning = statistics.median(one.plan_seconds for one in plans)
    return {
        "files": first.files,
        "files_plan": then.files,
        "s_all": round(before, 3),
        "s_plan": round(after, 3),
        "planning_ms": round(1000 * planning, 1),
        "requests_all": first.requests,
        "requests_plan": then.requests,
        "MB_all": round(first.n_bytes / 1e6, 2),
        "MB_plan": round(then.n_bytes / 1e6, 2),
        "waits_all": first.waits,
        "waits_plan": then.waits,
        "same": int(all(one.rows == expected for one in (*alls, *plans))),
    }


def whole(
    store: Store, proxy: Proxy, reader: Reader, query: Query
) -> tuple[Reading, Reading]:
    """The query over all files, cold and warm."""
    opened: Opened | None = None
    n_files = len(sx.open_table(store.uri, storage_options=store.options))

    def run() -> tuple[float, int, Rows]:
        nonlocal opened
        if opened is None:
            opened = reader(store, None)
        return 0.0, n_files, opened.run(query)

    return _read(proxy, run), _read(proxy, run)


def pruned(
    store: Store, proxy: Proxy, reader: Reader, query: Query
) -> tuple[Reading, Reading]:
    """The query over the files of the plan, cold and warm; both make the plan."""
    table: sx.Table | None = None
    opened: dict[tuple[str, ...], Opened] = {}

    def run() -> tuple[float, int, Rows]:
        nonlocal table
        began = time.perf_counter()
        if table is None:
            table = sx.open_table(store.uri, storage_options=store.options)
        plan = table.plan(query.where, session=session)
        seconds = time.perf_counter() - began
        # A query of no file has the answer of one that holds no match.
        tasks = {task.path: task.size for task in plan.tasks} or {
            table.paths[0]: int(table.state.sizes[0])
        }
        key = tuple(sorted(tasks))
        if key not in opened:
            opened[key] = reader(store, tasks)
        return seconds, len(plan.paths), opened[key].run(query)

    with CacheSession() as session:
        return _read(proxy, run), _read(proxy, run)


def _read(proxy: Proxy, run: Callable[[], tuple[float, int, Rows]]) -> Reading:
    proxy.taken()
    began = time.perf_counter()
    plan_seconds, files, rows = run()
    seconds = time.perf_counter() - began
    requests = proxy.taken()
    n_bytes = sum(request.n_bytes for request in requests)
    waits = round_trips(requests)
    return Reading(seconds, plan_seconds, files, len(requests), n_bytes, waits, rows)
