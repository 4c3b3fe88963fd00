"""Tables of Delta whose logs are written by hand, by the protocol (PROTOCOL.md)."""

from __future__ import annotations

import json
import random
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest import mock
from urllib.parse import quote, unquote
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

import skipindex as sx
from tests.delta.logs import inline_vector, protocol, vector_bytes, z85
from tests.heavy.lives.delta_checkpoints import Checkpoint
from tests.heavy.lives.delta_statistics import (
    Statistics,
    described,
    float_text,
    untrue,
)
from tests.heavy.lives.rows import (
    KINDS,
    Column,
    Stored,
    counted,
    every,
    stored_of,
    write_parquet,
)
from tests.heavy.lives.world import World
from tests.rewrite import arrow_writer

_MAPPING: Final = "delta.columnMapping."
_PARTITIONED: Final = ("string", "string", "integer", "long", "date", "boolean")
_SELDOM: Final = ("timestamp", "timestamp_ntz", "decimal(10,2)", "double")
"""Types of partition columns that skipindex may refuse."""
_FOLDERS: Final = ("", "", "a b/", "p=1/", "ä/", "a%20b/", "x=%2F/", "a+b=c/", "c#d?/")


@dataclass
class File(Stored):
    """A data file of a Delta table, and the action that adds it."""

    uri: str = ""
    add: dict[str, Any] = field(default_factory=dict)
    stats: Statistics | None = None


