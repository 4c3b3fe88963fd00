"""How long queries wait for tables, and which questions share a plan."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.java_gateway import set_field
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from skipindex.errors import TableError
from skipindex.source import NEWEST, AtVersion
from skipindex.spark.pruning.query_planner import QueryPlanner
from skipindex.spark.pruning.session import _pruned
from skipindex.spark.pruning.tables import ScannedTable, Tables, scanned_location
from skipindex.storage.deadline import Deadline, PlanCancelledError, running_until
from skipindex.storage.file_system.location import Location
from tests.spark.compiled import java_object
from tests.spark.pruning.questions import asked, equal, put, skipped
from tests.spark.pruning.scans import files_read
from tests.tables import made

TIMEOUT = 30


class Looks(Tables):
    """Tables of which each look ends when the test lets it.

    Attributes:
        ends: by look, what ends it; a problem is raised, and None is a table.
        found: the tables by look.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[Future[BaseException | None]] = []
        self.found: list[ScannedTable] = []
        self._begun = threading.Condition()

    def current(self, location: Location, at: AtVersion = NEWEST) -> ScannedTable:
        end: Future[BaseException | None] = Future()
        table = ScannedTable(super().current(location, at).state)
        with self._begun:
            self.ends.append(end)
            self.found.append(table)
            self._begun.notify_all()
        problem = end.result(TIMEOUT)
        if problem is not None:
            raise problem
        return table

    def end(self, number: int, problem: BaseException | None = None) -> None:
        """Wait until a look has begun, and end it."""
        self.wait_for(number)
        self.ends[number].set_result(problem)

    def wait_for(self, number: int) -> None:
        """Wait until a look has begun."""
        with self._begun:
            assert self._begun.wait_for(lambda: len(self.ends) > number, TIMEOUT)


@pytest.fixture
def looks() -> Looks:
    return Looks()


Ask = Callable[..., "Future[ScannedTable]"]


@pytest.fixture
def ask(looks: Looks, table: Path) -> Iterator[Ask]:
    """Asks for the table in a thread, as of now."""
    location = scanned_location("file", None, str(table))
    with ThreadPoolExecutor(16) as threads:

        def asked(
            seconds: float | None = None, moment: float | None = None
        ) -> Future[ScannedTable]:
            since = time.monotonic() if moment is None else moment

            def call() -> ScannedTable:
                with running_until(Deadline(seconds)):
                    return looks.since(location, since)

            return threads.submit(call)

        yield asked


def test_all_that_ask_at_once_share_a_look(looks: Looks, ask: Ask) -> None:
    first = ask()
    looks.wait_for(0)
    moment = time.monotonic()
    others = [ask(moment=moment) for _ in range(8)]
    looks.end(1)
    looks.end(0)
    assert first.result(TIMEOUT) is looks.found[0]
    assert [one.result(TIMEOUT) for one in others] == [looks.found[1]] * 8
    assert len(looks.ends) == 2


def test_three_look_at_a_time_and_the_next_wait_for_one_of_them(
    looks: Looks, ask: Ask
) -> None:
    """A store that takes half of the limit for a listing answers all the time."""
    running = []
    for i in range(3):
        running.append(ask())
        looks.wait_for(i)
    moment = time.monotonic()
    others = [ask(moment=moment) for _ in range(4)]
    with pytest.raises(PlanCancelledError):
        ask(seconds=0.05).result(TIMEOUT)
    assert len(looks.ends) == 3
    looks.end(1)
    assert running[1].result(TIMEOUT) is looks.found[1]
    looks.end(3)
    assert [one.result(TIMEOUT) for one in others] == [looks.found[3]] * 4
    for i in (0, 2):  # what began earlier does not become the newest
        looks.end(i)
        assert running[i].result(TIMEOUT) is looks.found[i]
    assert ask(moment=moment).result(TIMEOUT) is looks.found[3]
    assert len(looks.ends) == 4


def test_no_table_is_older_than_its_question(looks: Looks, ask: Ask) -> None:
    for i in range(3):
        asked = ask()
        looks.end(i)
        assert asked.result(TIMEOUT) is looks.found[i]


