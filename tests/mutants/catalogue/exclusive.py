"""Mutants of tables that are opened from their log, without a listing."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_EXCLUSIVE: Final = ("tests/rewrite/test_exclusive.py",)

EXCLUSIVE: Final = (
    Mutant(
        "mark-of-another-commit",
        "storage.log.exclusive.is_exclusive",
        'mark.get("commit") == snapshot.version == snapshot.newest',
        "snapshot.version == snapshot.newest",
        "a commit of a library that does not know the mark counts as checked",
        _EXCLUSIVE,
    ),
    Mutant(
        "mark-of-an-older-commit",
        "storage.log.exclusive.is_exclusive",
        'mark.get("commit") == snapshot.version == snapshot.newest',
        'mark.get("commit") == snapshot.version',
        "files of a damaged newer commit are not read",
        _EXCLUSIVE,
    ),
    Mutant(
        "mark-with-lost-segments",
        "storage.log.exclusive.is_exclusive",
        "not snapshot.lost",
        "True",
        "files of a lost segment are not read",
        _EXCLUSIVE,
    ),
    Mutant(
        "mark-carried-on",
        "storage.log.exclusive.stamped",
        "mark != base.properties.exclusive or not is_exclusive(base)",
        "mark != base.properties.exclusive",
        "a mark that had ended comes back with the next commit",
        _EXCLUSIVE,
    ),
    Mutant(
        "foreign-files-not-seen",
        "storage.log.exclusive._unexplained",
        "set(new) - added",
        "set()",
        "a build that indexes a file of another writer lets the log be trusted",
        _EXCLUSIVE,
    ),
    Mutant(
        "overwritten-files-not-seen",
        "storage.log.exclusive._unexplained",
        "same.are_still(Marks.of_table(base.manifest.files).at(found[there])).all()",
        "len(same.sizes) >= 0",
        "a build that indexes an overwritten file lets the log be trusted",
        _EXCLUSIVE,
    ),
    Mutant(
        "forgotten-files-not-seen",
        "storage.log.exclusive._unexplained",
        "set(gone) - ours",
        "set()",
        "a file that a commit forgets is not read any more",
        _EXCLUSIVE,
    ),
    Mutant(
        "files-without-a-row",
        "storage.log.exclusive.stamped",
        "why = why or _unnamed(base, manifest, properties)",
        "pass",
        "appended files of which nothing is indexed are not read",
        _EXCLUSIVE,
    ),
    Mutant(
        "withdrawn-copies-keep-the-mark",
        "rewrite.publish._committed",
        "properties = replace(properties, exclusive=None)",
        "pass",
        "the files that a void rewrite had replaced count again and are not read",
        _EXCLUSIVE,
    ),
    Mutant(
        "log-in-doubt-is-trusted",
        "table.opening.from_log._why_not",
        "not snapshot.is_exclusive",
        "snapshot.properties.exclusive is None",
        "a log of which a part cannot be read stands for a listing",
        _EXCLUSIVE,
    ),
    Mutant(
        "declared-without-a-look",
        "table.opening.from_log.unlike_log",
        "(rows < 0).any()",
        "False",
        "a file that the log does not name is there when the mark is set",
        _EXCLUSIVE,
    ),
    Mutant(
        "declared-with-an-empty-partition",
        "table.opening.from_log.unlike_log",
        'partition_values(f"{folder}/") not in valued',
        "False",
        "a folder of empty files gives a partition column another type in Spark",
        _EXCLUSIVE,
    ),
    Mutant(
        "declared-with-a-summary",
        "table.opening.from_log.unlike_log",
        "shown.summaries",
        "()",
        "Spark takes the columns from a summary file, and the log does not",
        _EXCLUSIVE,
    ),
    Mutant(
        "vacuum-lets-the-mark-be",
        "rewrite.vacuum._Run.compare",
        "why and latest_version(self._location) == self._snapshot.version",
        "False",
        "a vacuum sees a file of another writer and does not tell",
        _EXCLUSIVE,
    ),
    Mutant(
        "schema-of-any-file",
        "table.opening.from_log._schema_file",
        "path = first_in_java(location, [*first, *old])",
        "path = [*first, *old][0]",
        "columns are those of another file than Spark takes them from",
        _EXCLUSIVE,
    ),
)
