"""Mutants of ``table``."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_MINMAX: Final = ("tests/table/test_statistics.py", "tests/planner/test_soundness.py")
_STALE: Final = ("tests/traps/test_staleness.py",)

TABLE: Final = (
    Mutant(
        "high-bound-cut",
        "table.summaries._cut_up",
        "return prefix[:-1] + bytes([prefix[-1] + 1])",
        "return prefix",
        "a long upper bound is cut and not raised: trap C-7",
        _MINMAX,
    ),
    Mutant(
        "bounds-swapped",
        "table.summaries.summarize",
        "low, high = column.minimum, column.maximum",
        "high, low = column.minimum, column.maximum",
        "bounds are swapped, so none is known any more: not tight",
        _MINMAX,
    ),
    Mutant(
        "inverted-bounds",
        "table.statistics.FileStats.from_arrow",
        "known & np.asarray(ordered)",
        "known",
        "bounds that contradict themselves are believed: trap C-16",
        _MINMAX,
    ),
    Mutant(
        "unknown-nulls",
        "table.statistics.FileStats.from_arrow",
        "~counted | (nulls > 0)",
        "nulls > 0",
        "an unknown number of NULLs is taken for none: traps C-8, C-26",
        _MINMAX,
    ),
    Mutant(
        "unknown-values",
        "table.statistics.FileStats.from_arrow",
        "~counted | (nulls < rows)",
        "nulls < rows",
        "an unknown number of NULLs is taken for all: trap C-8",
        _MINMAX,
    ),
    Mutant(
        "unbounded-as-missed",
        "table.statistics.FileStats.probe",
        "touched |= ~self.bounded",
        "touched &= self.bounded",
        "a file without bounds has no value in any range: trap C-27",
        _MINMAX,
    ),
    Mutant(
        "strict-with-nulls",
        "table.statistics.FileStats.probe",
        "inside &= ~self.can_null",
        "pass",
        "all rows match, NULL or not: trap C-26",
        _MINMAX,
    ),
    Mutant(
        "cut-bound-exact",
        "table.statistics.FileStats._is_single",
        "single & self.exact",
        "single",
        "a bound that was cut is taken for a value",
        _MINMAX,
    ),
    Mutant(
        "touch-by-low",
        "table.statistics.FileStats._range",
        "touched[block] = _at_least(highs, low)",
        "touched[block] = _at_least(lows, low)",
        "a range touches a file only where the file begins in it",
        _MINMAX,
    ),
    Mutant(
        "stale-files",
        "table.column_indexes.match",
        "same[there] &= then[rows[there]] == now[there]",
        "same[there] &= then[rows[there]] >= 0",
        "a file that changed keeps its index: traps C-42 to C-45",
        _STALE,
    ),
    Mutant(
        "other-domain",
        "table.column_indexes.ColumnIndexes.built",
        "return [use for use in uses if use.entry.meta.domain == tag]",
        "return uses if tag else []",
        "an index of the column's old type is used: traps C-20, C-46",
        (*_STALE, "tests/table/test_table.py"),
    ),
    Mutant(
        "statistics-of-another-type",
        "table.column_indexes.ColumnIndexes._load_stats",
        "s is not None and _is_of(s, domain)",
        "s is not None",
        "statistics of the column's old type are used: traps C-20, C-46",
        (*_STALE, "tests/table/test_table.py"),
    ),
    Mutant(
        "values-that-do-not-fit",
        "table.column_indexes.ColumnIndexes.stats",
        "fitting = None if span is None else stats.within(*span)",
        "fitting = None",
        "values that Spark cuts to the table's type are taken as they are stored",
        ("tests/table/test_stored.py",),
    ),
    Mutant(
        "spelling-of-a-file",
        "table.table.TableState.with_exact_names",
        "replace(self._indexes, exact_names=True)",
        "replace(self._indexes, exact_names=False)",
        "a column of other capitals counts where these tell names apart",
        ("tests/table/test_stored.py",),
    ),
    Mutant(
        "row-metadata",
        "table.stored.footer_schema",
        "return declared_schema(text) or (stored, refused)",
        "return stored, refused",
        "a column is read as Parquet types it, and not as Spark does",
        ("tests/table/test_stored.py",),
    ),
    Mutant(
        "hive-null",
        "table.partitions.hive._split",
        "found.append((unescape(name), None if raw == DEFAULT_PARTITION else raw))",
        "found.append((unescape(name), raw))",
        "the default partition is a value and not NULL: trap C-40",
        ("tests/table/test_partitions.py",),
    ),
    Mutant(
        "repeated-entries",
        "table.dictionaries._has_entries_of",
        "return bool(np.array_equal(_plain(entries.slice(0, n_entries)), page))",
        "return True",
        "as many entries as a page has are taken for those of the page",
        ("tests/table/test_dictionary_pages.py",),
    ),
    Mutant(
        "numbers-beyond-entries",
        "table.dictionaries._is_inside",
        "return low is None or 0 <= low <= high < len(values.dictionary)",
        "return True",
        "a number that is of no entry is looked up all the same",
        ("tests/indexes/test_bad_input.py",),
    ),
)