class DeltaWorld(World):
    """A table of Delta.

    Its versions are counted here, and each act writes a commit.
    """

    def __init__(self, folder: Path, rng: random.Random) -> None:
        super().__init__(folder, rng)
        self.live: dict[str, File] = {}
        self.files = self.live  # type: ignore[assignment]
        self.mode = rng.choice(["none", "none", "name", "id"])
        self.version = -1
        self.checkpoint = -1
        self.derived: tuple[Column, Column] | None = None
        """A partition column, and the dates of which it has the days."""
        self.features = {"deletionVectors", "timestampNtz", "v2Checkpoint"}
        self.features |= {"columnMapping"} if self.mode != "none" else set()
        (folder / "_delta_log").mkdir(parents=True)
        n = rng.randrange(2, 6)
        for _ in range(n):
            self._new_column()
        if rng.random() < 0.4:
            self._new_struct()
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            kinds = _SELDOM if rng.random() < 0.05 else _PARTITIONED
            self._new_column(rng.choice(kinds), is_partition=True)
        if rng.random() < 0.3:
            self._derive_a_column()
        was_folder = rng.random() < 0.15
        self.folders = _FOLDERS[:1] if was_folder else _FOLDERS
        made = [self._new_file() for _ in range(rng.randrange(1, 4))]
        if was_folder:
            self.rewrite_as_folder()
        first = [protocol(*sorted(self.features)), self._meta()]
        self._commit(*first, *(self._add(one) for one in made))

    @property
    def own_acts(self) -> Sequence[Callable[[], None]]:
        return (
            *(self.append, self.delete, self.add_again, self.remove),
            *(self.remove_and_add, self.add_column, self.checkpointed),
            *(self.compacted, self.mapped, self.rename, self.swap),
            *(self.drop_column, self.optimize, self.derive),
        )

    @property
    def weights(self) -> Mapping[str, int]:
        more = {"append": 3, "delete": 3, "checkpointed": 2, "rename": 2, "swap": 3}
        own = {"optimize": 8 * (self.mode == "none"), "derive": 3 * bool(self.derived)}
        if self.derived and self.mode != "none":
            own["swap"] = 6
        return {**super().weights, **more, **own}

    def open(self) -> sx.Table:
        return sx.open_table(str(self.folder))

    def unlike_reader(self) -> str:
        """The rows by deltalake's own engine, where it can read them."""
        table = DeltaTable(str(self.folder))
        try:
            engine = QueryBuilder().register("t", table)
            found = pa.table(engine.execute("SELECT * FROM t").read_all())
        except (DeltaError, OSError, ValueError, NotImplementedError):
            return ""
        for one in self.columns:  # it has "" where the protocol has NULL
            if one.is_partition and one.kind is KINDS["string"]:
                at = found.column_names.index(one.name)
                texts = found[one.name].cast(pa.string())
                nulls = pc.if_else(pc.equal(texts, ""), None, texts)
                found = found.set_column(at, one.name, nulls)
        return self.unlike(found)

    # -- columns -----------------------------------------------------------------------

    def _new_column(self, kind: str = "", *, is_partition: bool = False) -> None:
        name = self.free_name(self.columns)
        of = KINDS[kind or self.rng.choice([*KINDS])]
        number = self.number()
        stored = self._stored_name(name, number, self.columns)
        if is_partition and of.name in _SELDOM:
            self.allowed.append(r"is partitioned by .* whose values are of type")
        new = Column(number, name, stored, of, is_partition=is_partition)
        self.columns.append(new)

    def _derive_a_column(self) -> None:
        """Two columns of dates, and the days of the month of one as partitions."""
        self._new_column("date")  # may be given the name of the other
        self._new_column("date")
        self._new_column("integer", is_partition=True)
        self.derived = (self.columns[-1], self.columns[-2])

    def derive(self) -> None:
        """skipindex is told what the days are of."""
        # A table without files has no partition columns that could be declared.
        if self.derived and self.live and self.derived[1] in self.columns:
            self._indexed()
            days, dates = self.derived
            self.open().declare_derived({days.name: f"day({dates.name})"})

    def _new_struct(self) -> None:
        name, number = self.free_name(self.columns), self.number()
        new = Column(number, name, self._stored_name(name, number, self.columns), None)
        self.columns.append(new)
        for kind in self.rng.sample(["long", "string", "date", "double"], 2):
            self._new_field(new, kind)

    def _new_field(self, of: Column, kind: str) -> None:
        name, number = self.free_name(of.fields), self.number()
        stored = self._stored_name(name, number, of.fields)
        of.fields.append(Column(number, name, stored, KINDS[kind]))

    def _stored_name(self, name: str, number: int, taken: Sequence[Column]) -> str:
        """The physical name, which may be the name of another column."""
        if self.mode == "none":
            return name
        used = {one.stored for one in taken} | self._used_names()
        some = [
            *(one for one in "abcdefghijkl" if one not in used),
            f"col-{number:08x}",
        ]
        return self.rng.choice(some)

    def _used_names(self) -> set[str]:
        """Physical names that were given once, as files may still have them."""
        return {one for file in self.live.values() for one in file.add["names"]}

    def _meta(self) -> dict[str, Any]:
        mapped = {
            f"{_MAPPING}mode": self.mode,
            f"{_MAPPING}maxColumnId": str(self.n_made),
        }
        configuration = mapped if self.mode != "none" else {}
        configuration |= {"delta.enableDeletionVectors": "true"}
        schema = {
            "type": "struct",
            "fields": [self._described(c) for c in self.columns],
        }
        meta = {
            "id": "5f3a1e4e-3f3b-4a55-8a8e-0e6a7b2f7a10",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(schema),
            "partitionColumns": [c.name for c in self.columns if c.is_partition],
            "configuration": configuration,
            "createdTime": 1_700_000_000_000,
        }
        return {"metaData": meta}

    def _described(self, column: Column) -> dict[str, Any]:
        dtype: Any = column.kind and column.kind.name
        if dtype is None:
            fields = [self._described(one) for one in column.fields]
            dtype = {"type": "struct", "fields": fields}
        notes: dict[str, Any] = {}
        if self.mode != "none":
            notes = {
                f"{_MAPPING}id": column.number,
                f"{_MAPPING}physicalName": column.stored,
            }
        return {"name": column.name, "type": dtype, "nullable": True, "metadata": notes}

    # -- files -------------------------------------------------------------------------

    def _new_file(self) -> File:
        """A data file that no action adds yet."""
        rng, n = self.rng, self.rng.choice([1, 3, 8, 20])
        folder, name = rng.choice(self.folders), f"part {self.name()}.parquet"
        rows: dict[int, list[Any]] = {}
        values: dict[int, Any] = {}
        for one in self.columns:
            if one.is_partition:
                assert one.kind is not None
                (values[one.number],) = one.kind.draw(rng, 1)
                if values[one.number] == "":
                    values[one.number] = None  # the protocol takes it for NULL
            elif self.mode == "none" or rng.random() < 0.9:
                rows[one.number] = one.draw(rng, n)
        if self.derived and self.derived[1] in self.columns:
            days, dates = (one.number for one in self.derived)
            one_day = rng.choice([None, *KINDS["date"].pool])
            rows[dates] = [one_day] * n
            values[days] = one_day and one_day.day
        if not rows:
            one = next(c for c in self.columns if not c.is_partition)
            rows[one.number] = one.draw(rng, n)
        if self.mode == "none" and len(self.folders) > 1:
            folder = self._hive_folder(values, random.Random(name)) or folder
        relative = f"{folder}{name}"
        path = self.folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        # Files that are written anew here must be alike.
        alike = self.mode == "none" or len(self.folders) == 1
        with_ids = self.mode == "id" or (self.mode == "name" and rng.random() < 0.7)
        write_parquet(
            rng, path, self.columns, rows, stored_of,
            lambda one: one.number if with_ids else None,
            int96=not alike and rng.random() < 0.2,
        )  # fmt: skip
        uri = {
            "relative": quote(relative, safe="/=" if rng.random() < 0.5 else "/"),
            "absolute": quote(str(path)),
            "file": "file://" + quote(str(path)),
        }[rng.choices(["relative", "absolute", "file"], weights=[150, 1, 1])[0]]
        if uri.startswith(("/", "file:")):
            self.allowed.append("which is no path in its folder")
        file = File(str(path.resolve()), n, rows, values, uri=uri)
        file.add["names"] = [one.stored for one in every(self.columns)]
        return file

    def _hive_folder(self, values: Mapping[int, Any], rng: random.Random) -> str:
        """The folder that Spark writes some files to; empty for the others.

        Only files in such a folder are rewritten where a table has partitions.
        """
        parts = [one for one in self.columns if one.is_partition]
        texts = [hive_text(values[one.number]) for one in parts]
        if rng.random() < 0.3 or any(len(text) > 50 for text in texts):
            return ""
        return "".join(f"{p.name}={t}/" for p, t in zip(parts, texts, strict=True))

    def _add(self, file: File) -> dict[str, Any]:
        """The action that adds a file as it is now, with other statistics."""
        names = file.add["names"]
        file.stats = described(self.rng, self.columns, file)
        vector = file.add.get("deletionVector")
        spell = _spelled_partition
        file.add = {
            "names": names,
            "path": file.uri,
            "partitionValues": {
                one.stored: spell(self.rng, file.values[one.number])
                for one in self.columns
                if one.number in file.values
            },
            "size": Path(file.path).stat().st_size,
            "modificationTime": 1_700_000_000_000,
            "dataChange": self.rng.random() < 0.8,
            **({"stats": file.stats.as_json()} if file.stats else {}),
            **({"deletionVector": vector} if vector else {}),
        }
        self.live[file.path] = file
        return {"add": {k: v for k, v in file.add.items() if k != "names"}}

    def _remove(self, file: File) -> dict[str, Any]:
        kept = ("path", "deletionVector", "partitionValues", "size")
        some = {k: v for k, v in file.add.items() if k in kept}
        fixed = {"dataChange": True, "deletionTimestamp": 1_700_000_000_000}
        return {"remove": {**some, **fixed, "extendedFileMetadata": "size" in some}}

    # -- the log -----------------------------------------------------------------------

    def _log(self, name: str) -> Path:
        return self.folder / "_delta_log" / name

    def _commit(self, *actions: dict[str, Any]) -> None:
        self.version += 1
        lines = list(actions)
        if self.rng.random() < 0.5:
            lines.insert(0, {"commitInfo": {"timestamp": 1, "operation": "WRITE"}})
        text = "".join(json.dumps(one) + "\n" for one in lines)
        self._log(f"{self.version:020}.json").write_text(text)

    def append(self) -> None:
        """Files are added."""
        made = [self._new_file() for _ in range(self.rng.randrange(1, 4))]
        self._commit(*map(self._add, made))

    def remove(self) -> None:
        """A file is removed."""
        for file in self.some([1]):
            self._commit(self._remove(file))
            del self.live[file.path]

    def add_again(self) -> None:
        """Files are added once more, with other statistics."""
        if files := self.some([1, 1, 2]):
            self._commit(*map(self._add, files))

    def remove_and_add(self) -> None:
        """A file is removed, and added by a later commit."""
        for file in self.some([1]):
            self._commit(self._remove(file))
            self._commit(self._add(file))

    def delete(self) -> None:
        """Rows of files go by vectors, of which one file may have several."""
        files = [one for one in self.some([1, 1, 2]) if one.valid]
        removes = [self._remove(one) for one in files]
        for one in files:
            self.gone_from(one)
        for one, vector in zip(files, self._vectors(files), strict=True):
            one.add["deletionVector"] = vector
        if files:
            self._commit(*removes, *map(self._add, files))

    def _vectors(self, files: Sequence[File]) -> list[dict[str, Any]]:
        kind = self.rng.choice("iup")
        if kind == "i":
            return [inline_vector(sorted(one.gone)) for one in files]
        name = self.name()
        prefix = self.rng.choice(["", "ab"])
        path = self.folder / prefix / f"deletion_vector_{name}.bin"
        path.parent.mkdir(exist_ok=True)
        data, result = b"\1", []
        where = prefix + z85(name.bytes) if kind == "u" else path.resolve().as_uri()
        for one in files:
            vector = vector_bytes(sorted(one.gone))
            result.append(
                {
                    "storageType": kind,
                    "pathOrInlineDv": where,
                    "offset": len(data),
                    "sizeInBytes": len(vector),
                    "cardinality": len(one.gone),
                }
            )
            data += struct.pack(">I", len(vector)) + vector
            data += struct.pack(">I", crc32(vector))
        path.write_bytes(data)
        return result

    # -- columns that change -----------------------------------------------------------

    def mapped(self) -> None:
        """A table without a mapping gets one: its files keep their names."""
        if self.mode == "none":
            self.mode = "name"
            self.features |= {"columnMapping"}
            self._commit(protocol(*sorted(self.features)), self._meta())

    def add_column(self) -> None:
        """A column more, or a field; it may have the name of one that has gone."""
        structs = [one for one in self.columns if one.kind is None]
        if structs and self.rng.random() < 0.3:
            self._new_field(
                self.rng.choice(structs), self.rng.choice(["long", "string"])
            )
            self.allowed.append("cannot rewrite .* differ from those of")
        elif len(self.columns) < 8:
            self._new_column()
        self._commit(self._meta())

    def rename(self) -> None:
        """A column, a partition column or a field gets a name that is free."""
        column = self.pick()
        if self.mode != "none" and column is not None:
            column.name = self.free_name(self.siblings(column))
            self._commit(self._meta())

    def swap(self) -> None:
        """Two columns get each other's names."""
        of_days = self.derived and self.derived[1]
        is_first = of_days in self.columns and self.rng.random() < 0.5
        column = of_days if is_first else self.pick()
        if self.mode == "none" or column is None:
            return
        others = [one for one in self.siblings(column) if one is not column]
        alike = [one for one in others if one.kind is column.kind]
        if others:
            alike = alike or others
            among = [alike, alike if is_first else others]
            other = self.rng.choice(self.rng.choice(among))
            column.name, other.name = other.name, column.name
            self._commit(self._meta())

    def drop_column(self) -> None:
        """A column goes."""
        column = self.pick(is_partition=False)
        if self.mode == "none" or column is None:
            return
        siblings = self.siblings(column)
        if sum(not one.is_partition for one in siblings) > 1:
            siblings.remove(column)
            self._commit(self._meta())

    # -- checkpoints -------------------------------------------------------------------

    def checkpointed(self) -> None:
        """A checkpoint of some kind; older commits may go."""
        if self.checkpoint == self.version:
            return
        rng, self.checkpoint = self.rng, self.version
        stats = rng.choice([["stats"], ["stats_parsed"], ["stats", "stats_parsed"], []])
        if any(one.gone for one in self.live.values()):
            stats = stats or ["stats"]  # a vector needs the number of records
            if "stats" not in stats:  # which deltalake does not always find as a value
                self.allowed.append("Missing numRecords for file with deletion vector")
        adds = [{"add": self._in_checkpoint(one, stats)} for one in self.live.values()]
        rest = [protocol(*sorted(self.features)), self._meta()]
        log = self._log("")
        last = Checkpoint(log, self.version, self.columns, adds, rest).write(rng)
        if rng.random() < 0.7:
            self._log("_last_checkpoint").write_text(json.dumps(last))
        else:
            self._log("_last_checkpoint").unlink(missing_ok=True)
        if rng.random() < 0.5:
            for one in log.glob("*.json"):
                is_commit = re.fullmatch(r"[\d.]+(compacted\.)?json", one.name)
                if is_commit and int(one.name[:20]) < self.version:
                    one.unlink()

    @staticmethod
    def _in_checkpoint(file: File, stats: Sequence[str]) -> dict[str, Any]:
        """The action of a live file, with statistics as text, as values, both, none."""
        add = {k: v for k, v in file.add.items() if k not in {"names", "stats"}}
        if "stats" in stats and file.stats is not None:
            add["stats"] = file.stats.as_json()
        if "stats_parsed" in stats and file.stats is not None:
            add["stats_parsed"] = file.stats.as_struct()
        return add

    def compacted(self) -> None:
        """The actions of some commits in one file beside them."""
        low = self.rng.randrange(self.version + 1)
        high = self.rng.randrange(low, self.version + 1)
        paths = [self._log(f"{i:020}.json") for i in range(low, high + 1)]
        if low == high or not all(one.exists() for one in paths):
            return
        last: dict[Any, dict[str, Any]] = {}
        for path in paths:
            for action in map(json.loads, path.read_text().splitlines()):
                ((kind, of),) = action.items()
                if kind in {"add", "remove"}:
                    vector = json.dumps(of.get("deletionVector"))
                    last[of["path"], vector] = action
                elif kind != "commitInfo":
                    last[kind] = action
        text = "".join(json.dumps(one) + "\n" for one in last.values())
        self._log(f"{low:020}.{high:020}.compacted.json").write_text(text)

    # -- files of skipindex ------------------------------------------------------------

    def _indexed(self) -> None:
        """skipindex keeps what it is told beside its indexes, so there must be some."""
        if not self.is_indexed:
            self.open().build_indexes({"*": "exact"}, workers=1)
            self.is_indexed = True

    def optimize(self) -> None:
        """Files are written anew, in a commit of skipindex with true statistics."""
        own = [one for one in self.columns if not one.is_partition]
        by = [one.name for one in own if one.kind is not None]
        if not by or self.mode != "none":
            return
        self._indexed()
        self.rng.shuffle(by)
        self.allowed.append("the new files would have no statistics of it")
        names = [one.name for one in self.columns]
        before = counted(self.rows, names)
        n_rows = self.rng.choice([2, 1000])
        if random.Random(f"{self.version} {by}").random() < 0.5:
            n_rows = 1  # a row group with a long text or NaN alone has no bounds
        write = partial(pq.write_table, row_group_size=n_rows)
        with mock.patch.object(pq, "write_table", write):
            arrow_writer.optimized(
                self.open(), cluster_by=by[:1], in_place=False,
                rows_per_file=self.rng.choice([4, 30]),
                mode=self.rng.choice(["full", "full", "incremental"]),
            )  # fmt: skip
        newest = self._log(f"{self.version + 1:020}.json")
        if newest.exists():
            self.version += 1
            for action in map(json.loads, newest.read_text().splitlines()):
                self._absorb(action)
        assert counted(self.rows, names) == before, "other rows"

    def _absorb(self, action: Mapping[str, Any]) -> None:
        """Take over what skipindex commits."""
        if "remove" in action:
            path = str((self.folder / unquote(action["remove"]["path"])).resolve())
            del self.live[path]
        if add := action.get("add"):
            path = str((self.folder / unquote(add["path"])).resolve())
            found = pq.ParquetFile(path).read()
            rows = {
                one.number: [one.numbered(v) for v in found[one.stored].to_pylist()]
                for one in self.columns
                if one.stored in found.column_names
            }
            values = {
                one.number: read_partition(one, add["partitionValues"][one.stored])
                for one in self.columns
                if one.is_partition
            }
            file = File(path, len(found), rows, values, uri=add["path"])
            file.add = {**add, "names": [one.stored for one in every(self.columns)]}
            self.live[path] = file
            wrong = untrue(add["stats"], self.columns, file)
            assert not wrong, f"the log says of {path}: {wrong}"


def hive_text(value: Any) -> str:
    """A partition value as folders have it."""
    if value is None:
        return "__HIVE_DEFAULT_PARTITION__"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return re.sub(r"[\"#%'*/:=?\\{}\[\]^]", lambda c: f"%{ord(c[0]):02X}", text)


def read_partition(column: Column, text: str | None) -> Any:
    """The value of a partition that a text stands for."""
    assert column.kind is not None
    if text is None or not text:
        return None
    match column.kind.name:
        case "string":
            return text
        case "date":
            return date.fromisoformat(text)
        case "boolean":
            return text == "true"
    return int(text)


def _spelled_partition(rng: random.Random, value: Any) -> str | None:
    """A partition value as the log has it, in one of its spellings."""
    match value:
        case None:
            return rng.choice([None, ""])
        case bool():
            return str(value).lower()
        case datetime(tzinfo=None):
            return f"{value:%Y-%m-%d %H:%M:%S.%f}"
        case datetime():
            plain = f"{value:%Y-%m-%d %H:%M:%S.%f}"
            return rng.choice([plain, f"{value:%Y-%m-%dT%H:%M:%S.%f}Z"])
        case float():
            return float_text(value)
        case date():
            return value.isoformat()
    return str(value)
