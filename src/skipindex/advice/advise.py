"""Advice: the index kinds that pay off on a table's columns, measured on a sample.

    table = sx.open_table("/data/lineorder")
    print(table.advise(queries=["c_city = 'UNITED KI1' AND …"]))

Some whole files are read.  On each column candidates are built, weighed, and asked the
questions of the workload, or likely ones if there is no workload.  The choice is what
keeps fewest files of the sample, under a cap on the bytes of the indexes.
``build_indexes(table)`` without arguments builds the same choice.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Final

from skipindex.advice.candidates import candidates
from skipindex.advice.findings import advice_of
from skipindex.advice.questions import (
    BoundWorkload,
    Question,
    bind_workload,
    columns_of,
    names_in,
    sample_questions,
    vary_literals,
)
from skipindex.advice.report import Advice
from skipindex.advice.sample import LARGE_SAMPLE, SMALL_SAMPLE, Sample, take_sample
from skipindex.advice.selection import CandidateScores, choose
from skipindex.build.column_requests import domain_to_index
from skipindex.build.wanted import indexable_columns
from skipindex.conditions.bound_predicate import Computed, Leaf, leaves
from skipindex.errors import AdviceError
from skipindex.planner.plan import plan_files
from skipindex.planner.recorded import RecordedQueries
from skipindex.storage.file_system.location import Location
from skipindex.storage.telling import part
from skipindex.table import ColumnInfo, TableState, open_state
from skipindex.table.queries import is_of_log

MAX_BYTES_RATIO: Final = 0.10
"""Default cap of all indexes together, as a fraction of the data's bytes."""

_PLANNED: Final = 100
"""Queries that are planned with what the table has now."""

MARGIN: Final = 0.95
"""The part of the cap that is used, because a sample is not the table, and has no file
maps."""


def advise(
    table: TableState | Location | str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    queries: Sequence[str] | None = None,
    max_bytes_ratio: float = MAX_BYTES_RATIO,
    timezone: str | None = None,
    plain: bool = False,
) -> Advice:
    """See ``Table.advise``."""
    began = time.perf_counter()
    if not 0 < max_bytes_ratio < float("inf"):
        raise AdviceError(
            f"not a cap: max_bytes_ratio={max_bytes_ratio!r} (accepted: a number above "
            "0, such as 0.1 for a tenth of the data's bytes)"
        )
    opened = open_state(table, plain=plain)
    if is_of_log(queries):
        record = RecordedQueries.of(opened.location, str(queries))
        queries, columns = asked_in(opened, record, columns)
        timezone = timezone or record.zone
    mine = _indexable(opened, columns)
    bound = BoundWorkload()
    sampled, size = mine, SMALL_SAMPLE
    wanted = {column.name for column in mine}
    if queries is not None:
        texts = [queries] if isinstance(queries, str) else queries
        bound = bind_workload(opened, texts, timezone=timezone)
        if not bound.questions:
            why = "; ".join(bound.notes) or "none is given"
            raise AdviceError(f"no query can be evaluated on this table: {why}")
        wanted = columns_of(bound.questions)
        sampled = [column for column in mine if column.name in wanted]
        size = LARGE_SAMPLE
    for name in wanted:  # but for those of the sample
        bound.not_judged.setdefault(name, "no rows could be sampled")
    workload, notes = bound.questions, bound.notes
    scores = measure(take_sample(opened, sampled, size), workload, notes)
    sample = scores.sample
    selection = choose(scores, MARGIN * max_bytes_ratio * sample.n_bytes)
    return advice_of(
        scores,
        selection,
        columns=[column.name for column in mine],
        max_bytes_ratio=max_bytes_ratio,
        n_asked=len(workload),
        not_judged=bound.not_judged,
        files_now=_files_now(opened, workload, timezone),
        notes=[*notes, *sample.notes],
        seconds=time.perf_counter() - began,
    )


def asked_in(
    table: TableState, record: RecordedQueries, columns: Sequence[str] | None
) -> tuple[Sequence[str] | None, Sequence[str] | None]:
    """The queries of a record, and the columns to choose for.

    Of queries with hidden literals only the columns that they name are known.

    Raises:
        AdviceError: nothing is recorded that asks for a column of the table.
    """
    if texts := record.texts():
        return texts, columns
    names = {name for shape in record.shapes for name in names_in(table, shape)}
    if not names:
        raise AdviceError(
            f"no query on {table.folder!r} is recorded (accepted: after queries of a "
            "session with skipindex.queries=table, or of a process after "
            "skipindex.api.record_queries())"
        )
    return None, columns or sorted(names)


def _files_now(
    table: TableState, workload: Sequence[Question], timezone: str | None
) -> list[int]:
    """How many files the first queries of a workload read now, by what is built."""
    result: list[int] = []
    planned = workload[:_PLANNED]
    if not planned:
        return result
    tell = part("planning", "queries", len(planned))
    for question in planned:
        plan = plan_files(question.text, table=table, timezone=timezone)
        result.append(len(plan.paths))
        tell(len(result))
    return result


def measure(
    sample: Sample, workload: Sequence[Question], notes: list[str]
) -> CandidateScores:
    """All candidates on a sample, asked a workload, or likely questions if it is empty.

    A kind that fails is omitted, and why is added to ``notes``.
    """
    variants = vary_literals(workload, sample)
    questions = [*workload, *variants] if workload else sample_questions(sample)
    by_column = leaves_by_column(questions)
    tell = part("measuring", "columns", len(sample.columns))
    result = {}
    for name, column in sample.columns.items():
        result[name] = candidates(column, by_column.get(name, []), notes)
        tell(len(result))
    return CandidateScores(sample, questions, result)


def _indexable(table: TableState, columns: Sequence[str] | None) -> list[ColumnInfo]:
    """The columns of ``columns``, or all that can have an index."""
    if columns is None:
        every = indexable_columns(table)
        return [column for column in every if not _is_hidden(table, column)]
    named = [columns] if isinstance(columns, str) else columns
    result = {(column := table.find(name)).name: column for name in named}
    for column in result.values():
        domain_to_index(column)
    return list(result.values())


def _is_hidden(table: TableState, column: ColumnInfo) -> bool:
    """Whether a partition column has its name, in whatever capitals."""
    hidden = {name.lower() for p in table.partitions for name in p.names}
    return column.path[0].lower() in hidden


def leaves_by_column(questions: Sequence[Question]) -> dict[str, list[Leaf | Computed]]:
    """The leaves of all questions by column, each once."""
    result: dict[str, dict[Leaf | Computed, None]] = {}
    for question in questions:
        for leaf in leaves(question.tree):
            result.setdefault(leaf.column, {})[leaf] = None
    return {name: list(each) for name, each in result.items()}
