"""Counters of plans for OpenTelemetry, in a process that has loaded its API.

A process that exports metrics has loaded it by itself, so no other one pays for it.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np

from skipindex.planner.stages.evaluation import Evaluation


def count_plan(evaluation: Evaluation) -> None:
    """Add a plan to the counters, if there are any."""
    api = sys.modules.get("opentelemetry.metrics")
    if api is not None:
        _Counters.of(api).add(evaluation)


class _Counters:
    """The instruments of one process."""

    def __init__(self, api: Any) -> None:
        meter = api.get_meter("skipindex")
        self._plans = meter.create_counter(
            "skipindex.plans", "{plan}", "Conditions that were planned"
        )
        self._seconds = meter.create_histogram(
            "skipindex.plan.duration", "s", "Time that a plan took"
        )
        self._files = meter.create_counter(
            "skipindex.files", "{file}", "Data files, skipped or left to be read"
        )
        self._bytes = meter.create_counter(
            "skipindex.bytes", "By", "Bytes of these files"
        )
        self._read = meter.create_counter(
            "skipindex.index.bytes", "By", "Bytes of indexes, read or from memory"
        )
        self._refused = meter.create_counter(
            "skipindex.indexes.unused", "{index}", "Damaged, foreign or newer indexes"
        )

    @classmethod
    @cache
    def of(cls, api: Any) -> _Counters:
        """The instruments, made once."""
        return cls(api)

    def add(self, evaluation: Evaluation) -> None:
        """Count one plan."""
        table, possible = evaluation.table, evaluation.possible
        self._plans.add(1)
        self._seconds.record(sum(run.seconds for run in evaluation.runs))
        for state, files in (("read", possible), ("skipped", ~possible)):
            of = {"skipindex.state": state}
            self._files.add(int(np.count_nonzero(files)), of)
            self._bytes.add(int(table.sizes[files].sum()), of)
        n_bytes = sum(run.read.n_bytes for run in evaluation.runs)
        cached = sum(run.read.cached_bytes for run in evaluation.runs)
        self._read.add(n_bytes - cached, {"skipindex.source": "storage"})
        self._read.add(cached, {"skipindex.source": "memory"})
        self._refused.add(sum(evaluation.reader.notes.values()))
