"""DataFrames as methods make them: reads of a table, and frames of frames."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from tests.heavy.queries.tables import Made
from tests.heavy.queries.texts import Draft


def read(spark: SparkSession, way: str, made: Made, root: Path, name: str) -> DataFrame:
    """The table, read in one of many ways.

    Args:
        spark: the session.
        way: how.
        made: the table.
        root: of the copy that is read.
        name: of the copy in the catalog.
    """
    path = str(root / "t")
    reader = spark.read
    match way:
        case "table":
            return spark.table(name)
        case "schema":
            return reader.schema(made.schema_text).parquet(path)
        case "merge":
            return reader.option("mergeSchema", "true").parquet(path)
        case "files":
            some = [str(file) for file in made.files(root)[::2]]
            return reader.option("basePath", path).parquet(*some)
        case "several":
            return reader.parquet(path, path)
        case "slash":
            return reader.parquet(f"file://{root}/./t//")
        case "recursive":
            return reader.option("recursiveFileLookup", "true").parquet(path)
        case "glob" if made.partitions:
            return reader.option("pathGlobFilter", "*[0-5].parquet").parquet(path)
        case "glob":
            return reader.parquet(f"{path}/*.parquet")
        case "base":
            some = sorted({str(file.parent) for file in made.files(root)})[:2]
            return reader.option("basePath", path).parquet(*some)
        case "modified":
            return reader.option("modifiedBefore", "2100-01-01T00:00:00").parquet(path)
    return reader.parquet(path)


def derive(df: DataFrame, way: str, draft: Draft, made: Made, seed: int) -> DataFrame:
    """A frame of a frame of the table.

    Args:
        df: the frame of the table.
        way: how.
        draft: has the conditions, two of them.
        made: the table.
        seed: of what else is drawn.
    """
    rng = Random(seed)
    first, second = (condition.sql() for condition in draft.conditions)
    where = df.where(first)
    some = [name for name in ("id", "i", "s") if name in df.columns]
    match way:
        case "where twice":
            return where.where(second)
        case "values":
            return df.where(_by_values(rng, made))
        case "select":
            return df.select(*some).where(_by_values(rng, made, only=some))
        case "renamed":
            renamed = df.withColumnRenamed("i", "j").withColumn("k", sf.expr("j + 1"))
            return renamed.where(sf.col("k") > rng.randrange(200)).select(
                "id", "j", "k"
            )
        case "joined":
            how = rng.choice(["inner", "left", "left_semi", "left_anti", "full"])
            on = sf.expr(rng.choice(["a.id = b.id", "a.i = b.i AND a.id <= b.id"]))
            joined = where.alias("a").join(df.where(second).alias("b"), on, how)
            return joined.agg(sf.count("*"), sf.sum("a.id"))
        case "counted":
            return where.groupBy(rng.choice(["i", "s"])).agg(
                sf.count("*"), sf.max("id")
            )
        case "dropped":
            filled = df.fillna({"i": 0}).dropna(subset=["s"])
            return filled.where(f"i <= {rng.randrange(200)}").select("id", "i", "s")
        case "sorted":
            return (
                where.orderBy(sf.desc("id"))
                .limit(rng.choice([1, 10, 200]))
                .select(some)
            )
        case "unioned":
            one, other = where.select(some), df.where(second).select(some)
            return rng.choice([one.union, one.unionByName, one.intersect])(other)
        case "window":
            window = Window.partitionBy("s").orderBy("id")
            return where.select(some).withColumn("n", sf.row_number().over(window))
        case "deduplicated":
            return where.dropDuplicates(["i"]).select("i")
    return where


def _by_values(rng: Random, made: Made, only: list[str] | None = None) -> Column:
    """A condition of the Column interface, on Python's values."""
    refs = made.refs()
    names = [
        name
        for name, ref in refs.items()
        if ref.samples
        and ref.kind.family
        in ("integer", "string", "decimal", "date", "moment", "float")
        and name in (only or refs)
    ]
    name = rng.choice(names)
    column, values = sf.col(name), refs[name].samples
    value: Any = rng.choice(values)
    ways = [column == value, column != value, column.eqNullSafe(sf.lit(value))]
    ways += [column > value, column <= value, sf.lit(value) < column, ~(column < value)]
    ways += [column.isin(rng.sample(values, min(len(values), 3))), column.isNull()]
    ways += [column.between(value, rng.choice(values)), ~column.isin(values[:12])]
    if isinstance(value, str):
        ways += [column.startswith(value[:2]), column.contains(value[1:3])]
        ways += [column.like(f"{value[:2]}%"), column.substr(1, 2) == value[:2]]
    return rng.choice(ways) & rng.choice([*ways, sf.lit(True)])
