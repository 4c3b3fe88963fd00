"""Names that this library gives to files, and paths that it may follow in a table.

A log is data, not an order: a path in it is used only if it is relative, normal, and
of the form that this library gives to such files.
"""

from __future__ import annotations

import re
import uuid
from typing import Final

FOLDER: Final = "_skipindex"
LOG: Final = f"{FOLDER}/log"
MANIFESTS: Final = f"{FOLDER}/manifests"
PACKS: Final = f"{FOLDER}/packs"
STAGING: Final = f"{FOLDER}/staging"
QUERIES: Final = f"{FOLDER}/queries"
_RUNS: Final = f"{FOLDER}/runs"  # development versions wrote them

HIDDEN: Final = "_skipindex-"
"""What the name of a folder of hidden copies begins with."""
HIDDEN_END: Final = ".hidden"
"""What the name of a hidden copy ends in, so that no glob of ``*.parquet`` finds it."""

SUMMARIES: Final = ("_common_metadata", "_metadata")
"""Files that Spark takes the schema from before any data file, even if they are empty;
its listing shows every name that begins like this."""

MAX_VERSION: Final = 10**15
"""Commits have smaller numbers: one a second would take longer than any table lives."""

_MAX_PATH: Final = 4096
"""Characters of a path."""
_COMMIT: Final = re.compile(r"[0-9]{20}\.json", re.ASCII)
_MANIFEST: Final = re.compile(r"[0-9a-f]{1,64}\.arrow")
_PACK: Final = re.compile(r"[0-9a-f]{1,64}\.puffin")
_RECORD: Final = re.compile(r"[0-9]{13}-[0-9a-f]{12}\.jsonl")
_TEMPORARY: Final = re.compile(r"\.skipindex-[0-9a-f]{32}\.tmp")
_ASIDE: Final = re.compile(r"\.skipindex-[0-9a-f]{32}\.([0-9]+)\.(-?[0-9]+)\.aside")
_COPY_FOLDER: Final = re.compile(
    r"(?:.*/)?_skipindex-[0-9a-f]{1,64}-[0-9]{1,9}", re.DOTALL
)
_COPY: Final = re.compile(
    rf"{_COPY_FOLDER.pattern}/[A-Za-z0-9][A-Za-z0-9._-]*", re.DOTALL
)
_PUBLISHED: Final = re.compile(r"part-[0-9]{5,}-([0-9a-f]{32}-[0-9]{1,9})(?:\.|$)")
"""The names that ``staging`` gives to files."""


def is_shown(name: str) -> bool:
    """Whether Spark's listing shows a file or folder of this name."""
    first = name[:1]
    if first == "_" and name.startswith(SUMMARIES):
        return True
    is_hidden = first == "." or (first == "_" and "=" not in name)
    return not (is_hidden or name.endswith("._COPYING_"))


def is_data_name(name: str) -> bool:
    """Whether Spark reads a file of this name, if its listing shows it."""
    first = name[:1]
    return first != "." and (first != "_" or "=" in name)


def is_data_file(path: str) -> bool:
    """Whether Spark reads the file at this relative path, if it reads its folder."""
    *folders, name = path.split("/")
    return is_data_name(name) and is_shown(name) and all(map(is_shown, folders))


def temporary_name() -> str:
    """A new name of a file that is being written."""
    return f".skipindex-{uuid.uuid4().hex}.tmp"


def is_temporary(path: str) -> bool:
    """Whether the name is one that a file of ours has while it is written."""
    return _TEMPORARY.fullmatch(path.rpartition("/")[2]) is not None


def aside_name(size: int, mtime: int) -> str:
    """A new name of a folder for a file that is deleted if it has this size and time.

    The size is in bytes, the time in nanoseconds since 1970.
    """
    return f".skipindex-{uuid.uuid4().hex}.{size}.{mtime}.aside"


def aside_file(folder: str) -> tuple[int, int] | None:
    """The size and time that a folder of ``aside_name`` tells; None for other names."""
    match = _ASIDE.fullmatch(folder)
    return (int(match[1]), int(match[2])) if match else None


def is_aside(path: str) -> bool:
    """Whether the file was put aside, to be deleted or to get its name back."""
    return aside_file(path.rpartition("/")[0].rpartition("/")[2]) is not None


def is_plain_path(path: object) -> bool:
    """Whether the path is relative and normal, and stays below the folder."""
    if not isinstance(path, str) or not 0 < len(path) <= _MAX_PATH or "\0" in path:
        return False
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return not any(part in {"", ".", ".."} for part in path.split("/"))


def is_hidden_copy(path: str) -> bool:
    """Whether the file has the name and the folder of a hidden copy."""
    return _COPY.fullmatch(path) is not None


def is_copy_folder(path: str) -> bool:
    """Whether the folder has the name of one of hidden copies."""
    return _COPY_FOLDER.fullmatch(path) is not None


def published(path: str) -> str:
    """Where a hidden file is visible once it is published: one folder up."""
    folder, _, name = path.rpartition("/")
    return f"{folder.rpartition('/')[0]}/{name.removesuffix(HIDDEN_END)}".lstrip("/")


def visible_name(path: str) -> str:
    """Where a file is visible, or will be if it is hidden now."""
    return published(path) if is_hidden_copy(path) else path


def hidden_twin(path: str) -> str | None:
    """Where a visible file was hidden until it was published; None if it never was."""
    folder, slash, name = path.rpartition("/")
    run = _PUBLISHED.match(name)
    return f"{folder}{slash}{HIDDEN}{run[1]}/{name}{HIDDEN_END}" if run else None


def round_of(path: str) -> tuple[str, int] | None:
    """The run that wrote a file, and its round, by the name; None for other names."""
    match = _PUBLISHED.match(path.rpartition("/")[2])
    if match is None:
        return None
    run, _, number = match[1].partition("-")
    return run, int(number)


def is_manifest_name(name: object) -> bool:
    """Whether this is the name of a manifest."""
    return isinstance(name, str) and _MANIFEST.fullmatch(name) is not None


def is_pack_name(name: object) -> bool:
    """Whether this is the name of a pack."""
    return isinstance(name, str) and _PACK.fullmatch(name) is not None


def is_record(path: str, folder: str | None = None) -> bool:
    """Whether the file is a segment of recorded queries or runs; in one folder, if any.

    The empty folder is that of a record that is not beside a table.
    """
    above, _, name = path.rpartition("/")
    is_there = above in {QUERIES, _RUNS} if folder is None else above == folder
    return is_there and _RECORD.fullmatch(name) is not None


def version_of(name: str) -> int | None:
    """The number of the commit in the file of this name; None if it is no commit."""
    if _COMMIT.fullmatch(name) is None:
        return None
    version = int(name.removesuffix(".json"))
    return version if version < MAX_VERSION else None


def commit_path(version: int) -> str:
    """Where the commit of this number is."""
    return f"{LOG}/{version:020d}.json"


def is_commit(path: str) -> bool:
    """Whether the file at this relative path is a commit, by its name."""
    folder, _, name = path.rpartition("/")
    return folder == LOG and version_of(name) is not None


def is_own_garbage(path: str) -> bool:
    """Whether a file that no commit names was made by us, by its name.

    Commits are not among them: which of those may go is for their age to say.
    """
    folder, _, name = path.rpartition("/")
    if path.startswith(f"{STAGING}/") or is_hidden_copy(path) or is_temporary(path):
        return True
    if folder == MANIFESTS:
        return is_manifest_name(name)
    return folder == PACKS and is_pack_name(name)
