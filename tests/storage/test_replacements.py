"""Which files hold the rows of a table, whatever has become of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipindex.errors import CommitConflictError
from skipindex.storage.file_system.location import FileInfo
from skipindex.storage.file_system.names import is_data_file, is_hidden_copy, published
from skipindex.storage.properties import TableProperties
from skipindex.storage.publications import Publication, Publications
from skipindex.storage.replacements import Replacement, Rewrites


def is_visible(file: FileInfo) -> bool:
    return file.size > 0 and is_data_file(file.path)


def visible(name: str, size: int = 1) -> FileInfo:
    return FileInfo(name, size, 7)


def hidden(name: str) -> FileInfo:
    return FileInfo(f"_skipindex-1-0/{name}", 1, 7)


OLD = (visible("a"), visible("b"))
NEW = (hidden("x"),)
ONE = Rewrites((Replacement(OLD, NEW, 5.0),))
PUBLISHING = Rewrites((Replacement(OLD, NEW, 5.0, publication="ab" * 16),))


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
    assert "gone or changed" in notes[0]


@pytest.mark.parametrize(
    ("listing", "expected"),
    [
        ([*OLD, *NEW], ["_skipindex-1-0/x"]),
        ([*OLD, *NEW, visible("x")], ["_skipindex-1-0/x"]),
        ([OLD[0], *NEW, visible("x")], ["_skipindex-1-0/x"]),
        ([*NEW, visible("x")], ["_skipindex-1-0/x"]),
        ([visible("x")], ["x"]),
        ([OLD[0], visible("x")], ["x"]),
        ([visible("a", 2), *NEW, visible("c")], ["a", "c"]),
        ([visible("a", 2), *NEW, visible("x")], ["_skipindex-1-0/x", "a"]),
        ([OLD[0], *NEW], ["a"]),
        ([*OLD, visible("x")], ["x"]),
        ([*OLD, *NEW, FileInfo("x", 1, 8)], ["x"]),
        ([visible("c")], ["c"]),
    ],
)
def test_what_is_published_without_a_record_counts_once_its_copies_are_there(
    listing: list[FileInfo], expected: list[str]
) -> None:
    assert live(PUBLISHING, listing) == expected


def test_what_was_published_without_a_record_and_is_lost_is_void() -> None:
    assert live(PUBLISHING, [*OLD]) == ["a", "b"]
    there = {file.path: file for file in OLD}
    assert len(PUBLISHING.live_files(there, is_visible)[1]) == 1


def test_rewriting_again_joins_replacements() -> None:
    added = (visible("c"),)
    newer = (hidden("y"), hidden("z"))
    both = ONE.with_replaced([([*NEW, *added], newer)], now=9.0)
    assert both.replacements == (Replacement((*OLD, *added), newer, 9.0),)
    assert both.trash == (("_skipindex-1-0/x", 9.0),)
    assert live(both, [*OLD, *NEW, *added, *newer]) == [f.path for f in newer]
    part = both.with_replaced([([newer[0]], [hidden("w")])], now=11.0)
    assert part.replacements[0].new == (hidden("z"), hidden("w"))
    apart = ONE.with_replaced([(added, newer)], now=9.0)
    assert apart.replacements == (*ONE.replacements, Replacement(added, newer, 9.0))
    with pytest.raises(CommitConflictError, match="vacuum is publishing"):
        PUBLISHING.with_replaced([(NEW, newer)], now=9.0)


names = st.lists(st.sampled_from("abcdef"), max_size=4, unique=True)


@given(
    old=names.filter(bool),
    new=st.lists(st.sampled_from("uvwxyz"), min_size=1, max_size=4, unique=True),
    since=st.floats(0, 1e10),
    publication=st.sampled_from([None, "ab" * 16]),
)
def test_properties_round_trip(
    old: list[str], new: list[str], since: float, publication: str | None
) -> None:
    one = Replacement(
        tuple(map(visible, old)), tuple(map(hidden, new)), since, publication
    )
    rewrites = Rewrites((one,), (("p=1/_skipindex-2-0/q", since),))
    laid_out = TableProperties(layout={"cluster_by": ["x"]}, others={"more": [None]})
    properties = rewrites.to_properties(laid_out)
    assert Rewrites.from_properties(properties) == rewrites
    record = json.loads(json.dumps(properties.to_json()))
    assert TableProperties.from_json(record) == (properties, ())
    assert record.keys() == {"layout", "rewrites", "more"}
    assert Rewrites().to_properties(properties) == laid_out


def test_names() -> None:
    assert published("p=1/_skipindex-7-0/part") == "p=1/part"
    assert published("_skipindex-7-0/part") == "part"
    assert is_hidden_copy("_skipindex-7-0/part")
    assert is_hidden_copy("p=1/_skipindex-7-0/part")
    assert not is_hidden_copy("_skipindex/log/1.json")
    assert not is_hidden_copy("_skipindex-7-0")
    assert not is_visible(FileInfo("p=1/_skipindex-7-0/part", 1, 1))


def many(n: int) -> tuple[Replacement, ...]:
    """One for each of so many partitions, read from a commit of their own."""
    return tuple(
        Replacement(
            (visible(f"day={i}/a"),),
            (FileInfo(f"day={i}/_skipindex-1-0/x", 1, 7),),
            1.0,
            publication="ab" * 16,
        )
        for i in range(n)
    )


@pytest.mark.parametrize(
    "step",
    [
        lambda n: Rewrites(many(n)).with_publication(many(n), "cd" * 16),
        lambda n: Rewrites(many(n)).without_replacements(many(n), now=2.0),
        lambda n: Rewrites(
            tuple(replace(r, publication=None) for r in many(n))
        ).with_replaced(
            [(r.new, [hidden(f"{i}")]) for i, r in enumerate(many(n))], now=3.0
        ),
        lambda n: opened(n, decided=True),
        lambda n: opened(n, decided=False),
    ],
    ids=["mark", "end", "replace", "open", "open before the outcome"],
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


def opened(n: int, *, decided: bool) -> list[FileInfo]:
    shown = frozenset(path for r in many(n) for path in r.names) if decided else None
    records = Publications((Publication("ab" * 16, many(n), shown),))
    there = {f.path: f for r in many(n) for f in (*r.old, *r.new)}
    return Rewrites(many(n)).live_files(there, is_visible, records.shown_of)[0]
