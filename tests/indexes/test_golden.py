"""Payloads that were written once are read for ever.

``tests/golden/<kind>/v<version>/<case>.bin`` has the parts and ``<case>.json`` what
they were built from and what they answer.  A case without its files fails; to write
it, set ``SKIPINDEX_WRITE_GOLDEN=1``.  Files that are there are never written again.
"""

from __future__ import annotations

import json
import math
import os
import random
import struct
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from crc32c import crc32c
from pyroaring import BitMap

from skipindex.expressions.atoms import (
    Atom,
    Matches,
    NoneOf,
    NotNullAtom,
    NullAtom,
    OneOf,
    Pattern,
    Range,
    Value,
    Wildcard,
)
from skipindex.expressions.domain import Domain
from skipindex.indexes import index_type, index_types, spec_to_json
from skipindex.indexes.interface import IndexSpec
from skipindex.indexes.kinds.bit_sliced import BitSliced
from skipindex.indexes.kinds.bitmap import Bitmap
from skipindex.indexes.kinds.bloom import Bloom
from skipindex.indexes.kinds.exact import Exact
from skipindex.indexes.kinds.ngram_bloom import NGramBloom
from skipindex.indexes.kinds.range_bitmap import RangeBitmap
from skipindex.indexes.kinds.run_length import RunLength
from skipindex.indexes.kinds.token_bloom import TokenBloom
from skipindex.storage.parts import MemoryParts
from tests.indexes.columns import column_of, fits, values_of

GOLDEN = Path(__file__).parent.parent / "golden"
WRITE = os.environ.get("SKIPINDEX_WRITE_GOLDEN") == "1"

SPECS: dict[str, IndexSpec] = {
    "default": Bitmap(),
    "all": RangeBitmap(max_bitmaps=1024),
    "fitting": RangeBitmap(),
    "bins": RangeBitmap(max_bitmaps=4),
    "base2_range": BitSliced(),
    "base2_equality": BitSliced(base=2, encoding="equality"),
    "base10_range": BitSliced(base=10, encoding="range"),
    "base10_equality": BitSliced(base=10, encoding="equality"),
    "base2_top_slices": BitSliced(max_slices=2),
    "base10_top_slices": BitSliced(base=10, encoding="equality", max_slices=10),
    "runs": RunLength(),
    "smallest": Exact(),
    "one_percent": Bloom(),
    "three": NGramBloom(),
    "five": NGramBloom(n=5, error_rate=0.001),
    "words": TokenBloom(),
    "pybloom_one_percent": Bloom(hashing="pybloom"),
    "pybloom_three": NGramBloom(hashing="pybloom"),
    "pybloom_words": TokenBloom(hashing="pybloom"),
}


LARGE = {
    "default",
    "bins",
    "base2_range",
    "base10_equality",
    "one_percent",
    "three",
    "pybloom_one_percent",
    "pybloom_three",
    "keys",
    "cells_slices",
}
"""The specs that have files of columns large enough for chunks."""


