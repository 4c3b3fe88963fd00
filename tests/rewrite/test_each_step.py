"""A slice of the sweeps: each step of each writer killed, or failing in each way."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.rewrite import failing, kill_and_damage
from tests.rewrite.failing import BAD_SECTOR, KINDS
from tests.rewrite.kill_and_damage import WRITERS

SOME = ["append", "overwrite files", "vacuum", "build again"]


def check(cases: Iterable[tuple[str, str | None]], *, more_than: int = -1) -> None:
    """There are so many cases, and nothing is wrong in any."""
    told = dict(cases)
    assert len(told) > more_than
    assert {case: problem for case, problem in told.items() if problem} == {}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", WRITERS)
def test_every_row_counts_once_wherever_a_writer_is_killed(
    tmp_path: Path, name: str
) -> None:
    """A few cases of each writer; the sweep ``kills`` has all of them."""
    start = 7 * sorted(WRITERS).index(name)
    check(kill_and_damage.sweep(name, tmp_path, stride=97, start=start), more_than=1)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", SOME)
def test_a_writer_that_fails_anywhere_has_done_all_or_none(
    tmp_path: Path, name: str
) -> None:
    check(failing.sweep(name, tmp_path, stride=11, kinds=["no number"]), more_than=5)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", SOME)
def test_a_file_that_gives_half_of_its_bytes_is_not_taken_for_damaged(
    tmp_path: Path, name: str
) -> None:
    check(failing.sweep(name, tmp_path, kinds=[BAD_SECTOR]), more_than=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_writer_that_fails_in_any_way_has_done_all_or_none(
    tmp_path: Path, name: str, kind: str
) -> None:
    check(failing.sweep(name, tmp_path, kinds=[kind]))
