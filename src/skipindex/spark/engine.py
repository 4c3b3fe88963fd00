"""Spark as the planner's query engine."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from skipindex.planner.plan import Plan
from skipindex.spark.columns import declared
from skipindex.spark.reading.condition import condition_text
from skipindex.spark.reading.read import count_files, count_plan, read_plan
from skipindex.spark.runner import SparkRunner


class SparkEngine:
    """See ``skipindex.planner.engine.Engine``."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    @staticmethod
    def condition_text(condition: Column) -> str:
        return condition_text(condition)

    @staticmethod
    def arrow_schema(schema: StructType) -> pa.Schema:
        return declared(schema)

    def read(self, plan: Plan) -> DataFrame:
        return read_plan(self.session, plan)

    def count(self, plan: Plan) -> int:
        return count_plan(self.session, plan)

    def count_files(self, plan: Plan, files: Sequence[int]) -> dict[int, int]:
        return count_files(self.session, plan, files)

    def runner(self) -> SparkRunner:
        return SparkRunner(self.session)
