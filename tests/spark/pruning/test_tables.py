"""How the driver finds the table, the indexes and the columns of a scan."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.errors import TableError
from skipindex.spark.pruning.session import _pruned
from skipindex.storage.file_system.sidecar import SIDECAR
from tests.api.test_removal import contents
from tests.quick_run import RUN
from tests.spark.compiled import java_object
from tests.spark.pruning.questions import put
from tests.spark.pruning.scans import files_read
from tests.table.which_column import CONDITIONS, NAMES, Table, ids_of, is_true, same
from tests.tables import put as put_sidecar

pytestmark = pytest.mark.spark


ROOTS = """
package skipindex.test;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.python.PythonUtils;
import scala.collection.Seq;

public class RootsOf implements java.util.function.Function {
    private Object roots;
    private Method of;
    int next;

    /** The calls of a session first; then lists of a location or null, and paths. */
    public Object apply(Object argument) {
        try {
            return argument instanceof List ? of((List) argument) : with(argument);
        } catch (InvocationTargetException failed) {
            throw new IllegalStateException(failed.getCause());
        } catch (Exception problem) {
            throw new IllegalStateException(problem);
        }
    }

    private Object with(Object calls) throws Exception {
        Class found = calls.getClass().getClassLoader().loadClass("skipindex.Roots");
        Constructor constructor = found.getDeclaredConstructors()[0];
        constructor.setAccessible(true);
        roots = constructor.newInstance(new Object[] {"_skipindex"});
        Method[] methods = found.getDeclaredMethods();
        for (int i = 0; i < methods.length; i++) {
            if (methods[i].getName().equals("of")) of = methods[i];
        }
        of.setAccessible(true);
        return null;
    }

    /** The table, or null, and how many paths were looked at. */
    private Object of(List argument) throws Exception {
        String place = (String) argument.get(0);
        Path location = place == null ? null : new Path(place);
        ArrayList paths = new ArrayList();
        for (int i = 1; i < argument.size(); i++) {
            paths.add(new Path((String) argument.get(i)));
        }
        final Seq all = PythonUtils.toSeq(paths);
        next = 0;
        Class[] kinds = {Seq.class};
        Object seq = Proxy.newProxyInstance(Seq.class.getClassLoader(), kinds,
            new InvocationHandler() {
                public Object invoke(Object self, Method method, Object[] arguments) {
                    String name = method.getName();
                    if (name.equals("iterator")) return counted(paths(all));
                    if (name.equals("hashCode")) return Integer.valueOf(all.hashCode());
                    if (name.equals("equals")) return Boolean.FALSE;
                    throw new UnsupportedOperationException(name);
                }
            });
        Object[] asked = {seq, location, Boolean.FALSE, new Configuration()};
        Object table = of.invoke(roots, asked);
        return Arrays.asList(new Object[] {
            table == null ? null : table.toString(), Integer.valueOf(next)});
    }

    private static Iterator paths(Seq all) {
        ArrayList list = new ArrayList();
        scala.collection.Iterator each = all.iterator();
        while (each.hasNext()) list.add(each.next());
        return list.iterator();
    }

