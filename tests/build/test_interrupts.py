"""Ctrl-C at any moment: one line, no process is left, and all goes on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import skipindex as sx
from skipindex.api.types import Progress
from skipindex.log import commits
from skipindex.rewrite.verify_table import verify
from tests.tables import put, put_all

N_FILES = 120
WANTED = {"a": ["bitmap", "bloom"], "s": ["bloom", "ngram_bloom"]}
PATIENCE = 60.0
"""Seconds after which a process that goes on has failed."""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of some hundred files, without an index."""
    rows = {
        "a": [n * 7 % 1000 for n in range(3000)],
        "s": [f"text {n % 300}" for n in range(3000)],
    }
    folder = tmp_path_factory.mktemp("many")
    first = put(folder / "0.parquet", rows)
    for i in range(1, N_FILES):
        os.link(first, folder / f"{i}.parquet")
    return folder


def copied(folder: Path, target: Path) -> Path:
    """The same files in another folder."""
    target.mkdir()
    for path in folder.glob("*.parquet"):
        os.link(path, target / path.name)
    return target


def building(folder: Path, workers: int) -> subprocess.Popen[str]:
    """A build by the command line, in a group of its own as a shell has it."""
    wanted = [f"--index={c}={kind}" for c, kinds in WANTED.items() for kind in kinds]
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "skipindex", "build", str(folder), "--quiet"),
            *("--workers", str(workers), *wanted),
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def interrupted(folder: Path, workers: int, moment: Callable[[], bool]) -> int:
    """The exit code of a build that gets Ctrl-C; what it leaves is right."""
    process = building(folder, workers)
    end = time.monotonic() + PATIENCE
    while not moment() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=PATIENCE)
    if process.returncode:
        assert (process.returncode, told) == (130, "skipindex: interrupted\n")
    while is_there(process.pid) and time.monotonic() < end + PATIENCE:
        time.sleep(0.02)
    assert not is_there(process.pid), "a worker is left"
    return process.returncode


def is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def goes_on(folder: Path) -> None:
    """A build works, and all that is stored is as it should be."""
    report = sx.build_indexes(folder, WANTED, workers=2)
    assert report.files + report.unchanged == N_FILES
    report.table.vacuum(retention="0 s")
    found = verify(folder)
    assert (found.ok, found.orphans) == (True, ())
    assert sx.open_table(folder).plan("a = 1001").paths == []


def after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def written(folder: Path, n_files: int) -> Callable[[], bool]:
    """The moment when so many index files are there, also those half written."""
    return lambda: len(list((folder / "_skipindex" / "packs").glob("*"))) >= n_files


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_ctrl_c_while_indexes_are_written(
    many: Path, tmp_path: Path, workers: int
) -> None:
    folder = copied(many, tmp_path / "t")
    moment = written(folder, 1 if workers == 1 else 2)
    assert interrupted(folder, workers, moment) == 130
    goes_on(folder)


def test_ctrl_c_while_modules_load(many: Path, tmp_path: Path) -> None:
    folder = copied(many, tmp_path / "t")
    process = building(folder, 2)
    maps = Path(f"/proc/{process.pid}/maps")
    if not maps.exists():
        pytest.skip("nothing tells what a process has loaded")
    while "numpy" not in maps.read_text():
        time.sleep(0.001)
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=PATIENCE)
    assert (process.returncode, told) == (130, "skipindex: interrupted\n")
    assert not (folder / "_skipindex").exists()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_at_random_moments(many: Path, tmp_path: Path, workers: int) -> None:
    rng = random.Random(workers)
    began = time.monotonic()
    process = building(copied(many, tmp_path / "whole"), workers)
    assert process.communicate(timeout=PATIENCE)[1] == ""
    whole = time.monotonic() - began
    codes = []
    for i in range(25):
        folder = copied(many, tmp_path / str(i))
        # Python itself takes so long before it can say anything.
        moment = after(0.3 + rng.random() * whole)
        codes.append(interrupted(folder, workers, moment))
    assert set(codes) <= {0, 130}
    assert codes.count(130) > 5
    goes_on(folder)


@pytest.mark.parametrize("is_heard", [False, True], ids=["in C", "in Python"])
def test_ctrl_c_where_no_python_runs(is_heard: bool) -> None:
    """As in a request to a store that does not answer: nothing can be raised there."""
    stuck = (
        "while True: pass" if is_heard else "pbkdf2_hmac('md5', b'', b'', 2**31 - 1)"
    )
    code = f"""if True:
        import sys
        from hashlib import pbkdf2_hmac
        from skipindex.cli.interrupts import at_work, exit_interrupted, interruptible
        with interruptible(is_all=True):
            try:
                with at_work():
                    print("at work", flush=True)
                    {stuck}
            except KeyboardInterrupt:
                sys.exit(exit_interrupted())
    """
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=PATIENCE)
    assert (process.returncode, told) == (130, "skipindex: interrupted\n")


class Pressed:
    """A progress that is interrupted when so many files are done."""

    def __init__(self, n_files: int) -> None:
        self.n_files = n_files

    def __call__(self, now: Progress) -> None:
        if now.done >= self.n_files:
            raise KeyboardInterrupt


@pytest.mark.few(1)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("n_files", [60, 0, N_FILES])
def test_a_build_that_is_interrupted_in_python_commits_nothing(
    many: Path, tmp_path: Path, workers: int, n_files: int
) -> None:
    folder = copied(many, tmp_path / "t")
    with pytest.raises(KeyboardInterrupt):
        sx.build_indexes(folder, WANTED, workers=workers, progress=Pressed(n_files))
    assert sx.open_table(folder).status().version < 0
    if workers == 2:
        goes_on(folder)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return put_all(tmp_path / "t", [{"a": [i, i + 1]} for i in range(3)])


@pytest.mark.parametrize("is_made", [False, True], ids=["before", "after"])
def test_an_interrupt_around_the_commit(
    small: Path, monkeypatch: pytest.MonkeyPatch, is_made: bool
) -> None:
    """What the commit names stays, if it was made at all."""
    created = commits._created

    def pressed(*arguments: Any) -> bool:
        if is_made:
            created(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(commits, "_created", pressed)
        with pytest.raises(KeyboardInterrupt):
            sx.build_indexes(small, {"a": "bitmap"}, workers=1)
    assert sx.open_table(small).status().fresh == is_made
    assert sx.build_indexes(small, {"a": "bitmap"}, workers=1).table.status().fresh


@pytest.mark.parametrize("name", ["drop_indexes", "compact_indexes"])
def test_an_interrupt_of_other_calls(
    small: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for i in range(3, 6):
        sx.build_indexes(small, {"a": "bitmap"}, workers=1)
        put(small / f"{i}.parquet", {"a": [i]})
    table = sx.open_table(small)

    def pressed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(commits, "_created", pressed)
        with pytest.raises(KeyboardInterrupt):
            getattr(table, name)()
    assert sx.open_table(small).status().version == table.status().version
    getattr(table, name)()
