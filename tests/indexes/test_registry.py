"""Kinds by name, specs to JSON and back."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import Any, cast

import pytest

from skipindex.errors import SkipIndexError, UnknownIndexError
from skipindex.indexes import (
    IndexSpec,
    MinMax,
    index_type,
    index_types,
    parse_spec,
    registry,
    spec_from_json,
    spec_to_json,
)
from skipindex.indexes.kinds.bit_sliced import BitSliced
from skipindex.indexes.kinds.bloom import Bloom
from skipindex.indexes.kinds.range_bitmap import RangeBitmap
from skipindex.storage.blobs import spec_key
from tests.indexes.columns import SPECS


def clear_kinds() -> None:
    """Forget which packages bring kinds."""
    registry._entry_points.cache_clear()
    registry._foreign_type.cache_clear()


@pytest.fixture
def entry_points(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[SimpleNamespace]]:
    """What other packages register; the test fills it."""
    points: list[SimpleNamespace] = []
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    clear_kinds()
    yield points
    clear_kinds()


def test_the_kinds_of_the_package_that_have_a_payload() -> None:
    assert set(index_types()) == {
        *("bloom", "bitmap", "range_bitmap", "bit_sliced", "run_length"),
        *("ngram_bloom", "token_bloom", "exact"),
    }
    for name, kind in index_types().items():
        assert kind.name == name
        assert kind.version >= 1
        assert kind.spec().kind == name, "every parameter has a default"
    assert not index_type("bloom").positional


def every_spec() -> Iterator[IndexSpec | MinMax]:
    """Specs of all kinds, with each choice of some values of their parameters."""
    yield MinMax()
    values = {
        "error_rate": (0.01, 0.001, 0.5),
        "hashing": (None, "pybloom"),
        "max_bitmaps": (None, 1, 9),
        "max_slices": (None, 0, 1, 12),
        "base": (2, 10),
        "encoding": ("range", "equality"),
        "n": (2, 3, 4),
    }
    for kind in index_types().values():
        names = [one.name for one in fields(cast("Any", kind.spec))]
        for chosen in itertools.product(*(values[name] for name in names)):
            with contextlib.suppress(ValueError, SkipIndexError):  # refused
                yield kind.spec(**dict(zip(names, chosen, strict=True)))


def test_every_spec_survives_the_log() -> None:
    """What is stored is what was asked for, None included."""
    specs = [*every_spec(), *SPECS]
    assert {type(spec) for spec in specs} == {type(s) for s in [MinMax(), *SPECS]}
    keys = {}
    for spec in specs:
        record = json.loads(json.dumps(spec_to_json(spec)))
        assert record["kind"] == spec.kind
        assert spec_from_json(record) == spec
        assert keys.setdefault(spec_key(record), spec) == spec
        assert spec_key(record) == spec_key(spec_to_json(spec_from_json(record)))
    assert len(keys) == len(set(specs)), "equal specs are one, different ones are two"


@pytest.mark.parametrize("most", [64, 64.0])
def test_a_whole_number_is_one_however_it_is_written(most: Any) -> None:
    assert spec_key(spec_to_json(RangeBitmap(max_bitmaps=most))) == (
        '{"kind": "range_bitmap", "max_bitmaps": 64}'
    )


@pytest.mark.parametrize("kind", ["cells", "key_set"])
def test_a_kind_that_went_is_refused_in_a_sentence(kind: str) -> None:
    with pytest.raises(UnknownIndexError, match=rf"{kind}.*exact.*bloom"):
        parse_spec(kind)


def test_a_name_means_the_kind_with_its_defaults() -> None:
    assert parse_spec("bloom") == Bloom(error_rate=0.01)
    assert parse_spec("bit_sliced") == BitSliced(base=2, encoding="range")
    assert parse_spec("minmax") == MinMax()
    given = RangeBitmap(max_bitmaps=3)
    assert parse_spec(given) is given


@pytest.mark.parametrize("name", ["btree", "", "_base", "build", "Bloom"])
def test_an_unknown_kind_lists_the_known_ones(name: str) -> None:
    with pytest.raises(
        UnknownIndexError, match="known: bit_sliced, bitmap, bloom, exact"
    ):
        parse_spec(name)
    with pytest.raises(UnknownIndexError, match=f"unknown index kind {name!r}"):
        index_type(name)


@pytest.mark.parametrize("wish", [3, None, Bloom, ["bloom"]])
def test_what_is_no_spec(wish: object) -> None:
    with pytest.raises(UnknownIndexError, match="is not an index"):
        parse_spec(wish)


@pytest.mark.parametrize(
    "record",
    [{"kind": "bloom", "fpp": 1}, {"kind": "bitmap", "base": 2}, {"error_rate": 0.1}],
)
def test_a_record_that_fits_no_spec(record: dict[str, object]) -> None:
    with pytest.raises(UnknownIndexError):
        spec_from_json(record)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    size: int = 5

    @property
    def kind(self) -> str:
        return "sketch"


def test_another_package_adds_a_kind(entry_points: list[SimpleNamespace]) -> None:
    kind = SimpleNamespace(name="sketch", version=1, spec=Sketch)
    entry_points.append(SimpleNamespace(name="sketch", load=lambda: kind))
    assert index_type("sketch") is kind
    assert parse_spec("sketch") == Sketch(size=5)
    assert spec_from_json(spec_to_json(Sketch(size=8))) == Sketch(size=8)
    assert "sketch" not in index_types()
    with pytest.raises(UnknownIndexError, match=r"range_bitmap, run_length, sketch, "):
        index_type("other")


def test_another_package_cannot_replace_a_kind(
    entry_points: list[SimpleNamespace],
) -> None:
    kind = SimpleNamespace(name="bloom", version=9, spec=Sketch)
    entry_points.append(SimpleNamespace(name="bloom", load=lambda: kind))
    assert parse_spec("bloom") == Bloom()


def test_an_entry_point_is_named_as_its_kind(
    entry_points: list[SimpleNamespace],
) -> None:
    kind = SimpleNamespace(name="other", version=1, spec=Sketch)
    entry_points.append(SimpleNamespace(name="sketch", load=lambda: kind))
    with pytest.raises(UnknownIndexError, match="named 'other'"):
        index_type("sketch")


def test_a_package_that_cannot_be_imported_leaves_the_others(
    entry_points: list[SimpleNamespace],
) -> None:
    def fails() -> None:
        raise ImportError("no module named 'gone'")

    kind = SimpleNamespace(name="sketch", version=1, spec=Sketch)
    entry_points.append(SimpleNamespace(name="gone", load=fails))
    entry_points.append(SimpleNamespace(name="sketch", load=lambda: kind))
    assert index_type("sketch") is kind
    with pytest.raises(
        UnknownIndexError, match=r"'gone' cannot be loaded .* no module"
    ):
        index_type("gone")
