"""Random cases of all operators that evaluate a scan again."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from ssb.session import local_session
from tests.spark.java.javac import write_missing
from tests.sweeps.catalogue import Told
from tests.sweeps.queries.operators.__main__ import CONF
from tests.sweeps.queries.operators.sweep import Sweep
from tests.sweeps.queries.operators.watch import StuckError


def operators(seed: int, first: int) -> Iterator[Told]:
    """One case of a form a case."""
    write_missing()
    spark = local_session("operators", cores=2, memory="2g", conf=CONF)
    spark.sparkContext.setLogLevel("OFF")
    logging.disable()  # PySpark tells each error that the judge compares
    command = f"python -m tests.sweeps.queries.operators --seed {seed} --only"
    with tempfile.TemporaryDirectory() as work:
        sweep = Sweep(spark, seed, Path(work))
        for case in count(first):
            before = sweep.queries
            try:
                failure = sweep.case(case)
            except StuckError as error:
                yield Told(0, f"{error}", f"{command} {case}")
                return  # the session cannot be used any more
            yield Told(sweep.queries - before, failure, f"{command} {case}")
