"""What the benchmark measures, and the file that remembers it.

Each finished step is a line of JSON in ``records.jsonl``: its setting and its figures.
A run looks its steps up there first, so a run that was stopped goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

RECORDS: Final = "records.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutRecord:
    """One layout: what it cost to write, and the truth about it.

    Args:
        layout: its name.
        what: it is, in one line.
        files: of it.
        rows: of the whole table.
        rows_per_file: the fewest and the most.
        n_bytes: of the data files.
        seconds: to write it.
        matched: by query, the rows that match.
        oracle: by query, the files that hold one of them.
    """

    layout: str
    what: str
    files: int
    rows: int
    rows_per_file: tuple[int, int]
    n_bytes: int
    seconds: float
    matched: Mapping[str, int]
    oracle: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFigures:
    """The plan of one query in one cell.

    Args:
        query: its name.
        group: of the workload.
        kept: files that the plan reads.
        n_bytes: of these files.
        lost: files that hold a match and are not read; must be 0.
        cold: seconds of the first plan, with no index byte in memory.
        warm: seconds of a later plan, the median.
    """

    query: str
    group: str
    kept: int
    n_bytes: int
    lost: int
    cold: float
    warm: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedQuery:
    """One query through Spark, unpruned and pruned in turn; Spark prunes in both.

    Args:
        query: its name.
        plain: seconds of each run without skipping.
        pruned: seconds of each run with skipping, planning included.
        n_bytes: that Spark's tasks read, without and with skipping; from a pair of
            runs that is not timed.
        files: that Spark's scans of the table opened, without and with skipping.
        equal: whether both gave the same rows.
    """

    query: str
    plain: tuple[float, ...]
    pruned: tuple[float, ...]
    n_bytes: tuple[int, int]
    files: tuple[int, int]
    equal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRecord:
    """One layout with one set of indexes.

    Args:
        layout: its name.
        indexes: the name of the set.
        build_seconds: wall time, choosing included.
        index_bytes: of everything that stands beside the data.
        data_bytes: of the data files.
        figures: of every query that the layout has the columns for.
        timed: queries through Spark; empty where the cell was not chosen for it.
        notes: what the build had to say.
    """

    layout: str
    indexes: str
    build_seconds: float
    index_bytes: int
    data_bytes: int
    figures: tuple[QueryFigures, ...]
    timed: tuple[TimedQuery, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """The indexes as a part of the data."""
        return self.index_bytes / self.data_bytes


Value = str | int | float | None
"""What a cell of a flat row may be; None where there is no figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step of the headlines: flat rows, whatever their keys are.

    Args:
        step: its name.
        rows: what it found.
        seconds: that it took.
        busy: the part of the processors that other programs took meanwhile, from 0
            to 1; None where the system does not tell.
        commit: of the repository; empty outside one.
        date: on which it ended.
        notes: what the reader has to know.
    """

    step: str
    rows: tuple[Mapping[str, Value], ...]
    seconds: float
    busy: float | None
    commit: str
    date: str
    notes: tuple[str, ...] = ()


Record = LayoutRecord | CellRecord | StepRecord


def key_of(record: Record) -> str:
    """The key of the step that made a record."""
    match record:
        case LayoutRecord():
            return layout_key(record.layout)
        case CellRecord():
            return cell_key(record.layout, record.indexes)
        case StepRecord():
            return record.step


def layout_key(layout: str) -> str:
    """The key of a layout."""
    return f"layout/{layout}"


def cell_key(layout: str, indexes: str) -> str:
    """The key of a layout with a set of indexes."""
    return f"cell/{layout}/{indexes}"


class Records:
    """The records of one setting, in a folder that may have those of others too."""

    def __init__(self, folder: Path, setting: Mapping[str, Any]) -> None:
        """Read what the folder has of this setting; later lines win.

        A line that is no record, such as one that was cut off, is passed over.

        Args:
            folder: of the results; it is made when a record is added.
            setting: everything that the figures depend on, as plain values.
        """
        self.folder = folder
        self._path = folder / RECORDS
        self.setting = dict(setting)
        self._found: dict[str, Record] = {}
        for line in self._lines():
            record = _parsed(line, self.setting)
            if record is not None:
                self._found[key_of(record)] = record

    def __contains__(self, key: object) -> bool:
        """Whether a step is done."""
        return key in self._found

    def __iter__(self) -> Iterator[Record]:
        """The records in the order in which their steps were first done."""
        return iter(self._found.values())

    def get(self, key: str) -> Record | None:
        """The record of a step, or None."""
        return self._found.get(key)

    def add(self, record: Record) -> None:
        """Remember a finished step, on disk too."""
        self._found[key_of(record)] = record
        line = {"setting": self.setting, "record": _NAMES[type(record)]}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({**line, **asdict(record)})
        with self._path.open("a", encoding="utf-8") as file:
            # It begins a line of its own even after a line that was cut off.
            file.write(f"\n{text}\n")

    def _lines(self) -> list[str]:
        if not self._path.exists():
            return []
        return self._path.read_text(encoding="utf-8").splitlines()


_NAMES: Final = {
    LayoutRecord: "layout",
    CellRecord: "cell",
    StepRecord: "step",
}


def _parsed(line: str, setting: Mapping[str, Any]) -> Record | None:
    try:
        values = json.loads(line)
        if values.pop("setting") != setting:
            return None
        match values.pop("record"):
            case "layout":
                values["rows_per_file"] = tuple(values["rows_per_file"])
                return LayoutRecord(**values)
            case "cell":
                figures = tuple(QueryFigures(**one) for one in values.pop("figures"))
                timed = tuple(_timed(one) for one in values.pop("timed"))
                notes = tuple(values.pop("notes"))
                return CellRecord(**values, figures=figures, timed=timed, notes=notes)
            case "step":
                rows, notes = (tuple(values.pop(name)) for name in ("rows", "notes"))
                return StepRecord(**values, rows=rows, notes=notes)
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    return None


def _timed(values: Mapping[str, Any]) -> TimedQuery:
    lists = {name: tuple(v) for name, v in values.items() if isinstance(v, list)}
    return TimedQuery(**{**values, **lists})
