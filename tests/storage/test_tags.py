"""The tag of a store, such as an ETag, is part of a file's identity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from skipindex.log.manifest import Manifest, with_column
from skipindex.log.moved import with_moved
from skipindex.log.properties import TableProperties
from skipindex.log.unchanged import match
from skipindex.source.folder.replacements import Replacement
from skipindex.storage.file_system.file_info import FileInfo
from skipindex.storage.file_system.file_list import FileList
from tests.log.pieces import facts, manifest_of, piece

SECOND = 1_000_000_000
FILE = FileInfo("f", 5, 7 * SECOND, "a")
HIDDEN = "_skipindex-abc-0/part-00000-abc-0.parquet"


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (FILE, True),
        (FileInfo("f", 5, 7 * SECOND + 5, "a"), True),
        (FileInfo("f", 5, 7 * SECOND, "b"), False),
        (FileInfo("f", 5, 8 * SECOND, "a"), False),
        (FileInfo("f", 6, 7 * SECOND, "a"), False),
        (FileInfo("g", 5, 7 * SECOND, "a"), False),
        (FileInfo("f", 5, 7 * SECOND), True),
        (FileInfo("f", 5, 7 * SECOND + 5), False),
        (None, False),
    ],
)
def test_what_is_one_content(other: FileInfo | None, is_same: bool) -> None:
    """Fractions of a second count only where a tag is missing.

    An index counts for nothing where one side alone has a tag.
    """
    assert FILE.is_same(other) is is_same
    if other is not None:
        assert other.is_same(FILE) is is_same
        assert match_one(FILE, other) is (is_same and other.tag == FILE.tag)


def test_a_tag_that_was_not_recorded_is_another() -> None:
    """An earlier version took a file that is written twice in a second for one."""
    assert not match_one(FileInfo("f", 5, 7 * SECOND), FILE)
    before = FileInfo("f", 5, 7 * SECOND)
    assert match_one(before, before)


def match_one(then: FileInfo, now: FileInfo) -> bool:
    """Whether a plan finds ``then`` in a manifest for a file that is listed ``now``."""
    listing = FileList.of([now])
    rows, is_known = match(manifest_of([then]), listing.names, listing.marks)
    assert bool(is_known[0]) is (then.path == now.path)
    return bool(rows[0] >= 0)


def test_a_manifest_has_tags_if_a_file_has_one() -> None:
    none = manifest_of([FileInfo("f", 5, 7)]).to_bytes()
    assert "tag" not in pa.ipc.open_file(none).schema.names
    some = manifest_of([FILE, FileInfo("g", 5, 7)])
    for data, tags in ((none, [None]), (some.to_bytes(), ["a", None])):
        assert Manifest.from_bytes(data).files["tag"].to_pylist() == tags
    assert some.identities()[0] == ("f", 5, 7 * SECOND, "a", 1)


@pytest.mark.parametrize(
    ("then", "now", "is_same"),
    [
        ("a", "a", True),
        ("a", "b", False),
        (None, "b", False),
        ("a", None, False),
        (None, None, True),
    ],
)
def test_what_was_known_of_another_tag_is_forgotten(
    then: str | None, now: str | None, is_same: bool
) -> None:
    old, new = (
        replace(one, files=with_column(one.files, "tag", pa.array([tag], pa.string())))
        for one, tag in (
            (piece({"f": 1}, {"x": [0]}, low=1), then),
            (piece({"f": 1}, {"y": [0]}, low=2), now),
        )
    )
    known = facts(old.merge(new))["f"]
    assert ("x" in known.stats) is is_same
    assert {column for column, _ in known.payloads} == {"y", *(["x"] * is_same)}


def test_a_file_goes_on_with_the_tag_of_its_new_place() -> None:
    moved = with_moved(manifest_of([FILE]), {"f": FileInfo("g", 5, 9, "b")})
    assert moved.identities() == [("g", 5, 9, "b", 1)]


def replacement(tag: str | None) -> Replacement:
    old = FileInfo("p=1/f.parquet", 5, 7, tag)
    return Replacement((old,), (FileInfo(f"p=1/{HIDDEN}", 5, 7, tag),), 1.0)


@pytest.mark.parametrize("tag", ["a", None])
def test_a_replacement_is_written_with_tags(tag: str | None) -> None:
    one = replacement(tag)
    record = one.to_json()
    assert not refused(record)
    assert Replacement.from_json(record) == one
    assert ("tags" in record) is (tag is not None)
    old, new = one.old[0], one.new[0]
    there = {old.path: old, new.path: new}
    assert one.first_mismatch(there) is None
    other = FileInfo(old.path, old.size, old.mtime, "other")
    assert (one.first_mismatch({**there, old.path: other}) is None) is (tag is None)


@pytest.mark.parametrize("tags", [[], {"f": 1}, "x"])
def test_tags_that_are_none_are_refused(tags: object) -> None:
    record = replacement("a").to_json() | {"tags": tags}
    assert "tags" in refused(record)[0]


def refused(record: dict[str, Any]) -> tuple[str, ...]:
    """What is wrong with a replacement in a commit."""
    return TableProperties.from_json({"rewrites": {"replacements": [record]}})[1]
