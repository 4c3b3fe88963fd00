"""Segments: a commit writes what is new, and what is read is what was committed."""

from __future__ import annotations

import base64
import errno
import json
import math
import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skipindex.errors import CorruptIndexError, StorageError
from skipindex.log import (
    Change,
    Snapshot,
    latest_version,
    newest_snapshot,
    read_snapshot,
)
from skipindex.log.compaction import FANOUT, to_rewrite
from skipindex.log.manifest import Manifest, with_column
from skipindex.log.moved import with_moved, without_files
from skipindex.log.properties import TableProperties
from skipindex.log.segments import Segment, check_segments
from skipindex.log.unchanged import unchanged_rows
from skipindex.source import commit
from skipindex.storage.file_system.location import FileInfo, Location
from skipindex.storage.file_system.names import LOG, MANIFESTS
from tests.log.pieces import PIECES, SPECS, TYPE, facts, piece
from tests.log.test_refused import unreadable
from tests.quick_run import examples
from tests.rewrite.killing import Killed, killed_at, meanwhile
from tests.tables import flip, newest_commit, rewrite_commit

Step = Callable[[Manifest], Manifest]


def moved(manifest: Manifest) -> Manifest:
    """Every other file at another path, where none is yet."""
    known = set(manifest.paths)
    free = [path for path in sorted(known) if f"m/{path}" not in known]
    return moved_away(manifest, free[::2])


def moved_away(manifest: Manifest, paths: Sequence[str]) -> Manifest:
    return with_moved(manifest, {path: FileInfo(f"m/{path}", 1, 77) for path in paths})


STEPS: st.SearchStrategy[Step] = st.one_of(
    PIECES.map(lambda new: lambda base: base.merge(new)),
    st.sets(st.sampled_from("abcdef")).map(
        lambda gone: lambda base: without_files(base, gone)
    ),
    st.sampled_from(["x", "y"]).map(
        lambda name: lambda base: base.without_stats({name})
    ),
    st.sampled_from(SPECS).map(
        lambda spec: lambda base: base.without_blobs({("x", json.dumps(spec))})
    ),
    st.just(moved),
    st.just(lambda base: base),
)


def to(step: Step) -> Change:
    def change(base: Snapshot) -> tuple[Manifest, TableProperties]:
        return step(base.manifest), base.properties

    return change


def domains(manifest: Manifest) -> dict[str, str]:
    return {name: column.domain for name, column in manifest.stats.items()}


