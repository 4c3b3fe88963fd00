"""Opening a table: by the log of another format, its own log, or a listing.

The files, the commit and the schema belong together: if a rewrite is committed
meanwhile, the table is listed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeAlias, get_args

import pyarrow as pa

from skipindex.errors import TableError
from skipindex.log import Snapshot
from skipindex.source.delta import delta_source
from skipindex.source.folder.folder import FolderListing
from skipindex.source.folder.from_log import by_log, why_not
from skipindex.source.folder.live import (
    LOOKS,
    Listing,
    look,
    never_still,
    newest_usable,
)
from skipindex.source.formats import log_in, other_format, refused
from skipindex.source.iceberg import iceberg_source
from skipindex.source.source import (
    NEWEST,
    AtVersion,
    CatalogFolders,
    LogSource,
    Observed,
)
from skipindex.storage.deadline import carried
from skipindex.storage.file_system.location import FileInfo, Location

Trust: TypeAlias = Literal["listing", "log"]
"""What says which files a table has."""
_SOURCES: Final[Mapping[str, Callable[[Location, AtVersion], LogSource]]] = {
    "Delta": delta_source
}
"""The formats whose logs are read."""


def check_trust(trust: str) -> None:
    """Raise ``TableError`` if this is no trust."""
    if trust not in get_args(Trust):
        raise TableError(
            f"cannot open a table with trust={trust!r} (accepted: 'listing', 'log')"
        )


@dataclass(frozen=True, slots=True)
class Opening:
    """How a table is opened, and opened again when it is refreshed.

    If ``declared`` is None, the columns are taken from a footer.  ``plain`` takes a
    table of another format for a plain folder.  ``folders`` are asked for whenever the
    table is opened.  ``version`` is that of a table of another format.
    """

    declared: pa.Schema | None = None
    plain: bool = False
    trust: Trust = "listing"
    folders: CatalogFolders | None = None
    version: AtVersion = NEWEST


def observe(
    location: Location,
    how: Opening,
    known: Snapshot | None = None,
    *,
    insist: bool = False,
    files: Listing | None = None,
) -> Observed:
    """The table below ``location`` as it is now, by its log or by a listing.

    A listing it is too where the log is in doubt; a note says why.  If ``insist``, it
    is an error that the log does not name all files.  Segments of ``known``, an earlier
    snapshot, are not read again.  ``files`` lists those that count, which may be none,
    instead of all.
    """
    doubt: tuple[str, ...] = ()
    gone = ""
    for _ in range(LOOKS if how.trust == "log" else 0):
        with ThreadPoolExecutor(1) as pool:  # a store is asked for both at once
            foreign = pool.submit(carried(log_in), location)
            snapshot = newest_usable(location, known)
            why = why_not(location, snapshot, insist=insist)
        if other := foreign.result():
            why = why or f"{other!r} is a log of another format"
        if gone and known is not None and snapshot.version == known.version:
            why = why or f"{gone!r}, which it names, was deleted or changed"
        if why:
            doubt = (f"the files were listed, not taken from the log: {why}",)
            break
        result = by_log(location, snapshot, how.declared)
        if not isinstance(result, str):
            return result
        known, gone = snapshot, result
    else:
        if how.trust == "log":
            raise never_still(location)
    return _listed(location, how, known, files).noted(doubt)


def _listed(
    location: Location, how: Opening, known: Snapshot | None, files: Listing | None
) -> Observed:
    """The table as it is now, by a listing."""
    missing = ""

    def begin(
        everything: Sequence[FileInfo],
    ) -> Callable[[Snapshot], Observed | str]:
        source = None
        if not how.plain:
            paths = (file.path for file in everything)
            source = _log_source(location, paths, how.version)
        if source is not None:
            return partial(source.observed, location, everything)
        return FolderListing(
            location, everything, how.declared, may_be_empty=files is not None
        ).observed

    for _ in range(LOOKS):
        result = look(location, known, begin, files)
        if isinstance(result, Observed):
            return result
        missing = result
    if missing:
        raise TableError(
            f"{location.full(missing)!r} is gone, which the table's own log names "
            "(accepted: a version whose files have not been deleted by a vacuum)"
        )
    raise never_still(location)


def _log_source(
    location: Location, paths: Iterable[str], version: AtVersion
) -> LogSource | None:
    """What a log says of a folder with files at these paths; None if it is plain."""
    result = other_format(paths)
    if version.metadata:
        return iceberg_source(location, version)
    if result is None and version == NEWEST:
        return None
    if result is None:
        raise TableError(
            f"{location.full('')!r} has no version {version.number}: it is no "
            f"table of {', '.join(_SOURCES)} (accepted: no version)"
        )
    if result[0] not in _SOURCES:
        raise refused(location, *result, insist=True)
    return _SOURCES[result[0]](location, version)
