"""The advice as an object, as text and as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from skipindex.advice.candidates import spec_text
from skipindex.indexes import MinMax, spec_to_json
from skipindex.indexes.interface import IndexSpec
from skipindex.notebook import block, fold, lines, paragraph, table

_NOTES: Final = 2
"""How many notes the advice has; the others are in its details."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate for one column, measured on the sample.

    Args:
        specs: the indexes to build; empty is min/max alone.
        n_bytes: their bytes, estimated for the entire table.
        kept_alone: files kept over all queries with this candidate and min/max.
        kept_with_choice: files kept with this candidate and the other chosen columns.
    """

    specs: tuple[IndexSpec, ...]
    n_bytes: int
    kept_alone: int
    kept_with_choice: int


@dataclass(frozen=True, slots=True)
class ColumnAdvice:
    """The choice for one column, and the reason.

    Args:
        name: the name of the column.
        specs: the indexes to build; empty is min/max alone.
        n_bytes: their bytes, estimated for the entire table.
        n_distinct: distinct values in a file, on average.
        null_share: the fraction of rows that are NULL.
        run_length: consecutive rows with one value, on average.
        overlap: the fraction of files whose bounds include a value, on average.
        reason: the reason as text.
        trials: the candidates, by size.
    """

    name: str
    specs: tuple[IndexSpec, ...]
    n_bytes: int
    n_distinct: float
    null_share: float
    run_length: float
    overlap: float
    reason: str
    trials: tuple[Trial, ...]


@dataclass(frozen=True, slots=True)
class QueryAdvice:
    """One query over the files of the sample.

    Args:
        text: its condition.
        with_minmax: files kept by min/max alone.
        with_choice: files kept with the chosen indexes.
        with_all: files kept with the largest candidate of every column.
        files_now: files of the table that it reads now; None if not measured.
        files_then: files that it would read with the chosen indexes, estimated from
            the sample.
        trials: by column and candidate, such as ``bit_sliced``, the files kept with
            this candidate and min/max alone, and with the chosen other columns.
    """

    text: str
    with_minmax: int
    with_choice: int
    with_all: int
    files_now: int | None
    files_then: int
    trials: Mapping[str, Mapping[str, tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Advice:
    """The indexes to build on a table, with the measurements.

    Args:
        columns: the choice, by column.
        queries: the effect on each query of the workload; empty without a workload.
        unasked: columns that get statistics alone, because no query filters them.
        not_judged: columns that get statistics alone, because no index can evaluate
            the conditions on them, or they could not be sampled, with the reason.
        data_bytes: the bytes of the table's data files.
        max_bytes: the cap of the indexes' bytes.
        table_files: the number of the table's files.
        n_files: the number of sampled files.
        n_questions: the number of evaluated queries, given or drawn.
        kept: files of the sample kept over all queries, with min/max alone, with
            the choice, and with the largest candidate of every column.
        notes: files and queries that could not be sampled or evaluated, and why.
        seconds: wall time.
    """

    columns: tuple[ColumnAdvice, ...]
    queries: tuple[QueryAdvice, ...]
    unasked: tuple[str, ...]
    not_judged: Mapping[str, str]
    data_bytes: int
    max_bytes: int
    table_files: int
    n_files: int
    n_questions: int
    kept: tuple[int, int, int]
    notes: tuple[str, ...]
    seconds: float

    @property
    def n_bytes(self) -> int:
        """The bytes of all chosen indexes, estimated for the entire table."""
        return sum(column.n_bytes for column in self.columns)

    @property
    def request(self) -> dict[str, list[IndexSpec | MinMax]]:
        """The choice as an argument of ``build_indexes``."""
        chosen: dict[str, list[IndexSpec | MinMax]] = {
            column.name: [MinMax(), *column.specs] for column in self.columns
        }
        return chosen | {name: [MinMax()] for name in (*self.unasked, *self.not_judged)}

    def to_dict(self) -> dict[str, Any]:
        """All of the advice, as plain values for JSON."""
        return {
            "data_bytes": self.data_bytes,
            "max_bytes": self.max_bytes,
            "index_bytes": self.n_bytes,
            "files": self.table_files,
            "sampled_files": self.n_files,
            "questions": self.n_questions,
            "kept": dict(zip(("minmax", "choice", "all"), self.kept, strict=True)),
            "columns": [
                {
                    **_plain(column),
                    "trials": [_plain(trial) for trial in column.trials],
                }
                for column in self.columns
            ],
            "queries": [asdict(query) for query in self.queries],
            "statistics_alone": [*self.unasked, *self.not_judged],
            "not_judged": dict(self.not_judged),
            "notes": list(self.notes),
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        build = "to build: table.build_indexes(advice.request)"
        return f"{self.to_text()}\n{build}\nwhy: advice.details()"

    def _repr_html_(self) -> str:
        head, *others = self.to_text().splitlines()
        chosen = [
            (one.name, specs_text(one.specs), one.n_bytes / 1e6)
            for one in self.columns
            if one.specs
        ]
        queries = [
            (one.text, "" if one.files_now is None else one.files_now, one.files_then)
            for one in self.queries
        ]
        return block(
            paragraph(head),
            table(("column", "indexes", "MB"), chosen, right=(2,)),
            lines(line for line in others if not line.startswith("  ")),
            table(("query", "files now", "then"), queries, right=(1, 2))
            if queries
            else "",
            fold("details()", lines(self.details().splitlines())),
        )

    def to_text(self) -> str:
        """The choice, its effect, and the columns without indexes, as text."""
        lines = [self._headline()]
        if chosen := [column for column in self.columns if column.specs]:
            named = (
                f"{column.name}: {specs_text(column.specs)} ({_size(column.n_bytes)})"
                for column in chosen
            )
            lines.append(f"  {', '.join(named)}")
        if self.unasked:
            lines.append(f"min/max only, in no query: {', '.join(self.unasked)}")
        if self.not_judged:
            named = (f"{name} ({why})" for name, why in self.not_judged.items())
            lines.append(f"min/max only, not judged: {', '.join(named)}")
        lines += self.notes[:_NOTES]
        if len(self.notes) > _NOTES:
            lines.append(f"and {len(self.notes) - _NOTES} more notes, in the details")
        return "\n".join(lines)

    def _headline(self) -> str:
        """What the choice does, and what it costs."""
        n_indexes = sum(len(column.specs) for column in self.columns)
        ratio = self.n_bytes / max(1, self.data_bytes)
        cap = self.max_bytes / max(1, self.data_bytes)
        price = f"for {_size(self.n_bytes)} ({ratio:.1%}, the cap is {cap:.0%})"
        these = _these(n_indexes)
        known = [query for query in self.queries if query.files_now is not None]
        if self.queries:
            n = len(self.queries)
            now = sum(query.files_now or 0 for query in known) / max(1, len(known))
            then = sum(query.files_then for query in self.queries) / n
            told = f"your {n} queries read" if n > 1 else "your query reads"
            each = " on average" if n > 1 else ""
            return (
                f"{told} {_number(now)} of {self.table_files:,} files{each}; with "
                f"{these} about {_number(then)}, {price}"
            )
        least, chosen, _ = self.kept
        pairs = max(1, self.n_questions * self.n_files)
        return (
            f"{self.n_questions} sample conditions read {least / pairs:.0%} of the "
            f"files with min/max; with {these} {chosen / pairs:.0%}, {price}"
        )

    def details(self) -> str:
        """The measurements of each column, and the effect of each candidate."""
        head = (
            f"measured on {self.n_files} of {self.table_files:,} files in "
            f"{self.seconds:.1f} s"
        )
        columns = _table(
            ["column", "index", "size", "distinct", "why"],
            [
                [
                    column.name,
                    specs_text(column.specs),
                    _size(column.n_bytes),
                    f"{column.n_distinct:,.0f}",
                    column.reason,
                ]
                for column in self.columns
            ],
        )
        lines = [head, "", *columns, "", *self._kept_lines(), "", *self.notes]
        return "\n".join(lines).rstrip()

    def _kept_lines(self) -> list[str]:
        least, chosen, most = self.kept
        if not self.queries:
            text = (
                "files kept over all sample conditions: "
                f"{least} by min/max, {chosen} by the choice, {most} by every index"
            )
            return [text]
        sizes = {
            (column.name, specs_text(trial.specs)): _size(trial.n_bytes)
            for column in self.columns
            for trial in column.trials
        }
        lines = [f"files kept, of {self.n_files} sampled files:"]
        for query in self.queries:
            kept = (
                f"  min/max {query.with_minmax}, the choice {query.with_choice}, "
                f"every index {query.with_all}"
            )
            lines += ["", query.text, kept]
            rows = [
                [
                    "  " + name,
                    what,
                    sizes[name, what],
                    f"alone {alone}",
                    f"with the choice for other columns {together}",
                ]
                for name, trials in query.trials.items()
                for what, (alone, together) in trials.items()
            ]
            lines += _table(None, rows)
        return lines


def specs_text(specs: Sequence[IndexSpec]) -> str:
    """The specs as a person would write them."""
    return " + ".join(map(spec_text, specs)) or "minmax"


def _plain(value: ColumnAdvice | Trial) -> dict[str, Any]:
    record = {
        name: getattr(value, name)
        for name in value.__slots__
        if name not in {"specs", "trials"}
    }
    return {**record, "specs": [spec_to_json(spec) for spec in value.specs]}


def _these(n: int) -> str:
    """The number of chosen indexes, in words."""
    if n == 0:
        return "min/max only, because no index pays for its bytes,"
    return "this index" if n == 1 else f"these {n} indexes"


def _number(value: float) -> str:
    """A mean of whole numbers."""
    return f"{value:,.0f}" if value >= 10 or value == round(value) else f"{value:.1f}"


def _size(n_bytes: float) -> str:
    return f"{n_bytes / 1e6:.2f} MB" if n_bytes >= 1e4 else f"{n_bytes:.0f} B"


def _table(head: Sequence[str] | None, rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns of one width, the last as it is."""
    every = [*([head] if head else []), *rows]
    if not rows:
        return []
    widths = [max(len(row[i]) for row in every) for i in range(len(every[0]) - 1)]
    return [
        "  ".join(
            [
                *(cell.ljust(w) for cell, w in zip(row[:-1], widths, strict=True)),
                row[-1],
            ]
        )
        for row in every
    ]
