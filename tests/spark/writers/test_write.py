"""Tables written end to end: the same rows, in better files, with their indexes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import skipindex as sx
from skipindex.api.types import Progress
from skipindex.errors import LayoutError, TableError
from skipindex.log import read_snapshot
from skipindex.spark.writers import file_size
from skipindex.spark.writers.file_size import ROWS_PER_GROUP
from tests.spark.reading.whole import columns, rows, settings
from tests.spark.versions import since

pytestmark = pytest.mark.spark

N_ROWS = 400
COUNTED = since(4, 1, what="row groups of a number of rows")
ORDERED = {"id", "a", "b", "d", "city", "price", "p"}


@pytest.fixture(scope="module")
def df(spark: SparkSession) -> DataFrame:
    """Rows with NULL, NaN and -0.0 in them, in no order."""
    made = spark.range(N_ROWS).selectExpr(
        "id",
        "id * 7919 % 400 AS a",
        "CASE WHEN id % 10 = 0 THEN NULL ELSE id * 104729 % 100 END AS b",
        "CASE id % 7 WHEN 0 THEN double('NaN') WHEN 1 THEN -0.0D ELSE id / 3D END AS d",
        "concat('city ', id % 5) AS city",
        "CAST(id / 8 AS DECIMAL(9, 3)) AS price",
        "array(id, NULL) AS tags",
        "CASE WHEN id % 9 = 0 THEN NULL ELSE id % 3 END AS p",
    )
    return made.cache()


def files(path: Path) -> list[Path]:
    """Visible ones: hidden names of them are there until the next vacuum."""
    found = path.rglob("*.parquet")
    return sorted(p for p in found if not p.parent.name.startswith("_skipindex-"))


def test_rows_schema_and_nulls_are_unchanged(
    spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    table = sx.write_table(
        df,
        path,
        layout=sx.Clustering(by=["a", "b"], rows_per_file=50),
        indexes={"a": "bitmap", "b": ["bit_sliced", "bloom"], "city": "bitmap"},
    )
    written = spark.read.parquet(str(path))
    assert columns(written) == columns(df)
    assert rows(written) == rows(df)
    assert 6 <= len(table) == len(files(path)) <= 10
    assert sum(pq.read_metadata(f).num_rows for f in files(path)) == N_ROWS


def test_a_clustered_table_skips_files_and_knows_its_layout(
    df: DataFrame, tmp_path: Path
) -> None:
    table = sx.write_table(
        df,
        tmp_path / "t",
        layout=sx.Clustering(by=["a", "b"], rows_per_file=50),
        indexes={"a": []},
    )
    plan = table.plan("a BETWEEN 10 AND 30")
    assert 0 < len(plan.paths) < len(table)
    assert table.state.snapshot.properties.to_json()["layout"] == {
        "cluster_by": ["a", "b"],
        "curve": "hilbert",
        "partition_by": [],
        "sort_within": [],
        "rows_per_file": 50,
    }
    assert set(table.state.snapshot.manifest.stats) == ORDERED
    assert 0 < len(table.plan("b BETWEEN 10 AND 30").paths) <= len(table)
    assert table.state.index_gaps == {}


def test_by_default_every_ordered_column_gets_statistics(
    df: DataFrame, tmp_path: Path
) -> None:
    table = sx.write_table(df, tmp_path / "t")
    assert set(table.state.snapshot.manifest.stats) == ORDERED
    assert table.plan("a = 1000").paths == []
    assert table.plan("d > 1e6").paths == table.paths, "NaN is above"


@pytest.mark.slow
def test_partitions_and_clustering_together(
    spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    table = sx.write_table(
        df,
        path,
        layout=sx.Clustering(by=["a"], rows_per_file=40),
        partition_by=["p"],
        indexes={"a": "bitmap", "city": "bloom"},
    )
    assert {column.name for column in table.state.partitions} == {"p"}
    assert rows(spark.read.parquet(str(path)).select(*df.columns)) == rows(df)
    for condition in ("p = 1 AND a < 100", "p IS NULL", "city = 'city 3' AND p > 0"):
        plan = table.plan(condition)
        assert len(plan.paths) < len(table)
        found = sx.read(table, condition, spark=spark).select(*df.columns)
        assert rows(found) == rows(df.where(condition)), condition


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"by": []},
        {"by": ["a"], "curve": "none"},
        {"by": ["a", "price"], "curve": "zorder"},
        {"by": ["a"], "curve": "linear"},
        {"by": ["b", "d"], "sort_within": ["city"]},
        {"sort_within": ["city", "a"]},
    ],
    ids=str,
)
def test_every_way_to_lay_rows_out_keeps_them(
    spark: SparkSession, df: DataFrame, tmp_path: Path, options: Mapping[str, Any]
) -> None:
    path = tmp_path / "t"
    shape = sx.Clustering(rows_per_file=100, **options)
    table = sx.write_table(df, path, layout=shape)
    assert spark.read.parquet(str(path)).exceptAll(df).isEmpty()
    assert sum(table.state.n_rows.or_else(-1)) == N_ROWS
    layout = table.state.snapshot.properties.to_json()["layout"]
    curve = options.get("curve", "hilbert")
    clustered = curve if options.get("by") and curve != "none" else None
    assert layout["cluster_by"] == list(options.get("by", []))
    assert layout["curve"] == clustered
    biggest = max(table.state.n_rows.or_else(-1))
    assert biggest <= (100 if not clustered else 200)


def test_names_of_any_characters(
    spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    odd = df.selectExpr("a AS `x.y`", "b AS `p q`", "city AS `select`")
    table = sx.write_table(
        odd,
        tmp_path / "t",
        layout=sx.Clustering(
            by=["x.y", "p q"], sort_within=["select", "x.y"], rows_per_file=100
        ),
        indexes={"x.y": "bitmap"},
    )
    assert table.plan("`x.y` = 1000").paths == []
    assert 0 < len(table.plan("`x.y` < 50").paths) < len(table)
    found = sx.read(table, "`x.y` < 50 AND `select` = 'city 1'", spark=spark)
    assert rows(found) == rows(odd.where("`x.y` < 50 AND `select` = 'city 1'"))


def test_a_folder_that_is_not_empty_is_refused(df: DataFrame, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "_SUCCESS").write_bytes(b"")
    with pytest.raises(
        TableError, match=r"is not empty \(pass overwrite=True"
    ) as error:
        sx.write_table(df, tmp_path / "t")
    assert "\n" not in str(error.value)
    assert files(tmp_path / "t") == []


def test_a_file_in_the_place_of_the_folder_is_refused(
    df: DataFrame, tmp_path: Path
) -> None:
    (tmp_path / "t").write_bytes(b"")
    for overwrite in (False, True):
        with pytest.raises(TableError, match="is a file"):
            sx.write_table(df, tmp_path / "t", overwrite=overwrite)


def test_overwrite_keeps_the_indexes_that_were_asked_for(
    df: DataFrame, tmp_path: Path
) -> None:
    """The advisor chooses where nobody asked; a column may be gone, or of a type."""
    path = tmp_path / "t"
    asked: Any = {"a": "bitmap", "city": ["bloom", "ngram_bloom"], "*": None}
    sx.write_table(df.coalesce(1), path, indexes=asked)
    other = df.selectExpr("a", "length(city) AS city", "p").coalesce(1)
    for new, kinds in ((df.coalesce(1), asked["city"]), (other, ["bloom"])):
        table = sx.write_table(new, path, overwrite=True)
        found = {(i.column, i.kind) for i in table.indexes if i.kind != "minmax"}
        assert found == {("a", "bitmap"), *(("city", kind) for kind in kinds)}
    assert table.state.snapshot.properties.choice is None
    chosen = sx.write_table(other, tmp_path / "u", indexes=None)
    again = sx.write_table(other, tmp_path / "u", overwrite=True)
    assert again.state.snapshot.properties.choice is not None
    assert {i.kind for i in chosen.indexes} == {i.kind for i in again.indexes}


def test_overwrite_replaces_rows_and_indexes(
    spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    sx.write_table(df, path, indexes={"a": "bitmap"})
    table = sx.write_table(
        df.where("a < 5"), path, indexes={"b": "bloom"}, overwrite=True
    )
    assert spark.read.parquet(str(path)).count() == 5
    assert set(table.state.snapshot.manifest.stats) == ORDERED
    assert not table.state.blobs(table.state.resolve("a"))
    assert table.state.snapshot.version == read_snapshot(table.state.location).version
    assert set(table.state.snapshot.manifest.paths) == set(table.paths)


@pytest.mark.slow
def test_overwrite_replaces_partitions_that_are_gone(
    spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    """Also in a session that overwrites only the partitions that it writes."""
    path = tmp_path / "t"
    sx.write_table(df, path, partition_by=["p"])
    with settings(spark, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}):
        table = sx.write_table(
            df.where("p = 1"), path, partition_by=["p"], overwrite=True
        )
    assert {Path(name).parts[0] for name in table.paths} == {"p=1"}
    assert spark.read.parquet(str(path)).where("p <> 1").isEmpty()


@pytest.mark.slow
def test_a_frame_without_rows_is_a_table_too(
    spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    nothing = df.where("a < 0")
    for i, by in enumerate(([], ["a", "b"])):
        table = sx.write_table(nothing, tmp_path / str(i), layout=sx.Clustering(by=by))
        assert table.plan("a = 1").paths == []
        assert columns(spark.read.parquet(str(tmp_path / str(i)))) == columns(df)


def test_options_go_to_sparks_writer(df: DataFrame, tmp_path: Path) -> None:
    sx.write_table(df, tmp_path / "t", options={"compression": "zstd"})
    metadata = pq.read_metadata(files(tmp_path / "t")[0])
    assert metadata.row_group(0).column(0).compression == "ZSTD"


@pytest.mark.few(1)
@pytest.mark.parametrize("by", [[], ["id"]], ids=["in order", "clustered"])
@pytest.mark.parametrize("codec", ["snappy", "uncompressed"])
def test_files_of_a_size_have_about_that(
    spark: SparkSession, tmp_path: Path, by: list[str], codec: str
) -> None:
    """An append goes by it too."""
    df = spark.range(20_000).selectExpr("id", "sha1(string(id)) AS text")
    table = sx.write_table(
        df,
        tmp_path / "t",
        layout=sx.Clustering(by=by, bytes_per_file="200kB"),
        options={"compression": codec},
        indexes={},
    )
    total = 20_000 * (50 if codec == "uncompressed" else 48)
    assert total * 0.7 / 200_000 <= len(table) <= total * 1.3 / 200_000 + 2
    layout = table.status().layout
    assert layout is not None
    assert (layout["bytes_per_file"], layout.get("rows_per_file")) == (200_000, None)
    assert 2 * len(table) - 2 <= len(sx.append(df, table)) <= 2 * len(table) + 2


def groups(table: sx.Table) -> list[list[int]]:
    """Of each file, the rows of its row groups."""
    found = [pq.read_metadata(table.state.location.full(path)) for path in table.paths]
    return [
        [one.row_group(i).num_rows for i in range(one.num_row_groups)] for one in found
    ]


@COUNTED
def test_row_groups_have_the_rows_that_are_asked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    layout = sx.Clustering(by=["id"], rows_per_file=500, rows_per_group=200)
    table = sx.write_table(spark.range(1000), tmp_path / "t", layout=layout)
    assert groups(table) == [[200, 200, 100]] * 2


@pytest.mark.slow
@COUNTED
def test_row_groups_of_what_is_appended_and_rewritten(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The writer's own option counts before the layout."""
    layout = sx.Clustering(by=["id"], rows_per_file=500, rows_per_group=200)
    table = sx.write_table(spark.range(1000), tmp_path / "t", layout=layout)
    table = sx.append(spark.range(1000, 1500), table)
    assert groups(table) == [[200, 200, 100]] * 3
    copy = table.optimize(spark, into=tmp_path / "copy").table
    assert [max(rows) for rows in groups(copy)] == [200] * 3
    table = table.declare_layout(sx.Clustering(rows_per_group=400))
    half = sx.Clustering(rows_per_file=750)
    table = table.optimize(spark, mode="full", layout=half).table
    assert [one[0] for one in groups(table)] == [400, 400]
    options = {"Parquet.Block.Size": "100000000"}
    table = sx.append(spark.range(1500, 2250), table, options=options)
    assert groups(table)[-1] == [750]
    with pytest.raises(LayoutError, match="row groups of 0 rows"):
        table.optimize(spark, layout=sx.Clustering(rows_per_group=0))