def test_a_failure_is_shared_by_those_that_waited_for_it_alone(
    looks: Looks, ask: Ask
) -> None:
    first = ask()
    looks.wait_for(0)
    moment = time.monotonic()
    others = [ask(moment=moment) for _ in range(4)]
    looks.end(1, OSError("the store is gone"))
    looks.end(0)
    assert first.result(TIMEOUT) is looks.found[0]
    problems = [one.exception(TIMEOUT) for one in others]
    assert sum(isinstance(problem, OSError) for problem in problems) == 1
    assert sum(isinstance(problem, TableError) for problem in problems) == 3
    assert all("the store is gone" in str(problem) for problem in problems)
    later = ask()
    looks.end(2)
    assert later.result(TIMEOUT) is looks.found[2]


def test_a_look_that_is_cancelled_counts_for_nobody_else(
    looks: Looks, ask: Ask
) -> None:
    moment = time.monotonic()
    first = ask(moment=moment)
    looks.end(0, PlanCancelledError("the plan took longer than it may"))
    assert isinstance(first.exception(TIMEOUT), PlanCancelledError)
    second = ask(moment=moment)
    looks.end(1)
    assert second.result(TIMEOUT) is looks.found[1]


def test_a_thread_waits_for_the_look_of_another_until_its_own_deadline(
    looks: Looks, ask: Ask
) -> None:
    moment = time.monotonic()
    first = ask()
    looks.wait_for(0)
    with pytest.raises(PlanCancelledError):
        ask(seconds=0.05, moment=moment).result(TIMEOUT)
    looks.end(0)
    assert first.result(TIMEOUT) is looks.found[0]
    assert len(looks.ends) == 1


def test_a_look_that_hangs_keeps_nobody_from_another(looks: Looks, ask: Ask) -> None:
    moment = time.monotonic()
    first = ask(seconds=0.5, moment=moment)
    looks.wait_for(0)
    second = ask()
    looks.end(1)
    assert second.result(TIMEOUT) is looks.found[1]
    looks.end(0)  # it is the older one, whenever it ends
    assert first.result(TIMEOUT) is looks.found[0]
    assert ask(moment=moment).result(TIMEOUT) is looks.found[1]


def make(folder: Path, *, partitioned: bool = False) -> Path:
    """Four files of ten numbers each."""
    for i in range(4):
        part = f"p={i}" if partitioned else ""
        put(folder / part / f"{i}.parquet", 10 * i)
    sx.build_indexes(folder, {"id": "bitmap"}, workers=1)
    return folder


@pytest.fixture
def session(pruned: SparkSession) -> Iterator[SparkSession]:
    """No table is left alone because of what an earlier question took."""
    calls = _pruned[pruned.sparkContext.applicationId].calls
    set_field(calls, "restMillis", 0)
    yield pruned
    set_field(calls, "restMillis", 30_000)
    pruned.conf.unset("skipindex.timeLimit")


