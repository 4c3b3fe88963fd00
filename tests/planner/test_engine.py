"""Query engines are found by the package of a session's type."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import skipindex as sx
from skipindex.planner import engine
from tests.tables import put


class Rows:
    """An engine of another package, which gives back what it is asked."""

    def __init__(self, session: Any) -> None:
        self.session = session

    @staticmethod
    def condition_text(condition: Any) -> str:
        return str(condition.text)

    def read(self, plan: sx.Plan) -> Any:
        return self.session, plan.paths

    def count(self, plan: sx.Plan) -> int:
        return 7 * len(plan.paths)


Session = type("Session", (), {"__module__": "sampleengine.sessions"})
Condition = type("Condition", (), {"__module__": "sampleengine", "text": "a = 1"})


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    point = SimpleNamespace(name="sampleengine", load=lambda: Rows)
    monkeypatch.setattr(engine, "entry_points", lambda group: [point])
    engine._others.cache_clear()
    yield
    engine._others.cache_clear()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    put(tmp_path / "f.parquet", {"a": [1, 2]})
    return tmp_path


@pytest.mark.usefixtures("installed")
def test_a_plan_is_read_and_counted_by_the_engine_of_the_session(path: Path) -> None:
    plan = sx.plan_files("a = 1", table=path)
    session = Session()
    assert plan.read(session) == (session, ["f.parquet"])
    assert plan.count(session) == 7


@pytest.mark.usefixtures("installed")
def test_a_condition_of_an_engine_is_read_as_its_text(path: Path) -> None:
    plan = sx.plan_files(Condition(), table=path)
    assert plan.where == "a = 1"


def test_an_engine_that_cannot_be_imported_is_named(
    monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    def fails() -> None:
        raise ImportError("no module named 'gone'")

    point = SimpleNamespace(name="sampleengine", load=fails)
    monkeypatch.setattr(engine, "entry_points", lambda group: [point])
    engine._others.cache_clear()
    try:
        plan = sx.plan_files("a = 1", table=path)
        with pytest.raises(sx.EngineError, match="of sampleengine cannot be loaded"):
            plan.read(Session())
        with pytest.raises(sx.EngineError, match="no engine for 'text'"):
            plan.read("text")  # type: ignore[arg-type]
    finally:
        engine._others.cache_clear()


def test_a_session_of_no_engine_is_refused_by_name(path: Path) -> None:
    plan = sx.plan_files("a = 1", table=path)
    with pytest.raises(sx.EngineError, match="a session of pyspark") as error:
        plan.read(Session())
    assert "Session" in str(error.value)
    with pytest.raises(sx.PredicateError, match="not a predicate"):
        sx.plan_files(Condition(), table=path)


@pytest.mark.usefixtures("installed")
def test_a_condition_of_the_engine_is_read_at_the_moment_of_its_plan(
    path: Path,
) -> None:
    """Its text goes to the engine, if that says all of it."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    condition = Condition()
    condition.text = "a < unix_timestamp()"
    plan = sx.plan_files(condition, table=path, now=now)
    assert plan.moment is not None
    assert plan.condition is None
    assert plan.where == "a < CAST(1767225600 AS BIGINT)"
    condition.text = "a < unix_timestamp() OR opaque()"
    plan = sx.plan_files(condition, table=path, now=now)
    assert plan.moment is None
    assert plan.condition is condition
    assert plan.where == condition.text