    private scala.collection.Iterator counted(final Iterator each) {
        return new scala.collection.AbstractIterator() {
            public boolean hasNext() {
                return each.hasNext();
            }
            public Object next() {
                next++;
                return each.next();
            }
        };
    }
}
"""
"""Asks ``Roots`` about paths that can only be iterated, and counts them."""


@lru_cache(maxsize=1)
def compiled(gateway: Any) -> Any:
    """Once for every JVM: Py4J takes classes of one name for one class."""
    return java_object(gateway, "RootsOf", ROOTS)


class Finder:
    """``Roots.java`` by itself."""

    def __init__(self, spark: SparkSession) -> None:
        self.gateway = spark.sparkContext._gateway
        self.java = compiled(self.gateway)
        self.java.apply(_pruned[spark.sparkContext.applicationId].calls)

    def of(
        self, paths: Sequence[str], location: str | None = None
    ) -> tuple[str | None, int]:
        """The table, and how many paths were looked at."""
        argument = self.gateway.jvm.java.util.ArrayList()
        for one in (location, *paths):
            argument.add(one)
        found = self.java.apply(argument)
        return found[0], found[1]


@pytest.fixture
def finder(pruned: SparkSession) -> Finder:
    return Finder(pruned)


def test_the_files_of_a_scan_are_looked_at_one_after_the_other(
    finder: Finder, tmp_path: Path
) -> None:
    """Spark has them in a linked list: the last of many is far away."""
    paths = [f"{tmp_path}/p={i % 7}/{i}.parquet" for i in range(5000)]
    assert finder.of(paths) == (None, 5000)
    put(tmp_path / "p=0/0.parquet", 0)
    sx.build_indexes(tmp_path, {"id": "minmax"}, workers=1)
    assert finder.of(paths) == (str(tmp_path), 5000)


def test_too_many_folders_are_not_all_looked_at(finder: Finder, tmp_path: Path) -> None:
    paths = [f"{tmp_path}/day{i}" for i in range(5000)]
    assert finder.of(paths) == (None, 9)


def test_the_folder_of_a_catalog_is_found_among_many(
    finder: Finder, tmp_path: Path
) -> None:
    put(tmp_path / "t/0.parquet", 0)
    sx.build_indexes(tmp_path / "t", {"id": "minmax"}, workers=1)
    others = [f"{tmp_path}/day{i}" for i in range(20)]
    table = str(tmp_path / "t")
    assert finder.of([*others, f"{table}/p=1"], table) == (table, 21)
    assert finder.of([f"{table}/p=1", *others], table) == (table, 1)
    assert finder.of(others, table)[0] is None


def test_a_store_that_fails_is_asked_once(finder: Finder) -> None:
    """The files are read by another way, such as a cache, or the query fails itself."""
    path = "nosuchstore://bucket/t"
    with pytest.raises(Py4JJavaError, match="nosuchstore"):
        finder.of([path])
    assert finder.of([path]) == (None, 1)
    assert finder.of([path]) == (None, 1)


def make(folder: Path) -> Path:
    for i in range(4):
        put_sidecar(folder / f"p={i // 2}" / f"{i}.parquet", {"x": [2 * i, 2 * i + 1]})
    return folder


@pytest.fixture
def sidecar(pruned: SparkSession, tmp_path: Path) -> Iterator[Path]:
    pruned.conf.set(SIDECAR, str(tmp_path / "side"))
    yield tmp_path / "side"
    pruned.conf.unset(SIDECAR)


def n_read(spark: SparkSession, folder: Path, where: str = "x = 3") -> int:
    assert spark.read.parquet(str(folder)).where(where).count() == 1
    plan = sx.last_plans(spark)[-1]
    assert plan.folder == str(folder)
    assert not plan.problem
    return plan.n_read


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["t", "an été of 100% [x]", "n" * 90, ".t", "a+b&c"])
def test_the_driver_finds_the_folder_of_each_table(
    pruned: SparkSession, sidecar: Path, tmp_path: Path, name: str
) -> None:
    folder = make(tmp_path / "of" / name)
    before = contents(folder)
    sx.build_indexes(folder, {"x": "bitmap"}, sidecar=sidecar, workers=1)
    plain = pruned.read.parquet(str(folder / "p=0" / "1.parquet").translate(ESCAPED))
    assert plain.where("x = 3").count() == 1
    frame = pruned.read.parquet(str(folder).translate(ESCAPED))
    assert frame.where("x = 3").count() == 1
    plan = sx.last_plans(pruned)[-1]
    assert (plan.folder, plan.n_read, plan.problem) == (str(folder), 1, "")
    put_sidecar(folder / "p=1" / "4.parquet", {"x": [3]})
    pruned.catalog.refreshByPath(str(folder).translate(ESCAPED))
    frame = pruned.read.parquet(str(folder).translate(ESCAPED))
    assert frame.where("x = 3").count() == 2
    assert sx.last_plans(pruned)[-1].n_read == 2
    assert contents(folder).items() >= before.items()
    assert not (folder / "_skipindex").exists()


ESCAPED = str.maketrans({one: f"\\{one}" for one in "[]{}*?"})
"""Spark takes paths for patterns."""


def test_a_table_with_indexes_beside_its_data_is_pruned_by_these(
    pruned: SparkSession, sidecar: Path, tmp_path: Path
) -> None:
    folder = make(tmp_path / "t")
    sx.build_indexes(folder, {"x": "bitmap"}, workers=1)
    assert n_read(pruned, folder) == 1
    rows = pruned.sql(f"REFRESH INDEXES ON parquet.`{folder}`").collect()
    assert rows[0].files_unchanged == 4
    assert not sidecar.exists()


def test_without_the_setting_the_sidecar_is_unknown(
    pruned: SparkSession, sidecar: Path, tmp_path: Path
) -> None:
    folder = make(tmp_path / "t")
    table = sx.build_indexes(folder, {"x": "bitmap"}, sidecar=sidecar, workers=1).table
    pruned.conf.unset(SIDECAR)
    assert pruned.read.parquet(str(folder)).where("x = 3").count() == 1
    assert "one table with indexes was not found" in str(sx.last_plans(pruned)[-1])
    sx.register(pruned, table)
    assert n_read(pruned, folder) == 1
    other = pruned.newSession()
    other.conf.set(SIDECAR, str(sidecar))
    assert n_read(other, folder, "x = 5") == 1
    assert sx.read(folder, "x = 3", spark=pruned, sidecar=sidecar).count() == 1


def test_a_log_of_another_table_prunes_nothing(
    pruned: SparkSession, sidecar: Path, tmp_path: Path
) -> None:
    folder, other = make(tmp_path / "t"), make(tmp_path / "u")
    for one in (folder, other):
        sx.build_indexes(one, {"x": "bitmap"}, sidecar=sidecar, workers=1)
    own, of_other = sorted(sidecar.iterdir())
    of_other.rename(tmp_path / "aside")
    own.rename(of_other)
    assert pruned.read.parquet(str(other)).where("x = 3").count() == 1
    assert "are of file://" in sx.last_plans(pruned)[-1].problem


def test_statements_keep_indexes_in_the_sidecar(
    pruned: SparkSession, sidecar: Path, tmp_path: Path
) -> None:
    folder = make(tmp_path / "t")
    before = contents(folder)
    pruned.sql(
        f"CREATE TABLE aside (x BIGINT, p INT) USING parquet PARTITIONED BY (p) "
        f"LOCATION 'file:{folder}'"
    )
    try:
        pruned.sql("MSCK REPAIR TABLE aside")
        for name in (f"parquet.`{folder}`", "aside"):
            pruned.sql(f"CREATE INDEX ON {name} (x) USING bitmap").collect()
            shown = pruned.sql(f"SHOW INDEXES ON {name}").collect()
            assert [row.kind for row in shown] == ["minmax", "bitmap"]
            found = pruned.sql(f"EXPLAIN SKIPPING SELECT * FROM {name} WHERE x = 3")
            assert "1 of 4 files" in found.collect()[0].plan
            assert pruned.table(name).where("x = 3 AND p = 0").count() == 1
            assert sx.last_plans(pruned)[-1].n_read == 1
            for text in (f"OPTIMIZE {name}", f"OPTIMIZE {name} FULL ZORDER BY (x)"):
                with pytest.raises(
                    AnalysisException, match="needs the indexes in the tab"
                ):
                    pruned.sql(text).collect()
            pruned.sql(f"DROP INDEX ON {name} (x) USING bitmap").collect()
            pruned.sql(f"VACUUM {name} RETAIN 0 HOURS").collect()
    finally:
        pruned.sql("DROP TABLE aside")
    assert contents(folder) == before
    assert len(list(sidecar.iterdir())) == 1


def test_writers_refuse_a_sidecar_before_they_write(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = make(tmp_path / "t")
    table = sx.build_indexes(folder, {}, sidecar=tmp_path / "side", workers=1).table
    table = table.declare_layout(sx.Clustering(by=["x"]))
    before = contents(tmp_path)
    rows = spark.range(4).selectExpr("id AS x", "0 AS p")
    with pytest.raises(TableError, match="append needs the indexes in the table's"):
        sx.append(rows, table)
    with pytest.raises(TableError, match="optimize needs the indexes in the table's"):
        table.optimize(spark, in_place=True)
    assert contents(tmp_path) == before
    report = table.optimize(spark, into=tmp_path / "copy")
    assert report.table.plan("x = 3").count(spark) == 1
    assert (tmp_path / "copy" / "_skipindex").is_dir(), "a copy has its indexes itself"


def test_files_without_an_index_are_counted_at_each_query(
    pruned: SparkSession, tmp_path: Path
) -> None:
    """Also once the table was listed again, until it is refreshed."""
    for i in range(6):
        put(tmp_path / f"month={i % 2}" / f"{i}.parquet", 10 * i)
    sx.build_indexes(tmp_path, {"id": "bitmap"}, workers=1)
    put(tmp_path / "month=0" / "6.parquet", 60)
    put(tmp_path / "month=1" / "1.parquet", 500)  # another file now
    counts = {"id = 35": 2, "month = 0": 1, "month = 1": 1, "month = 0 AND id = 5": 1}
    for _ in range(2):
        for condition, n_unindexed in counts.items():
            df = pruned.read.parquet(str(tmp_path)).where(condition)
            n_read = files_read(df)
            told = sx.last_plans(pruned)[-1]
            found = (told.n_read, told.n_unindexed)
            assert found == (n_read, n_unindexed), condition
            assert "month" not in condition or "month" in told.condition
    sx.open_table(tmp_path).refresh_indexes(workers=1)
    for condition in counts:
        files_read(pruned.read.parquet(str(tmp_path)).where(condition))
        assert sx.last_plans(pruned)[-1].n_unindexed == 0


def lookups(spark: SparkSession) -> int:
    found: int = _pruned[spark.sparkContext.applicationId].calls.lookups()
    return found


@pytest.fixture
def store(pruned: SparkSession, tmp_path: Path) -> str:
    """A file system that is not the local one; its folder is ``tmp_path``."""
    conf = pruned.sparkContext._jsc.hadoopConfiguration()
    name = f"t{abs(hash(tmp_path))}"
    conf.set(f"fs.viewfs.mounttable.{name}.link./x", f"file://{tmp_path}")
    return f"viewfs://{name}/x"


def partitions(folder: Path, n: int) -> None:
    for i in range(n):
        put(folder / f"p={i}" / "0.parquet", 10 * i)


@pytest.mark.slow
def test_a_table_without_indexes_is_looked_up_once(
    pruned: SparkSession, tmp_path: Path, store: str
) -> None:
    partitions(tmp_path / "plain", 40)
    before = lookups(pruned)
    paths = [f"{store}/plain/p={i}" for i in range(40)]
    for frame in (
        pruned.read.parquet(*paths),
        pruned.read.parquet(f"{store}/plain"),
        pruned.read.parquet(*[f"{path}/0.parquet" for path in paths]),
        pruned.read.parquet(*paths[:30]),
    ):
        assert frame.where("id = 75").count() == 1
    assert lookups(pruned) == before + 1


@pytest.mark.slow
def test_a_catalog_table_without_indexes_is_looked_up_once(
    pruned: SparkSession, tmp_path: Path, store: str
) -> None:
    partitions(tmp_path / "listed", 12)
    pruned.sql(
        "CREATE TABLE listed (id BIGINT, p INT) USING parquet PARTITIONED BY (p) "
        f"LOCATION '{store}/listed'"
    )
    try:
        pruned.sql("ALTER TABLE listed RECOVER PARTITIONS")
        before = lookups(pruned)
        for condition in ("p = 3", "p > 4", "p < 4 AND id < 99", "id = 7"):
            assert pruned.sql(f"SELECT * FROM listed WHERE {condition}").count()
        assert lookups(pruned) == before + 1
    finally:
        pruned.sql("DROP TABLE listed")


def test_a_scan_of_many_folders_asks_for_none(
    pruned: SparkSession, tmp_path: Path, store: str
) -> None:
    for i in range(12):
        put(tmp_path / f"day{i}" / "0.parquet", 10 * i)
    before = lookups(pruned)
    paths = [f"{store}/day{i}" for i in range(12)]
    assert pruned.read.parquet(*paths).where("id = 75").count() == 1
    assert lookups(pruned) == before


def test_files_of_another_place_with_the_same_path(
    pruned: SparkSession, tmp_path: Path
) -> None:
    """A mirror may have files of the same path, size and time, and other rows."""
    conf = pruned.sparkContext._jsc.hadoopConfiguration()
    name = f"m{abs(hash(tmp_path))}"
    for folder, first in (("t", 200), ("mirror", 100)):
        (tmp_path / folder).mkdir()
        numbers = pa.table({"id": list(range(first, first + 10))})
        pq.write_table(numbers, tmp_path / folder / "0.parquet", compression="none")
    sx.build_indexes(tmp_path / "t", {"id": "bitmap"}, workers=1)
    stamp = (tmp_path / "t/0.parquet").stat()
    os.utime(tmp_path / "mirror/0.parquet", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert (tmp_path / "mirror/0.parquet").stat().st_size == stamp.st_size
    conf.set(
        f"fs.viewfs.mounttable.{name}.link.{tmp_path}/t", f"file://{tmp_path}/mirror"
    )
    paths = [str(tmp_path / "t"), f"viewfs://{name}{tmp_path}/t"]
    frame = pruned.read.parquet(*paths)
    assert frame.where("id = 105").count() == 1
    assert frame.where("id = 205").count() == 1


@pytest.fixture(params=[False, True], ids=["folded", "exact"])
def exact(request: pytest.FixtureRequest, pruned: SparkSession) -> Iterator[bool]:
    """Whether capitals tell names apart in the session, which asks for answers too."""
    pruned.conf.set("spark.sql.caseSensitive", str(request.param).lower())
    pruned.conf.set("skipindex.answers", "true")
    yield request.param
    pruned.conf.unset("skipindex.answers")
    pruned.conf.unset("spark.sql.caseSensitive")


@pytest.mark.few(1)
@pytest.mark.parametrize("kinds", ["bitmap", "bloom"])
def test_a_name_is_the_column_that_spark_reads(
    tmp_path: Path,
    pruned: SparkSession,
    exact: bool,
    kinds: str,
) -> None:
    random = Random(11)
    for case in range(2 if RUN.is_whole else 1):
        drawn = Table.draw(random)
        folder = str(drawn.write(tmp_path / f"{case}"))
        sx.build_indexes(folder, {"*": kinds}, workers=1)
        columns = drawn.schema(exact=exact)
        names = [n for n in NAMES if any(same(n, c, exact) for c in columns)]
        for name in random.sample(names, min(2 if RUN.is_whole else 1, len(names))):
            condition = random.choice(CONDITIONS)
            ids = random.sample(range(4 * len(drawn.files)), 4)
            found = {
                n: value
                for file in range(len(drawn.files))
                for n, value in zip(
                    ids_of(file), drawn.values(file, name, exact=exact), strict=True
                )
                if n in ids and is_true(value, condition)
            }
            text = f"id IN ({', '.join(map(str, ids))}) AND {name} {condition}"
            rows = pruned.read.parquet(folder).where(text)
            case_of = (drawn, text)
            assert dict(rows.select("id", name).collect()) == found, case_of
            assert rows.groupBy().count().first()[0] == len(found), case_of
            ends = rows.selectExpr(f"min({name})", f"max({name})").first()
            known = [v for v in found.values() if v is not None]
            expected = (min(known, default=None), max(known, default=None))
            assert tuple(ends) == expected, case_of
            read = sx.read(folder, text, spark=pruned)
            assert {r["id"] for r in read.collect()} == set(found), case_of
