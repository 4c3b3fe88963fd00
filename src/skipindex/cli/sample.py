"""Write the folder of Parquet files that the documentation works on.

    skipindex sample /data/events

One million events of a web service in 40 files, one file a day.  A user appears in
three files on average, and every file has small and large user numbers, so min/max
statistics leave out no file for ``user = …``.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skipindex.errors import TableError
from skipindex.storage.file_system.location import location_of

FILES: Final = 40
ROWS: Final = 25_000
"""In each file."""
USERS: Final = 300_000
FIRST_DAY: Final = np.datetime64("2026-01-01", "us")
PATHS: Final = pa.array(["/", "/cart", "/checkout", "/login", "/search"])
STATUS: Final = [200, 200, 200, 200, 200, 200, 200, 301, 404, 500]


def events(day: int, rows: int = ROWS) -> pa.Table:
    """The events of one day; the same ones on every call."""
    rng = np.random.default_rng(day)
    micros = np.sort(rng.integers(0, 86_400_000_000, rows)).astype("m8[us]")
    moments = FIRST_DAY + np.timedelta64(day, "D") + micros
    return pa.table(
        {
            "moment": pa.array(moments).cast(pa.timestamp("us", tz="UTC")),
            "user": rng.integers(0, USERS, rows),
            "path": PATHS.take(pa.array(rng.integers(0, len(PATHS), rows))),
            "status": pa.array(rng.choice(STATUS, rows), pa.int32()),
            "millis": pa.array(rng.gamma(2.0, 60.0, rows).astype("int32")),
            "request": [f"{n:016x}" for n in rng.integers(0, 2**62, rows).tolist()],
        }
    )


def write_events(folder: str | Path, files: int = FILES, rows: int = ROWS) -> int:
    """Write one file a day into a path or URI; how many.

    Raises:
        TableError: it is not empty.
        StorageError: it is a file, or the file system refuses.
    """
    place = location_of(folder)
    if place.names(""):
        raise TableError(
            f"cannot write sample data to {place.full('')!r}: it is not empty "
            "(accepted: a folder that does not exist or is empty)"
        )
    for day in range(files):
        sink = io.BytesIO()
        pq.write_table(events(day, rows), sink)
        place.write(f"day-{day:03}.parquet", sink.getbuffer())
    return files