@examples(25)
@given(st.lists(STEPS, max_size=8), st.booleans())
def test_what_is_read_is_what_was_committed(
    steps: Sequence[Step], forget: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        location, model, known = Location(folder), Manifest.empty(), None
        for step in steps:
            model = step(model)
            done = commit(location, to(step), operation="t", known=known, forget=forget)
            for read in (
                done,
                read_snapshot(location),
                read_snapshot(location, known=known),
                read_snapshot(location, known=done),
            ):
                assert facts(read.manifest) == facts(model)
                assert domains(read.manifest) == domains(model)
                assert read.segments == done.segments
                assert not read.notes
                names = {pack.name for pack in read.manifest.packs}
                assert names == {pack.name for pack in model.packs}
            dead = any(segment.dead for segment in done.segments)
            assert not (dead and forget)
            known = read


def fill(location: Location, n: int, *, size: int = 1) -> list[Snapshot]:
    """Appends of files, each with a pack of its own."""
    return [
        appended(
            location, piece({f"f{i}-{j}": 1 for j in range(size)}, {"x": [0]}, low=i)
        )
        for i in range(n)
    ]


@pytest.fixture
def location(tmp_path: Path) -> Location:
    return Location(str(tmp_path))


def sizes(location: Location) -> dict[str, int]:
    folder = Path(location.full(MANIFESTS))
    return {path.name: path.stat().st_size for path in folder.iterdir()}


def test_an_append_writes_its_own_rows_alone(location: Location) -> None:
    appended(location, piece({f"b{i}": 1 for i in range(5000)}, {"x": [0], "y": [1]}))
    (whole,) = sizes(location).items()
    fill(location, 1)
    after = sizes(location)
    assert after.pop(whole[0]) == whole[1]
    (fresh,) = after.values()
    assert fresh < whole[1] / 2
    assert len(read_snapshot(location).manifest) == 5001


def test_what_changes_nothing_writes_no_segment(location: Location) -> None:
    fill(location, 3)
    before = sizes(location)
    appended(location, piece({}, {}))
    assert sizes(location) == before


def appended(location: Location, new: Manifest) -> Snapshot:
    return commit(location, to(lambda base: base.merge(new)), operation="t")


def gone(location: Location, *paths: str, **known: Any) -> Snapshot:
    step = to(lambda base: without_files(base, {*paths}))
    return commit(location, step, operation="t", **known)


def test_files_that_go_one_after_another_stay_gone(location: Location) -> None:
    """In the same segment, of which the rows that count are in memory."""
    *_, known = fill(location, 2, size=50)
    written, expected = sizes(location), facts(known.manifest)
    for name in ("f0-7", "f1-3", "f0-20", "f0-0", "f1-49"):
        del expected[name]
        done = gone(location, name, known=known)
        for read in (
            done,
            read_snapshot(location),
            newest_snapshot(location, known=known),
            newest_snapshot(location, known=done),
        ):
            assert facts(read.manifest) == expected
        known = read
    assert sizes(location) == written, "no segment is written"
    assert [(one.n_rows, one.n_live) for one in known.segments] == [(50, 47), (50, 48)]
    older = read_snapshot(location, 1, known=known)
    assert len(older.manifest) == 100, "the rows that are dead since count there"
    (segment,) = commit(location, to(lambda b: b), operation="t", forget=True).segments
    assert (segment.n_rows, segment.dead) == (95, b""), "nothing is left of the others"
    assert facts(read_snapshot(location).manifest) == expected


def test_a_column_goes_with_its_last_value_and_stays_gone(location: Location) -> None:
    def columns() -> set[str]:
        return set(read_snapshot(location).manifest.stats)

    big = piece({f"f{i}": 1 for i in range(50)}, {"x": []})
    appended(location, big.merge(piece({"f7": 1}, {"y": []})))
    assert columns() == {"x", "y"}
    gone(location, "f7")
    assert columns() == {"x", "y"}, "it is asked for"
    commit(location, to(lambda base: base.without_stats({"y"})), operation="t")
    assert columns() == {"x"}
    appended(location, piece({"g": 1}, {"x": []}))
    gone(location, "g")
    assert (columns(), len(read_snapshot(location).manifest)) == ({"x"}, 49)
    first = read_snapshot(location).segments[0]
    assert first.n_rows == 50, "no row was written again"


def changed_stats(manifest: Manifest, field: str, value: Any) -> Manifest:
    values = manifest.stats["x"].values
    rows = values.to_pylist()
    rows[1] = None if field == "*" else {**rows[1], field: value}
    column = replace(manifest.stats["x"], values=pa.array(rows, TYPE))
    return replace(manifest, stats={**manifest.stats, "x": column})


def changed_file(manifest: Manifest, field: str, value: Any) -> Manifest:
    rows = manifest.files[field].to_pylist()
    rows[1] = value
    column = pa.array(rows, manifest.files.schema.field(field).type)
    return replace(manifest, files=with_column(manifest.files, field, column))


def changed_pack(manifest: Manifest, **changes: Any) -> Manifest:
    first, second = manifest.packs
    return replace(manifest, packs=(first, replace(second, **changes)))


CHANGES: dict[str, Step] = {
    **{
        field: lambda m, field=field: changed_file(m, field, 99)
        for field in ("size", "mtime", "footer_crc", "n_rows")
    },
    "path": lambda m: changed_file(m, "path", "other"),
    "note": lambda m: changed_file(m, "note", "why"),
    "tag": lambda m: changed_file(m, "tag", "of a store"),
    "slots": lambda m: changed_file(m, "slots", [5]),
    "packs": lambda m: changed_file(m, "packs", [0]),
    "one more payload": lambda m: changed_file(
        changed_file(m, "packs", [0, 1]), "slots", [0, 0]
    ),
    "no payload": lambda m: changed_file(changed_file(m, "packs", []), "slots", []),
    **{
        field: lambda m, field=field, value=value: changed_stats(m, field, value)
        for field, value in {
            **dict.fromkeys(("null_count", "nan_count", "low", "high"), 5),
            **dict.fromkeys(("low_exact", "high_exact"), True),
            "*": None,
        }.items()
    },
    "pack's name": lambda m: changed_pack(m, name="0" * 32 + ".puffin"),
    "pack's size": lambda m: changed_pack(m, size=7),
    "pack's blobs": lambda m: changed_pack(
        m, blobs=(replace(m.packs[1].blobs[0], crc=7),)
    ),
    "domain": lambda m: replace(
        m, stats={"x": replace(m.stats["x"], domain="decimal:2")}
    ),
    "no statistics": lambda m: m.without_stats({"x"}),
    "statistics of another column": lambda m: replace(
        m, stats={**m.stats, "z": m.stats["x"]}
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_row_that_differs_in_anything_is_written_again(
    location: Location, what: str
) -> None:
    fill(location, 2)
    base = read_snapshot(location).manifest
    new = CHANGES[what](base)
    every = {"domain", "no statistics", "statistics of another column"}
    expected = [-1, -1] if what in every else [0, -1]
    assert unchanged_rows(base, new).tolist() == expected
    commit(location, to(CHANGES[what]), operation="t")
    found = read_snapshot(location).manifest
    assert found.files.equals(new.files)
    assert domains(found) == domains(new)
    for name, column in new.stats.items():
        assert found.stats[name].plain.equals(column.plain)
    for pack, other in zip(found.packs, new.referenced().packs, strict=True):
        assert replace(pack, order=0) == replace(other, order=0)


def test_rows_in_any_order_are_found_again() -> None:
    base = piece(dict.fromkeys("abcdef", 1), {"x": [0]})
    base = replace(base, packs=(replace(base.packs[0], order=3),))
    order = [4, 0, 5, 2]
    assert unchanged_rows(base, base.take(np.array(order))).tolist() == order
    twice = base.take(np.array([1, 1, 2]))
    assert unchanged_rows(base, twice).tolist() == [1, -1, 2]


def test_packs_keep_their_age_through_segments(location: Location) -> None:
    """What is newest of an index of a file is newest in whatever segment it is."""
    for low in range(30):
        new = piece({"a": 1, f"f{low}": 1}, {"x": [0], "y": [0] * (low % 2)}, low=low)
        done = appended(location, new)
        assert facts(done.manifest)["a"].stats["x"] == low
        found = read_snapshot(location).manifest
        newest = {pack.name for pack in new.packs}
        assert facts(found)["a"].payloads["x", json.dumps(SPECS[0])][0] in newest
        orders = [pack.order for pack in found.packs]
        assert orders == sorted(set(orders))


# Compaction


@given(
    st.lists(st.integers(1, 400), min_size=1, max_size=120), st.integers(0, 2**32 - 1)
)
@example([1] * 1000, 0)
def test_segments_are_few_and_rows_are_written_seldom(
    appends: list[int], seed: int
) -> None:
    """Each row about once for every octal digit of their number."""
    rng = np.random.default_rng(seed)
    live: list[int] = []
    total: list[int] = []
    n_written = n_changed = 0
    for n_new in appends:
        left = list(live)
        if left and rng.random() < 0.3:
            at = int(rng.integers(len(left)))
            gone = int(rng.integers(1, left[at] + 1))
            left[at] -= gone
            n_changed += gone
        rewritten = to_rewrite(left, total, n_new, forget=False)
        written = n_new + sum(left[i] for i in rewritten)
        stay = [i for i, n in enumerate(left) if n and i not in rewritten]
        live = [*(left[i] for i in stay), written]
        total = [*(total[i] for i in stay), written]
        n_changed += n_new
        n_written += written
        digits = math.ceil(math.log(sum(live) + 1, 8))
        assert len(live) <= FANOUT * digits
        assert all(4 * n >= 3 * m for n, m in zip(live, total, strict=True))
        assert n_written <= n_changed * (digits + 4)


# Damage


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def garbage(path: Path) -> None:
    path.write_bytes(b"\0" * path.stat().st_size)


DAMAGES = (cut, garbage, Path.unlink, lambda path: flip(path, 200))


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("at", range(3))
def test_a_damaged_segment_takes_its_own_files_along_and_no_others(
    location: Location, at: int, damage: Callable[[Path], None]
) -> None:
    """The order of the packs of the others stays as it is."""
    (*_, whole) = fill(location, 3, size=2)
    damage(Path(location.full(whole.segments[at].path)))
    found = newest_snapshot(location)
    expected = facts(whole.manifest)
    for j in range(2):
        del expected[f"f{at}-{j}"]
    assert facts(found.manifest) == expected
    assert (found.version, found.damaged, found.refused) == (2, None, False)
    (note,) = found.notes
    name = whole.segments[at].name
    assert note.startswith(f"indexes of 2 files ignored: segment {name}: ")
    with pytest.warns(UserWarning, match="commit 2 of the table is damaged: indexes"):
        done = commit(location, to(lambda base: base), operation="t")
    assert facts(done.manifest) == facts(newest_snapshot(location).manifest) == expected
    assert newest_snapshot(location).notes == ()


def test_what_is_in_memory_is_not_read_again(location: Location) -> None:
    *_, known = fill(location, 3)
    for segment in known.segments:
        Path(location.full(segment.path)).unlink()
    again = newest_snapshot(location, known=known)
    assert facts(again.manifest) == facts(known.manifest)
    alone = read_snapshot(location)
    assert (len(alone.manifest), len(alone.lost)) == (0, len(known.segments))


def test_a_segment_that_cannot_be_read_now_is_not_written_over(
    location: Location,
) -> None:
    *_, whole = fill(location, 3)
    with unreadable(whole.segments[1].path.__eq__, OSError(errno.EIO, "no answer")):
        assert len(newest_snapshot(location).manifest) == 2
        with pytest.raises(StorageError, match="so nothing was changed"):
            commit(location, to(lambda base: base), operation="t")
    assert latest_version(location) == 2
    assert facts(newest_snapshot(location).manifest) == facts(whole.manifest)


def test_a_segment_that_is_deleted_while_it_is_read_is_not_damaged(
    location: Location,
) -> None:
    """Another commit has superseded it, and a vacuum has swept it."""
    *_, second = fill(location, 2)
    path = second.segments[0].path

    def swept() -> None:
        commit(location, to(moved), operation="t", forget=True)
        Path(location.full(path)).unlink()

    with meanwhile(Location, "read", swept, where=lambda _, read, __: read == path):
        found = newest_snapshot(location)
    assert (found.version, found.damaged, found.lost, found.notes) == (2, None, (), ())
    assert len(found.manifest) == 2


@pytest.mark.parametrize("after", [False, True])
def test_a_writer_that_dies_leaves_the_commit_before(
    location: Location, *, after: bool
) -> None:
    (whole,) = fill(location, 1)
    new = piece({"new": 1}, {"x": [0]})
    for step in range(2):  # the segment, and the commit
        with pytest.raises(Killed), killed_at(step, after=after) as calls:
            appended(location, new)
        assert calls[-1] == ("write", "write_new")[step]
        found = read_snapshot(location)
        if (step, after) == (1, True):
            assert set(facts(found.manifest)) == {"f0-0", "new"}
        else:
            assert facts(found.manifest) == facts(whole.manifest)
            assert len(list(Path(location.full(LOG)).iterdir())) == 1
    appended(location, new)
    assert set(facts(read_snapshot(location).manifest)) == {"f0-0", "new"}


# What a log may say of segments

SEGMENT = Segment("ab.arrow", 100, 7, 11)


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.just(n), st.data())))
def test_dead_rows_are_read_as_they_are_written(
    given_: tuple[int, st.DataObject],
) -> None:
    n, data = given_
    live = sorted(data.draw(st.sets(st.integers(0, n - 1))))
    segment = replace(SEGMENT, n_rows=n).with_live(np.array(live, np.int64))
    again = Segment.from_json(json.loads(json.dumps(segment.to_json())))
    assert again == segment
    assert again.live.tolist() == live
    assert again.n_live == len(live)


