"""A slice of the sweep in which each call of each writer fails in each way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rewrite.failing import BAD_SECTOR, KINDS, sweep
from tests.rewrite.kill_and_damage import WRITERS


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["append", "overwrite files", "vacuum", "build again"])
def test_a_writer_that_fails_anywhere_has_done_all_or_none(
    tmp_path: Path, name: str
) -> None:
    told = dict(sweep(name, tmp_path, stride=7, kinds=["no number"]))
    assert len(told) > 5
    assert {case: problem for case, problem in told.items() if problem} == {}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["append", "overwrite files", "vacuum", "build again"])
def test_a_file_that_gives_half_of_its_bytes_is_not_taken_for_damaged(
    tmp_path: Path, name: str
) -> None:
    told = dict(sweep(name, tmp_path, kinds=[BAD_SECTOR]))
    assert told
    assert {case: problem for case, problem in told.items() if problem} == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_writer_that_fails_in_any_way_has_done_all_or_none(
    tmp_path: Path, name: str, kind: str
) -> None:
    told = dict(sweep(name, tmp_path, kinds=[kind]))
    assert {case: problem for case, problem in told.items() if problem} == {}
