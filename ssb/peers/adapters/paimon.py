"""pypaimon with the native file indexes of Paimon, in an environment of its own.

pypaimon needs pyarrow below 20, so it is not in the extra ``peers``.  The columns that
are asked for are written as Paimon writes them, one file a file, with an index each
beside it.  A plan lists every file; the index is asked when the file is read.  Which
data files were opened then is told by their times of access.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from ssb.peers.adapters.lance_format import columns_with_few_values
from ssb.peers.conditions import Value, translated
from ssb.peers.interface import Answer, CannotSayError, Cost, library, version_of
from ssb.queries import Query

_NATIVE: Final = {"scan.native-plan.enabled": "true", "read.native.enabled": "true"}
_METHODS: Final = {
    "=": "equal",
    "<>": "not_equal",
    "<": "less_than",
    "<=": "less_or_equal",
    ">": "greater_than",
    ">=": "greater_or_equal",
}


class PaimonTerms:
    """A condition as predicates of a table.

    Args:
        builder: of the table.
    """

    def __init__(self, builder: Any) -> None:
        self._builder = builder

    def compare(self, column: str, operator: str, value: Value) -> Any:
        """A column against a value."""
        return getattr(self._builder, _METHODS[operator])(column, value)

    def one_of(self, column: str, values: Sequence[Value]) -> Any:
        """A column in a list."""
        return self._builder.is_in(column, list(values))

    def like(self, column: str, pattern: str) -> Any:
        """A column that fits a pattern."""
        return self._builder.like(column, pattern)

    def both(self, left: Any, right: Any) -> Any:
        """AND."""
        return self._builder.and_predicates([left, right])

    def either(self, left: Any, right: Any) -> Any:
        """OR."""
        return self._builder.or_predicates([left, right])

    def negated(self, term: Any) -> Any:
        """NOT, which it has not.

        Raises:
            CannotSayError: always.
        """
        raise CannotSayError(f"no negation of {term}")


class PaimonPeer:
    """Data files opened, with a bitmap or a range bitmap of every column."""

    name, unit = "pypaimon", "files"

    def __init__(self, work: Path) -> None:
        needs = "pypaimon and pypaimon-rust, in an environment of their own"
        self._paimon = library("pypaimon", needs)
        library("pypaimon_rust", needs)
        self.version = version_of("pypaimon")
        self._folder = work / "pypaimon"
        self._table: Any = None

    def build(self, files: Sequence[Path], columns: Sequence[str]) -> Cost:
        """Write the columns with indexes and without; the time is the difference."""
        few = columns_with_few_values(files, columns)
        many = [column for column in columns if column not in few]
        indexes = {
            "file-index.bitmap.columns": ",".join(sorted(few)),
            "file-index.range-bitmap.columns": ",".join(many),
        }
        plain = self._write(files, columns, {})
        seconds = self._write(files, columns, {k: v for k, v in indexes.items() if v})
        n_bytes = sum(p.stat().st_size for p in self._folder.rglob("*.index"))
        note = (
            "bitmaps and range bitmaps; more time than writing alone took; and a copy "
            f"of {sum(p.stat().st_size for p in self._data()) / 1e6:.0f} MB"
        )
        return Cost(max(0.0, seconds - plain), n_bytes, note)

    def _write(
        self, files: Sequence[Path], columns: Sequence[str], indexes: dict[str, str]
    ) -> float:
        """The seconds that it takes to write a new table, a file at a time."""
        shutil.rmtree(self._folder, ignore_errors=True)
        catalog = self._paimon.CatalogFactory.create({"warehouse": str(self._folder)})
        catalog.create_database("ssb", True)
        stored = pq.read_schema(files[0])
        schema = pa.schema([stored.field(column) for column in columns])
        options = {
            "bucket": "-1",
            "metadata.stats-mode": "full",
            "write.native.enabled": "true",
            "commit.native.enabled": "true",
            **indexes,
        }
        made = self._paimon.Schema.from_pyarrow_schema(schema, options=options)
        catalog.create_table("ssb.flat", made, False)
        table = catalog.get_table("ssb.flat")
        began = time.perf_counter()
        for file in files:
            batch = table.new_batch_write_builder()
            write, commit = batch.new_write(), batch.new_commit()
            write.write_arrow(pq.read_table(file, columns=list(columns)).cast(schema))
            commit.commit(write.prepare_commit())
            write.close()
            commit.close()
        self._table = table.copy(_NATIVE)
        return time.perf_counter() - began

    def _data(self) -> list[Path]:
        return list(self._folder.rglob("data-*.parquet"))

    def ask(self, query: Query) -> Answer:
        """Read the rows, and see which files that opened."""
        builder = self._table.new_read_builder()
        terms = PaimonTerms(builder.new_predicate_builder())
        builder = builder.with_filter(translated(query.where, terms))
        splits = builder.new_scan().plan().splits()
        data = self._data()
        for path in data:
            os.utime(path, ns=(0, path.stat().st_mtime_ns))
        rows = builder.new_read().to_arrow(splits).num_rows
        opened = [path for path in data if path.stat().st_atime_ns]
        if rows and not opened:
            raise CannotSayError("the file system does not keep times of access")
        note = "asked while reading; the plan lists every file"
        return Answer(len(opened), len(data), None, rows, note=note)
