"""Who may read a table may read what says which of its files count."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

import skipindex as sx
from skipindex.rewrite.vacuum import vacuum
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.seen import rows_of
from tests.tables import build, put
from tests.traps.test_unreadable import as_another


@contextmanager
def masked(mask: int) -> Iterator[None]:
    old = os.umask(mask)
    try:
        yield
    finally:
        os.umask(old)


def test_another_user_opens_a_table_that_was_vacuumed_in_private(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "t"
    for day in (1, 2):
        for name in "ab":
            put(folder / f"day={day}" / f"{name}.parquet", {"x": [1, 2], "i": [3, 4]})
    build(folder, {"x": "bitmap"})
    optimized(folder, cluster_by=["x"], rows_per_file=100)
    for path in (*tmp_path.parents[:2], tmp_path, folder):
        path.chmod(0o755)
    with masked(0o077):
        vacuum(folder, retention=timedelta(0))
    for path in folder.rglob("day=*/**/*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    for path in folder.glob("day=*"):
        path.chmod(0o755)
    if os.geteuid() != 0:
        pytest.skip("only root may become another user")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "chown", lambda *_, **__: None)  # it is another one's table
        with as_another(folder), pytest.warns(UserWarning, match="cannot be read"):
            assert rows_of(folder, sx.open_table(folder).paths).total() == 8
