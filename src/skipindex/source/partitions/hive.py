"""Hive partitions: names and values from paths, as Spark parses them.

``year=2022/month=01/part-0.parquet`` has the values ``2022`` and ``01``; Spark
takes both columns for int unless told otherwise, so ``month = '01'`` and
``month = 1`` both mean January (trap C-30).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

import pyarrow as pa

from skipindex.errors import TableError
from skipindex.expressions.atoms import Value
from skipindex.expressions.domain import Domain, domain_of
from skipindex.source.partitions.inference import infer_type, is_of, typed, unescape

DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
"""Stands for NULL, and for '' too (trap C-40); Spark reads NULL."""

Pairs: TypeAlias = tuple[tuple[str, str | None], ...]
"""Names and values, outermost first; None is NULL."""


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """One partition column of a table.

    Args:
        name: as the folders write it.
        values: of every file, in the order of the table's files, their escapes
            undone; None is NULL.
        dtype: the type that Spark gives the column; None if only Spark knows.
        raw: every value, of folders without files too, as the folders write it.
        names: every spelling of the name; Spark goes by any of them.
    """

    name: str
    values: tuple[str | None, ...]
    dtype: pa.DataType | None
    raw: frozenset[str]
    names: tuple[str, ...]

    def typed(self, domain: Domain) -> list[Value | None]:
        """The values in the column's domain."""
        read: Callable[[str], Value] = cache(lambda text: typed(text, domain))
        return [None if v is None else read(v) for v in self.values]


def partition_folders(folders: Iterable[str]) -> dict[str, Pairs]:
    """The names and values of folders with data files, by folder, with their escapes.

    Those without a value are omitted: Spark reads no file in them, unless no folder
    has any.
    """
    result: dict[str, Pairs] = {}
    bases: dict[str, str] = {}
    names: dict[tuple[str, ...], str] = {}
    for folder in folders:
        pairs, base = _split(folder)
        bases.setdefault(base.lower(), folder)
        if pairs:
            result[folder] = pairs
            names.setdefault(tuple(name.lower() for name, _ in pairs), folder)
    if result and len(bases) > 1:
        one, other, *_ = bases.values()
        raise TableError(
            f"the folders {one!r} and {other!r} hold data files, and their partition "
            "columns do not begin in one folder, so Spark refuses them too (expected "
            "k=v folders alone, or none)"
        )
    if len(names) > 1:
        one, other, *_ = names.values()
        raise TableError(
            f"the partition columns of {other!r} are {_names(result[other])}, those "
            f"of {one!r} are {_names(result[one])} (expected the same for all files)"
        )
    for folder, pairs in result.items():
        if len(set(_names(pairs))) < len(pairs):
            raise TableError(
                f"the partition columns of {folder!r} are {_names(pairs)}, "
                "two of one name (expected each once)"
            )
    return result


def partition_columns(
    paths: Sequence[str],
    declared: Mapping[str, pa.DataType],
    folders: Collection[str] = (),
) -> list[PartitionColumn]:
    """The partition columns of files at these relative paths, outermost first.

    ``declared`` has types by name, where Spark is not to infer them.  ``folders`` count
    for the types too, because they hold empty files.
    """
    own = [path.rpartition("/")[0] for path in paths]
    result = partition_folders(dict.fromkeys([*folders, *own]))
    first = next((result[folder] for folder in own if folder in result), None)
    outside = next(
        (path for path, f in zip(paths, own, strict=True) if f not in result), None
    )
    if result and outside is not None:
        raise TableError(
            f"{outside!r} is in no folder with partition values, and other files are "
            "(expected the same for all files)"
        )
    columns = []
    chosen = first or next(iter(result.values()), ())
    free = {k: v for k, v in declared.items() if k not in set(_names(chosen))}
    for i, (name, _) in enumerate(chosen):
        texts = {folder: pairs[i][1] for folder, pairs in result.items()}
        raw = frozenset(text for text in texts.values() if text is not None)
        plain = {f: t if t is None else unescape(t) for f, t in texts.items()}
        columns.append(
            PartitionColumn(
                name,
                tuple(plain[folder] for folder in own),
                declared.get(name) or _alike(name, free) or infer_type(raw),
                raw,
                tuple(dict.fromkeys(pairs[i][0] for pairs in result.values())),
            )
        )
    return columns


def _alike(name: str, types: Mapping[str, pa.DataType]) -> pa.DataType | None:
    """The type of the one name that differs only in capitals."""
    alike = [t for other, t in types.items() if other.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def partition_values(path: str) -> Pairs:
    """Names and values in a relative path, escapes undone."""
    pairs, _ = _split(path.rpartition("/")[0])
    return tuple((name, v if v is None else unescape(v)) for name, v in pairs)


def _split(folder: str) -> tuple[Pairs, str]:
    """Names and values of a folder, and the folder that the outermost lies in."""
    result: list[tuple[str, str | None]] = []
    parts = folder.split("/")
    depth = len(parts)
    # As in Spark, a folder of another form hides those above it, unless all below are
    # of another form too.
    while depth:
        name, equals, raw = parts[depth - 1].partition("=")
        if equals:
            if not unescape(name) or not raw:
                raise TableError(
                    f"the folder {folder!r} has no name or no value in "
                    f"{parts[depth - 1]!r}, so Spark refuses it too (expected k=v)"
                )
            result.append((unescape(name), None if raw == DEFAULT_PARTITION else raw))
        elif result:
            break
        depth -= 1
    return tuple(result[::-1]), "/".join(parts[:depth]) if result else folder


def _names(pairs: Pairs) -> list[str]:
    return [name for name, _ in pairs]


def partition_domain(column: PartitionColumn) -> Domain | None:
    """The domain of the column, or None if its values cannot be judged here.

    A declared type counts only if every value reads as one of it.
    """
    dtype = column.dtype
    if dtype is None or not all(is_of(text, dtype) for text in column.raw):
        return None
    return domain_of(dtype, column.name)
