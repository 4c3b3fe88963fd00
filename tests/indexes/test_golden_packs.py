"""What is of all files of a pack, written once and read for ever.

As ``test_golden``, for file maps and transposed filters: ``tests/golden/pack``.
"""

from __future__ import annotations

import json
import os
import random
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from skipindex.expressions.atoms import Atom, Matches, OneOf, Range, Value, Wildcard
from skipindex.expressions.domain import Domain
from skipindex.indexes import IndexSpec, index_type
from skipindex.indexes.file_map import FileMap, ValueSpans, build_file_map
from skipindex.indexes.interface import PackableType, PackIndex
from skipindex.indexes.kinds.bloom import Bloom
from skipindex.indexes.kinds.ngram_bloom import NGramBloom
from skipindex.indexes.kinds.token_bloom import TokenBloom
from skipindex.storage.parts import MemoryParts
from tests.indexes.columns import encoded
from tests.indexes.test_golden import GOLDEN, read_golden

PACKS = GOLDEN / "pack"
WRITE = os.environ.get("SKIPINDEX_WRITE_GOLDEN") == "1"
N_FILES = 12
INT, STRING = Domain("int", bits=64), Domain("string")
FILTERS: dict[str, tuple[IndexSpec, Domain]] = {
    "v1/pybloom_int": (Bloom(hashing="pybloom"), INT),
    "v1/pybloom_string": (Bloom(error_rate=0.001, hashing="pybloom"), STRING),
    "v1/pybloom_ngram": (NGramBloom(hashing="pybloom"), STRING),
    "v1/pybloom_token": (TokenBloom(hashing="pybloom"), STRING),
    "v1/bloom_int": (Bloom(), INT),
    "v1/bloom_string": (Bloom(error_rate=0.001), STRING),
    "v1/ngram_bloom": (NGramBloom(), STRING),
    "v1/token_bloom": (TokenBloom(), STRING),
}
MAPS: dict[str, tuple[int, Domain]] = {
    "v1/map_int": (20, INT),
    "v1/map_bins": (4500, INT),
    "v1/map_string": (20, STRING),
}
CASES = [*FILTERS, *MAPS]


def domain_of_case(case: str) -> Domain:
    return (FILTERS[case] if case in FILTERS else MAPS[case])[1]


def values_of_file(file: int, n: int) -> list[int]:
    chooser = random.Random(file)
    return [file * 10**6 + chooser.randrange(10**6) for _ in range(n)]


def made(case: str) -> list[bytes]:
    """The parts that today's code writes; file 5 has none."""
    domain = domain_of_case(case)
    columns = []
    for file in range(N_FILES):
        numbers = values_of_file(file, MAPS[case][0] if case in MAPS else 20)
        if domain == INT:
            columns.append(encoded(numbers, pa.int64()))
        else:
            texts = [f"order {n:x} shipped" for n in numbers]
            columns.append(encoded(texts, pa.string()))
    if case in MAPS:
        spans = [None if i == 5 else ValueSpans.of(c) for i, c in enumerate(columns)]
        parts = build_file_map(spans, domain, n_index_bytes=1 << 22)
        assert parts is not None
        return parts
    spec = FILTERS[case][0]
    payloads = [[] if i == 5 else spec.build(c) for i, c in enumerate(columns)]
    kind = index_type(spec.kind)
    assert isinstance(kind, PackableType)
    shared, slots = kind.pack_together(payloads, domain)
    assert slots
    return shared


def opened(case: str, parts: list[bytes]) -> PackIndex:
    payload, domain = MemoryParts(parts), domain_of_case(case)
    if case in MAPS:
        return FileMap.open(payload, domain, N_FILES)
    kind = index_type(FILTERS[case][0].kind)
    assert isinstance(kind, PackableType)
    return kind.open_pack(payload, domain, N_FILES)


def questions(case: str) -> Iterator[Atom]:
    def value(number: int) -> Value:
        if domain_of_case(case) == INT:
            return number
        return f"order {number:x} shipped".encode()

    for file in range(N_FILES):
        number = values_of_file(file, 3)[2]
        yield OneOf("c", (value(number),))
        yield OneOf("c", tuple(sorted((value(number), value(7)))))
        low, high = sorted((value(number - 9000), value(number)))
        yield Range("c", low, high)
        if case not in MAPS and domain_of_case(case) == STRING:
            like, word = Wildcard.ANY_TEXT, f"{number:x}".encode()
            yield Matches("c", (like, b" " + word + b" ", like))
            yield Matches("c", (like, word[1:], like))


def answers(case: str, parts: list[bytes]) -> list[list[list[int]] | None]:
    index = opened(case, parts)
    found: list[list[list[int]] | None] = []
    for atom in questions(case):
        masks = index.ask(atom)
        found.append(masks and [np.flatnonzero(mask).tolist() for mask in masks])
    return found


def write(path: Path, case: str) -> None:
    parts = made(case)
    path.parent.mkdir(parents=True, exist_ok=True)
    sizes = struct.pack(f"<{len(parts) + 1}I", len(parts), *map(len, parts))
    path.with_suffix(".bin").write_bytes(sizes + b"".join(parts))
    record = {"case": path.name, "answers": answers(case, parts)}
    path.with_suffix(".json").write_text(json.dumps(record) + "\n")


@pytest.mark.parametrize("case", CASES)
def test_golden_packs_answer_as_they_did(case: str) -> None:
    path = PACKS / case
    if WRITE and not path.with_suffix(".bin").exists():
        write(path, case)
    record, parts = read_golden(path)
    assert answers(case, parts) == record["answers"]
    told = [a for a in record["answers"] if a is not None and len(a[0]) < N_FILES - 1]
    assert len(told) >= N_FILES, "most of the answers rule something out"
    # A zstd frame may differ from one version of the library to the next.
    if case in FILTERS:
        assert made(case) == parts, "the payload changed: count up its version"
