"""The kinds of index by name, and their specs as JSON.

A module of ``skipindex.indexes.kinds`` is a kind: it says ``INDEX_TYPE = ...``.
Other packages add kinds by an entry point of the group ``skipindex.indexes``, whose
name is the kind's and whose object is its ``IndexType``.
"""

from __future__ import annotations

import ast
import functools
import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import asdict, fields
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any, Final, cast

from skipindex.errors import UnknownIndexError, did_you_mean, first_line
from skipindex.indexes import kinds
from skipindex.indexes.interface import IndexSpec, IndexType, MinMax

ENTRY_POINTS: Final = "skipindex.indexes"
_MINMAX: Final = "minmax"


@functools.cache
def index_types() -> Mapping[str, IndexType]:
    """The built-in kinds with a payload, by name."""
    result: dict[str, IndexType] = {}
    for info in pkgutil.iter_modules(kinds.__path__):
        module = importlib.import_module(f"{kinds.__name__}.{info.name}")
        kind: IndexType = module.INDEX_TYPE
        if kind.name in result or kind.name == _MINMAX:
            raise UnknownIndexError(f"two index kinds are named {kind.name!r}")
        result[kind.name] = kind
    return MappingProxyType(result)


def index_type(name: str) -> IndexType:
    """The kind of that name: a built-in one, else that of an entry point.

    Raises:
        UnknownIndexError: there is none, or it has no payload (``minmax``), or the
            package that brings it cannot be imported.
    """
    if name in index_types():
        return index_types()[name]
    if name in _entry_points():
        return _foreign_type(name)
    known = sorted({*index_types(), *_entry_points()})
    similar = did_you_mean(name.partition("(")[0], known)
    raise UnknownIndexError(
        f"unknown index kind {name!r}{similar} (known: {', '.join(known)}; with "
        "arguments it is a spec, such as skipindex.Bloom(error_rate=0.01))"
    )


@functools.cache
def _entry_points() -> Mapping[str, EntryPoint]:
    """The entry points of other packages, by the name of the kind."""
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


@functools.cache
def _foreign_type(name: str) -> IndexType:
    """The kind of an entry point; an index of one that fails is not used."""
    try:
        kind: IndexType = _entry_points()[name].load()
        result = kind.name
    except Exception as error:
        raise UnknownIndexError(
            f"index kind {name!r} cannot be loaded from the entry point of "
            f"{ENTRY_POINTS}: {type(error).__name__}: {first_line(error)}"
        ) from error
    if result != name:
        raise UnknownIndexError(
            f"entry point {name!r} of {ENTRY_POINTS} gives an index kind that is named "
            f"{result!r}"
        )
    return kind


def parse_spec(spec: str | IndexSpec | MinMax) -> IndexSpec | MinMax:
    """The spec that is meant: a kind's name is that kind with its defaults.

    A text may have parameters too: ``bloom(error_rate=0.001)``.

    Raises:
        UnknownIndexError: there is no kind of that name, or this is no spec.
    """
    if isinstance(spec, str):
        return _spec_in(spec)
    # A spec's class has a kind too.
    if isinstance(spec, type) or not isinstance(getattr(spec, "kind", None), str):
        raise UnknownIndexError(
            f"{spec!r} is not an index (accepted: a kind's name, or a spec such as "
            "Bloom())"
        )
    return spec


def _spec_in(text: str) -> IndexSpec | MinMax:
    name, bracket, _ = text.partition("(")
    if not bracket:
        return _spec_class(text)()
    values: dict[str, Any] | None = None
    try:
        match ast.parse(text.strip(), mode="eval").body:
            case ast.Call(args=[], keywords=given):
                values = {str(one.arg): ast.literal_eval(one.value) for one in given}
    except (SyntaxError, ValueError):
        pass  # reported below
    if values is None:
        raise UnknownIndexError(
            f"not an index: {text!r} (accepted: such as bloom, or "
            "bloom(error_rate=0.001))"
        )
    return spec_from_json({**values, "kind": name.strip()})


def spec_to_json(spec: IndexSpec | MinMax) -> dict[str, Any]:
    """The spec as the commit log has it: equal for equal specs, and no other's.

    A parameter that is None by default and is None is omitted, so that a new one
    leaves the specs of older tables as they are.  A whole number is an integer, as
    64.0 equals 64.
    """
    defaults = {one.name: one.default for one in fields(cast(Any, spec))}
    parameters = {
        name: int(value) if _is_whole(value) else value
        for name, value in asdict(cast(Any, spec)).items()
        if not (value is None and defaults[name] is None)
    }
    return {"kind": spec.kind, **parameters}


def _is_whole(value: object) -> bool:
    return isinstance(value, float) and value.is_integer()


def spec_from_json(record: Mapping[str, Any]) -> IndexSpec | MinMax:
    """The inverse of ``spec_to_json``.

    Raises:
        UnknownIndexError: no such kind, or not with these parameters.
    """
    parameters = dict(record)
    kind = str(parameters.pop("kind", None))
    try:
        return _spec_class(kind)(**parameters)
    except TypeError as error:
        raise UnknownIndexError(
            f"index kind {kind!r} does not take {parameters!r} ({error})"
        ) from error


def _spec_class(kind: str) -> type[IndexSpec | MinMax]:
    if kind == _MINMAX:
        return MinMax
    return index_type(kind).spec