@COUNTED
def test_row_groups_have_some_rows_by_default(
    spark: SparkSession, tmp_path: Path
) -> None:
    n_rows = ROWS_PER_GROUP + 1
    table = sx.write_table(spark.range(n_rows).repartition(1), tmp_path / "t")
    assert groups(table) == [[ROWS_PER_GROUP, 1]]


@pytest.mark.slow
def test_a_spark_that_counts_no_rows_of_a_group_says_so(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = sx.Clustering(by=["id"], rows_per_group=200)
    monkeypatch.setattr(file_size, "_SINCE", (1000, 0))
    with pytest.raises(LayoutError, match=r"rows_per_group=200 \(accepted: Spark 4.1"):
        sx.write_table(spark.range(5), tmp_path / "t", layout=layout)
    table = sx.write_table(spark.range(5), tmp_path / "t", layout=sx.Clustering())
    with pytest.raises(LayoutError, match=r"rows_per_group=200 \(accepted: Spark 4.1"):
        table.optimize(spark, layout=layout)
    table = sx.append(spark.range(5, 9), table.declare_layout(layout))
    assert sum(map(sum, groups(table))) == 9


@pytest.mark.few(1)
@pytest.mark.parametrize("n", [0, 1])
def test_no_rows_and_few_rows_are_a_file_of_any_size(
    spark: SparkSession, tmp_path: Path, n: int
) -> None:
    layout = sx.Clustering(by=["id"], bytes_per_file=10**9)
    table = sx.write_table(spark.range(n), tmp_path / "t", layout=layout)
    assert sum(file.n_rows for file in table.files) == n


@pytest.mark.parametrize("group", [None, "of the caller"])
def test_progress_is_told_of_each_part(
    spark: SparkSession, df: DataFrame, tmp_path: Path, group: str | None
) -> None:
    told: list[Progress] = []
    asked = {"*": "minmax"}
    if group:
        spark.sparkContext.setJobGroup(group, "")
    try:
        sx.write_table(df, tmp_path / "t", indexes=asked, progress=told.append)
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    parts = list(dict.fromkeys(one.what for one in told))
    assert parts == ["laying out", "writing", "indexing"]
    for what in parts:
        *_, last = (one for one in told if one.what == what)
        assert last.done == last.total > 0


def test_a_progress_that_raises_ends_the_write(df: DataFrame, tmp_path: Path) -> None:
    def interrupt(now: Progress) -> None:
        if now.what == "writing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sx.write_table(df, tmp_path / "t", progress=interrupt)
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"by": ["nope"]}, "no column 'nope' to lay out by"),
        ({"partition_by": ["nope"]}, "no column 'nope' to lay out by"),
        ({"by": "a"}, "are lists of column names"),
        ({"partition_by": "p"}, "are lists of column names"),
        ({"by": ["p"], "partition_by": ["p"]}, "are partition columns"),
        ({"by": ["a"], "curve": "peano"}, "peano"),
        ({"rows_per_file": 0}, "rows_per_file is 0"),
        ({"bytes_per_file": 0}, "bytes_per_file is 0"),
        pytest.param(
            {"rows_per_group": 0}, "rows_per_group is 0", marks=COUNTED, id="no group"
        ),
        ({"bytes_per_file": "large"}, "not a file size: 'large'"),
        ({"rows_per_file": 9, "bytes_per_file": 9}, "not both"),
        ({"by": ["tags"]}, "tags"),
        ({"sort_within": ["nope"]}, "cannot sort by 'nope'"),
    ],
    ids=str,
)
def test_an_impossible_layout_is_one_sentence(
    df: DataFrame, tmp_path: Path, options: Mapping[str, Any], text: str
) -> None:
    shape = {name: value for name, value in options.items() if name != "partition_by"}
    partition_by = options.get("partition_by", ())
    with pytest.raises(LayoutError, match=text) as error:
        sx.write_table(
            df,
            tmp_path / "t",
            layout=sx.Clustering(**shape),
            partition_by=partition_by,
        )
    assert "\n" not in str(error.value)
    assert not (tmp_path / "t").exists()


