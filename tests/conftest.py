from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.quick_run import EXAMPLES, NO_CODEGEN, RUN, QuickRun, is_quick, mark_slow
from tests.rebase import REBASE

if TYPE_CHECKING:  # nothing but the tests that are marked so needs Spark
    from pyspark.sql import SparkSession

    from benchmarks.moto_server import S3

# No deadlines: the machine may be shared, and the first example imports a lot.
# A run fails for what a change did, and not for what was drawn: only the nightly runs
# draw anew.
settings.register_profile(
    "fixed",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
    print_blob=True,
)
settings.register_profile("anew", settings.get_profile("fixed"), derandomize=False)
settings.register_profile("quick", settings.get_profile("fixed"), max_examples=EXAMPLES)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

# No test reads what another one has cached on disk.
os.environ["SKIPINDEX_CACHE_DIR"] = ""

NEED_PYSPARK = {
    *("spark", "ssb", "benchmarks", "heavy/queries", "heavy/test_runner.py"),
    *("heavy/soundness/test_by_spark.py", "heavy/soundness/test_foreign.py"),
    *("conditions/catalogue/test_by_spark.py", "api/test_maintain.py"),
    *("delta/test_replaced_files.py", "iceberg/test_replaced_snapshots.py"),
    "heavy/lives/test_folder.py",
}
"""What is left out where PySpark is not installed: it imports it."""

FIRST = ("test_architecture.py", "test_words.py", "test_names.py", "test_laws.py")
FIRST += ("heavy/mutants/test_mutants.py", "test_docs.py")
"""What a change breaks most often runs first, in less than a minute."""


def pytest_configure(config: pytest.Config) -> None:
    RUN.is_whole = "not slow" not in config.getoption("markexpr")
    if is_quick(config) and "HYPOTHESIS_PROFILE" not in os.environ:
        settings.load_profile("quick")
    if is_quick(config) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(QuickRun(config))


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    name = collection_path.relative_to(Path(__file__).parent).as_posix()
    return True if name in NEED_PYSPARK and find_spec("pyspark") is None else None


@pytest.hookimpl(tryfirst=True)  # before the slow ones are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse names that no other process has, and a session without the mark."""
    mark_slow(items)
    items.sort(key=_turn)
    for item in items:
        if _is_random(item):
            raise pytest.UsageError(
                f"{item.nodeid} has another name in another process (give it an id "
                "without a set or an address)"
            )
        takes_session = "spark" in getattr(item, "fixturenames", ())
        if takes_session and not item.get_closest_marker("spark"):
            raise pytest.UsageError(
                f"{item.nodeid} takes a session (give it the mark spark, as cells "
                "without PySpark would run it)"
            )


def _turn(item: pytest.Item) -> int:
    """Which tests run before others; those of one turn keep their order."""
    name = item.nodeid.partition("::")[0].removeprefix("tests/")
    is_early = name in FIRST and not item.get_closest_marker("spark")
    return FIRST.index(name) if is_early else len(FIRST)


def _is_random(item: pytest.Item) -> bool:
    """Whether the name of a case depends on the process: on hashes, or addresses."""
    case = getattr(item, "callspec", None)
    values = () if case is None else case.params.values()
    sets = [one for one in values if isinstance(one, (set, frozenset)) and len(one) > 1]
    return " at 0x" in item.name or any(str(one) in item.name for one in sets)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Compile the Java sources, if a test needs a session and they have changed."""
    if any(item.get_closest_marker("spark") for item in session.items):
        from tests.spark.java.javac import JavaError, write_missing  # noqa: PLC0415 - PySpark alone has the jars

        try:
            write_missing()
        except JavaError as error:
            raise pytest.UsageError(str(error)) from error


@pytest.fixture(scope="session", autouse=True)
def nothing_waits_for_the_disk() -> Iterator[None]:
    """No test outlives a power cut, and each file that is written waits for its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _descriptor: None)
        yield


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    """One S3 server for all tests of this process that ask for it."""
    from benchmarks.moto_server import moto_server  # noqa: PLC0415 - few tests need it

    with moto_server() as server:
        yield server


@pytest.fixture(scope="session")
def spark(pytestconfig: pytest.Config) -> Iterator[SparkSession]:
    """The session of this process, set up to start and stop quickly."""
    from ssb.session import local_session  # noqa: PLC0415 - most tests need no Spark
    from tests.spark.iceberg.runtime import settings as of_iceberg  # noqa: PLC0415
    from tests.spark.java.quick_files import settings as of_files  # noqa: PLC0415

    session = local_session(
        "skipindex tests",
        cores=2,
        memory="2g",  # thousands of tests share it
        conf={
            # By default a page is as large as this heap suggests: 64 MB for each
            # operator of a query, and for each table that is broadcast with a text as
            # key.  Those of past queries stay until the garbage collection, and filled
            # the heap.
            "spark.buffer.pageSize": "1m",
            # Small queries leave much garbage: the young generation that Java has by
            # default was collected four times as often.  Traces of over 8192 bytes come
            # to Python 40 ms late, as ``Asking.java`` says, and many queries fail on
            # purpose.  With one compiler Java keeps 48 MB of compiled methods, fewer
            # than thousands of queries need, and compiles them again.
            "spark.driver.extraJavaOptions": (
                "-XX:+UseSerialGC -Xmn512m -XX:MetaspaceSize=256m "
                "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m "
                "-XX:MaxJavaStackTraceDepth=40 -XX:+UnlockDiagnosticVMOptions "
                "-XX:-BytecodeVerificationRemote"
            ),
            "spark.sql.shuffle.partitions": "4",
            # Most tests look at the files of scans.
            "skipindex.rowsFromPlanner": "0",
            **REBASE,
            **of_iceberg(),
            **of_files(),
            **(NO_CODEGEN if is_quick(pytestconfig) else {}),
        },
    )
    yield session
    session.stop()
