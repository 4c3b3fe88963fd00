"""Ask Spark for the rows of conditions, and write them into their files.

``python -m tests.conditions.catalogue`` asks for the conditions that are new, and
``--all`` for all of them; names of tables choose files.  Under an older Spark it writes
what that says otherwise.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyspark.sql import SparkSession

from ssb.session import local_session
from tests.conditions.catalogue import trees
from tests.conditions.catalogue.by_spark import asked, frame_of, with_marks
from tests.conditions.catalogue.entries import BASE, Entry, lines_of, write
from tests.conditions.catalogue.tables import MADE
from tests.rebase import REBASE
from tests.spark.catalyst.final import final_json
from tests.spark.reading.whole import ZONE, settings
from tests.spark.versions import FAILED, SPARK


def record(tables: Sequence[str], *, is_whole: bool) -> int:
    """Ask for the conditions of some tables; how many lines changed."""
    # Traces of many errors take longest on their way to Python.
    short = {"spark.driver.extraJavaOptions": "-XX:MaxJavaStackTraceDepth=40"}
    session = local_session(
        "conditions", cores=2, memory="2g", conf={**REBASE, **short}
    )
    session.sparkContext.setLogLevel("OFF")  # many conditions fail, and are meant to
    name = BASE if SPARK >= (4, 0) else ".".join(map(str, SPARK))
    changed = 0
    for table in tables:
        lines = list(lines_of(table))
        some = [line for line in lines if isinstance(line, Entry)]
        if name == BASE and not is_whole:
            new = [line for line in some if BASE not in line.truths]
        else:
            new = some
        told = {(one.zone, one.text): one for one in asked(session, new, name)}
        written = [
            told.get((line.zone, line.text), line) if isinstance(line, Entry) else line
            for line in lines
        ]
        changed += sum(a != b for a, b in zip(lines, written, strict=True))
        write(table, written)
        for line in written:
            if isinstance(line, Entry) and BASE not in line.truths:
                print(f"Spark does not take {line}")
        if table == trees.TABLE:
            some = [line for line in written if isinstance(line, Entry)]
            trees.write(".".join(map(str, SPARK)), handed_over(session, some))
    session.stop()
    return changed


def handed_over(spark: SparkSession, some: Sequence[Entry]) -> dict[str, str]:
    """The final conditions of each condition, where Spark scans a file for it."""
    found = {}
    for entry in some:
        with settings(spark, {ZONE: entry.zone}):
            try:
                json = final_json(frame_of(spark, entry.table).where(entry.text))
            except FAILED:
                continue
        if json is not None:
            found[entry.text] = json
    return found


def mark(tables: Sequence[str]) -> int:
    """Write anew what plans know of the conditions; how many lines changed."""
    changed = 0
    for table in tables:
        lines = list(lines_of(table))
        written = [with_marks(x) if isinstance(x, Entry) else x for x in lines]
        changed += sum(a != b for a, b in zip(lines, written, strict=True))
        write(table, written)
    return changed


def main(arguments: Sequence[str] | None = None) -> None:
    """Record, and say how many lines changed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.conditions.catalogue", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("tables", nargs="*", choices=[[], *MADE], help="of conditions")
    parser.add_argument("--all", action="store_true", help="also those with rows")
    parser.add_argument(
        "--marks", action="store_true", help="ask no Spark; write what plans know"
    )
    given = parser.parse_args(arguments)
    tables = given.tables or list(MADE)
    if given.marks:
        print(f"{mark(tables)} lines changed")
    else:
        print(f"{record(tables, is_whole=given.all)} lines changed")


if __name__ == "__main__":
    main()
