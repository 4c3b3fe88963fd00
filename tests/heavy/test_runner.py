"""Sweeps in slices: what is run next, and what is counted."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.heavy import case, totals
from tests.heavy.catalogue import SWEEPS, Sweep, Told, rounds
from tests.heavy.slices import Failed, Slice, run_slice
from tests.heavy.totals import Totals

PAGE = Path(__file__).parents[2] / "docs/testing.md"


def test_every_sweep_has_its_cases() -> None:
    for sweep in SWEEPS.values():
        assert callable(sweep.cases)


def test_the_parts_of_a_sweep_come_again_with_another_seed() -> None:
    parts = {"an a": 1, "b": 2}
    drawn = rounds(parts, 7, 3)
    assert [next(drawn) for _ in range(2)] == [
        (2, 8, "--part=b --only=1"),
        (1, 9, "'--part=an a' --only=2"),
    ]
    assert next(rounds(parts, 7, 2, ["an a"])) == (1, 9, "'--part=an a' --only=2")
    with pytest.raises(SystemExit, match=r"no part c \(known: an a, b\)"):
        next(rounds(parts, 7, 2, ["c"]))


@pytest.mark.parametrize("name", [*SWEEPS])
def test_a_part_that_a_sweep_does_not_have_is_refused(name: str) -> None:
    with pytest.raises(SystemExit, match=r"no part other \(known: "):
        next(SWEEPS[name].cases(1, 0, ["other"]))


def test_a_slice_runs_cases_until_its_time_is_over() -> None:
    for seconds in (0.5, 4, 32):  # a busy machine is slow to begin
        until = time.monotonic() + seconds
        done = run_slice("model", seed=1, first=4, until=until)
        if done.cases:
            break
    assert done.cases > 0
    assert done.n > done.cases
    assert not done.failures


def test_a_process_that_dies_is_a_failure_of_its_case() -> None:
    done = run_slice("no such sweep", seed=1, first=4, until=time.monotonic() + 60)
    assert done.cases == 1
    (told,) = done.failures
    assert "invalid choice" in told.failure
    assert told.again.endswith("tests.heavy.case no such sweep --seed 1 --only=4")


def test_a_case_that_hangs_is_a_failure_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    impatient = Sweep("states", "model.search.cases", patience=0.01)
    monkeypatch.setitem(SWEEPS, "model", impatient)
    done = run_slice("model", seed=1, first=4)
    assert done.cases == 1
    (told,) = done.failures
    assert told.failure == "it hangs, after 0.01 s"
    assert told.again.endswith("tests.heavy.case model --seed 1 --only=4")


def test_a_slice_ends_behind_so_many_cases() -> None:
    done = run_slice("model", seed=1, first=0, n_cases=2, parts=["a lost answer"])
    assert done.cases == 2
    assert done.n > done.cases
    assert not done.failures


@pytest.mark.parametrize("is_wrong", [False, True])
def test_a_case_says_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], is_wrong: bool
) -> None:
    failure = "a row is lost" if is_wrong else ""
    told = [Told(12, failure), Told(1, "")]
    monkeypatch.setattr(Sweep, "cases", lambda *_: iter(told))
    assert case.main(["kills", "--seed", "1", "--only", "7"]) == is_wrong
    assert capfd.readouterr().out == f"case 7: 12 tables {failure or 'right'}\n"


def test_a_slice_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    path = tmp_path / "build" / "state.json"
    state = Totals.read(path, seed=5)
    assert state.next_case("kills") == (5, 0)
    state.add("kills", Slice(3, 30, 1.5, [Failed("lost", "python again")]))
    state.write(path)
    state = Totals.read(path)
    assert state.next_case("kills") == (5, 3)
    assert state.in_turn(["mutants", "kills", "hostile"]) == [
        "hostile",
        "mutants",
        "kills",
    ]
    state.add("kills", Slice(1, 10, 1))
    assert (state.of["kills"].n, state.of["kills"].since) == (40, 40)
    assert state.of["kills"].failures == ["python again"]
    assert "10 tables in 1 cases, 0 failed, 600 a minute" in state.line(
        "kills", Slice(1, 10, 1)
    )


def test_a_case_that_failed_is_run_again_and_may_be_mended() -> None:
    state = Totals(1)
    commands = [f"python -c 'exit({code})'" for code in (0, 1)]
    failures = [Failed("lost", again) for again in commands]
    state.add("kills", Slice(2, 2, 1.0, failures))
    assert list(state.again(time.monotonic() + 60)) == [
        f"kills: passes now: {commands[0]}",
        f"kills: fails still: {commands[1]}",
    ]
    assert state.of["kills"].failures == commands[1:]
    state.of["kills"].failures = ["python -c 'import time; time.sleep(60)'"]
    (told,) = state.again(time.monotonic() + 0.2)
    assert "fails still" in told


def test_what_ran_on_another_package_does_not_count_for_this(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = Totals(1)
    state.add("kills", Slice(1, 10, 1))
    monkeypatch.setattr(totals, "content_of", lambda _: "another")
    state.add("kills", Slice(1, 5, 1))
    assert (state.of["kills"].n, state.of["kills"].since) == (15, 5)


@pytest.mark.parametrize("text", ["", "{}", '{"seed": 1, "last": "", "of": {"a": 1}}'])
def test_a_state_that_cannot_be_read_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(SystemExit, match="delete it to begin anew"):
        Totals.read(tmp_path / "s.json")


def test_a_state_has_one_seed(tmp_path: Path) -> None:
    Totals(3).write(tmp_path / "s.json")
    assert Totals.read(tmp_path / "s.json", seed=3).seed == 3
    with pytest.raises(SystemExit, match="goes on with seed 3, and 4"):
        Totals.read(tmp_path / "s.json", seed=4)


def test_the_page_gets_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "testing.md"
    page.write_text(PAGE.read_text())
    state = Totals(1)
    state.add("kills", Slice(2, 1234, 1))
    for _ in range(2):
        state.write_page(page)
    assert page.read_text().count("| `kills` | 1,234 tables | 2 | 0 | 1,234 |") == 1
    monkeypatch.setattr(totals, "content_of", lambda _: "another")
    state.write_page(page)
    assert "| `kills` | 1,234 tables | 2 | 0 | 0 |" in page.read_text()
    (tmp_path / "other.md").write_text("no marks")
    with pytest.raises(SystemExit, match="has no line"):
        state.write_page(tmp_path / "other.md")


def test_the_page_names_every_sweep() -> None:
    assert all(f"`{name}`" in PAGE.read_text() for name in SWEEPS)