def _arrays() -> dict[str, pa.Array]:
    chooser = random.Random(20)
    days = [date(1992, 1, 1) + timedelta(days=chooser.randrange(40)) for _ in range(50)]
    scattered = [chooser.randrange(-(10**12), 10**12) for _ in range(3000)]
    floats = [1.5, math.nan, None, -0.0, 0.0, math.inf, -math.inf, 1.5, -7.25]
    cities = [f"UNITED KI{chooser.randrange(10)}" for _ in range(60)]
    names = [f"Customer#{chooser.randrange(10**9):09d}" for _ in range(2500)]
    amounts = [Decimal(chooser.randrange(-500, 500)).scaleb(-2) for _ in range(40)]
    words = ["disk", "full", "error:", "of", "42", "node-7", "Disk", "ok."]
    other = random.Random(21)
    sentences = [" ".join(other.choices(words, k=4)) for _ in range(20)]
    return {
        "int_nulls": pa.array([5, None, -3, 5, None, 2**40, 0, -3], pa.int64()),
        "int_values": pa.array(
            [chooser.randrange(300) for _ in range(400)], pa.int16()
        ),
        "int_chunks": pa.array([None, *scattered], pa.int64()),
        "int_wide": pa.array(
            [other.randrange(1500) if i % 23 == 0 else None for i in range(70_000)]
        ),
        "int_extremes": pa.array([2**63 - 1, -(2**63), 0], pa.int64()),
        "date": pa.array(days, pa.date32()),
        "float": pa.array(floats, pa.float64()),
        "decimal": pa.array(amounts, pa.decimal128(9, 2)),
        "string": pa.array([*cities, None, "", "é\0"], pa.string()),
        "string_chunks": pa.array(names, pa.string()),
        "sentence": pa.array([*sentences, None, "", "ünï-çødé", "/var/log/x.gz"]),
        "binary_null": pa.array([None, None], pa.binary()),
        "bool": pa.array([True, None, False, True], pa.bool_()),
        "empty": pa.array([], pa.int32()),
    }


ARRAYS = _arrays()
CASES = [
    (spec_name, array_name)
    for spec_name in SPECS
    for array_name in ARRAYS
    if ("chunks" not in array_name or spec_name in LARGE)
    and (array_name != "int_wide" or spec_name == "default")
    and fits(SPECS[spec_name], ARRAYS[array_name].type)
]


