"""Deliberately broken variants of the library: each must fail one of its tests.

Nearly every one is a mistake that another system has shipped, with the number of the
trap or the project in ``why``.  ``old`` stands exactly once in the module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_TREES: Final = ("tests/test_predicate.py", "tests/planner/test_soundness.py")
_BIND: Final = ("tests/planner/test_bind.py", "tests/planner/test_soundness.py")
_SIMPLIFY: Final = ("tests/planner/test_simplify.py",)
_PLANS: Final = ("tests/planner/test_plan.py", "tests/planner/test_soundness.py")
_MINMAX: Final = ("tests/indexes/test_minmax.py", "tests/planner/test_soundness.py")
_KINDS: Final = ("tests/indexes/test_contract.py", "tests/planner/test_soundness.py")
_DOMAIN: Final = ("tests/test_domain.py", "tests/planner/test_soundness.py")
_DAMAGE: Final = ("tests/traps/test_damage.py", "tests/storage/test_pack.py")
_LIMITS: Final = ("tests/planner/test_limits.py",)
_STALE: Final = ("tests/traps/test_staleness.py",)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One broken variant.

    Args:
        name: short and unique.
        module: below ``src/skipindex``.
        old: the text that is replaced.
        new: what replaces it.
        why: the mistake.
        tests: files of which one test must fail.
    """

    name: str
    module: str
    old: str
    new: str
    why: str
    tests: tuple[str, ...]


