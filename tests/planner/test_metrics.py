"""The counters of plans, by the API of OpenTelemetry."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.tables import build, put_all


class Meter:
    """As the one of OpenTelemetry, with the sum of each instrument."""

    def __init__(self) -> None:
        self.sums: Counter[tuple[str, str]] = Counter()

    def create_counter(self, name: str, _unit: str, _description: str) -> Any:
        def add(amount: int, of: dict[str, str] | None = None) -> None:
            assert isinstance(amount, int)
            assert amount >= 0
            self.sums[name, "".join((of or {}).values())] += amount

        return SimpleNamespace(add=add)

    def create_histogram(self, name: str, _unit: str, _description: str) -> Any:
        def record(amount: float) -> None:
            assert 0 <= amount < 60
            self.sums[name, "n"] += 1

        return SimpleNamespace(record=record)


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Meter:
    meter, api = Meter(), ModuleType("opentelemetry.metrics")
    api.get_meter = {"skipindex": meter}.__getitem__  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, api.__name__, api)
    return meter


def test_plans_are_counted_where_the_api_is_loaded(
    tmp_path: Path, meter: Meter
) -> None:
    put_all(tmp_path, [{"x": [i, 100]} for i in range(4)])
    table = build(tmp_path, {"x": "bitmap"})
    sizes = sorted(file.stat().st_size for file in tmp_path.glob("*.parquet"))
    for where in ("x = 1", "x = 3", "x = 1"):
        assert len(table.plan(where).paths) == 1
    sums = meter.sums
    assert sums["skipindex.plans", ""] == sums["skipindex.plan.duration", "n"] == 3
    assert sums["skipindex.files", "read"] == 3
    assert sums["skipindex.files", "skipped"] == 9
    both = [sums["skipindex.bytes", one] for one in ("read", "skipped")]
    assert sum(both) == 3 * sum(sizes)
    assert sums["skipindex.index.bytes", "storage"] > 0
    assert sums["skipindex.index.bytes", "memory"] > 0, "the third plan is the first"
    assert sums["skipindex.indexes.unused", ""] == 0


def test_a_damaged_index_is_counted(tmp_path: Path, meter: Meter) -> None:
    put_all(tmp_path, [{"x": [i, 100]} for i in range(4)])
    table = build(tmp_path, {"x": "bitmap"})
    for pack in tmp_path.glob("_skipindex/packs/*"):
        pack.write_bytes(b"")
    table.plan("x = 1")
    assert meter.sums["skipindex.indexes.unused", ""] > 0
