"""Rewritten files: hidden copies that stand for visible files, until published.

A rewrite puts its files into hidden folders beside the files that they replace,
``city=7/_skipindex-<run>/part-00000-….parquet``, which nobody sees who lists the
table.  A commit then says that they hold the same rows as certain visible files.
This is believed as long as every file on both sides is there, unchanged: whoever
adds, deletes or overwrites visible files goes on as if nothing had happened, and a
replacement that no longer fits is void, so the visible files count again.

Vacuum publishes a replacement: from a commit that says so on, the copies are the
rows, whatever else is there; they are linked to visible names, the replaced files
are deleted, and another commit says that it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from skipindex.errors import CommitConflictError, TableError
from skipindex.storage.location import Found
from skipindex.storage.manifest import Manifest

HIDDEN: Final = "_skipindex-"
"""What the name of a folder of hidden copies begins with."""

_PROPERTY: Final = "rewrites"


@dataclass(frozen=True, slots=True)
class Replacement:
    """Hidden files that hold the rows of visible ones.

    Args:
        old: the visible files.
        new: the hidden ones.
        since: when that was committed, in seconds since 1970.
        publishing: the hidden files count, whatever became of the visible ones.
        arrival: the hidden files hold rows of their own, so those of the visible
            ones, if there are any, are overwritten.
    """

    old: tuple[Found, ...]
    new: tuple[Found, ...]
    since: float
    publishing: bool = False
    arrival: bool = False

    def misfit(self, there: Mapping[str, Found]) -> str | None:
        """The path of a file that is gone or changed, if there is one."""
        files = (*self.old, *self.new)
        return next((f.path for f in files if there.get(f.path) != f), None)


@dataclass(frozen=True, slots=True)
class Rewrites:
    """All replacements of a table, and the hidden files that no longer count.

    Args:
        replacements: no two have a file in common.
        trash: paths of such files, and since when.
    """

    replacements: tuple[Replacement, ...] = ()
    trash: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> Rewrites:
        """What the properties of a commit say."""
        record = properties.get(_PROPERTY, {})
        return cls(
            tuple(
                Replacement(
                    tuple(Found(*file) for file in r["old"]),
                    tuple(Found(*file) for file in r["new"]),
                    r["since"],
                    r["publishing"],
                    r.get("arrival", False),
                )
                for r in record.get("replacements", ())
            ),
            tuple((path, since) for path, since in record.get("trash", ())),
        )

    def within(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """The properties with these rewrites in them."""
        others = {k: v for k, v in properties.items() if k != _PROPERTY}
        if self == Rewrites():
            return others
        record = {
            "replacements": [
                {
                    "old": [[f.path, f.size, f.mtime] for f in r.old],
                    "new": [[f.path, f.size, f.mtime] for f in r.new],
                    "since": r.since,
                    "publishing": r.publishing,
                    **({"arrival": True} if r.arrival else {}),
                }
                for r in self.replacements
            ],
            "trash": [list(entry) for entry in self.trash],
        }
        return {**others, _PROPERTY: record}

    def live(
        self, listing: Iterable[Found], is_visible: Callable[[Found], bool]
    ) -> tuple[list[Found], list[str]]:
        """The files that hold the table's rows, by path, and remarks on others.

        Args:
            listing: every file below the table's folder, hidden ones included.
            is_visible: whether a reader who lists the folder reads the file.

        Raises:
            TableError: a file that is being published is lost.
        """
        there = {file.path: file for file in listing}
        found = {f.path: f for f in there.values() if is_visible(f)}
        notes = []
        for replacement in self.replacements:
            if replacement.publishing:
                _take_over(replacement, there, found)
                continue
            misfit = replacement.misfit(there)
            if misfit is not None:
                notes.append(
                    f"{len(replacement.new)} rewritten files not used: {misfit!r} is "
                    "gone or changed, so the files that they replaced count"
                )
                continue
            for file in replacement.old:
                del found[file.path]
            found.update({file.path: file for file in replacement.new})
        return [found[path] for path in sorted(found)], notes

    def with_replaced(
        self, old: Sequence[Found], new: Sequence[Found], *, now: float
    ) -> Rewrites:
        """These and one more, by which ``new`` holds the rows of ``old``.

        Where ``old`` has hidden files, they become trash, and the replacements
        that made them become one with the new one.

        Raises:
            CommitConflictError: one of them is being published.
        """
        paths = {file.path for file in old}
        touched = [r for r in self.replacements if paths & {f.path for f in r.new}]
        if any(r.publishing for r in touched):
            raise CommitConflictError(
                "optimize: vacuum is publishing files that were to be rewritten; try "
                "again when it is done"
            )
        made = {file.path for r in touched for file in r.new}
        whole = Replacement(
            old=(
                *(file for r in touched for file in r.old),
                *(file for file in old if file.path not in made),
            ),
            new=(
                *(f for r in touched for f in r.new if f.path not in paths),
                *new,
            ),
            since=now,
        )
        return Rewrites(
            (*(r for r in self.replacements if r not in touched), whole),
            (*self.trash, *((path, now) for path in sorted(paths & made))),
        )

    def without(self, gone: Sequence[Replacement], *, now: float) -> Rewrites:
        """These but some, whose hidden files become trash."""
        return Rewrites(
            tuple(r for r in self.replacements if r not in gone),
            (*self.trash, *((f.path, now) for r in gone for f in r.new)),
        )

    def publishing(self, due: Sequence[Replacement]) -> Rewrites:
        """These, with some of them being published."""
        marked = tuple(
            replace(r, publishing=True) if r in due else r for r in self.replacements
        )
        return Rewrites(marked, self.trash)


def published(path: str) -> str:
    """Where a hidden file is visible once it is published: one folder up."""
    folder, _, name = path.rpartition("/")
    return f"{folder.rpartition('/')[0]}/{name}".lstrip("/")


def is_hidden_copy(path: str) -> bool:
    """Whether the file lies in a folder of hidden copies."""
    return path.rpartition("/")[0].rpartition("/")[2].startswith(HIDDEN)


def _take_over(
    replacement: Replacement, there: Mapping[str, Found], found: dict[str, Found]
) -> None:
    """Let the copies count in ``found``, by their hidden names or the visible ones."""
    n_traces = 0
    for file in replacement.old:
        if found.get(file.path) == file:
            del found[file.path]
            n_traces += 1
    lost = []
    for file in replacement.new:
        target = published(file.path)
        n_traces += target in found
        if there.get(file.path) == file:
            found.pop(target, None)
            found[file.path] = file
            n_traces += 1
        elif target not in found:
            lost.append(file.path)
    if lost and n_traces:  # without a trace somebody has dropped the partition
        raise TableError(
            f"{lost[0]!r} is lost: it was being published by vacuum, and other files "
            "that count on it are still there"
        )


def without_files(manifest: Manifest, paths: set[str]) -> Manifest:
    """The manifest without the files at these paths."""
    mask = pa.array([path not in paths for path in manifest.paths], pa.bool_())
    stats = {
        name: replace(column, values=column.values.filter(mask))
        for name, column in manifest.stats.items()
    }
    kept = replace(manifest, files=manifest.files.filter(mask), stats=stats)
    return kept.without_unused_packs()


def with_moved(manifest: Manifest, moved: Mapping[str, Found]) -> Manifest:
    """The manifest with files at other paths, by the path that they have in it.

    The rows are in the same order; the content of the files is the same.
    """
    files = manifest.files
    places = [moved.get(path) for path in manifest.paths]
    for name in ("path", "mtime"):
        values = files[name].to_pylist()
        there = [
            getattr(place, name) if place else value
            for place, value in zip(places, values, strict=True)
        ]
        at = files.schema.get_field_index(name)
        field = files.schema.field(name)
        files = files.set_column(at, field, pa.array(there, field.type))
    return replace(manifest, files=files)
