"""Mutants of ``storage``."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_DAMAGE: Final = ("tests/traps/test_damage.py", "tests/storage/test_pack.py")

STORAGE: Final = (
    Mutant(
        "part-crc",
        "storage.pack.reader.Blob._fetch",
        "crc32c(part) != self._crc[i]",
        "len(part) != self._length[i]",
        "damaged bytes are read: trap C-52",
        _DAMAGE,
    ),
    Mutant(
        "cached-neighbour",
        "storage.pack.reader.Blob.get",
        "cache.put(key, payload.n_parts, first, read, n_decoded)",
        "cache.put(key, payload.n_parts, start, read, n_decoded)",
        "a part is cached as another part",
        ("tests/storage/test_part_cache.py",),
    ),
    Mutant(
        "blob-identity",
        "storage.pack.reader.Blob.check_identity",
        "self.identity[slot] != footer_crc or not same_rows",
        "not same_rows",
        "the index of another file of as many rows is read: trap C-42",
        _DAMAGE,
    ),
    Mutant(
        "unknown-after-merge",
        "storage.manifest._merged_stats",
        "nothing = pa.nulls(len(left), new.values.type)",
        "nothing = new.values.take(pa.array([0] * len(left), pa.int64()))",
        "what is known of new files is taken to hold of old ones: trap C-48",
        ("tests/traps/test_upgrades.py",),
    ),
    Mutant(
        "hidden-files",
        "storage.file_system.names.is_shown",
        'first == "."',
        'first == "\\0"',
        "files that Spark does not read are files of the table: trap C-37",
        ("tests/table/test_table.py",),
    ),
)
