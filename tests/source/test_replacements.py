"""Which files hold the rows of a table, whatever has become of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.errors import CommitConflictError
from skipindex.log.properties import TableProperties
from skipindex.source.folder.replacements import Replacement, Rewrites, Trash
from skipindex.storage.file_system.location import FileInfo
from skipindex.storage.file_system.names import is_data_file


def is_visible(file: FileInfo) -> bool:
    return file.size > 0 and is_data_file(file.path)


def visible(name: str, size: int = 1) -> FileInfo:
    return FileInfo(name, size, 7)


def hidden(name: str) -> FileInfo:
    return FileInfo(f"_skipindex-1-0/{name}", 1, 7)


OLD = (visible("a"), visible("b"))
NEW = (hidden("x"),)
ONE = Rewrites((Replacement(OLD, NEW, 5.0),))
SHOWN = Rewrites(shown=(Replacement(OLD, NEW, 5.0),))
TWO = Rewrites((Replacement(OLD, (*NEW, hidden("y")), 5.0),))
OVERWRITE = Rewrites((Replacement(OLD, (*NEW, hidden("y")), 5.0, overwrites=True),))
TRASH = Rewrites(trash=(Trash(NEW[0], 5.0),))
OTHER = FileInfo("_skipindex-1-0/x", 1, 8)
"""The hidden file in a copy of the table."""


def live(rewrites: Rewrites, listing: Sequence[FileInfo]) -> list[str]:
    there = {file.path: file for file in listing}
    return [file.path for file in rewrites.live_files(there, is_visible)[0]]


def test_copies_stand_for_the_files_that_they_replace() -> None:
    others = [visible("c"), hidden("unknown")]
    assert live(ONE, [*OLD, *NEW, *others]) == ["_skipindex-1-0/x", "c"]
    assert live(Rewrites(), [*OLD, *NEW, *others]) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "listing",
    [
        [OLD[0], *NEW],
        [OLD[0], visible("b", 2), *NEW],
        [OLD[0], FileInfo("b", 1, 8), *NEW],
        [*OLD],
        [*OLD, FileInfo("_skipindex-1-0/x", 2, 7)],
        [*NEW],
    ],
    ids=["gone", "size", "mark", "no copy", "another copy", "all gone"],
)
def test_what_does_not_fit_is_void(listing: list[FileInfo]) -> None:
    found, notes = ONE.live_files({file.path: file for file in listing}, is_visible)
    assert found == [file for file in listing if is_visible(file)]
    assert len(notes) == 1
    assert "deleted or changed" in notes[0]


X, Y = "_skipindex-1-0/x", "_skipindex-1-0/y"
CASES = [
    # Linked, and not shown yet: copies wait as long as an old file is there.
    (ONE, [*OLD, *NEW, visible("x")], [X]),
    (ONE, [*OLD, *NEW, FileInfo("x", 1, 8)], [X]),
    (ONE, [*OLD, *NEW, visible("x", 2)], [X, "x"]),
    (ONE, [*OLD, visible("x")], ["a", "b"]),
    (ONE, [FileInfo("a", 1, 8), FileInfo("b", 1, 8), OTHER, visible("x")], ["a", "b"]),
    (ONE, [visible("a", 2), *NEW, visible("c")], ["a", "c"]),
    # The commit that has shown them is lost, and vacuum had deleted the old files.
    (ONE, [*NEW, visible("x")], ["x"]),
    (ONE, [visible("x")], ["x"]),
    (ONE, [visible("c")], ["c"]),
    (ONE, [OLD[0], *NEW, visible("x")], ["x"]),
    (ONE, [OLD[0], *NEW], ["a"]),
    (ONE, [FileInfo("a", 1, 8), OTHER, visible("x")], ["x"]),
    (TWO, [OLD[0], *NEW, hidden("y"), visible("x")], ["a"]),
    (TWO, [OLD[0], visible("x"), visible("y")], ["x", "y"]),
    (TWO, [visible("x")], ["x"]),
    # Shown: old files that are left do not count, nor does the hidden one.
    (SHOWN, [*OLD, *NEW, visible("x")], ["x"]),
    (SHOWN, [OLD[0], visible("x")], ["x"]),
    (SHOWN, [*OLD, *NEW], []),
    (SHOWN, [visible("a", 2), *NEW, visible("x")], ["a", "x"]),
    (SHOWN, [FileInfo("a", 1, 8), visible("x")], ["a", "x"]),
    (SHOWN, [FileInfo("a", 1, 8), OTHER, visible("x")], ["x"]),
    # Each file of an overwrite counts for itself.
    (OVERWRITE, [*OLD, *NEW, hidden("y")], [X, Y]),
    (OVERWRITE, [*OLD, *NEW, hidden("y"), visible("y")], [X, Y]),
    (OVERWRITE, [*OLD, *NEW, hidden("y"), visible("y", 2)], [X, Y, "y"]),
    (OVERWRITE, [*OLD, hidden("y"), visible("c")], [Y, "c"]),
    (OVERWRITE, [OLD[0], *NEW, visible("y")], [X, "y"]),
    (OVERWRITE, [visible("x"), visible("y")], ["x", "y"]),
    (OVERWRITE, [*OLD], []),
    (OVERWRITE, [FileInfo("a", 1, 8), *NEW], [X, "a"]),
    # A copy of what is trash is made by a vacuum that was too late.
    (TRASH, [*OLD, *NEW, visible("x")], ["a", "b"]),
    (TRASH, [*OLD, visible("x")], ["a", "b"]),
    (TRASH, [*OLD, visible("x", 2)], ["a", "b", "x"]),
]


@pytest.mark.parametrize(("rewrites", "listing", "expected"), CASES)
def test_each_row_counts_once_at_every_step(
    rewrites: Rewrites, listing: list[FileInfo], expected: list[str]
) -> None:
    assert live(rewrites, listing) == expected
    again = Rewrites.from_properties(rewrites.to_properties(TableProperties()))
    assert live(again, listing) == expected


def test_rewriting_again_joins_replacements() -> None:
    added = (visible("c"),)
    newer = (hidden("y"), hidden("z"))
    both = ONE.with_replaced([([*NEW, *added], newer)], now=9.0)
    assert both.replacements == (Replacement((*OLD, *added), newer, 9.0),)
    assert both.trash == (Trash(NEW[0], 9.0),)
    assert live(both, [*OLD, *NEW, *added, *newer]) == [f.path for f in newer]
    part = both.with_replaced([([newer[0]], [hidden("w")])], now=11.0)
    assert part.replacements[0].new == (hidden("z"), hidden("w"))
    apart = ONE.with_replaced([(added, newer)], now=9.0)
    assert apart.replacements == (*ONE.replacements, Replacement(added, newer, 9.0))
    with pytest.raises(CommitConflictError, match="another writer is publishing files"):
        OVERWRITE.with_replaced([(NEW, newer)], now=9.0)


def test_rewriting_what_has_ended_leaves_its_files_as_they_count() -> None:
    """An old file that was written again, or a copy that counts: each of its kind."""
    newer = (hidden("z"),)
    void = ONE.with_replaced([([visible("a", 2)], newer)], now=9.0)
    assert (void.shown, void.trash) == ((), (Trash(NEW[0], 9.0),))
    two = Rewrites((Replacement(OLD, (*NEW, hidden("y")), 5.0),))
    left = [visible("x"), visible("y")]
    assert live(two, left) == ["x", "y"]
    part = two.with_replaced([([left[0]], newer)], now=9.0)
    assert live(part, [*left, *newer]) == ["_skipindex-1-0/z", "y"]


names = st.lists(st.sampled_from("abcdef"), max_size=4, unique=True)


@given(
    old=names.filter(bool),
    new=st.lists(st.sampled_from("uvwxyz"), min_size=1, max_size=4, unique=True),
    since=st.floats(0, 1e10),
    overwrites=st.booleans(),
)
def test_properties_round_trip(
    old: list[str], new: list[str], since: float, overwrites: bool
) -> None:
    one = Replacement(
        tuple(map(visible, old)), tuple(map(hidden, new)), since, overwrites
    )
    shown = Replacement((), (FileInfo("p=1/_skipindex-2-0/r", 1, 7),), since)
    trash = Trash(FileInfo("p=1/_skipindex-2-0/q", 1, 7), since)
    rewrites = Rewrites((one,), (shown,), (trash,))
    laid_out = TableProperties(layout={"cluster_by": ["x"]}, others={"more": [None]})
    properties = rewrites.to_properties(laid_out)
    assert Rewrites.from_properties(properties) == replace(rewrites, changes=1)
    record = json.loads(json.dumps(properties.to_json()))
    assert TableProperties.from_json(record) == (properties, ())
    assert record.keys() == {"layout", "rewrites", "more"}


def many(n: int) -> tuple[Replacement, ...]:
    """One for each of so many partitions, read from a commit of their own."""
    return tuple(
        Replacement(
            (visible(f"day={i}/a"),),
            (FileInfo(f"day={i}/_skipindex-1-0/x", 1, 7),),
            1.0,
        )
        for i in range(n)
    )


@pytest.mark.parametrize(
    "step",
    [
        lambda n: Rewrites(many(n)).ended(many(n), (), now=2.0),
        lambda n: Rewrites(many(n)).ended((), many(n), now=2.0),
        lambda n: Rewrites(many(n)).with_replaced(
            [(r.new, [hidden(f"{i}")]) for i, r in enumerate(many(n))], now=3.0
        ),
        lambda n: opened(Rewrites(many(n)), n),
        lambda n: opened(Rewrites(shown=many(n)), n),
    ],
    ids=["show", "void", "replace", "open", "open shown"],
)
def test_a_step_looks_at_each_replacement_a_few_times(
    monkeypatch: pytest.MonkeyPatch, step: Callable[[int], object]
) -> None:
    """Comparisons are counted; they are as many as the replacements, not squared."""
    counts = []
    for n in (50, 400):
        calls: list[int] = []
        with monkeypatch.context() as patch:
            for kind in (Replacement, FileInfo):
                count_comparisons(patch, kind, calls)
            step(n)
        counts.append(len(calls))
    assert counts[1] <= 10 * max(counts[0], 50)


def count_comparisons(
    patch: pytest.MonkeyPatch, kind: type[object], calls: list[int]
) -> None:
    original = kind.__eq__

    def equal(self: object, other: object) -> bool:
        calls.append(1)
        return original(self, other)

    patch.setattr(kind, "__eq__", equal)


def opened(rewrites: Rewrites, n: int) -> list[FileInfo]:
    there = {f.path: f for r in many(n) for f in (*r.old, *r.new)}
    return rewrites.live_files(there, is_visible)[0]