def packed(bitmap: bytes) -> str:
    return base64.b64encode(zlib.compress(bitmap)).decode()


WHOLE = SEGMENT.with_live(np.arange(5)).to_json()


@pytest.mark.parametrize(
    "changes",
    [
        *({"name": name} for name in ("../x.arrow", None)),
        *({"size": size} for size in (-1, 1 << 40)),
        {"crc32c": 1 << 32},
        *({"rows": rows} for rows in (-1, True, 1 << 31, 100)),
        *({"dead": dead} for dead in (7, "?", "ab", packed(b"\0\0")[:-4])),
        *({"dead": packed(bits)} for bits in (b"", b"\0", b"\0\0\0", b"\0\1")),
        {"dead": packed(bytes(1 << 26))},
    ],
    ids=str,
)
def test_a_segment_that_is_not_ours_is_refused(changes: dict[str, Any]) -> None:
    check_segments([WHOLE])
    with pytest.raises(CorruptIndexError):
        check_segments([{**WHOLE, **changes}])


def test_a_segment_is_named_once() -> None:
    with pytest.raises(CorruptIndexError, match="named twice"):
        check_segments([WHOLE, WHOLE])
    with pytest.raises(CorruptIndexError, match="too many rows"):
        check_segments([{**WHOLE, "rows": 1 << 30}, {**WHOLE, "rows": 1 << 30}])
    with pytest.raises(CorruptIndexError, match="too many segments"):
        check_segments([WHOLE] * 5000)