class Store:
    """That of the tables ``slow…``, about which no question returns before the end.

    Attributes:
        asked: an item for each question that has begun.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[None] = []
        self._is_over = threading.Event()
        answer: Callable[..., bytes | None] = QueryPlanner._answer

        def hang(planner: QueryPlanner, *question: Any) -> bytes | None:
            if "/slow" in str(question):
                self.asked.append(None)
                self._is_over.wait(120)
            return answer(planner, *question)

        monkeypatch.setattr(QueryPlanner, "_answer", hang)

    def end(self) -> None:
        """It answers from now on."""
        self._is_over.set()


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    made = Store(monkeypatch)
    yield made
    made.end()


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not is_so() and time.monotonic() < end:
        time.sleep(0.02)
    assert is_so()


def optimize(df: DataFrame) -> None:
    df._jdf.queryExecution().optimizedPlan()


def at_once(calls: Iterable[Callable[[], object]]) -> list[threading.Thread]:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    return threads


def list_files(df: DataFrame) -> None:
    """Let Spark list the files of a query, and run no job."""
    df._jdf.queryExecution().toRdd().getNumPartitions()


@pytest.mark.spark
def test_three_tables_that_hang_keep_no_query_of_another_waiting(
    session: SparkSession, tmp_path: Path, store: Store
) -> None:
    """Those of tables with partitions are asked while a query waits."""
    fast = session.read.parquet(str(make(tmp_path / "fast")))
    folders = [make(tmp_path / f"slow{i}", partitioned=True) for i in range(3)]
    slow = [session.read.parquet(str(folder)) for folder in folders]
    session.conf.set("skipindex.timeLimit", "60")
    queries = [frame.where(f"id = {i}") for frame in slow for i in range(3)]
    threads = at_once(partial(list_files, query) for query in queries)
    until(lambda: len(store.asked) >= 8)
    session.conf.set("skipindex.timeLimit", "2")
    before = len(sx.last_plans(session))
    assert files_read(fast.where("id = 15")) == 1
    (told,) = sx.last_plans(session)[before:]
    assert not told.problem
    store.end()
    for thread in threads:
        thread.join()


@pytest.mark.spark
@pytest.mark.slow
def test_queries_wait_for_a_table_that_hangs_until_one_has_done_so_in_vain(
    session: SparkSession, tmp_path: Path, store: Store
) -> None:
    slow = session.read.parquet(str(make(tmp_path / "slow")))
    fast = session.read.parquet(str(make(tmp_path / "fast")))
    for i in range(9):  # they are asked ahead, for which no query waits yet
        optimize(slow.where(f"id = {i}"))
    until(lambda: len(store.asked) == 8)

    def problem_within(seconds: str) -> str:
        session.conf.set("skipindex.timeLimit", seconds)
        before = len(sx.last_plans(session))
        assert files_read(slow.where("id = 15")) == 4
        (told,) = sx.last_plans(session)[before:]
        return told.problem

    assert "was busy with other requests for the table" in problem_within("0.3")
    assert "without success" in problem_within("0.3")
    assert "without success" in problem_within("0.2")
    assert "until the time limit of 0.6 s" in problem_within("0.6")
    assert "without success" in problem_within("0.6")
    session.conf.set("skipindex.timeLimit", "5")
    assert files_read(fast.where("id = 15")) == 1
    assert len(store.asked) == 8
    store.end()
    until(lambda: files_read(slow.where("id = 15")) == 1)


@pytest.mark.spark
@pytest.mark.few(1)
@pytest.mark.parametrize("seconds", ["0.3", "0.001"])
def test_questions_that_were_given_up_leave_room_when_they_end(
    session: SparkSession, tmp_path: Path, store: Store, seconds: str
) -> None:
    """The shorter limit may be over before a question has begun."""
    slow = session.read.parquet(str(make(tmp_path / "slow", partitioned=True)))
    session.conf.set("skipindex.timeLimit", seconds)
    queries = [slow.where(f"id = {i}") for i in range(10)]
    for thread in at_once(partial(list_files, query) for query in queries):
        thread.join()
    store.end()
    session.conf.set("skipindex.timeLimit", "5")
    until(lambda: files_read(slow.where("id = 15")) == 1)


@pytest.mark.spark
@pytest.mark.slow
def test_many_queries_of_a_table_that_is_listed_slowly_have_their_answers(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = session.read.parquet(str(make(tmp_path / "t", partitioned=True)))
    list_files(frame.where("id = 0"))
    current = Tables.current

    def slow(tables: Tables, *given: Any) -> ScannedTable:
        time.sleep(0.5)
        return current(tables, *given)

    monkeypatch.setattr(Tables, "current", slow)
    session.conf.set("skipindex.timeLimit", "3")
    queries = [frame.where(f"id = {i}") for i in range(24)]
    for thread in at_once(partial(list_files, query) for query in queries):
        thread.join()
    told = sx.last_plans(session)[-24:]
    assert [plan.n_read for plan in told] == [1] * 24


@pytest.mark.spark
def test_an_answer_that_comes_too_late_is_not_told(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = session.read.parquet(str(make(tmp_path / "t", partitioned=True)))
    current = Tables.current
    answered: list[None] = []

    def late(tables: Tables, *given: Any) -> ScannedTable:
        time.sleep(0.5)
        answered.append(None)
        return current(tables, *given)

    monkeypatch.setattr(Tables, "current", late)
    session.conf.set("skipindex.timeLimit", "0.2")
    before = len(sx.last_plans(session))
    assert files_read(frame.where("id = 15")) == 4
    until(lambda: bool(answered))
    time.sleep(0.3)  # so that the planner has its answer
    told = sx.last_plans(session)[before:]
    assert told
    assert not any(plan.n_skipped for plan in told)


@pytest.mark.spark
@pytest.mark.slow
def test_questions_that_are_asked_at_once_take_their_time_once(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark runs the subqueries of a query at once."""
    names = [f"s{i}" for i in range(12)]
    for name in names:
        folder = str(make(tmp_path / name))
        session.read.parquet(folder).createOrReplaceTempView(name)
    current = Tables.current

    def slow(tables: Tables, *given: Any) -> ScannedTable:
        time.sleep(1)
        return current(tables, *given)

    monkeypatch.setattr(Tables, "current", slow)
    session.conf.set("skipindex.timeLimit", "8")
    sums = [f"(SELECT sum(id) FROM {name} WHERE id = 15)" for name in names]
    before = len(sx.last_plans(session))
    assert session.sql(f"SELECT {', '.join(sums)}").first() == (15,) * 12
    told = sx.last_plans(session)[before:]
    assert [plan.n_read for plan in told] == [1] * 12


