"""Final conditions of many forms, as versions of Spark hand them over.

``python -m tests.spark.catalyst.recorded`` asks the version that is installed, and
writes ``recorded_4.3.txt`` for one: a condition of a user, the JSON, and the SQL that
the planner reads.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).parent
SHAPES: Final = HERE / "shapes.txt"
TYPES: Final = {
    "i": "int",
    "l": "bigint",
    "sh": "smallint",
    "by": "tinyint",
    "f": "float",
    "d": "double",
    "dec": "decimal(12,2)",
    "s": "string",
    "dte": "date",
    "ts": "timestamp",
    "ntz": "timestamp_ntz",
    "b": "boolean",
    "bin": "binary",
    "st": "struct<a:int,n:struct<s:string>>",
    "arr": "array<bigint>",
    "m": "map<string,bigint>",
    "ymd": "int",
    "ds": "string",
}


class Recorded(NamedTuple):
    """A condition, and what became of it; nothing, if Spark scans no file for it."""

    condition: str
    json: str
    sql: str


def read(path: Path) -> Iterator[Recorded]:
    """The conditions of one version: three lines, and an empty one, for each."""
    lines = path.read_text().splitlines()
    for i in range(0, len(lines), 4):
        yield Recorded(*lines[i : i + 3])


def record() -> Path:
    """Ask the version that is installed."""
    import pyspark  # noqa: PLC0415 - reading needs no Spark
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    from skipindex.spark.catalyst.conditions import conditions  # noqa: PLC0415
    from ssb.session import local_session  # noqa: PLC0415
    from tests.spark.catalyst.final import final_json  # noqa: PLC0415

    version = ".".join(pyspark.__version__.split(".")[:2])
    path = HERE / f"recorded_{version}.txt"
    utc = {"spark.sql.session.timeZone": "UTC"}
    session = local_session("record", cores=1, memory="1g", conf=utc)
    blocks = []
    with tempfile.TemporaryDirectory() as folder:
        schema = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
        session.createDataFrame([], schema).write.parquet(f"{folder}/t")
        frame = session.read.parquet(f"{folder}/t")
        frame.createOrReplaceTempView("t")
        session.range(5).selectExpr("id k").createOrReplaceTempView("u")
        for text in SHAPES.read_text().splitlines():
            try:
                found = final_json(session.sql(f"SELECT * FROM t WHERE {text}"))
            except (PySparkException, Py4JJavaError):
                continue
            sql = "" if found is None else conditions(found, TYPES).text
            blocks.append(f"{text}\n{found or ''}\n{sql}\n")
    path.write_text("\n".join(blocks))
    session.stop()
    return path


if __name__ == "__main__":
    print(record())
