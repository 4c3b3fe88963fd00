"""pyarrow: minimum and maximum of every row group, in the footers of the files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from ssb.peers.conditions import Value, translated
from ssb.peers.interface import Answer, Cost
from ssb.queries import Query


class ArrowTerms:
    """A condition as an expression of pyarrow."""

    def compare(self, column: str, operator: str, value: Value) -> Any:
        """A column against a value."""
        field = pc.field(column)
        match operator:
            case "=":
                return field == value
            case "<>":
                return field != value
            case "<":
                return field < value
            case "<=":
                return field <= value
            case ">":
                return field > value
        return field >= value

    def one_of(self, column: str, values: Sequence[Value]) -> Any:
        """A column in a list."""
        return pc.field(column).isin(list(values))

    def like(self, column: str, pattern: str) -> Any:
        """A column that fits a pattern."""
        return pc.match_like(pc.field(column), pattern)

    def both(self, left: Any, right: Any) -> Any:
        """AND."""
        return left & right

    def either(self, left: Any, right: Any) -> Any:
        """OR."""
        return left | right

    def negated(self, term: Any) -> Any:
        """NOT."""
        return ~term


class ArrowPeer:
    """The files of which a row group is left; the footers are in memory."""

    name, unit, version = "pyarrow footers", "files", pa.__version__

    def __init__(self, work: Path) -> None:
        del work  # it writes nothing
        self._fragments: Sequence[Any] = ()

    def build(self, files: Sequence[Path], columns: Sequence[str]) -> Cost:  # noqa: ARG002
        """Read all footers."""
        began = time.perf_counter()
        dataset = pads.dataset([str(file) for file in files], format="parquet")
        self._fragments = list(dataset.get_fragments())
        for fragment in self._fragments:
            fragment.ensure_complete_metadata()
        seconds = time.perf_counter() - began
        n_bytes = sum(f.metadata.serialized_size for f in self._fragments)
        note = f"{n_bytes / 1e6:.1f} MB of footers, which are part of the files, read"
        return Cost(seconds, 0, note)

    def ask(self, query: Query) -> Answer:
        """The files of which a row group is left."""
        began = time.perf_counter()
        condition = translated(query.where, ArrowTerms())
        kept = [f for f in self._fragments if f.subset(condition).row_groups]
        seconds = time.perf_counter() - began
        names = frozenset(PurePosixPath(f.path).name for f in kept)
        return Answer.of_files(names, len(self._fragments), seconds)
