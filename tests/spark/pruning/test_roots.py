"""Which table the paths of a scan lie in, and what it costs to find it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

import skipindex as sx
from skipindex.spark.pruning.session import _pruned
from tests.spark.compiled import java_object
from tests.spark.pruning.questions import put

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
