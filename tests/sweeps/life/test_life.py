"""Whatever befalls a table, every row is read once."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.sweeps.life.machine import Life


def test_some_short_lives() -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Life, settings=settings(max_examples=2, stateful_step_count=20)
    )


@pytest.mark.slow
def test_many_lives_of_ten_thousand_steps() -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Life, settings=settings(max_examples=250, stateful_step_count=50)
    )
