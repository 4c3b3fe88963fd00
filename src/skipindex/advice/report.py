"""The advice: for programs, and as text for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from skipindex.advice.candidates import spec_text
from skipindex.indexes import MinMax, spec_to_json
from skipindex.indexes.interface import IndexSpec


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate of one column, as it was measured on the sample.

    Args:
        specs: what would be built; none is min/max alone.
        n_bytes: estimated for the whole table.
        kept_alone: files kept over all questions with nothing else but min/max.
        kept_with_choice: files kept where all other columns are as chosen.
    """

    specs: tuple[IndexSpec, ...]
    n_bytes: int
    kept_alone: int
    kept_with_choice: int


@dataclass(frozen=True, slots=True)
class ColumnAdvice:
    """What was chosen for one column, and why.

    Args:
        name: of the column.
        specs: to be built; none is min/max alone.
        n_bytes: estimated for the whole table.
        n_distinct: distinct values in a file, on average.
        null_share: part of the rows that is NULL.
        run_length: neighbouring rows of one value, on average.
        overlap: the part of the files whose bounds a value lies between, on average.
        reason: in words.
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
        with_all: files kept with the richest candidate of every column.
        trials: by column and candidate of that column, as ``bit_sliced``, the files
            kept with nothing else but min/max, and where the others are as chosen.
    """

    text: str
    with_minmax: int
    with_choice: int
    with_all: int
    trials: Mapping[str, Mapping[str, tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Advice:
    """What to build on a table.

    Args:
        columns: what was chosen, by column.
        queries: what it does for each query of the workload; none if there was none.
        unasked: columns that get statistics alone, because no query asks for them.
        data_bytes: of the table.
        max_bytes: the cap of the indexes' bytes.
        n_files: that were sampled.
        kept: files of the sample kept over all questions, with min/max alone, with
            the choice, and with the richest candidate of every column.
        notes: what could not be sampled or asked, and why.
        seconds: wall time.
    """

    columns: tuple[ColumnAdvice, ...]
    queries: tuple[QueryAdvice, ...]
    unasked: tuple[str, ...]
    data_bytes: int
    max_bytes: int
    n_files: int
    kept: tuple[int, int, int]
    notes: tuple[str, ...]
    seconds: float

    @property
    def n_bytes(self) -> int:
        """The bytes of all chosen indexes, estimated for the whole table."""
        return sum(column.n_bytes for column in self.columns)

    @property
    def request(self) -> dict[str, list[IndexSpec | MinMax]]:
        """The choice as ``build_indexes`` takes it."""
        chosen: dict[str, list[IndexSpec | MinMax]] = {
            column.name: [MinMax(), *column.specs] for column in self.columns
        }
        return chosen | {name: [MinMax()] for name in self.unasked}

    def to_dict(self) -> dict[str, Any]:
        """All of the advice, as plain values for JSON."""
        return {
            "data_bytes": self.data_bytes,
            "max_bytes": self.max_bytes,
            "index_bytes": self.n_bytes,
            "sampled_files": self.n_files,
            "kept": dict(zip(("minmax", "choice", "all"), self.kept, strict=True)),
            "columns": [
                {
                    **_plain(column),
                    "trials": [_plain(trial) for trial in column.trials],
                }
                for column in self.columns
            ],
            "queries": [asdict(query) for query in self.queries],
            "statistics_alone": list(self.unasked),
            "notes": list(self.notes),
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        ratio = self.n_bytes / max(1, self.data_bytes)
        cap = self.max_bytes / max(1, self.data_bytes)
        head = (
            f"{_size(self.n_bytes)} of indexes on {_size(self.data_bytes)} of data: "
            f"{ratio:.1%}, the cap is {cap:.0%} (measured on {self.n_files} files in "
            f"{self.seconds:.1f} s)"
        )
        lines = [
            head,
            "",
            *_table(
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
            ),
        ]
        if self.unasked:
            lines += ["", f"min/max alone, never asked for: {', '.join(self.unasked)}"]
        lines += ["", *self._kept_lines()]
        return "\n".join([*lines, *self.notes]).rstrip()

    def _kept_lines(self) -> list[str]:
        least, chosen, most = self.kept
        if not self.queries:
            text = (
                "files kept over all drawn questions of the sample: "
                f"{least} by min/max, {chosen} by the choice, {most} by every index"
            )
            return [text]
        sizes = {
            (column.name, specs_text(trial.specs)): _size(trial.n_bytes)
            for column in self.columns
            for trial in column.trials
        }
        lines = [f"files kept, of the {self.n_files} of the sample:"]
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
