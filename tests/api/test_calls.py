"""What is told where packages of an extra are missing."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import skipindex as sx
from skipindex.api import calls
from tests.tables import put

CALLS: dict[str, Callable[[Path], Any]] = {
    "write_table": lambda path: sx.write_table(None, path / "new"),
    "append": lambda path: sx.append(None, path),
    "read": lambda path: sx.read(path, "a = 1", spark=None),
    "optimize": lambda path: sx.open_table(path).optimize(None),
    "build_indexes": lambda path: sx.build_indexes(path, {"a": []}, spark=object()),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("missing", [("pyspark",), ("pandas",), ("pyspark", "pandas")])
def test_a_missing_extra_is_one_sentence_with_the_command(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    missing: tuple[str, ...],
) -> None:
    put(tmp_path / "f.parquet", {"a": [1]})
    monkeypatch.setattr(
        calls, "find_spec", lambda name: None if name in missing else find_spec(name)
    )
    with pytest.raises(sx.EngineError) as error:
        CALLS[call](tmp_path)
    text = str(error.value)
    assert all(name in text for name in missing)
    assert text.endswith("(type: pip install 'skipindex[spark]')")
    assert "\n" not in text
    assert [path.name for path in tmp_path.iterdir()] == ["f.parquet"]
