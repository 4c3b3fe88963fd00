"""Mutants of ``spark.pruning``, which no test needs a session for."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_TESTS: Final = ("tests/spark/pruning/test_query_planner.py",)

_DIMENSIONS: Final = ("tests/spark/pruning/test_dimensions.py",)

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
        "other-files-of-a-dimension",
        "spark.pruning.dimensions._are_read",
        "sorted(listed) == now",
        "True",
        "Spark joins other files than those whose rows were looked up",
        _DIMENSIONS,
    ),
    Mutant(
        "dimension-of-another-time",
        "spark.pruning.dimensions._known",
        "one.fingerprint == fingerprint",
        "True",
        "a dimension that has changed is judged by its former content",
        _DIMENSIONS,
    ),
    Mutant(
        "dimension-of-other-types",
        "spark.pruning.dimensions._has",
        "info.domain == domain",
        "True",
        "Spark joins other values than those that were looked up",
        _DIMENSIONS,
    ),
    Mutant(
        "dimension-of-other-days",
        "spark.pruning.dimensions._reads_what_is_stored",
        "all((value.lower() in _REBASE for value in asked['options'].values()))",
        "True",
        "Spark joins other days than those that were looked up",
        _DIMENSIONS,
    ),
    Mutant(
        "dimension-of-another-session",
        "spark.pruning.dimensions._reads_what_is_stored",
        "all((v is None or v.lower() in READING[n] for n, v in others.items()))",
        "True",
        "the dimension is read as the session that defined it says",
        _DIMENSIONS,
    ),
    Mutant(
        "partition-of-a-dimension",
        "spark.pruning.dimensions._typed",
        "field.name.lower() not in taken",
        "True",
        "Spark takes an attribute from names of folders, not from the files",
        _DIMENSIONS,
    ),
    Mutant(
        "other-key-of-a-dimension",
        "spark.pruning.dimensions._is_of",
        "one.table_key == asked['key']",
        "True",
        "rows are joined by another column than the one that was looked up",
        _DIMENSIONS,
    ),
    Mutant(
        "other-key-of-a-fact",
        "spark.pruning.dimensions._is_of",
        "one.key == fact.resolve(column).name",
        "True",
        "rows are joined by another column than the one that was looked up",
        _DIMENSIONS,
    ),
    Mutant(
        "keys-left-out",
        "spark.pruning.dimensions.joined_conditions",
        "not found.lists and (not list(unknowns(bound)))",
        "True",
        "conditions that no index judges leave out no file: not tight",
        _DIMENSIONS,
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
