"""Public classes that calls return or take, beyond the names of ``skipindex``.

Import them for annotations: reports of calls, results of a plan for files and
conditions, and the state of a table.
"""

from __future__ import annotations

from skipindex.advice import Advice
from skipindex.advice.report import ColumnAdvice, QueryAdvice, Trial
from skipindex.api.functions import AnyTable, Opening, PlanOptions
from skipindex.api.maintenance.policy import BudgetLike, Policy, PolicyLike
from skipindex.api.maintenance.report import MaintainReport, StepReport
from skipindex.api.progress import Progress, ProgressLike
from skipindex.api.removal import RemovalReport
from skipindex.api.table import AnyPredicate
from skipindex.api.usage import ConditionUsage, UsageReport
from skipindex.build.builder import BuildReport
from skipindex.build.column_requests import Request
from skipindex.expressions import Predicate
from skipindex.expressions.builder import Column
from skipindex.layout.quality import ColumnQuality, Quality, QueryQuality
from skipindex.log import CommitInfo, Snapshot
from skipindex.planner.plan import (
    ConditionReport,
    Evidence,
    FileTask,
    Moment,
    MomentConstant,
    RowSelection,
    SessionRules,
    SkippedFile,
    Stage,
    Verdict,
)
from skipindex.planner.reports.verify import VerifyReport, Violation
from skipindex.planner.rows import Rows
from skipindex.planner.rows.located import Located
from skipindex.planner.stages.row_counts import RowCounts
from skipindex.rewrite.optimize import OptimizeReport
from skipindex.rewrite.selection.attributes import JoinedAttribute
from skipindex.rewrite.vacuum import VacuumReport
from skipindex.rewrite.verify_table import TableReport
from skipindex.spark.pruning.query_plan import DimensionKeys, QueryPlan
from skipindex.storage.file_system.location import Location
from skipindex.storage.file_system.uris import StorageOptions
from skipindex.table import ColumnInfo, FileEntry, Overlap, Status
from skipindex.table.status import ColumnStatus, IndexInfo

__all__ = [
    "Advice",
    "AnyPredicate",
    "AnyTable",
    "BudgetLike",
    "BuildReport",
    "Column",
    "ColumnAdvice",
    "ColumnInfo",
    "ColumnQuality",
    "ColumnStatus",
    "CommitInfo",
    "ConditionReport",
    "ConditionUsage",
    "DimensionKeys",
    "Evidence",
    "FileEntry",
    "FileTask",
    "IndexInfo",
    "JoinedAttribute",
    "Located",
    "Location",
    "MaintainReport",
    "Moment",
    "MomentConstant",
    "Opening",
    "OptimizeReport",
    "Overlap",
    "PlanOptions",
    "Policy",
    "PolicyLike",
    "Predicate",
    "Progress",
    "ProgressLike",
    "Quality",
    "QueryAdvice",
    "QueryPlan",
    "QueryQuality",
    "RemovalReport",
    "Request",
    "RowCounts",
    "RowSelection",
    "Rows",
    "SessionRules",
    "SkippedFile",
    "Snapshot",
    "Stage",
    "Status",
    "StepReport",
    "StorageOptions",
    "TableReport",
    "Trial",
    "UsageReport",
    "VacuumReport",
    "Verdict",
    "VerifyReport",
    "Violation",
]
