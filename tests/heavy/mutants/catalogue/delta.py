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
        "table.opening.delta._require_readable",
        'mapping != "none"',
        "False",
        "columns are looked for under names that the files do not have",
        _TESTS,
    ),
    Mutant(
        "deleted-rows-of-delta",
        "table.opening.delta._require_readable",
        "any(batch.num_rows for batch in deleted)",
        "False",
        "rows that vectors delete come back",
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
        "table.opening.source.Source.check",
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
)