def test_values_survive_bit_by_bit(spark: SparkSession, tmp_path: Path) -> None:
    made = spark.createDataFrame(
        [
            (1, math.nan, Decimal("1.10")),
            (2, -0.0, None),
            (3, math.inf, Decimal("9.99")),
        ],
        "id int, d double, n decimal(5, 2)",
    )
    sx.write_table(
        made, tmp_path / "t", layout=sx.Clustering(by=["d"], rows_per_file=1)
    )
    found = {row.id: row for row in spark.read.parquet(str(tmp_path / "t")).collect()}
    assert math.isnan(found[1].d)
    assert math.copysign(1, found[2].d) == -1
    assert (found[2].n, found[3].n) == (None, Decimal("9.99"))


def test_a_table_of_another_format_is_not_replaced(
    df: DataFrame, tmp_path: Path
) -> None:
    folder = tmp_path / "delta"
    log = folder / "_delta_log" / "00000000000000000000.json"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"{}")
    for how in ({}, {"overwrite": True}):
        with pytest.raises(TableError, match="is a Delta table"):
            sx.write_table(df, folder, indexes={"*": "minmax"}, **how)
    assert log.exists()
    for call in (
        lambda: sx.append(df, folder),
        lambda: sx.read(folder, "TRUE", spark=df.sparkSession),
        lambda: sx.open_table(folder).optimize(df.sparkSession),
    ):
        with pytest.raises(TableError, match="is a Delta table"):
            call()
    table = sx.write_table(
        df, folder, indexes={"*": "minmax"}, overwrite=True, plain=True
    )
    assert not log.exists()
    assert len(table)