JOINED = (
    "SELECT count(*) FROM f JOIN d ON f.k = d.k JOIN e ON f.k = e.k "
    "WHERE d.c = 'a' AND e.c <> 'b' AND f.v > 'a'"
)
ONE = "SELECT count(*) FROM f WHERE k = 7"


def make_limited(folder: Path) -> None:
    """A fact and two dimensions, all with indexes."""
    for name, n_files in (("f", 6), ("d", 1), ("e", 1)):
        (folder / name).mkdir()
        for i in range(n_files):
            keys = list(range(5 * i, 5 * i + 5))
            columns = {"k": keys, "c": list("abcde"), "v": ["x" * 900] * 5}
            pq.write_table(pa.table(columns), folder / name / f"{i}.parquet")
        sx.build_indexes(folder / name, {"k": "bitmap", "c": "bitmap"}, workers=1)


@pytest.fixture
def star(pruned: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """The three tables as views, and a short limit of time."""
    made(tmp_path, make_limited)
    for name in ("f", "d", "e"):
        pruned.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    pruned.conf.set("skipindex.timeLimit", "0.5")
    yield pruned
    pruned.conf.unset("skipindex.timeLimit")


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[None]]:
    """A store that never answers; an item for each time that a table is looked at."""
    asked: list[None] = []
    is_over = threading.Event()

    def hang(*_: object) -> object:
        asked.append(None)
        is_over.wait(120)
        raise OSError("the store is gone")

    monkeypatch.setattr(Tables, "current", hang)
    yield asked
    is_over.set()


@pytest.mark.spark
def test_a_query_waits_once_for_all_its_questions(
    star: SparkSession, hanging: list[None]
) -> None:
    """Three scans and two joins would be asked about a dozen times."""
    before = len(sx.last_plans(star))
    assert files_read(star.sql(JOINED)) == 8
    problems = [plan.problem for plan in sx.last_plans(star)[before:]]
    assert any("skipindex.timeLimit" in problem for problem in problems)
    assert len(hanging) <= 3, "at most one question for each table"


@pytest.mark.spark
def test_a_table_is_left_alone_for_a_while(
    star: SparkSession, hanging: list[None]
) -> None:
    assert files_read(star.sql(ONE)) == 6
    n_asked = len(hanging)
    assert n_asked
    assert files_read(star.sql(ONE)) == 6
    assert len(hanging) == n_asked
    assert "all files of the table are read" in sx.last_plans(star)[-1].problem


