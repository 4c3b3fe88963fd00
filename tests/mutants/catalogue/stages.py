"""Mutants of ``planner.stages``."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_PLANS: Final = ("tests/planner/test_plan.py", "tests/planner/test_soundness.py")
_PRICE: Final = ("tests/planner/stages/test_price.py",)
_DERIVED: Final = ("tests/planner/stages/test_derived_partitions.py",)
_UNLISTED: Final = ("tests/planner/test_before_listing.py",)
_LIMITS: Final = ("tests/planner/stages/test_limit.py",)

STAGES: Final = (
    Mutant(
        "untested-is-absent",
        "planner.stages.computed.probe_index",
        "if purse is not None and not purse.buys(leaf, values, reading):\n"
        "    return None",
        "if purse is not None and not purse.buys(leaf, values, reading):\n"
        "    return Bounds(BitMap(), BitMap())",
        "a file whose values were not tested has no row that passes",
        _PRICE,
    ),
    Mutant(
        "untested-bounds-fail",
        "planner.stages.computed._tested",
        "np.tile([False, True], (len(bounds), 1))",
        "np.tile([False, False], (len(bounds), 1))",
        "bounds whose values were not tested have none that passes",
        _PRICE,
    ),
    Mutant(
        "unsure-bounds-fail",
        "planner.stages.computed._tested",
        "false[start + n] - false[start] < n",
        "true[start + n] - true[start] > 0",
        "integers of which only Spark can tell do not pass",
        ("tests/planner/stages/test_computed_statistics.py",),
    ),
    Mutant(
        "answers-of-another-file",
        "planner.stages.rows.RowEvaluator._leaf_probe",
        "(file, i) not in found",
        "not found",
        "a condition that is repeated has the rows of another file",
        _PRICE,
    ),
    Mutant(
        "transposed-identity",
        "planner.stages.index_reader.IndexReader._probe_shared",
        "files, slots = files[fits], slots[fits]",
        "files, slots = files, slots",
        "what a pack says of another data file is believed",
        (
            "tests/planner/stages/test_transposed_filters.py",
            "tests/planner/stages/test_file_maps.py",
        ),
    ),
    Mutant(
        "last-child-lower",
        "planner.stages.rows._numbers",
        "return bounds.lower.intersection_cardinality(lower), n_upper",
        "return bounds.lower.intersection_cardinality(upper), n_upper",
        "rows that may match the first child surely match the AND",
        ("tests/planner/stages/test_row_counts.py",),
    ),
    Mutant(
        "rows-full-by-upper",
        "planner.stages.planning_stages._look_at_rows",
        "verdict.lower == found.table.n_rows[file]",
        "verdict.upper == found.table.n_rows[file]",
        "all rows match where all rows may",
        _PLANS,
    ),
    Mutant(
        "rows-empty-by-lower",
        "planner.stages.planning_stages._look_at_rows",
        "not verdict.upper",
        "not verdict.lower",
        "a file is skipped where no row is certain",
        _PLANS,
    ),
    Mutant(
        "counts-of-possible",
        "planner.stages.row_counts.row_counts",
        "lower[file], upper[file] = verdict.lower, verdict.upper",
        "lower[file], upper[file] = verdict.upper, verdict.upper",
        "rows that may match are counted as rows that do",
        _PLANS,
    ),
    Mutant(
        "counts-unknown-as-zero",
        "planner.stages.row_counts.RowCounts.total",
        "return lower, None if (self.upper < 0).any() else int(self.upper.sum())",
        "return lower, int(self.upper.clip(0).sum())",
        "a file of unknown size has no rows: trap C-55",
        _PLANS,
    ),
    Mutant(
        "limit-by-possible",
        "planner.stages.limit.needed",
        "lower = np.where(possible, counts.lower, 0)",
        "lower = np.where(possible, counts.upper.clip(0), 0)",
        "LIMIT counts on rows that only may match",
        _LIMITS,
    ),
    Mutant(
        "top-k-by-worst",
        "planner.stages.limit._first_rows",
        "after(span[best], last)",
        "after(span[worst], last)",
        "a file is left out although its best row is among the first: trap C-50",
        _LIMITS,
    ),
    Mutant(
        "top-k-nulls",
        "planner.stages.limit._first_rows",
        "key.nulls_first != key.descending",
        "key.nulls_first",
        "NULL stands at the wrong end of a descending order",
        _LIMITS,
    ),
    Mutant(
        "top-k-too-few",
        "planner.stages.limit._first_rows",
        "int(np.searchsorted(total, limit))",
        "int(np.searchsorted(total, limit - 1))",
        "one row less than the limit is enough",
        _LIMITS,
    ),
    Mutant(
        "cache-store",
        "planner.stages.pack_cache.PackCache.pack",
        "key = (location, name, _mark(location, name))",
        "key = (location.root, location.uri, name, _mark(location, name))",
        "buckets of one name at two endpoints share their packs",
        ("tests/storage/test_storage_options.py",),
    ),
    Mutant(
        "texts-without-a-pattern",
        "planner.functions.reading.clock_of_text",
        "CastTexts(DAY, _FARTHEST, (*_ODD, *_WITHOUT_DATE))",
        "CastTexts(DAY, 0, (*_ODD, *_WITHOUT_DATE))",
        "a text with a zone of its own lies in the folder of its day",
        _DERIVED,
    ),
    Mutant(
        "texts-with-blanks",
        "planner.functions.reading.CastTexts.between",
        "(*self.odd, (least.encode(), stop), *cut)",
        "((least.encode(), stop), *cut)",
        "a text that a blank or a sign begins lies in no folder",
        _DERIVED,
    ),
    Mutant(
        "last-text-of-a-folder",
        "planner.functions.patterns.Pattern.between",
        "stop = self._greatest(high - 1) + b'\\0'",
        "stop = self._greatest(high - 1)",
        "the last text of a folder is taken for one of the next",
        _DERIVED,
    ),
    Mutant(
        "folder-of-null",
        "planner.stages.derived_partitions.DerivedPartitions.probe",
        "v is None or test(v)",
        "v is not None and test(v)",
        "texts that are not read lie in no folder, where theirs is that of NULL",
        _DERIVED,
    ),
    Mutant(
        "files-beside-folders",
        "planner.before_listing.Needed._chosen",
        "below is None or below.kept is None or below.has_data",
        "below is None or below.kept is None",
        "a file is read that Spark leaves out, as the partitions were not listed",
        _UNLISTED,
    ),
    Mutant(
        "part-of-a-date",
        "planner.stages.derived_partitions._plainer",
        "return name, _plainer(day)",
        "return name, day",
        "the month of a date that is read is not that of the time: not tight",
        _DERIVED,
    ),
)
