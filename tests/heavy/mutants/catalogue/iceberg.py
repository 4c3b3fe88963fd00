"""Mistakes about tables of Iceberg."""

from __future__ import annotations

from typing import Final

from tests.heavy.mutants.mutant import Mutant

_TESTS: Final = ("tests/iceberg/test_iceberg.py",)
_WRITTEN: Final = ("tests/iceberg/test_optimized.py",)
_QUESTIONS: Final = ("tests/spark/pruning/test_iceberg_questions.py",)

ICEBERG: Final = (
    Mutant(
        "newest-snapshot-of-iceberg",
        "table.opening.iceberg.iceberg_source",
        "table.scan(snapshot_id=at.number)",
        "table.scan()",
        "a snapshot has the rows of the newest one",
        _TESTS,
    ),
    Mutant(
        "columns-of-iceberg-by-name",
        "table.opening.iceberg._places",
        "field_id_name(one.field_id)",
        "one.name",
        "a column has the index of the one that had its name",
        _TESTS,
    ),
    Mutant(
        "values-of-partitions-of-iceberg",
        "table.opening.iceberg._has_other",
        "one.field_id in of_partitions",
        "False",
        "a file that lacks a column is skipped, and its partition has the value",
        _TESTS,
    ),
    Mutant(
        "fields-of-partitions-of-iceberg",
        "table.opening.iceberg._has_other",
        "any(_has_other(field, of_partitions) for field in inner)",
        "False",
        "a file that lacks a field is skipped, and its partition has the value",
        _TESTS,
    ),
    Mutant(
        "dates-that-became-times-of-iceberg",
        "table.opening.iceberg._value",
        "kind in _TIMES and len(stored) != _BYTES_OF_TIME",
        "False",
        "days are taken for microseconds, and a file is skipped",
        _TESTS,
    ),
    Mutant(
        "vectors-of-iceberg",
        "table.opening.iceberg._deleted",
        "sum(counts)",
        "0",
        "rows that are deleted by position count as rows that certainly match",
        _TESTS,
    ),
    Mutant(
        "texts-of-iceberg-in-another-order",
        "table.opening.iceberg._value",
        "all(char < _FIRST_SURROGATE for char in text)",
        "True",
        "a text is taken for beyond a bound in the order of its UTF-16",
        _TESTS,
    ),
    Mutant(
        "plain-readers-of-iceberg",
        "table.opening.iceberg.IcebergSource.unlike_plain",
        '"its columns are known by field ids" if paths else ""',
        '""',
        "readers of Parquet read columns by names, and deleted rows",
        _TESTS,
    ),
    Mutant(
        "files-of-iceberg-elsewhere",
        "table.opening.iceberg._relative",
        "not path.startswith(root) or location.is_local != (scheme in {'file', uri})",
        "False",
        "a file elsewhere is taken for one in the folder",
        _TESTS,
    ),
    Mutant(
        "columns-of-iceberg-in-the-driver",
        "spark.pruning.judged_columns.columns_of_iceberg",
        "read_as.get(place[-1]) != '.'.join(path)",
        "False",
        "a condition is judged by the column that has another one's name",
        _QUESTIONS,
    ),
    Mutant(
        "types-of-iceberg-in-the-driver",
        "spark.pruning.judged_columns.columns_of_iceberg",
        "bool(own == field.type)",
        "True",
        "a condition on a column is judged by values of another type",
        _QUESTIONS,
    ),
    Mutant(
        "snapshot-of-iceberg-in-the-driver",
        "spark.pruning.judged_columns.columns_of_iceberg",
        "log.version != read.snapshot",
        "False",
        "files are ruled out by another snapshot than that which is read",
        _QUESTIONS,
    ),
    Mutant(
        "former-iceberg-in-the-driver",
        "spark.pruning.protocol.Question.at",
        "None if one.is_current else one.snapshot",
        "None",
        "a former snapshot is read with the columns of the newest",
        _QUESTIONS,
    ),
    Mutant(
        "retyped-iceberg",
        "spark.pruning.tables.ScannedTable.typed",
        "self.state.options.version.metadata",
        "''",
        "a file that lacks a column is skipped, and its partition has the value",
        _QUESTIONS,
    ),
    Mutant(
        "files-of-iceberg-replaced-twice",
        "table.opening.iceberg.IcebergSource._changed_in",
        "newest.sizes.get(path) != self.sizes[path]",
        "False",
        "rows that another writer deleted come back",
        _WRITTEN,
    ),
    Mutant(
        "deletes-of-iceberg-undone",
        "table.opening.iceberg.IcebergSource._changed_in",
        "newest.left_out(path)",
        "''",
        "rows come back that were deleted while they were written again",
        _WRITTEN,
    ),
    Mutant(
        "partitions-of-iceberg-in-one-job",
        "table.opening.iceberg.IcebergSource.partition_of",
        "enumerate(values)",
        "enumerate([])",
        "a file has rows of a partition that it is not said to be of",
        _WRITTEN,
    ),
    Mutant(
        "names-of-other-columns-in-iceberg",
        "table.opening.iceberg_writing._unlike",
        "now.get(one.name.lower(), number) != number",
        "False",
        "Spark reads a column as the type of another one, and writes what it read",
        _WRITTEN,
    ),
    Mutant(
        "nan-as-bound-in-iceberg",
        "table.statistics.of_footer.PartialStatistics.of",
        "math.isnan(end)",
        "False",
        "readers of Iceberg skip a file by NaN",
        _WRITTEN,
    ),
    Mutant(
        "zeros-as-bounds-in-iceberg",
        "table.opening.iceberg_writing._widen_zeros",
        "bound[:-1] + sign",
        "bound",
        "readers of Iceberg skip a file with 0.0 that are asked for -0.0",
        _WRITTEN,
    ),
)
