"""Statements of skipindex as SQL of a session."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Row, SparkSession

import skipindex as sx
from tests.spark.compiled import java_object
from tests.spark.versions import since
from tests.tables import made

pytestmark = pytest.mark.spark

N_FILES = 6
ROWS = 20
"""Of every file."""


def make(table: Path) -> None:
    """Two days of three files each; every file has all values of ``rest``."""
    for file in range(N_FILES):
        ids = range(file * ROWS, (file + 1) * ROWS)
        folder = table / f"day={file // 3}"
        folder.mkdir(parents=True, exist_ok=True)
        columns = {
            "id": pa.array(ids, pa.int64()),
            "rest": pa.array([i % 5 for i in ids], pa.int32()),
            "name": [f"n{i}" for i in ids],
        }
        pq.write_table(pa.table(columns), folder / f"part-{file}.parquet")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made(tmp_path / "t", make)


@pytest.fixture
def named(spark: SparkSession, folder: Path) -> Iterator[str]:
    """The folder as a table of the catalog, in a database that is not the current."""
    spark.sql("CREATE DATABASE IF NOT EXISTS shop")
    spark.sql(
        "CREATE TABLE shop.`orders` (id BIGINT, rest INT, name STRING, day INT) "
        f"USING parquet PARTITIONED BY (day) LOCATION 'file:{folder}'"
    )
    spark.sql("MSCK REPAIR TABLE shop.`orders`")
    sx.enable(spark)
    yield "shop.`orders`"
    sx.disable(spark)
    spark.sql("DROP DATABASE shop CASCADE")


def rows(spark: SparkSession, text: str) -> list[dict[str, Any]]:
    return [row.asDict() for row in spark.sql(text).collect()]


def test_a_table_of_the_catalog_is_indexed(
    spark: SparkSession, named: str, folder: Path
) -> None:
    query = f"SELECT * FROM {named} WHERE rest = 3 ORDER BY id"
    before = spark.sql(query).collect()
    (built,) = rows(spark, f"CREATE INDEX ON {named} (name, rest) USING bitmap")
    assert (built["files_indexed"], built["files_unread"]) == (N_FILES, 0)
    shown = rows(spark, f"SHOW INDEXES ON {named}")
    assert [(one["column"], one["kind"]) for one in shown] == [
        ("id", "minmax"),
        ("rest", "minmax"),
        ("rest", "bitmap"),
        ("name", "minmax"),
        ("name", "bitmap"),
    ]
    dropped = rows(spark, f"DROP INDEX ON {named} (name)")
    assert [one["kind"] for one in dropped] == ["minmax", "bitmap"]
    left = {(i.column, i.kind) for i in sx.open_table(folder).indexes}
    assert left == {("id", "minmax"), ("rest", "minmax"), ("rest", "bitmap")}
    assert spark.sql(query).collect() == before


@pytest.mark.slow
def test_a_table_of_the_catalog_is_clustered_and_published(
    spark: SparkSession, named: str, folder: Path
) -> None:
    query = f"SELECT * FROM {named} WHERE rest = 3 ORDER BY id"
    before = spark.sql(query).collect()
    rows(spark, f"CREATE INDEX ON {named} (name, rest) USING bitmap")
    (done,) = rows(
        spark,
        f"OPTIMIZE TABLE {named} WHERE day = 1 ZORDER BY rest LOCALLY ORDERED BY (id)",
    )
    assert (done["files_removed"], done["rows"]) == (3, 3 * ROWS)
    assert done["files_added"] == 1
    assert sx.open_table(folder).status().layout is None  # it is one of a part
    (done,) = rows(spark, f"OPTIMIZE {named} FULL HILBERT BY (rest, id)")
    assert (done["files_removed"], done["rows"]) == (4, N_FILES * ROWS)
    (would,) = rows(spark, f"VACUUM {named} RETAIN 0 HOURS DRY RUN")
    assert would["published"] == 2
    first = min(path for path in would["paths"] if "part-" in path)
    assert first == "day=0/part-0.parquet"
    assert len(list(folder.glob("day=*/part-?.parquet"))) == N_FILES
    (deleted,) = rows(spark, f"VACUUM {named} RETAIN 0 HOURS")
    assert deleted["published"] == 2
    assert not list(folder.glob("day=*/part-?.parquet"))
    assert spark.sql(query).collect() == before
    layout = sx.open_table(folder).status().layout
    assert layout is not None
    assert (layout["cluster_by"], layout["curve"]) == (["rest", "id"], "hilbert")


def test_a_path_is_a_table_too(spark: SparkSession, named: str, folder: Path) -> None:
    shutil.copytree(folder, folder.parent / "it's")
    del named  # which has enabled the session
    path = f"'{folder.parent}/it\\'s'"
    (built,) = rows(spark, f"CREATE INDEX ON {path} USING bloom")
    assert built["files_indexed"] == N_FILES
    (again,) = rows(spark, f"REFRESH INDEXES ON {path}")
    assert (again["files_indexed"], again["files_unchanged"]) == (0, N_FILES)
    shown = rows(spark, f"SHOW INDEXES ON parquet.`{folder.parent}/it's`")
    assert {one["kind"] for one in shown} == {"minmax", "bloom"}
    dropped = rows(spark, f"DROP INDEX ON {path} USING bloom")
    assert {one["kind"] for one in dropped} == {"bloom"}
    told = {r["name"]: r["value"] for r in rows(spark, f"DESCRIBE SKIPPING {path}")}
    assert (told["files"], told["column id"]) == (str(N_FILES), "minmax")
    assert told["column day"] == "partition column"


def test_a_distribution_is_that_of_the_next_append_and_optimize(
    spark: SparkSession, named: str, folder: Path
) -> None:
    (found,) = rows(
        spark,
        f"ALTER TABLE {named} DISTRIBUTED BY ZORDER (rest, id) LOCALLY ORDERED BY (id)",
    )
    assert found == {
        "distributed_by": ["rest", "id"],
        "curve": "zorder",
        "locally_ordered_by": ["id"],
    }
    assert len(sx.open_table(folder)) == N_FILES
    more = spark.range(1000, 1100).selectExpr(
        "id", "CAST(id % 5 AS INT) rest", "'x' name", "1 day"
    )
    sx.append(more, folder)
    (done,) = rows(spark, f"OPTIMIZE {named}")
    assert done["rows"] >= N_FILES * ROWS
    layout = sx.open_table(folder).status().layout
    assert layout is not None
    assert (layout["curve"], layout["sort_within"]) == ("zorder", ["id"])
    with pytest.raises(AnalysisException, match="no column 'nothing'"):
        spark.sql(f"ALTER TABLE {named} DISTRIBUTED BY HASH (nothing)")


@pytest.fixture
def dotted(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """A table with a struct and columns whose names have dots."""
    for file in range(2):
        columns = {
            "a": pa.array([{"b": file, "c": 1}] * 2),
            "a.b": pa.array([10 + file] * 2, pa.int64()),
            "Other": pa.array([file, 3], pa.int64()),
        }
        place = tmp_path / "dotted" / f"p.q={file}"
        place.mkdir(parents=True)
        pq.write_table(pa.table(columns), place / "part.parquet")
    sx.enable(spark)
    yield tmp_path / "dotted"
    sx.disable(spark)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("written", "column"),
    [
        ("a.b", "a.b"),
        ("A.B", "a.b"),
        ("`a`.`B`", "a.b"),
        ("`a.b`", "`a.b`"),
        ("`A.B`", "`a.b`"),
        ("OTHER", "Other"),
    ],
)
def test_indexes_are_of_the_column_that_sql_names(
    spark: SparkSession, dotted: Path, written: str, column: str
) -> None:
    names = {"a.b", "`a.b`", "Other"}
    spark.sql(f"CREATE INDEX ON '{dotted}' ({written}) USING bitmap")
    assert {i.column for i in sx.open_table(dotted).indexes if i.kind == "bitmap"} == {
        column
    }
    spark.sql(f"CREATE INDEX ON '{dotted}' (a.b, `a.b`, other) USING bitmap")
    dropped = rows(spark, f"DROP INDEX ON '{dotted}' ({written}) USING bitmap")
    assert [one["column"] for one in dropped] == [column]
    left = {i.column for i in sx.open_table(dotted).indexes if i.kind == "bitmap"}
    assert left == names - {column}


def test_layouts_are_of_the_column_that_sql_names(
    spark: SparkSession, dotted: Path
) -> None:
    spark.sql(f"CREATE INDEX ON '{dotted}' USING minmax")
    orders = "ZORDER {}(`A.B`, OTHER) LOCALLY ORDERED BY (`a.B`)"
    for text in (
        f"ALTER TABLE '{dotted}' DISTRIBUTED BY {orders.format('')}",
        f"OPTIMIZE '{dotted}' {orders.format('BY ')}",
    ):
        spark.sql(text)
        layout = sx.open_table(dotted).status().layout
        assert layout is not None
        assert layout["cluster_by"] == ["a.b", "Other"]
        assert layout["sort_within"] == ["a.b"]
    for by, order in (("a.b", "other"), ("other", "A.B")):
        for text in ("ALTER TABLE '{}' DISTRIBUTED BY HASH", "OPTIMIZE '{}' HASH BY"):
            statement = f"{text.format(dotted)} {by} LOCALLY ORDERED BY {order}"
            with pytest.raises(AnalysisException, match="is a field of a struct"):
                spark.sql(statement)


def test_a_condition_is_on_the_partition_column_that_sql_names(
    spark: SparkSession, dotted: Path
) -> None:
    (done,) = rows(spark, f"OPTIMIZE '{dotted}' FULL WHERE `P.q` = 1 ZORDER BY other")
    assert done["files_removed"] == 1
    for text in ("p.q = 1", "`a.b` = 10"):
        with pytest.raises(AnalysisException):
            spark.sql(f"OPTIMIZE '{dotted}' FULL WHERE {text} ZORDER BY other")


def test_what_a_query_would_read_is_explained_and_it_does_not_run(
    spark: SparkSession, named: str, folder: Path
) -> None:
    spark.sql(f"CREATE INDEX ON {named} (id) USING minmax")
    query = f"SELECT count(*) FROM {named} WHERE id = 25 AND day = 0"
    (found,) = rows(spark, f"EXPLAIN SKIPPING {query}")
    assert found["plan"].startswith(f"{folder}: 1 of ")
    assert "id = 25" in found["plan"]
    spark.sql(f"EXPLAIN SKIPPING CREATE TABLE shop.never USING parquet AS {query}")
    assert not spark.catalog.tableExists("shop.never")
    (found,) = rows(spark, "EXPLAIN SKIPPING SELECT 1")
    assert found["plan"] == "no scan of a known table"


def test_each_scan_is_explained_once(
    spark: SparkSession, named: str, folder: Path
) -> None:
    """Also one that another scan is joined with, which is read for its keys before."""
    spark.range(9).selectExpr("id", "concat('d', id) label").write.parquet(
        str(folder.parent / "d")
    )
    for path in (folder, folder.parent / "d"):
        spark.sql(f"CREATE INDEX ON '{path}' (id) USING bitmap")
    for query, scanned in {
        f"SELECT 1 FROM {named} JOIN parquet.`{folder.parent}/d` USING (id) "
        "WHERE label = 'd1'": ["d", "t"],
        f"SELECT 1 FROM {named} JOIN {named} USING (id) WHERE id = 1": ["t", "t"],
        f"SELECT name FROM {named} WHERE id = 1 UNION ALL "
        f"SELECT name FROM {named} WHERE id = 1": ["t", "t"],
    }.items():
        found = rows(spark, f"EXPLAIN SKIPPING {query}")
        folders = [row["plan"].partition(":")[0] for row in found]
        assert sorted(Path(one).name for one in folders) == scanned


@since(4, 1, what="arguments that reach the parsers of extensions")
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("text", "args", "same"),
    [
        (
            "EXPLAIN SKIPPING SELECT * FROM {named} WHERE id = :i AND name != ':i'",
            {"i": 25, "unused": 1},
            "EXPLAIN SKIPPING SELECT * FROM {named} WHERE id = 25 AND name != ':i'",
        ),
        (
            "EXPLAIN SKIPPING SELECT * FROM {named} WHERE id IN (?, ?) LIMIT ?",
            [25, 26, 3],
            "EXPLAIN SKIPPING SELECT * FROM {named} WHERE id IN (25, 26) LIMIT 3",
        ),
        (
            "EXPLAIN SKIPPING SELECT * FROM {named} WHERE IDENTIFIER(:c) = 25",
            {"c": "id"},
            "EXPLAIN SKIPPING SELECT * FROM {named} WHERE id = 25",
        ),
        ("VACUUM {named} RETAIN :h HOURS DRY RUN", {"h": 1 << 4}, None),
        ("VACUUM {named} RETAIN ? DAYS DRY RUN", [2], None),
        ("SHOW INDEXES ON :t", {"t": "{folder}"}, "SHOW INDEXES ON '{folder}'"),
        ("DESCRIBE SKIPPING ?", ["{folder}"], "DESCRIBE SKIPPING '{folder}'"),
    ],
)
def test_statements_take_arguments(
    spark: SparkSession,
    named: str,
    folder: Path,
    text: str,
    args: dict[str, Any] | list[Any],
    same: str | None,
) -> None:
    spark.sql(f"CREATE INDEX ON {named} (id) USING minmax")
    places = {"named": named, "folder": folder}
    given = json.loads(json.dumps(args).replace("{folder}", str(folder)))
    found = spark.sql(text.format(**places), args=given).collect()
    if same is not None:
        assert found == spark.sql(same.format(**places)).collect()
    else:
        assert [row.published for row in found] == [0]


@since(4, 1, what="arguments that reach the parsers of extensions")
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("where", "args"),
    [
        ("day = :d", {"d": 1}),
        ("day IN (?, ?)", [1, 7]),
        ("day BETWEEN :a AND :b", {"a": 1, "b": 1 << 40}),
    ],
)
def test_the_condition_of_optimize_takes_arguments(
    spark: SparkSession, named: str, where: str, args: dict[str, Any] | list[Any]
) -> None:
    (done,) = spark.sql(f"OPTIMIZE {named} WHERE {where}", args=args).collect()
    assert (done["files_removed"], done["rows"]) == (3, 3 * ROWS)


def test_a_marker_without_an_argument_is_named(spark: SparkSession, named: str) -> None:
    why = "near ':d': expected an argument for it, or a literal"
    for text in ("OPTIMIZE {} WHERE day = :d", "VACUUM {} RETAIN :d HOURS"):
        with pytest.raises(ParseException, match=why):
            spark.sql(text.format(named))


def test_a_command_runs_once_and_its_frame_has_the_rows(
    spark: SparkSession, named: str, folder: Path
) -> None:
    frame = spark.sql(f"CREATE INDEX ON {named} (id) USING minmax")
    commit = sx.open_table(folder).status().version
    assert [frame.count(), len(frame.collect())] == [1, 1]
    assert frame.where("files_indexed = 6").select("bytes").first() == Row(bytes=0)
    assert sx.open_table(folder).status().version == commit == 0


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("OPTIMIZE shop.nothing", "'shop.nothing' does not exist"),
        ("OPTIMIZE '/nothing/there'", "'/nothing/there' does not exist"),
        ("SHOW INDEXES ON some_view", "'some_view' is a temporary view"),
        ("VACUUM shop.texts", "'shop.texts' is a table of the format csv"),
        ("OPTIMIZE {named} WHERE id = 3", "files are chosen by partition columns"),
        ("CREATE INDEX ON {named} (nme) USING bloom", "no column 'nme'"),
        ("CREATE INDEX ON {named} (id) USING btree", "unknown index kind 'btree'"),
        ("CREATE INDEX ON '{delta}'", "is a Delta table"),
        ("CREATE INDEX i ON {named} (id)", "have no names, found i (accepted: CREATE"),
        ("DROP INDEX IF EXISTS i ON '{folder}'", "names, found i (accepted: DROP"),
        ("CREATE INDEX i ON shop.texts (a)", "CreateIndex is not supported"),
        ("EXPLAIN SKIPPING SELEC 1", "PARSE_SYNTAX_ERROR"),
    ],
)
def test_what_cannot_be_done_says_why(
    spark: SparkSession, named: str, folder: Path, text: str, problem: str
) -> None:
    spark.range(1).createOrReplaceTempView("some_view")
    spark.sql("CREATE TABLE shop.texts (a INT) USING csv")
    delta = folder.parent / "delta"
    (delta / "_delta_log").mkdir(parents=True)
    (delta / "_delta_log" / "0.json").touch()
    shutil.copy(folder / "day=0" / "part-0.parquet", delta)
    with pytest.raises(AnalysisException) as caught:
        spark.sql(text.format(named=named, delta=delta, folder=folder))
    assert problem in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_a_mistake_is_told_as_sparks_own_parser_tells_one(
    spark: SparkSession, named: str
) -> None:
    with pytest.raises(ParseException) as caught:
        spark.sql(f"OPTIMIZE {named}\n  ZORDER (id)")
    told = str(caught.value)
    assert "Syntax error at or near 'ZORDER': expected FULL, WHERE, ZORDER BY" in told
    assert "(line 2, pos 2)" in told
    with pytest.raises(ParseException, match="near 'OPTIMIZE'"):
        spark.sql("OPTIMIZE 'no end")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'OPTIMIZE t' AS vacuum",
        "ALTER TABLE {named} SET TBLPROPERTIES ('a' = 'distributed by')",
        "DESCRIBE {named}",
        "SHOW TABLES IN shop",
    ],
)
def test_other_texts_are_as_without(spark: SparkSession, named: str, text: str) -> None:
    own = spark.sql(text.format(named=named)).collect()
    sx.disable(spark)
    assert spark.sql(text.format(named=named)).collect() == own


def test_all_sessions_of_the_application_take_statements_until_they_are_disabled(
    spark: SparkSession, named: str
) -> None:
    other = spark.newSession()
    other.sql("USE shop")
    spark.sql(f"CREATE INDEX ON {named} (id) USING minmax")
    found = rows(other, "SHOW INDEXES ON `orders`")  # of its own database
    assert [one["column"] for one in found] == ["id", "rest", "name"]
    sx.disable(spark)
    for session in (spark, other):
        with pytest.raises(ParseException, match="OPTIMIZE"):
            session.sql(f"OPTIMIZE {named}")
    sx.enable(other)
    assert rows(spark, f"SHOW INDEXES ON {named}") == found


THEIRS = """
package skipindex.test;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.internal.SessionState;

