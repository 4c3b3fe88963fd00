from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# No deadlines: the machine may be shared, and the first example imports a lot.
settings.register_profile(
    "dev", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "ci", settings.get_profile("dev"), derandomize=True, print_blob=True
)
# A mutant is caught as well by an example that is not the smallest.
settings.register_profile(
    "mutants",
    settings.get_profile("ci"),
    phases=[Phase.explicit, Phase.generate],
    print_blob=False,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for the whole run, set up to start and stop quickly."""
    from ssb.session import local_session  # noqa: PLC0415 - most tests need no Spark

    session = local_session(
        "skipindex tests",
        cores=2,
        memory="2g",
        conf={
            "spark.driver.extraJavaOptions": (
                "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
            ),
            "spark.sql.shuffle.partitions": "4",
        },
    )
    yield session
    session.stop()
