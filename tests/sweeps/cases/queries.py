"""Random scripts over random tables, with skipping on and off."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from ssb.session import local_session
from tests.spark.java.javac import write_missing
from tests.sweeps.catalogue import Told
from tests.sweeps.queries.__main__ import CONF
from tests.sweeps.queries.sweep import Sweep


def queries(seed: int, first: int) -> Iterator[Told]:
    """One script a case."""
    write_missing()
    spark = local_session("queries", cores=2, memory="2g", conf=CONF)
    spark.sparkContext.setLogLevel("OFF")
    logging.disable()  # PySpark tells each error that the judge compares
    with tempfile.TemporaryDirectory() as work:
        sweep = Sweep(spark, seed, Path(work))
        for case in count(first):
            before = sweep.tally.queries
            failure = sweep.case(case)
            again = f"python -m tests.sweeps.queries --seed {seed} --only {case}"
            yield Told(sweep.tally.queries - before, failure, again)
