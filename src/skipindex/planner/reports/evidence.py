"""Why a file is not read: the conditions, and what is stored against each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, TypeAlias

from skipindex.conditions.bound_predicate import (
    ComparedColumns,
    Computed,
    Judged,
    Leaf,
    fold,
    shorten,
    unknowns,
)
from skipindex.errors import UnknownIndexError
from skipindex.expressions.atoms import OneOf
from skipindex.indexes import index_type
from skipindex.indexes.file_map import FILE_MAP
from skipindex.planner.stages.computed import bound_of
from skipindex.planner.stages.evaluation import Evaluation
from skipindex.planner.stages.limit import LIMIT
from skipindex.planner.stages.records import DERIVED, ROWS, VALUES, LeafRecord
from skipindex.table import ColumnInfo

_STATISTICS: Final = frozenset({"minmax", "partition"})
_OTHERS: Final = "other kinds"
"""In place of a kind, where a reason is that of all kinds that the column lacks."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Index data of a file that contradict a condition.

    Args:
        condition: the condition as the user wrote it.
        kinds: the index kinds with these data; ``minmax`` and ``partition`` are the
            statistics and the path.
        words: the contradiction as text.
        facts: the same as plain values: bounds as Spark shows them.
    """

    condition: str
    kinds: tuple[str, ...]
    words: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return (
            f"{shorten(self.condition)}: {self.words}" if self.condition else self.words
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "condition": self.condition,
            "kinds": list(self.kinds),
            "words": self.words,
            "facts": dict(self.facts),
        }


_NEVER: Final = Evidence("", (), "the condition is never true")
_Refuted: TypeAlias = tuple[Judged | None, ...]


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that is not read: it has no matching row, or LIMIT needs no row of it.

    Args:
        path: relative to the table.
        size: in bytes; with ``mtime`` and ``footer_crc`` the identity of the file that
            the reason is about.
        mtime: modification time in nanoseconds.
        stage: the stage that skipped it.
        reason: the atom, or the conjunction, and the evidence against it.
        footer_crc: crc32c of the Parquet footer when it was indexed; None if no
            index has the file.
        n_rows: its number of rows; None if no index has the file.
        evidence: one for a conjunction, one for every branch of a disjunction.
    """

    path: str
    size: int
    mtime: int
    stage: str
    reason: str
    footer_crc: int | None = None
    n_rows: int | None = None
    evidence: tuple[Evidence, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return {**plain, "evidence": [e.to_dict() for e in self.evidence]}


def skipped_file(evaluation: Evaluation, file: int, *, limit: str) -> SkippedFile:
    """The proof that ``file``, by its position in the table, need not be read.

    ``limit`` says why LIMIT does not need a file that may hold a match.
    """
    table = evaluation.table
    row = int(table.rows[file])
    footers = table.snapshot.manifest.files["footer_crc"]
    against = () if evaluation.possible[file] else evidence(evaluation, file)
    return SkippedFile(
        path=table.paths[file],
        size=int(table.sizes[file]),
        mtime=int(table.mtimes[file]),
        stage=LIMIT if evaluation.possible[file] else str(evaluation.stage_of[file]),
        reason=limit if evaluation.possible[file] else "; ".join(map(str, against)),
        footer_crc=None if row < 0 else int(footers[row].as_py()),
        n_rows=table.n_rows.of_file(file),
        evidence=against,
    )


def evidence(evaluation: Evaluation, file: int) -> tuple[Evidence, ...]:
    """The proof that ``file`` holds no matching row."""
    n_rows = evaluation.table.n_rows.of_file(file)
    if n_rows == 0:
        return (Evidence("", ("minmax",), "the file has no rows", {"n_rows": 0}),)
    if evaluation.stage_of[file] == ROWS:
        rows = evaluation.rows[file]
        words = f"no row of the file ({', '.join(rows.kinds)})"
        facts = {"matching_rows": 0, "n_rows": n_rows}
        return (Evidence(evaluation.text, rows.kinds, words, facts),)
    return _refutation(evaluation, file)


def _refutation(evaluation: Evaluation, file: int) -> tuple[Evidence, ...]:
    """One piece of evidence against each branch of an OR, and against one of an AND."""

    # By node: the leaves that the file refutes, each once; None is FALSE itself.
    def of_leaf(node: Judged) -> _Refuted:
        return () if evaluation.records[node].bounds.upper[file] else (node,)

    def of_every(parts: Iterator[_Refuted]) -> _Refuted:
        every = list(parts)
        return tuple(dict.fromkeys(chain(*every))) if all(every) else ()

    refuted: _Refuted = fold(
        evaluation.tree,
        leaf=of_leaf,
        all_of=lambda parts: next(filter(None, parts), ()),
        any_of=of_every,
        constant=lambda value: () if value else (None,),
        unknown=lambda u: of_leaf(u) if isinstance(u, ComparedColumns) else (),
    )
    return tuple(
        _NEVER if one is None else _of(evaluation, one, file) for one in refuted
    )


def _of(evaluation: Evaluation, leaf: Judged, file: int) -> Evidence:
    if isinstance(leaf, ComparedColumns):
        return _of_two(evaluation, leaf, file)
    record = evaluation.leaves[leaf]
    for kind, removed in record.removed_by.items():
        if removed[file]:
            if kind in _STATISTICS:
                return _by_statistics(evaluation, leaf.text, record, file, kind)
            if kind == DERIVED:
                words = "the declared partition columns rule it out"
                return Evidence(leaf.text, (kind,), words)
            what = "file map has" if kind == FILE_MAP else f"{kind} index holds"
            words = f"{what} none of the values"
            return Evidence(leaf.text, (kind,), words, _values(leaf, record))
    return Evidence(leaf.text, (), "no evidence")  # pragma: no cover


def _values(leaf: Leaf | Computed, record: LeafRecord) -> dict[str, Any]:
    domain = record.column.domain
    if not isinstance(leaf, Leaf) or not isinstance(leaf.atom, OneOf) or domain is None:
        return {}
    return {"absent": [domain.show(value) for value in leaf.atom.values]}


def _of_two(evaluation: Evaluation, node: ComparedColumns, file: int) -> Evidence:
    """What is known of both columns."""
    sides = {
        name: _bounds(evaluation, evaluation.table.stored(name), file)
        for name in (node.left, node.right)
    }
    words = "; ".join(f"{name} {told}" for name, (told, _) in sides.items())
    facts = {name: of_side for name, (_, of_side) in sides.items()}
    return Evidence(node.text, ("minmax",), f"minmax: {words}", facts)


def _by_statistics(
    evaluation: Evaluation, text: str, record: LeafRecord, file: int, kind: str
) -> Evidence:
    words, facts = _bounds(evaluation, record.column, file)
    return Evidence(text, (kind,), f"{kind}: {words}", facts)


def _bounds(
    evaluation: Evaluation, column: ColumnInfo, file: int
) -> tuple[str, dict[str, Any]]:
    """What the statistics of a file say of a column, in words and as facts."""
    stats, domain = evaluation.table.stats(column), column.domain
    assert domain is not None
    facts: dict[str, Any] = {"null": bool(stats.can_null[file])}
    if not stats.bounded[file]:
        words = "only NULL" if stats.can_null[file] else "no rows"
        return words, {**facts, "values": False}
    low, high = (domain.show(bound_of(ends, file)) for ends in (stats.low, stats.high))
    null = "" if facts["null"] else ", no NULL"
    facts |= {"low": low, "high": high, "exact": bool(stats.exact[file])}
    return f"values in {low} .. {high}{null}", facts


@dataclass(frozen=True, slots=True)
class ConditionReport:
    """One condition, and how indexes evaluated it.

    Args:
        text: the condition as the user wrote it.
        column: the column of the condition, or two with a comma; empty if no index can
            evaluate it.
        removed: the number of files that each kind ruled out by this condition alone.
        unused: kinds that ruled out no file, and why; ``"other kinds"`` stands for all
            kinds if the column has only statistics.
        reason: why no index can evaluate it; empty if one can.
    """

    text: str
    column: str
    removed: Mapping[str, int]
    unused: Mapping[str, str]
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


def conditions(
    evaluation: Evaluation, kinds: Collection[str] | None
) -> list[ConditionReport]:
    """The table of conditions, those that no index can judge last.

    ``kinds`` are those that might be used; None is all.
    """
    notes = {stage.name: stage.note for stage in evaluation.stages}
    listed = []
    for node, record in evaluation.records.items():
        counts = {kind: int(mask.sum()) for kind, mask in record.removed_by.items()}
        removed = {kind: n_files for kind, n_files in counts.items() if n_files}
        if isinstance(node, ComparedColumns):
            both = map(evaluation.table.stored, (node.left, node.right))
            column = ", ".join(one.shown for one in both)
            unused = {} if removed else {"minmax": "ruled out no file"}
        else:
            column = record.column.shown
            unused = _unused(evaluation, record, removed, notes, kinds)
        listed.append(ConditionReport(node.text, column, removed, unused))
    listed += [
        ConditionReport(u.text, "", {}, {}, u.reason)
        for u in dict.fromkeys(unknowns(evaluation.tree))
        if not isinstance(u, ComparedColumns)
    ]
    return listed


def _unused(
    evaluation: Evaluation,
    record: LeafRecord,
    removed: Mapping[str, int],
    notes: Mapping[str, str],
    kinds: Collection[str] | None,
) -> dict[str, str]:
    """The kinds that the column has and that ruled out no file, with the reason."""
    asked = {kind for rows in evaluation.rows.values() for kind in rows.kinds}
    there = {use.entry.meta.kind for use in evaluation.table.blobs(record.column)}
    reasons = {}
    for kind in sorted(there - removed.keys()):
        if kinds is not None and kind not in kinds:
            reasons[kind] = "not among the kinds to use"
        elif kind in asked:
            if ROWS not in removed:
                reasons[kind] = "ruled out no file by this condition alone"
        else:
            reasons[kind] = notes.get(_stage_of(kind)) or "ruled out no file"
    if not there and not record.column.is_partition:
        has_some = len(evaluation.table.snapshot.manifest) > 0
        what = "the column has only statistics" if has_some else "there is no index"
        reasons[_OTHERS] = what
    return reasons


def _stage_of(kind: str) -> str:
    """The stage that asks indexes of a kind; empty if the kind is not known."""
    try:
        return ROWS if index_type(kind).positional else VALUES
    except UnknownIndexError:
        return ""