MUTANTS: Final = (
    Mutant(
        "de-morgan",
        "predicate.py",
        "return disjunction(parts) if negate else conjunction(parts)",
        "return conjunction(parts)",
        "NOT of an AND keeps the AND",
        _TREES,
    ),
    Mutant(
        "de-morgan-or",
        "predicate.py",
        "return conjunction(parts) if negate else disjunction(parts)",
        "return disjunction(parts)",
        "NOT of an OR keeps the OR",
        _TREES,
    ),
    Mutant(
        "not-less",
        "predicate.py",
        "Operator.LT: Operator.GE,\n    Operator.GE: Operator.LT,",
        "Operator.LT: Operator.GT,\n    Operator.GE: Operator.LT,",
        "NOT (v < x) taken for v > x",
        _TREES,
    ),
    Mutant(
        "not-null-safe",
        "predicate.py",
        "return Or((IsNull(column), differs))",
        "return differs",
        "NOT (v <=> x) loses the NULL rows",
        _TREES,
    ),
    Mutant(
        "not-in-stays-in",
        "predicate.py",
        "return replace(tree, negated=not tree.negated)",
        "return tree",
        "NOT above IN, LIKE and IS NULL is dropped",
        _TREES,
    ),
    Mutant(
        "or-of-lowers",
        "bounds.py",
        "return Bounds(self.lower | other.lower, self.upper | other.upper)",
        "return Bounds(self.lower & other.lower, self.upper | other.upper)",
        "OR takes the AND of the certain rows: sound, and no longer tight",
        _PLANS,
    ),
    Mutant(
        "or-of-uppers",
        "bounds.py",
        "return Bounds(self.lower | other.lower, self.upper | other.upper)",
        "return Bounds(self.lower | other.lower, self.upper & other.upper)",
        "OR keeps what both sides may match: ClickHouse 119528",
        _PLANS,
    ),
    Mutant(
        "and-of-lowers",
        "bounds.py",
        "return Bounds(self.lower & other.lower, self.upper & other.upper)",
        "return Bounds(self.lower | other.lower, self.upper & other.upper)",
        "AND is certain where one side is",
        _PLANS,
    ),
    Mutant(
        "refine-lowers",
        "bounds.py",
        "return Bounds(self.lower | other.lower, self.upper & other.upper)",
        "return Bounds(self.lower & other.lower, self.upper & other.upper)",
        "two sources agree on what is certain: sound, and no longer tight",
        _PLANS,
    ),
    Mutant(
        "unknown-as-empty",
        "planner/bound.py",
        "return Bounds(nothing, everything)",
        "return Bounds(nothing, nothing)",
        "a condition that no index can judge is taken for FALSE: trap C-27",
        _PLANS,
    ),
    Mutant(
        "unknown-as-full",
        "planner/bound.py",
        "return Bounds(nothing, everything)",
        "return Bounds(everything, everything)",
        "a condition that no index can judge is taken for TRUE",
        _PLANS,
    ),
    Mutant(
        "merge-or-as-and",
        "planner/simplify.py",
        "return _merge(node, _either,",
        "return _merge(node, _both,",
        "alternatives are merged as if both must hold",
        _SIMPLIFY,
    ),
    Mutant(
        "fold-neutral",
        "planner/simplify.py",
        "neutral = isinstance(node, AllOf)",
        "neutral = isinstance(node, AnyOf)",
        "a constant is folded into OR as into AND: trap C-28",
        _SIMPLIFY,
    ),
    Mutant(
        "range-end",
        "planner/bind.py",
        "return self._range(None, at.gt)",
        "return self._range(None, at.ge)",
        "<= is asked as <",
        _BIND,
    ),
    Mutant(
        "range-start",
        "planner/bind.py",
        "return self._least(at.gt)",
        "return self._least(at.ge)",
        "> is asked as >=",
        _BIND,
    ),
    Mutant(
        "not-in-null",
        "planner/bind.py",
        "case In(_, values, negated) if negated and _has_null(values):",
        "case In(_, values, negated) if negated and len(values) < 0:",
        "NOT IN ignores a NULL in the list: trap C-25",
        _BIND,
    ),
    Mutant(
        "empty-in",
        "planner/bind.py",
        "return Known(negated)",
        "return Known(value=False)",
        "NOT IN () is not TRUE of NULL",
        _BIND,
    ),
    Mutant(
        "list-of-doubles",
        "planner/bind.py",
        'return Unknown(self.text, "the list makes Spark cast the column")',
        "pass",
        "a bigint column is compared exactly with a list that Spark casts to double",
        _BIND,
    ),
    Mutant(
        "not-like-infix",
        "planner/bind.py",
        "leaf = self._leaf(Matches(self.name, pattern, node.negated))",
        "leaf = self._leaf(Matches(self.name, pattern))",
        "NOT LIKE 'a%b' is asked as if it were LIKE 'a%b'",
        _BIND,
    ),
    Mutant(
        "like-as-prefix",
        "planner/bind.py",
        "case (bytes(prefix), Wildcard.ANY_TEXT):",
        "case (bytes(prefix), Wildcard.ANY_TEXT, *_):",
        "LIKE 'a%b' is certain for all that begins with a",
        _BIND,
    ),
    Mutant(
        "prefix-end",
        "atoms.py",
        "return stem[:-1] + bytes([stem[-1] + 1]) if stem else None",
        "return stem if stem else None",
        "the end of a prefix is the prefix: C-7 for LIKE",
        _BIND,
    ),
    Mutant(
        "decimal-rounded",
        "planner/_cuts.py",
        "gt = _floor(number, domain.scale) + 1",
        "gt = _floor(number, domain.scale)",
        "a decimal literal is cut one too low",
        ("tests/planner/test_cuts.py",),
    ),
    Mutant(
        "zone-as-utc",
        "planner/_cuts.py",
        'return Refusal("it depends on the session\'s time zone: pass timezone=…")\n'
        "    offset = fixed_offset(zone)\n    if",
        'zone = "UTC"\n    offset = fixed_offset(zone)\n    if',
        "a wall clock is read in UTC where the session's zone is not known: C-19",
        ("tests/planner/test_cuts.py",),
    ),
    Mutant(
        "clocks-exact",
        "planner/_cuts.py",
        "return Cut(instant, instant + 1, slack=_DAY)",
        "return Cut(instant, instant + 1)",
        "our rules of summer time are taken for those of the session's Java",
        ("tests/planner/test_cuts.py", "tests/planner/test_bind.py"),
    ),
    Mutant(
        "negative-zero",
        "domain.py",
        "doubles = wide.fill_null(0.0).to_numpy() + 0.0",
        "doubles = wide.fill_null(0.0).to_numpy().copy()",
        "-0.0 is another value than 0.0: trap C-4",
        _DOMAIN,
    ),
    Mutant(
        "nan-below",
        "domain.py",
        "keys[nan] = NAN",
        "keys[nan] = -NAN",
        "NaN is the least value: trap C-1",
        _DOMAIN,
    ),
    Mutant(
        "decimal-sign",
        "domain.py",
        "keys[:, 0] = words[:, 1].view(np.uint64) ^ np.uint64(1 << 63)",
        "keys[:, 0] = words[:, 1].view(np.uint64)",
        "large negative decimals are above the positive ones: trap C-15",
        _DOMAIN,
    ),
    Mutant(
        "scale-in-tag",
        "domain.py",
        'return f"{self.name}:{self.scale}" if "decimal" in self.name else self.name',
        "return self.name",
        "an index of another scale is of the same domain: traps C-15, C-20",
        _DOMAIN,
    ),
    Mutant(
        "high-bound-cut",
        "indexes/minmax.py",
        "return prefix[:-1] + bytes([prefix[-1] + 1])",
        "return prefix",
        "a long upper bound is cut and not raised: trap C-7",
        _MINMAX,
    ),
    Mutant(
        "bounds-swapped",
        "indexes/minmax.py",
        "low, high = column.minimum, column.maximum",
        "high, low = column.minimum, column.maximum",
        "bounds are swapped, so none is known any more: not tight",
        _MINMAX,
    ),
    Mutant(
        "inverted-bounds",
        "indexes/minmax.py",
        "known & np.asarray(ordered),",
        "known,",
        "bounds that contradict themselves are believed: trap C-16",
        _MINMAX,
    ),
    Mutant(
        "unknown-nulls",
        "indexes/minmax.py",
        "~counted | (nulls > 0),",
        "nulls > 0,",
        "an unknown number of NULLs is taken for none: traps C-8, C-26",
        _MINMAX,
    ),
    Mutant(
        "unknown-values",
        "indexes/minmax.py",
        "~counted | (nulls < rows),",
        "nulls < rows,",
        "an unknown number of NULLs is taken for all: trap C-8",
        _MINMAX,
    ),
    Mutant(
        "unbounded-as-missed",
        "indexes/minmax.py",
        "touched |= ~self.bounded",
        "touched &= self.bounded",
        "a file without bounds has no value in any range: trap C-27",
        _MINMAX,
    ),
    Mutant(
        "strict-with-nulls",
        "indexes/minmax.py",
        "inside &= ~self.can_null",
        "pass",
        "all rows match, NULL or not: trap C-26",
        _MINMAX,
    ),
    Mutant(
        "cut-bound-exact",
        "indexes/minmax.py",
        "only: Mask = hit & single & self.exact",
        "only: Mask = hit & single",
        "a bound that was cut is taken for a value",
        _MINMAX,
    ),
    Mutant(
        "touch-by-low",
        "indexes/minmax.py",
        "touched, inside = _at_least(self.high, low), _at_least(self.low, low)",
        "touched, inside = _at_least(self.low, low), _at_least(self.low, low)",
        "a range touches a file only where the file begins in it",
        _MINMAX,
    ),
    Mutant(
        "bloom-negated",
        "indexes/bloom.py",
        "if not isinstance(atom, OneOf) or",
        'if not hasattr(atom, "values") or',
        "a filter is asked for NOT IN: trap C-23",
        ("tests/indexes/test_bloom.py", *_KINDS),
    ),
    Mutant(
        "bloom-any",
        "indexes/bloom.py",
        "if any(self.may_hold(bits, bloom_key(value)) for value in atom.values):",
        "if all(self.may_hold(bits, bloom_key(value)) for value in atom.values):",
        "one absent value of a list is enough to skip: OAP 764",
        ("tests/indexes/test_bloom.py", *_KINDS),
    ),
    Mutant(
        "complement-with-nulls",
        "indexes/_positional.py",
        "return Bounds(every - some.upper, every - some.lower)",
        "every = BitMap(range(index.head.n_rows))\n"
        "            return Bounds(every - some.upper, every - some.lower)",
        "NOT IN is the complement over all rows: trap C-24, Lance 4756",
        _KINDS,
    ),
    Mutant(
        "complement-of-lower",
        "indexes/_positional.py",
        "return Bounds(every - some.upper, every - some.lower)",
        "return Bounds(every - some.lower, every - some.upper)",
        "the complement of a superset is taken for a superset: trap C-23",
        _KINDS,
    ),
    Mutant(
        "bins-exact",
        "indexes/range_bitmap.py",
        "exact = not begins_inside and not ends_inside",
        "exact = bool(upper)",
        "rows of a bin that a range only touches are certain",
        _KINDS,
    ),
    Mutant(
        "cumulative-end",
        "indexes/range_bitmap.py",
        "mask = narrow <= narrow.dtype.type(number)",
        "mask = narrow < narrow.dtype.type(number)",
        "a cumulative bitmap lacks its own value",
        _KINDS,
    ),
    Mutant(
        "part-crc",
        "storage/pack.py",
        "if crc32c(part) != self._crc[i]:",
        "if len(part) != self._length[i]:",
        "damaged bytes are read: trap C-52",
        _DAMAGE,
    ),
    Mutant(
        "kept-neighbour",
        "storage/pack.py",
        "kept.keep(key, payload.n_parts, start + first, found, n_kept)",
        "kept.keep(key, payload.n_parts, start, found, n_kept)",
        "a part is kept in the place of another",
        ("tests/storage/test_kept.py",),
    ),
    Mutant(
        "inside-bins",
        "indexes/bit_sliced.py",
        "return self.shape.per_digit == 1 and self.unit == 1",
        "return self.shape.per_digit == 1",
        "codes are compared with bins, inside of few rows",
        ("tests/indexes/test_within.py",),
    ),
    Mutant(
        "last-child-lower",
        "planner/_rows.py",
        "return bounds.lower.intersection_cardinality(lower), n_upper",
        "return bounds.lower.intersection_cardinality(upper), n_upper",
        "rows that may match the first child surely match the AND",
        ("tests/planner/test_row_counts.py",),
    ),
    Mutant(
        "workers-other-files",
        "planner/_pool.py",
        "mine = files[len(joined.verdicts) :].tolist()",
        "mine = files.tolist()",
        "what a worker found is said of other files",
        ("tests/planner/test_pool.py",),
    ),
    Mutant(
        "blob-identity",
        "storage/pack.py",
        "if self.identity[slot] != footer_crc or not same_rows:",
        "if not same_rows:",
        "the index of another file of as many rows is read: trap C-42",
        _DAMAGE,
    ),
    Mutant(
        "stale-files",
        "table.py",
        "same[there] &= then[rows[there]] == now[there]",
        "same[there] &= then[rows[there]] >= 0",
        "a file that changed keeps its index: traps C-42 to C-45",
        _STALE,
    ),
    Mutant(
        "other-domain",
        "table.py",
        "return [use for use in uses if use.entry.meta.domain == tag]",
        "return uses if tag else []",
        "an index of the column's old type is used: traps C-20, C-46",
        (*_STALE, "tests/test_table.py"),
    ),
    Mutant(
        "statistics-of-another-type",
        "table.py",
        "if stats is None or stats.domain != domain.tag:",
        "if stats is None:",
        "statistics of the column's old type are used: traps C-20, C-46",
        (*_STALE, "tests/test_table.py"),
    ),
    Mutant(
        "hive-null",
        "partitions.py",
        "value = None if raw == DEFAULT_PARTITION else _unescape(raw)",
        "value = _unescape(raw)",
        "the default partition is a value and not NULL: trap C-40",
        ("tests/test_partitions.py",),
    ),
    Mutant(
        "hidden-files",
        "table.py",
        'or part.startswith(".")',
        'or part.startswith("\\0")',
        "files that Spark does not read are files of the table: trap C-37",
        ("tests/test_table.py",),
    ),
    Mutant(
        "rows-full-by-upper",
        "planner/evaluation.py",
        "elif verdict.lower == self.table.n_rows[file]:",
        "elif verdict.upper == self.table.n_rows[file]:",
        "all rows match where all rows may",
        _PLANS,
    ),
    Mutant(
        "rows-empty-by-lower",
        "planner/evaluation.py",
        "if not verdict.upper:",
        "if not verdict.lower:",
        "a file is skipped where no row is certain",
        _PLANS,
    ),
    Mutant(
        "counts-of-possible",
        "planner/_counts.py",
        "lower[file], upper[file] = verdict.lower, verdict.upper",
        "lower[file], upper[file] = verdict.upper, verdict.upper",
        "rows that may match are counted as rows that do",
        _PLANS,
    ),
    Mutant(
        "counts-unknown-as-zero",
        "planner/_counts.py",
        "return lower, None if (self.upper < 0).any() else int(self.upper.sum())",
        "return lower, int(self.upper.clip(0).sum())",
        "a file of unknown size has no rows: trap C-55",
        _PLANS,
    ),
    Mutant(
        "limit-by-possible",
        "planner/_limits.py",
        "lower = np.where(possible, counts.lower, 0)",
        "lower = np.where(possible, counts.upper.clip(0), 0)",
        "LIMIT counts on rows that only may match",
        _LIMITS,
    ),
    Mutant(
        "top-k-by-worst",
        "planner/_limits.py",
        "if after(span[best])]",
        "if after(span[worst])]",
        "a file is left out although its best row is among the first: trap C-50",
        _LIMITS,
    ),
    Mutant(
        "top-k-nulls",
        "planner/_limits.py",
        "nulls_low=key.nulls_first != key.descending",
        "nulls_low=key.nulls_first",
        "NULL stands at the wrong end of a descending order",
        _LIMITS,
    ),
    Mutant(
        "top-k-too-few",
        "planner/_limits.py",
        "int(np.searchsorted(total, limit))",
        "int(np.searchsorted(total, limit - 1))",
        "one row less than the limit is enough",
        _LIMITS,
    ),
    Mutant(
        "verify-nothing",
        "planner/verify.py",
        "if 0 <= high < most:",
        "if 0 < high < most:",
        "a skipped file that holds a match is no violation",
        ("tests/planner/test_verify.py",),
    ),
)
