"""Mutants of ``build``."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_ASSOCIATED: Final = ("tests/build/test_associated.py",)
_MEMORY: Final = ("tests/build/test_memory.py",)
_PLANS: Final = ("tests/planner/test_associated.py",)

BUILD: Final = (
    Mutant(
        "failed-column-served",
        "build.missing.missing_of",
        "per_file[i] = list(requests)",
        "per_file.setdefault(i, list(requests))",
        "what could not be read is not built anew, and its empty payload is there",
        ("tests/indexes/test_bad_input.py",),
    ),
    Mutant(
        "null-key-matches",
        "build.associated.dimension._spread",
        "pa.array(places, mask=~column.validity)",
        "pa.array(np.maximum(places, 0))",
        "a row without a key has the attribute of the row before it",
        _PLANS,
    ),
    Mutant(
        "missing-key-matches",
        "build.associated.dimension.Dimension.column",
        "self.codes.take(result)",
        "self.codes.take(result.fill_null(0))",
        "a row whose key is not in the dimension has the attribute of another",
        _PLANS,
    ),
    Mutant(
        "null-of-dimension-matches",
        "build.associated.dimension.Dimension.read",
        "attributes.append(attribute.filter(valid))",
        "attributes.append(attribute)",
        "attributes stand beside the keys of other rows",
        _PLANS,
    ),
    Mutant(
        "respelled-key",
        "build.associated.dimension.read",
        "column.name != stored_name((name,))",
        "False",
        "keys are looked up that Spark reads as NULL where capitals count",
        _PLANS,
    ),
    Mutant(
        "key-beyond-its-type",
        "build.associated.dimension.read",
        "beyond(column)",
        "''",
        "keys are looked up whose bits Spark cuts",
        _PLANS,
    ),
    Mutant(
        "key-twice",
        "build.associated.dimension._check_distinct",
        "pc.count_distinct(keys).as_py() == len(keys)",
        "True",
        "of two rows with one key, one alone has its attribute indexed",
        _ASSOCIATED,
    ),
    Mutant(
        "dimension-changed-meanwhile",
        "build.associated.dimension._unchanged",
        "fingerprint_of(files) != source.association.fingerprint",
        "False",
        "rows of two states of a dimension are looked up for one",
        _ASSOCIATED,
    ),
    Mutant(
        "spilled-twice",
        "build.task._read_and_index",
        "indexed.spilled and rest",
        "False",
        "the last columns of a file that was spilled have no index",
        _MEMORY,
    ),
)