/** Puts a parser in front of that of a session, as another extension would. */
public class Theirs implements InvocationHandler {
    private ParserInterface below;

    public void put(SessionState state) throws Exception {
        below = state.sqlParser();
        Class[] faces = new Class[] {ParserInterface.class};
        ClassLoader loader = ParserInterface.class.getClassLoader();
        set(state, Proxy.newProxyInstance(loader, faces, this));
    }

    public void takeAway(SessionState state) throws Exception {
        set(state, below);
    }

    private static void set(SessionState state, Object parser) throws Exception {
        Field field = SessionState.class.getDeclaredField("sqlParser");
        field.setAccessible(true);
        field.set(state, parser);
    }

    public Object invoke(Object proxy, Method method, Object[] arguments)
            throws Throwable {
        boolean isTheirs = method.getName().startsWith("parsePlan")
            && ((String) arguments[0]).matches("(?i)(OPTIMIZE|VACUUM) .*theirs.*");
        try {
            if (isTheirs) return below.parsePlan("SELECT 'theirs' AS whose");
            return method.invoke(below, arguments);
        } catch (InvocationTargetException wrapped) {
            throw wrapped.getCause();
        }
    }
}
"""


def test_a_statement_of_another_parser_is_left_to_it(
    spark: SparkSession, named: str
) -> None:
    """As with Delta, whose OPTIMIZE and VACUUM are for tables of its own."""
    theirs = java_object(spark.sparkContext._gateway, "Theirs", THEIRS)
    session = spark.newSession()
    state = session._jsparkSession.sessionState()
    theirs.put(state)
    sx.enable(session)
    for text in ("OPTIMIZE shop.theirs", "VACUUM '/of/theirs' RETAIN 1 HOURS"):
        assert session.sql(text).collect() == [Row(whose="theirs")]
    assert rows(session, f"VACUUM {named} DRY RUN")[0]["published"] == 0
    with pytest.raises(AnalysisException, match="does not exist"):
        session.sql("OPTIMIZE shop.nothing")
    with pytest.raises(ParseException, match="expected FULL, WHERE"):
        session.sql(f"OPTIMIZE {named} ZORDER")
    theirs.takeAway(state)


def test_rows_of_results_may_have_any_text(spark: SparkSession, named: str) -> None:
    """A condition with quotes and lines comes back as it was."""
    spark.sql(f"CREATE INDEX ON {named} (name) USING minmax")
    (found,) = rows(
        spark, f"EXPLAIN SKIPPING SELECT * FROM {named} WHERE name = 'a\\'\\n\"\\\\ü'"
    )
    assert json.loads(json.dumps(found["plan"])).count("ü") >= 1