@pytest.mark.spark
def test_a_query_that_may_wait_longer_asks_all_the_same(
    star: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The short limit of one session is no reason for others to read all files."""
    with monkeypatch.context() as patched:
        patched.setattr(Tables, "current", lambda *_: time.sleep(2))
        assert files_read(star.sql(ONE)) == 6
    star.conf.set("skipindex.timeLimit", "30")
    assert files_read(star.sql(ONE)) == 1


@pytest.mark.spark
@pytest.mark.slow
def test_after_a_while_it_is_asked_again(
    star: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = _pruned[star.sparkContext.applicationId].calls
    set_field(calls, "restMillis", 300)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(Tables, "current", lambda *_: time.sleep(0.7))
            assert files_read(star.sql(ONE)) == 6
        time.sleep(0.4)
        star.sql(ONE).collect()
        assert "files of the table" not in sx.last_plans(star)[-1].problem
    finally:
        set_field(calls, "restMillis", 30_000)


@pytest.mark.few(1)
@pytest.mark.spark
@pytest.mark.parametrize("how", ["planner fails", "switched off"])
def test_a_side_that_was_small_when_it_was_planned_is_small_when_it_is_read(
    star: SparkSession, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Spark may have chosen to broadcast it: all files may be too much for that."""
    star.conf.set("skipindex.timeLimit", "30")
    df = star.sql("SELECT f.v FROM f JOIN d ON f.k = d.k + 7 WHERE f.k = 7")
    df._jdf.queryExecution().optimizedPlan()
    with monkeypatch.context() as patched:
        if how == "planner fails":
            patched.setattr(Tables, "current", lambda *_: 1 // 0)
        else:
            star.conf.set("skipindex.enabled", "false")
        assert files_read(df, "/f") == 1


@pytest.mark.spark
def test_a_file_that_was_replaced_since_is_read(
    star: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    star.conf.set("skipindex.timeLimit", "30")
    df = star.sql("SELECT f.v FROM f JOIN d ON f.k = d.k + 7 WHERE f.k = 7")
    df._jdf.queryExecution().optimizedPlan()
    columns = {"k": [7] * 5, "c": list("abcde"), "v": ["y" * 900] * 5}
    pq.write_table(pa.table(columns), tmp_path / "f/0.parquet")
    with monkeypatch.context() as patched:
        patched.setattr(Tables, "current", lambda *_: 1 // 0)
        assert files_read(df, "/f") == 2
        assert df.count() == 6


IN_ALL = "id >= 0"
IN_ONE = "id BETWEEN 11 AND 12"


def test_what_is_ruled_out_is_asked_for_again(
    planner: QueryPlanner, table: Path
) -> None:
    """Only that nothing is ruled out is an answer, and told of."""
    ahead = asked(planner, table, equal("id", 15), purpose="ahead")
    assert ahead is not None
    assert not ahead.files
    assert not planner.records
    assert len(skipped(planner, table, equal("id", 15))) == 3
    assert asked(planner, table, purpose="ahead") is None
    assert [record.n_skipped for record in planner.records] == [3, 0]


def test_an_estimate_and_its_question_have_one_plan(
    planner: QueryPlanner, table: Path
) -> None:
    for purpose in ("estimate", "read"):
        skipped(planner, table, equal("id", 15), purpose=purpose)
    estimate, read = planner.records
    assert (estimate.is_estimate, read.is_estimate) == (True, False)
    assert estimate.plan is read.plan


def test_a_verdict_is_forgotten_with_its_listing(
    planner: QueryPlanner, table: Path
) -> None:
    skipped(planner, table, equal("id", 15))
    for path in sorted(table.rglob("*.parquet"))[:2]:
        path.unlink()
    put(table / "month=9/9.parquet", 10)
    sx.build_indexes(table, {"id": "bitmap"}, workers=1)
    assert skipped(planner, table, equal("id", 15)) == ["month=2/3.parquet"]


def optimized(df: DataFrame) -> DataFrame:
    """The same, when it has been optimized, and not yet listed the files."""
    df._jdf.queryExecution().optimizedPlan()
    return df


@pytest.fixture
def numbers(pruned: SparkSession, tmp_path: Path) -> DataFrame:
    """Four files of ten numbers each."""
    for i in range(4):
        put(tmp_path / f"{i}.parquet", 10 * i)
    sx.build_indexes(tmp_path, {"id": "minmax"}, workers=1)
    return pruned.read.parquet(str(tmp_path))


@pytest.mark.spark
@pytest.mark.parametrize(("condition", "n_files"), [(IN_ALL, 4), (IN_ONE, 1)])
def test_a_scan_is_told_of_once(
    pruned: SparkSession, numbers: DataFrame, condition: str, n_files: int
) -> None:
    before = len(sx.last_plans(pruned))
    assert files_read(numbers.where(condition)) == n_files
    (told,) = sx.last_plans(pruned)[before:]
    assert told.n_read == n_files


@pytest.mark.spark
def test_a_file_that_is_replaced_while_spark_plans_is_read(
    numbers: DataFrame, tmp_path: Path
) -> None:
    df = optimized(numbers.where(IN_ONE))
    time.sleep(0.3)  # so that the question has its answer
    put(tmp_path / "3.parquet", 10)
    assert df.count() == 4


@pytest.mark.spark
def test_the_moment_that_files_are_listed_counts(
    pruned: SparkSession, tmp_path: Path
) -> None:
    """A query may run long after it was optimized."""
    for i in range(2):
        ends = pa.table({"id": [50 * i, 100]})
        pq.write_table(ends, tmp_path / f"{i}.parquet")
    sx.build_indexes(tmp_path, {"id": "minmax"}, workers=1)
    calls = _pruned[pruned.sparkContext.applicationId].calls
    set_field(calls, "aheadMillis", 100)
    df = optimized(pruned.read.parquet(str(tmp_path)).where("id = 50"))
    time.sleep(0.2)
    sx.build_indexes(tmp_path, {"id": "bitmap"}, workers=1)
    assert files_read(df) == 1


@pytest.mark.spark
def test_scans_of_other_files_with_one_question_are_told_of_by_themselves(
    pruned: SparkSession, numbers: DataFrame, tmp_path: Path
) -> None:
    """They have one folder, one condition, and so one question that is asked ahead."""
    before = len(sx.last_plans(pruned))
    one = pruned.read.parquet(str(tmp_path / "0.parquet")).where(IN_ALL)
    others = [str(tmp_path / f"{i}.parquet") for i in (1, 2, 3)]
    both = one.union(pruned.read.parquet(*others).where(IN_ALL))
    assert files_read(both) == 4
    told = sx.last_plans(pruned)[before:]
    assert sorted((one.n_files, one.n_read) for one in told) == [(1, 1), (3, 3)]
    assert not any(one.n_unindexed for one in told)
    assert files_read(numbers.where(IN_ALL)) == 4


LISTER = """
package skipindex.test;

import org.apache.spark.sql.execution.QueryExecution;

public class Lister implements java.util.function.Function {
    public Object apply(final Object query) {
        Thread thread = new Thread() {
            public void run() {
                ((QueryExecution) query).toRdd().getNumPartitions();
            }
        };
        thread.start();
        try {
            thread.join();
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
        return null;
    }
}
"""
"""Lists the files of a query in a thread that ends, as threads of Spark's pools do."""


@pytest.mark.spark
def test_threads_of_spark_that_end_leave_nothing(
    pruned: SparkSession, numbers: DataFrame
) -> None:
    """Py4J keeps a thread and a socket for each thread of Java that calls Python."""
    gateway = pruned.sparkContext._gateway
    lister = java_object(gateway, "Lister", LISTER)

    def asked(times: int) -> int:
        for i in range(times):
            lister.apply(numbers.where(f"id = {i}")._jdf.queryExecution())
        return threading.active_count()

    before = asked(12)
    assert asked(12) < before + 12, "some that ask may come later"
    assert sx.last_plans(pruned)[-1].n_skipped == 3
