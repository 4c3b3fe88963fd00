"""Mutants of reading tables with the log of another format."""

from __future__ import annotations

from typing import Final

from tests.heavy.mutants.mutant import Mutant

_TESTS: Final = ("tests/delta/test_delta.py",)

DELTA: Final = (
    Mutant(
        "newest-version-of-delta",
        "table.opening.delta._opened",
        "DeltaTable(uri, version=version, storage_options=options or None)",
        "DeltaTable(uri, storage_options=options or None)",
        "a version has the rows of the newest one",
        _TESTS,
    ),
    Mutant(
        "unknown-features-of-delta",
        "table.opening.delta._require_readable",
        "features - _READ",
        "frozenset[str]()",
        "a table is read that asks its readers for more than is done",
        _TESTS,
    ),
    Mutant(
        "mapped-columns-of-delta",
        "table.opening.delta._places",
        'mode == "none"',
        "True",
        "columns are looked for under names that the files do not have",
        _TESTS,
    ),
    Mutant(
        "deleted-rows-of-delta",
        "table.opening.delta._vectors",
        '"deletionVectors" not in frozenset(table.protocol().reader_features or ())',
        "True",
        "rows that vectors delete come back",
        _TESTS,
    ),
    Mutant(
        "deleted-rows-are-counted",
        "planner.stages.row_counts.row_counts",
        "(lower - most).clip(0)",
        "lower",
        "rows that are deleted count among those that certainly match",
        _TESTS,
    ),
    Mutant(
        "deleted-rows-are-located",
        "planner.rows.by_keys.KeyLocations._without_deleted",
        "~np.isin(rows[0], deleted.to_array())",
        "rows[0] >= 0",
        "keys are located in rows that are deleted",
        _TESTS,
    ),
    Mutant(
        "plain-readers-of-deleted-rows",
        "table.opening.source.Source.unlike_plain",
        "path in self.deleted",
        "False",
        "plain readers bring back rows that are deleted",
        _TESTS,
    ),
    Mutant(
        "plain-readers-of-mapped-columns",
        "table.opening.source.Source.unlike_plain",
        "self.places",
        "False",
        "plain readers read NULL in columns that files call otherwise",
        _TESTS,
    ),
    Mutant(
        "overwritten-file-of-delta",
        "table.opening.source.Source.check",
        "file.size != self.sizes[path]",
        "False",
        "a file is read that is not the one of the log",
        _TESTS,
    ),
    Mutant(
        "folders-against-the-log",
        "table.opening.source.Source.unlike_plain",
        "partition_values(path) != self.values[path]",
        "False",
        "partition columns have other values than the log says",
        _TESTS,
    ),
    Mutant(
        "writes-past-the-log",
        "table.table.TableState.require_no_other_log",
        "self.source is not None",
        "False",
        "files are rewritten that the log of Delta names",
        _TESTS,
    ),
    Mutant(
        "times-of-delta-to-the-millisecond",
        "table.statistics.of_log._bounds",
        "pc.add(most, _MILLISECOND)",
        "most",
        "a time is taken for beyond a bound that its writer cut",
        _TESTS,
    ),
    Mutant(
        "cut-texts-of-delta",
        "table.statistics.of_log._is_whole",
        "pc.less(pc.utf8_length(texts), _CUT)",
        "pc.is_valid(texts)",
        "a text is taken for beyond a bound that its writer cut",
        _TESTS,
    ),
    Mutant(
        "floats-of-delta-without-nan",
        "table.statistics.of_log._bounds",
        'case "int" | "date":',
        'case "int" | "date" | "float":',
        "a file with NaN is skipped, which is greater than every number",
        _TESTS,
    ),
    Mutant(
        "indexes-of-a-column-of-that-name",
        "table.schema._column",
        "place != path and place in places.paths",
        "False",
        "a column gets the index of another, which has its name in the files",
        _TESTS,
    ),
    Mutant(
        "names-of-field-ids",
        "table.schema._column",
        "place == path and is_field_id(path[0])",
        "False",
        "a column gets the index of the one with this number",
        _TESTS,
    ),
    Mutant(
        "files-without-field-ids",
        "table.field_ids.FieldIds.places",
        "any(n is not None for n in numbers.values())",
        "True",
        "a file whose columns have no number is taken for one without values",
        _TESTS,
    ),
)
