"""Mutants of what is believed of the log of another format."""

from __future__ import annotations

from typing import Final

from tests.heavy.mutants.mutant import Mutant

_TESTS: Final = ("tests/heavy/foreign_logs/test_foreign_logs.py",)

FOREIGN: Final = (
    Mutant(
        "rows-of-no-index-are-none",
        "planner.stages.limit._first_rows",
        "n_rows.minus(stats.nulls)",
        "type(n_rows)(stats.nulls.known, n_rows.or_else(-1) - stats.nulls.or_else(0))",
        "NULLs that a log counts are subtracted from rows that nobody has counted",
        _TESTS,
    ),
    Mutant(
        "bounds-of-some-row-groups",
        "table.statistics.of_footer.PartialStatistics.of",
        "n_nulls != group.num_rows",
        "False",
        "a log gets the bounds of the row groups that have some, for all of a file",
        _TESTS,
    ),
    Mutant(
        "nan-is-no-value",
        "table.opening.delta.DeltaSource._of_file",
        "partial.bounds | partial.nan | rounded",
        "partial.bounds | rounded",
        "a log gets a greatest value below the NaN of a file",
        _TESTS,
    ),
    Mutant(
        "indexes-of-mapped-names",
        "table.files.DataFile.stored_name",
        "self._mapped_names is None",
        "True",
        "an index stays when its name is given to another column",
        _TESTS,
    ),
    Mutant(
        "files-that-another-log-names-are-deleted",
        "rewrite.vacuum._Run.__init__",
        "log_in(location) or log_above(location)",
        '""',
        "rewrites of a folder are published after it became a table of Delta",
        _TESTS,
    ),
    Mutant(
        "some-field-ids",
        "table.field_ids.FieldIds.are_mapped",
        """if None in numbers and set(numbers) != {None}:
    raise UnsupportedTypeError(
        "only some of its columns have field ids: some readers use these, and "
        "others the names that the table maps"
    )
return None in numbers""",
        "return set(numbers) == {None}",
        "a file with some field ids is indexed by them, and pyiceberg reads its names",
        _TESTS,
    ),
    Mutant(
        "vectors-of-other-files",
        "table.opening.iceberg._deleted",
        "return 0, n_rows",
        "return one.record_count, one.record_count",
        "deleted rows are counted by the vector of another file",
        _TESTS,
    ),
    Mutant(
        "partitions-with-the-name-of-a-column",
        "table.schema._Places.__init__",
        "{*paths_of(schema), *((one.name,) for one in partitions)}",
        "{*paths_of(schema)}",
        "a partition column is taken for the column that files call so",
        _TESTS,
    ),
    Mutant(
        "files-named-twice",
        "table.opening.iceberg.iceberg_source",
        "len(by_path) < len(tasks)",
        "False",
        "a file that is named twice is read once, and the next has its bounds",
        _TESTS,
    ),
    Mutant(
        "derivations-of-other-columns",
        "table.table.TableState._declared",
        'record is None or record.get("places", {}) == self.places_in(result)',
        "True",
        "a derivation is of whatever column has the name now",
        _TESTS,
    ),
    Mutant(
        "numbers-of-nulls-that-mean-nothing",
        "table.opening.delta._nulls_of",
        "pc.if_else(is_told, counts, pa.scalar(None, counts.type))",
        "counts",
        "a number of NULLs counts where tightBounds is false",
        _TESTS,
    ),
)