@pytest.mark.parametrize("changes", [{"rows": 3}, {"size": 20}, {"crc32c": 1}])
def test_a_segment_is_what_its_commit_says(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    location = Location(str(tmp_path))
    fill(location, 2, size=2)
    record = json.loads(newest_commit(tmp_path).read_text())["commit"]
    first, second = record["segments"]
    rewrite_commit(tmp_path, segments=[first, {**second, **changes}])
    found = newest_snapshot(location)
    assert found.manifest.paths == ["f0-0", "f0-1"]
    assert len(found.lost) == 1


def test_a_forged_order_of_packs_is_refused_and_ends_nowhere(
    location: Location,
) -> None:
    first, second = (
        pack for one in fill(location, 2)[-1:] for pack in one.manifest.packs
    )
    for orders in [(5, 4), (5, -1), (0, 1 << 60), (True, 2)]:
        packs = (replace(first, order=orders[0]), replace(second, order=orders[1]))
        forged = replace(read_snapshot(location).manifest, packs=packs)
        with pytest.raises(CorruptIndexError):
            Manifest.from_bytes(forged.to_bytes())

    def highest(base: Manifest) -> Manifest:
        packs = [
            replace(pack, order=(1 << 53) - 1 + i) for i, pack in enumerate(base.packs)
        ]
        return replace(base, packs=tuple(packs)).merge(piece({"new": 1}, {"x": [0]}))

    commit(location, to(highest), operation="t")
    found = read_snapshot(location).manifest
    assert [pack.order for pack in found.packs] == [0, 1, 2]
    assert len(found) == 3


def test_statistics_that_another_domain_replaced_count_for_nothing() -> None:
    """What an honest log never has: two segments that disagree on a column."""
    one, other = piece({"a": 1}, {"x": []}), piece({"b": 1}, {"x": []}, domain="string")
    joined = Manifest.concat([one, other])
    assert joined.stats["x"].domain == "string"
    assert pc.is_null(joined.stats["x"].values).to_pylist() == [True, False]