def _questions(values: list[Value | None]) -> list[Atom]:
    present = sorted({value for value in values if value is not None})
    atoms: list[Atom] = [NullAtom("c"), NotNullAtom("c"), Range("c", None, None)]
    if present:
        low, middle = present[len(present) // 3], present[len(present) // 2]
        atoms += [
            OneOf("c", (middle,)),
            OneOf("c", tuple(sorted({low, middle, present[-1]}))),
            NoneOf("c", (present[0],)),
            Range("c", low, present[-1]),
            Range("c", None, middle),
            Range("c", present[-1], None),
        ]
        absent = middle + b"\0" if isinstance(middle, bytes) else middle + 1
        if absent not in present:
            atoms.append(OneOf("c", (absent,)))
    return atoms


PATTERNS: list[Pattern] = [
    (Wildcard.ANY_TEXT, b"ED KI7"),
    (Wildcard.ANY_TEXT, b"error", Wildcard.ANY_TEXT, b"node-7"),
    (Wildcard.ANY_TEXT, b"errors", Wildcard.ANY_TEXT),
    (Wildcard.ANY_TEXT, b" full ", Wildcard.ANY_TEXT),
    (Wildcard.ANY_TEXT, b" empty ", Wildcard.ANY_TEXT),
    (Wildcard.ANY_TEXT, b"7", Wildcard.ANY_CHARACTER, Wildcard.ANY_CHARACTER, b"1"),
]


def _pattern_questions(array: pa.Array) -> list[Atom]:
    if not pa.types.is_string(array.type):
        return []
    matches: list[Atom] = [Matches("c", pattern) for pattern in PATTERNS]
    return [*matches, Matches("c", PATTERNS[0], negated=True)]


def _to_json(value: Value | None) -> object:
    return value.hex() if isinstance(value, bytes) else value


def _describe(atom: Atom) -> dict[str, Any]:
    shape = type(atom).__name__
    match atom:
        case Range(low=low, high=high):
            return {"atom": shape, "low": _to_json(low), "high": _to_json(high)}
        case OneOf(values=values) | NoneOf(values=values):
            return {"atom": shape, "values": [_to_json(v) for v in values]}
        case Matches(pattern=pattern, negated=negated):
            pieces = [_piece_to_json(piece) for piece in pattern]
            return {"atom": shape, "pattern": pieces, "negated": negated}
        case _:
            return {"atom": shape}


def _piece_to_json(piece: bytes | Wildcard) -> str:
    return piece.value if isinstance(piece, Wildcard) else piece.hex()


def _atom(record: dict[str, Any], domain: Domain) -> Atom:
    def value(text: Any) -> Any:
        return bytes.fromhex(text) if isinstance(text, str) else text

    match record["atom"]:
        case "Range":
            return Range("c", value(record["low"]), value(record["high"]))
        case "OneOf":
            return OneOf("c", tuple(map(value, record["values"])))
        case "NoneOf":
            return NoneOf("c", tuple(map(value, record["values"])))
        case "NullAtom":
            return NullAtom("c")
        case "Matches":
            pieces = [
                Wildcard(text) if text in {"%", "_"} else bytes.fromhex(text)
                for text in record["pattern"]
            ]
            return Matches("c", tuple(pieces), record["negated"])
        case _:
            return NotNullAtom("c")


def _answer(index: Any, atom: Atom) -> object:
    bounds = index.probe(atom)
    return bounds and [_summary(bounds.lower), _summary(bounds.upper)]


def _summary(rows: BitMap) -> list[int] | dict[str, int]:
    """The rows, or enough to know them again if they are many."""
    if len(rows) <= 60:
        return list(rows)
    return {"rows": len(rows), "crc32c": crc32c(rows.to_array().tobytes())}


def _write(path: Path, spec: IndexSpec, array: pa.Array) -> None:
    column = column_of(array)
    parts = spec.build(column)
    index = index_type(spec.kind).open(MemoryParts(parts), column.domain, len(array))
    values = values_of(array)
    record = {
        "spec": spec_to_json(spec),
        "domain": [column.domain.name, column.domain.scale, column.domain.bits],
        "n_rows": len(array),
        "answers": [
            {**_describe(atom), "rows": _answer(index, atom)}
            for atom in _questions(values) + _pattern_questions(array)
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    sizes = struct.pack(f"<{len(parts) + 1}I", len(parts), *map(len, parts))
    path.with_suffix(".bin").write_bytes(sizes + b"".join(parts))
    path.with_suffix(".json").write_text(json.dumps(record) + "\n")


def read_golden(path: Path) -> tuple[dict[str, Any], list[bytes]]:
    raw = path.with_suffix(".bin").read_bytes()
    (n,) = struct.unpack_from("<I", raw)
    sizes = struct.unpack_from(f"<{n}I", raw, 4)
    at, parts = 4 + 4 * n, []
    for size in sizes:
        parts.append(raw[at : at + size])
        at += size
    assert at == len(raw)
    return json.loads(path.with_suffix(".json").read_text()), parts


@pytest.mark.parametrize(("spec_name", "array_name"), CASES)
def test_every_case_has_its_golden_payload(spec_name: str, array_name: str) -> None:
    spec, array = SPECS[spec_name], ARRAYS[array_name]
    built = spec.build(column_of(array))
    path = GOLDEN / spec.kind / f"v{built[0][0]}" / f"{spec_name}-{array_name}"
    if WRITE and not path.with_suffix(".bin").exists():
        _write(path, spec, array)
    assert path.with_suffix(".bin").exists(), (
        "no golden payload; SKIPINDEX_WRITE_GOLDEN=1 writes it"
    )
    record, parts = read_golden(path)
    assert record["spec"] == spec_to_json(spec)
    # A zstd frame may differ from one version of the library to the next.
    if "chunks" not in array_name:
        assert built == parts, "the payload changed: count up the version of the kind"


@pytest.mark.parametrize("kind", index_types())
def test_golden_payloads_answer_as_they_did(kind: str) -> None:
    paths = sorted((GOLDEN / kind).glob("v*/*.json"))
    assert paths
    for path in paths:
        record, parts = read_golden(path)
        domain = Domain(*record["domain"])
        payload = MemoryParts(parts)
        index = index_type(kind).open(payload, domain, record["n_rows"])
        for answer in record["answers"]:
            assert _answer(index, _atom(answer, domain)) == answer["rows"], path.name
