"""Mutants of ``spark.pruning``, which no test needs a session for."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_TESTS: Final = ("tests/spark/pruning/test_query_planner.py",)

PRUNING: Final = (
    Mutant(
        "replaced-file-skipped",
        "spark.pruning.tables.ScannedTable.unchanged",
        "not state.location.is_local",
        "True",
        "a file that was replaced since it was listed is judged by its former content",
        _TESTS,
    ),
    Mutant(
        "catalog-partition-judged",
        "spark.pruning.query_planner._judged_columns",
        "question['is_catalog_table']",
        "False",
        "a catalog may give the rows of a folder another value than its name says",
        _TESTS,
    ),
    Mutant(
        "file-column-is-partition",
        "spark.pruning.query_planner._judged_columns",
        "name.lower() not in taken",
        "name.lower() not in ()",
        "a column of the files is judged by the names of folders",
        _TESTS,
    ),
    Mutant(
        "legacy-days-judged",
        "spark.pruning.query_planner._check_reading",
        "value.lower() not in accepted",
        "False",
        "Spark reads other days than the indexes are of",
        _TESTS,
    ),
    Mutant(
        "reader-of-a-view",
        "spark.pruning.query_planner._check_reading",
        "(settings[name], reader.get(name))",
        "(settings[name],)",
        "files of a view are read under the settings of the session that defined it",
        _TESTS,
    ),
    Mutant(
        "names-of-a-view",
        "spark.pruning.query_planner._check_reading",
        "_CASE in reader",
        "False",
        "columns of a view are found as the session that defined it says",
        _TESTS,
    ),
    Mutant(
        "old-listing",
        "spark.pruning.tables._is_current",
        "latest_version(location) == known.state.snapshot.newest",
        "True",
        "a commit is not seen by later queries",
        _TESTS,
    ),
    Mutant(
        "unlisted-rows-count",
        "spark.pruning.first_rows.needed_files",
        "np.where(is_listed, counts.lower, 0)",
        "np.where(is_listed, counts.lower, counts.lower)",
        "the first rows are those of a file that Spark does not read",
        _TESTS,
    ),
    Mutant(
        "replaced-rows-count",
        "spark.pruning.first_rows.needed_files",
        "~table.unchanged(counted)",
        "counted < 0",
        "the first rows are those that a file held before it was replaced",
        _TESTS,
    ),
    Mutant(
        "order-of-other-values",
        "spark.pruning.first_rows.FirstRows.of",
        "column == OPAQUE",
        "False",
        "the order is that of other values than Spark reads",
        _TESTS,
    ),
)
