"""Mutants of ``indexes``."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_KINDS: Final = ("tests/indexes/test_contract.py", "tests/planner/test_soundness.py")
_BLOCKED: Final = "tests/indexes/filters/test_blocked.py"
_SPLITMIX: Final = "tests/indexes/filters/test_splitmix.py"

_PIECES: Final = ("tests/indexes/encoding/test_pieces.py",)

INDEXES: Final = (
    Mutant(
        "bloom-negated",
        "indexes.kinds.bloom._wanted",
        "isinstance(atom, OneOf)",
        'hasattr(atom, "values")',
        "a filter is asked for NOT IN: trap C-23",
        ("tests/indexes/kinds/test_bloom.py", *_KINDS),
    ),
    Mutant(
        "bloom-any",
        "indexes.filters.filter_type.FilterIndex.probe",
        "any(all(may_hold(bits, shape, k) for k in keys) for keys in alternatives)",
        "all(all(may_hold(bits, shape, k) for k in keys) for keys in alternatives)",
        "one absent value of a list is enough to skip: OAP 764",
        ("tests/indexes/kinds/test_bloom.py", *_KINDS),
    ),
    Mutant(
        "decoded-nulls",
        "indexes.bit_slices.slices.Slices._decoded",
        "return rows if self.full else rows & self._at(self.shape.n_slices)",
        "return rows",
        "a row without a value is taken for one of the highest code: not tight",
        ("tests/indexes/bit_slices/test_decode.py",),
    ),
    Mutant(
        "decoded-table",
        "indexes.bit_slices.decode._Wanted.of",
        "table[n_codes - stop : n_codes - start] = True",
        "table[n_codes - stop + 1 : n_codes - start] = True",
        "the last code of an interval is not looked for",
        ("tests/indexes/bit_slices/test_decode.py",),
    ),
    Mutant(
        "transposed-all",
        "indexes.filters.transposed.TransposedFilters._among",
        "found |= functools.reduce(operator.and_, [have[key] for key in alternative])",
        "found &= functools.reduce(operator.and_, [have[key] for key in alternative])",
        "a file is kept only if it seems to hold every value of a list",
        (
            "tests/indexes/filters/test_transposed.py",
            "tests/planner/stages/test_transposed_filters.py",
        ),
    ),
    Mutant(
        "transposed-column",
        "indexes.filters.transposed.TransposedFilters._among",
        'bits = np.unpackbits(raw, count=len(block.slots), bitorder="little")',
        'bits = np.unpackbits(raw, count=len(block.slots), bitorder="big")',
        "the answer of one file is taken for that of another",
        (
            "tests/indexes/filters/test_transposed.py",
            "tests/planner/stages/test_transposed_filters.py",
        ),
    ),
    Mutant(
        "blocked-batches",
        "indexes.filters.blocked.Blocks.filled",
        'found[mine] |= np.packbits(bits, bitorder="little")',
        'found[mine] = np.packbits(bits, bitorder="little")',
        "keys that share a block with those of the next batch are lost",
        (_BLOCKED,),
    ),
    Mutant(
        "blocked-more-bits",
        "indexes.filters.blocked.Blocks.filled",
        "range(-(-self.k // 4))",
        "range(self.k // 4)",
        "the last bits of a key are looked for and were never set",
        (_BLOCKED,),
    ),
    Mutant(
        "blocked-place",
        "indexes.filters.blocked.Blocks.places",
        "(seed >> 32) * self.n >> 32",
        "seed % self.n",
        "a key is looked for in another block than it was put into",
        (_BLOCKED, "tests/indexes/kinds/test_bloom.py"),
    ),
    Mutant(
        "splitmix-last-word",
        "indexes.filters.splitmix._add_words",
        "words &= _LOW_BYTES[np.minimum(left, 8)]",
        "words &= _LOW_BYTES[8]",
        "the bytes of the next value are hashed too",
        (_SPLITMIX,),
    ),
    Mutant(
        "splitmix-end-of-data",
        "indexes.filters.splitmix._words",
        "words[beyond] >>= (8 * (at[beyond] - last)).view(np.uint64)",
        "words[beyond] >>= np.uint64(0)",
        "the last value of a column is hashed by the bytes before it",
        (_SPLITMIX,),
    ),
    Mutant(
        "splitmix-few-texts",
        "indexes.filters.splitmix._rest",
        "np.arange(at // 8 + 1, at // 8 + 1 + len(words), dtype=np.uint64)",
        "np.arange(1, 1 + len(words), dtype=np.uint64)",
        "a long text has one hash among many texts, and another among few",
        (_SPLITMIX,),
    ),
    Mutant(
        "filter-of-another-version",
        "indexes.filters.payload.FilterHead.read",
        "(version == Blocks.version) != isinstance(head.shape, Blocks)",
        "False",
        "a filter is written as one that an older library reads otherwise",
        ("tests/indexes/kinds/test_bloom.py",),
    ),
    Mutant(
        "transposed-foreign",
        "indexes.filters.transposed.TransposedFilters.open",
        "check_scheme(block.size, kind)",
        "pass",
        "filters of another hash are asked as if they were ours",
        ("tests/indexes/filters/test_transposed.py",),
    ),
    Mutant(
        "words-of-two-values",
        "indexes.kinds.token_bloom.TokenBloom.pieces",
        "lasts[firsts - 1] = inside[firsts - 1]",
        "pass",
        "a word at the end of a value runs on into the next value",
        ("tests/indexes/kinds/test_substrings.py",),
    ),
    Mutant(
        "complement-with-nulls",
        "indexes.positional.PositionalIndex._probe",
        "return Bounds(every - some.upper, every - some.lower)",
        "every = BitMap(range(self.head.n_rows))\n"
        "return Bounds(every - some.upper, every - some.lower)",
        "NOT IN is the complement over all rows: trap C-24, Lance 4756",
        _KINDS,
    ),
    Mutant(
        "complement-of-lower",
        "indexes.positional.PositionalIndex._probe",
        "return Bounds(every - some.upper, every - some.lower)",
        "return Bounds(every - some.lower, every - some.upper)",
        "the complement of a superset is taken for a superset: trap C-23",
        _KINDS,
    ),
    Mutant(
        "bins-exact",
        "indexes.kinds.range_bitmap.RangeBitmapIndex._between",
        "exact = not begins_inside and not ends_inside",
        "exact = bool(upper)",
        "rows of a bin that a range only touches are certain",
        _KINDS,
    ),
    Mutant(
        "cumulative-end",
        "indexes.kinds.range_bitmap._pack_cumulative",
        "mask = narrow <= narrow.dtype.type(number)",
        "mask = narrow < narrow.dtype.type(number)",
        "a cumulative bitmap lacks its own value",
        _KINDS,
    ),
    Mutant(
        "inside-bins",
        "indexes.kinds.bit_sliced.BitSlicedIndex._looks_inside",
        "return self.shape.per_digit == 1 and self.unit == 1",
        "return self.shape.per_digit == 1",
        "codes are compared with bins, inside of few rows",
        ("tests/indexes/kinds/test_within.py",),
    ),
    Mutant(
        "codes-of-a-piece",
        "indexes.encoding.pieces.ColumnPieces.merged",
        "rank[piece.codes]",
        "piece.codes",
        "the rank within a piece is taken for the rank within the file",
        _PIECES,
    ),
    Mutant(
        "block-ranked-alone",
        "indexes.encoding.pieces._merge_texts",
        "np.uint32(written)",
        "np.uint32(0)",
        "the rank within a block is taken for the rank within the file",
        _PIECES,
    ),
    Mutant(
        "hashes-of-last-piece",
        "indexes.filters.filter_type.GatheredHashes._unite",
        "[np.empty(0, np.uint64), *self._pieces]",
        "[np.empty(0, np.uint64), *self._pieces[-1:]]",
        "a filter of a large file has the keys of its last rows",
        _PIECES,
    ),
    Mutant(
        "entries-of-a-block",
        "indexes.encoding.entry_packing._parts_by_block",
        "[code + one for one in first]",
        "first",
        "parts of later blocks are looked for at the codes of the first one",
        _PIECES,
    ),
    Mutant(
        "rows-of-the-part-before",
        "indexes.encoding.entry_packing._parts_by_block",
        "stop = code + first.pop()",
        "first.pop()",
        "values of the part that a block breaks off have no rows",
        _PIECES,
    ),
)
