"""Mutants of ``storage``."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_DAMAGE: Final = ("tests/traps/test_damage.py", "tests/storage/test_pack.py")

_TAGS: Final = ("tests/storage/test_tags.py",)
_STORES: Final = ("tests/storage/test_object_stores.py",)

STORAGE: Final = (
    Mutant(
        "commit-without-the-lock",
        "storage.file_system.object_store.StoreFiles.write_new",
        "lock.held(f'{self.bucket}/{self._key(path)}')",
        "contextlib.nullcontext()",
        "two writers find a number free, and one commit replaces the other",
        ("tests/storage/test_commit_lock.py",),
    ),
    Mutant(
        "a-number-that-was-deleted",
        "storage.log.commits._counts",
        "max(versions, default=-1) <= version",
        "True",
        "a writer that sleeps commits into the past",
        ("tests/rewrite/test_lost_answers.py",),
    ),
    Mutant(
        "a-lost-answer",
        "storage.log.commits._created",
        "location.write_new(path, data) or _holds(location, path, data)",
        "location.write_new(path, data)",
        "a commit whose answer is lost is made twice",
        ("tests/rewrite/test_lost_answers.py",),
    ),
    Mutant(
        "a-hidden-twin-that-stays",
        "rewrite.publish.Publisher._remove_old",
        "twin and self.location.owns(twin)",
        "False",
        "a publisher that wakes up makes a deleted file visible",
        ("tests/rewrite/test_unfinished.py",),
    ),
    Mutant(
        "hidden-names-go-early",
        "rewrite.vacuum._Run.sweep",
        "ended.get(run_of(file.path), file.mtime)",
        "file.mtime",
        "a reader that opened the table before a publication loses its files",
        ("tests/rewrite/test_vacuum.py",),
    ),
    Mutant(
        "part-crc",
        "storage.pack.reader.Blob._fetch",
        "crc32c(part) != self._crc[i]",
        "len(part) != self.lengths[i]",
        "damaged bytes are read: trap C-52",
        _DAMAGE,
    ),
    Mutant(
        "cached-neighbour",
        "storage.pack.reader.Blob.get",
        "cache.put((self, at), form, payload.n_parts, first, read, n_decoded)",
        "cache.put((self, at), form, payload.n_parts, start, read, n_decoded)",
        "a part is cached as another part",
        ("tests/storage/test_part_cache.py",),
    ),
    Mutant(
        "evicted-in-use",
        "storage.pack.part_cache.PartCache._drop",
        "payload.forms = {}",
        "payload.forms = dict(payload.forms)",
        "an opened index holds parts that are counted as evicted",
        ("tests/storage/test_part_cache.py",),
    ),
    Mutant(
        "cached-from-the-end",
        "storage.pack.reader.BlobParts._one",
        "0 <= i < self.n_parts",
        "i < self.n_parts",
        "a part of a negative number is another part",
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
    Mutant(
        "tag-of-another",
        "storage.file_system.file_info.FileInfo.is_unchanged",
        "same_second and self.tag == other.tag",
        "same_second",
        "an object that was overwritten within a second is the old one",
        _TAGS,
    ),
    Mutant(
        "merge-without-tags",
        "storage.manifest._IDENTITY",
        '["size", "mtime", "tag", "footer_crc"]',
        '["size", "mtime", "footer_crc"]',
        "what was known of an overwritten object is taken to hold of the new one",
        _TAGS,
    ),
    Mutant(
        "same-tick",
        "storage.file_system.file_info.Clock.has_passed",
        "return found.mtime < now",
        "return found.mtime <= now",
        "a file is trusted in the tick in which it was modified: Git's racy entries",
        ("tests/storage/test_clock.py",),
    ),
    Mutant(
        "unconditional-commit",
        "storage.file_system.object_store.StoreFiles._create",
        '"create"',
        '"overwrite"',
        "a commit replaces another one",
        _STORES,
    ),
    Mutant(
        "commit-of-another",
        "storage.file_system.object_store.StoreFiles._create",
        "there.attributes.get(_WRITER) == mine",
        "there.attributes.get(_WRITER) is not None",
        "a commit of another writer is taken for one's own",
        _STORES,
    ),
    Mutant(
        "weak-tag",
        "storage.file_system.object_store.strong_tag",
        'tag.startswith("W/")',
        'tag.startswith("w")',
        "a tag that two contents may have decides",
        _STORES,
    ),
    Mutant(
        "reads-of-two",
        "storage.file_system.store_input.StoreSource._fetch",
        "self._tag is not None",
        "self._tag is None",
        "an index is built of two contents of an object",
        _STORES,
    ),
)
