"""``Table.remove_indexes``: all of ours goes, nothing of others, and no row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import skipindex as sx
from skipindex.api import removal
from skipindex.cli import main
from skipindex.errors import CommitConflictError, TableError
from skipindex.storage.file_system.names import FOLDER, LOG
from tests.rewrite.arrow_writer import optimized
from tests.rewrite.seen import everything, seen_by_both
from tests.tables import build, put, put_all

FILES = [{"x": [1, 2]}, {"x": [3, 4]}, {"x": [5, 6]}]


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """What each file holds, and when it was changed."""
    return {
        path.relative_to(folder).as_posix(): (
            path.read_bytes(),
            path.stat().st_mtime_ns,
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_only_the_data_are_left(tmp_path: Path) -> None:
    put_all(tmp_path, FILES)
    before = contents(tmp_path)
    table = build(tmp_path, {"x": ["bitmap", "bloom"]})
    table = table.build_indexes({"x": "bit_sliced"}, workers=1).table
    own = contents(tmp_path).keys() - before.keys()
    told = table.remove_indexes(dry_run=True)
    assert set(told.deleted) == own
    assert own <= contents(tmp_path).keys(), "a dry run deletes nothing"
    report = table.remove_indexes()
    assert (report.deleted, report.n_bytes) == (told.deleted, told.n_bytes)
    assert contents(tmp_path) == before
    assert not (tmp_path / FOLDER).exists()
    assert len(table.refresh().indexes) == 0
    assert table.refresh().plan("x = 3").count_bounds == (0, None)
    assert str(report).startswith(f"removed {len(own)} files, ")


def test_a_plan_of_before_reads_the_same_rows(tmp_path: Path) -> None:
    table = build(put_all(tmp_path, FILES), {"x": "bitmap"})
    table.remove_indexes()
    plan = table.plan("x = 3")
    assert "1.parquet" in plan.paths
    assert plan.to_arrow().to_table()["x"].to_pylist() == [3]


def test_a_second_call_has_nothing_to_do(tmp_path: Path) -> None:
    table = build(put_all(tmp_path, FILES), {"x": "bitmap"})
    table.remove_indexes()
    again = table.remove_indexes()
    assert (again.deleted, again.n_bytes, again.left) == ((), 0, ())


def test_files_of_others_stay(tmp_path: Path) -> None:
    table = build(put_all(tmp_path / "t", FILES), {"x": "bitmap"})
    inner = build(put_all(tmp_path / "t" / "inner", FILES), {"x": "bitmap"})
    note = tmp_path / "t" / FOLDER / "README"
    note.write_text("mine")
    (tmp_path / "t" / f"{FOLDER}x").mkdir()
    report = table.remove_indexes()
    assert report.left == (f"{FOLDER}/README",)
    assert "1 other files stay" in str(report)
    assert note.read_text() == "mine"
    assert (tmp_path / "t" / f"{FOLDER}x").exists()
    assert inner.refresh().indexes == inner.indexes


def test_links_are_not_followed(tmp_path: Path) -> None:
    other = build(put_all(tmp_path / "other", FILES), {"x": "bitmap"})
    table = sx.open_table(put_all(tmp_path / "t", FILES))
    (tmp_path / "t" / FOLDER).symlink_to(tmp_path / "other" / FOLDER)
    before = contents(tmp_path / "other")
    with pytest.raises(TableError, match="_skipindex' is a link"):
        table.remove_indexes()
    assert contents(tmp_path / "other") == before
    assert other.refresh().indexes == other.indexes


@pytest.mark.parametrize("is_vacuumed", [False, True])
def test_rewritten_files_must_be_visible(tmp_path: Path, is_vacuumed: bool) -> None:
    build(put_all(tmp_path, FILES), {"x": "bitmap"})
    table = optimized(tmp_path, in_place=True).table
    assert any("_skipindex-" in path for path in everything(tmp_path))
    if is_vacuumed:  # shown, and old files and hidden names are there for readers
        table.vacuum()
    before = contents(tmp_path)
    with pytest.raises(TableError, match=r"only the log .*vacuum\(retention=timedelta"):
        table.remove_indexes()
    assert contents(tmp_path) == before
    rows, _ = seen_by_both(tmp_path)
    table.vacuum(retention=timedelta(0))
    table.remove_indexes()
    assert not (tmp_path / FOLDER).exists()
    assert not any("_skipindex" in path for path in everything(tmp_path))
    with_us, without = seen_by_both(tmp_path)
    assert with_us == without == rows


def test_a_damaged_log_is_kept(tmp_path: Path) -> None:
    table = build(put_all(tmp_path, FILES), {"x": "bitmap"})
    table.build_indexes({"x": "bloom"}, workers=1)
    newest = max((tmp_path / LOG).iterdir())
    newest.write_text("{")
    with pytest.raises(TableError, match=r"is damaged, .*accepted: vacuum\(purge=True"):
        table.remove_indexes()
    with pytest.warns(UserWarning, match="is damaged"):
        table.vacuum(purge=True)
    table.remove_indexes()
    assert not (tmp_path / FOLDER).exists()


def test_a_commit_meanwhile_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = build(put_all(tmp_path, FILES), {"x": "bitmap"})
    delete: Callable[..., object] = removal._delete

    def meanwhile(*arguments: object) -> object:
        table.build_indexes({"x": "bloom"}, workers=1)
        return delete(*arguments)

    monkeypatch.setattr(removal, "_delete", meanwhile)
    with pytest.raises(CommitConflictError, match="another writer committed"):
        table.remove_indexes()
    monkeypatch.undo()
    table.remove_indexes()
    assert not (tmp_path / FOLDER).exists()


def test_a_killed_removal_leaves_a_table_and_ends_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_all(tmp_path, FILES)
    before = contents(tmp_path)
    build(tmp_path, {"x": "bitmap"})
    table = build(tmp_path, {"x": "bloom"})
    n_files = len(table.remove_indexes(dry_run=True).deleted)
    for stop in range(n_files):
        delete: Callable[..., list[object]] = removal._delete

        def some(
            location: object,
            files: list[object],
            delete: Callable[..., object] = delete,
        ) -> object:
            delete(location, files[:1])
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(removal, "_delete", some)
            with pytest.raises(KeyboardInterrupt):
                table.remove_indexes()
        found = sx.open_table(tmp_path).plan("x = 3")
        assert "1.parquet" in found.paths, stop
    table.remove_indexes()
    assert contents(tmp_path) == before
    assert not (tmp_path / FOLDER).exists()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build(put_all(tmp_path, FILES), {"x": "bitmap"})
    assert main(["remove", str(tmp_path), "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("would remove ")
    assert main(["remove", str(tmp_path), "--json"]) == 0
    assert '"dry_run": false' in capsys.readouterr().out
    assert not (tmp_path / FOLDER).exists()


def test_an_object_store(tmp_path: Path) -> None:
    from tests.storage.s3_server import s3_server  # noqa: PLC0415

    with s3_server() as server:
        path = put(tmp_path / "f", {"x": [1]})
        server.objects["bucket/t/0.parquet"] = path.read_bytes()
        report = sx.build_indexes(
            "s3://bucket/t", {"x": "bitmap"}, workers=1, storage_options=server.options
        )
        assert len(server.objects) > 1
        report.table.remove_indexes()
        assert list(server.objects) == ["bucket/t/0.parquet"]
