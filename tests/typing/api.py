"""User code that mypy must accept as it stands; ``tests/test_typing.py`` runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

import skipindex as sx
from skipindex.api import set_cache_bytes
from skipindex.api.types import (
    Advice,
    BuildReport,
    Evidence,
    FileTask,
    IndexInfo,
    OptimizeReport,
    Quality,
    SkippedFile,
    Status,
    TableReport,
    VacuumReport,
    Verdict,
    VerifyReport,
)

version: str = sx.__version__


def opened(path: Path, schema: pa.Schema, struct: StructType) -> sx.Table:
    sx.open_table(str(path), plain=True)
    sx.open_table("s3://b/t", storage_options={"region": "eu-west-1"})
    sx.open_table(path, schema=struct, partition_types={"day": pa.date32()})
    derived = sx.Derived({"day": "to_date(t)"}, "UTC")
    return sx.open_table(path, schema=schema, derived=derived).refresh()


def indexed(table: sx.Table, spark: SparkSession) -> sx.Table:
    report: BuildReport[sx.Table] = sx.build_indexes(
        table, {"city": "bitmap", "price": ["bloom", sx.BitSliced(base=10)], "*": None}
    )
    again: BuildReport[sx.Table] = report.table.build_indexes(queries=["a = 1"])
    print(again.files, again.n_bytes, again.notes)
    table = table.refresh_indexes(spark=spark, repair=True).table
    infos: Sequence[IndexInfo] = table.drop_indexes(kinds=["bloom"]).indexes
    print([(info.column, info.kind, info.files, info.n_bytes) for info in infos])
    declared: sx.Table = table.declare_derived({"year": "year(t)"}, timezone="UTC")
    return declared.compact_indexes(max_files=100)


def planned(table: sx.Table, spark: SparkSession) -> int:
    condition = (sx.col("city") == 7) & ~sx.col("price").between(10, 40)
    plans = [
        sx.plan_files("city = 7", table="/data/t", timezone="UTC", limit=3),
        table.plan(condition, kinds=["bitmap"], order_by=["price DESC"], limit=1),
        table.plan(sf.col("city") == 7, without="bloom"),
    ]
    for plan in plans:
        paths: list[str] = plan.paths
        tasks: Sequence[FileTask] = plan.tasks
        skipped: Sequence[SkippedFile] = plan.skipped
        proofs: list[Sequence[Evidence]] = [file.evidence for file in skipped]
        verdicts: list[Verdict] = [task.verdict for task in tasks]
        report: VerifyReport = plan.verify(sample=0.5, spark=spark)
        print(plan.explain(file=paths[0]), proofs, verdicts, report.is_right)
    bounds: tuple[int, int | None] = plans[0].count_bounds
    rows: DataFrame = plans[0].read(spark)
    same: DataFrame = sx.read(table, condition, spark=spark)
    return (
        plans[0].count()
        + plans[0].count(spark)
        + bounds[0]
        + rows.count()
        + len(same.columns)
    )


def looked_at(table: sx.Table) -> Mapping[str, object]:
    status: Status = table.status()
    report: TableReport = table.verify()
    advice: Advice = table.advise(queries=["city = 7"], max_bytes_ratio=0.2)
    quality: Quality = table.layout_quality(["city = 7"], columns=["city"])
    set_cache_bytes(1 << 20)
    return {
        "fresh": status.fresh,
        "ok": report.ok,
        "n": advice.n_bytes,
        "q": quality.columns,
    }


def written(df: DataFrame, spark: SparkSession) -> VacuumReport:
    layout = sx.Clustering(by=["city", "price"], curve="zorder", rows_per_file=50_000)
    sx.write_table(
        df, "/data/t", layout=sx.Workload(["city = 7"]), partition_by=["day"]
    )
    table: sx.Table = sx.write_table(df, Path("/data/t"), layout=layout, overwrite=True)
    table = sx.append(df, table, indexes={"city": "bitmap"})
    report: OptimizeReport[sx.Table] = table.optimize(
        spark, layout=sx.Clustering(by=[]), predicate=sx.col("day") == 1, in_place=True
    )
    return report.table.vacuum(retention=timedelta(days=1), dry_run=True)


def careful(path: str) -> str:
    try:
        return sx.open_table(path).plan("a = 1").explain()
    except (sx.TableError, sx.PredicateError, sx.PlanError) as error:
        return str(error)
    except sx.SkipIndexError:
        return "anything else that skipindex raises"
