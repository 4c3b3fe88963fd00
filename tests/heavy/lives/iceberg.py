"""Tables of Iceberg whose metadata are written by hand, by the specification."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestListWriterV2,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import NestedField, StructType

import skipindex as sx
from tests.heavy.lives.iceberg_manifests import (
    FLOATS,
    PATH,
    TYPES,
    Entry,
    Manifest,
    ManifestWriter,
    described,
    internal,
    metrics,
    upgraded,
)
from tests.heavy.lives.rows import (
    KINDS,
    Column,
    Stored,
    every,
    name_of,
    stored_of,
    write_parquet,
)
from tests.heavy.lives.world import World
from tests.iceberg.deletes import POSITIONS, puffin_file

_NAMES: Final = "abcdefghijkl"
_DEFAULTS: Final = ("long", "string", "integer")
"""Types of columns that may have a default."""
_WIDER: Final = {"integer": "long", "float": "double"}
_MAPPING: Final = "schema.name-mapping.default"


Place = tuple[int, str]
"""The field id of a struct, or 0, and a name in it."""


@dataclass
class File(Stored):
    """A data file of an Iceberg table.

    Args:
        by_name: whether its columns are known by their names; ``rows`` has names then.
        mapped: the field ids of names, which the table changes.
        spec: the number of its partition spec.
        record: its partition, as manifests have it.
    """

    by_name: bool = False
    mapped: dict[Place, int] = field(default_factory=dict)
    spec: int = 0
    record: Record = field(default_factory=Record)

    def column(self, column: Column) -> list[Any]:
        """See ``Stored``."""
        values = self.numbered().get(column.number)
        if values is None:
            constant = self.values.get(column.number)
            values = [column.default if constant is None else constant] * self.n
        return [column.shown(one, name_of) for one in values]

    def numbered(self) -> dict[int, list[Any]]:
        """The values by the field ids that the file has, or that the table gives."""
        if not self.by_name:
            return self.rows

        def inner(value: Any, of: int) -> Any:
            if not isinstance(value, dict):
                return value
            known = {self.mapped.get((of, name)): one for name, one in value.items()}
            return {i: inner(one, i) for i, one in known.items() if i is not None}

        known = {
            self.mapped.get((0, str(name))): one for name, one in self.rows.items()
        }
        return {
            i: [inner(one, i) for one in values]
            for i, values in known.items()
            if i is not None
        }

    def is_clear(self) -> bool:
        """Whether it has no two names of one column."""
        if not self.by_name:
            return True
        dicts: list[tuple[int, Any]] = [(0, self.rows)]
        for name, values in self.rows.items():
            of = self.mapped.get((0, str(name)), -1)
            dicts += [(of, one) for one in values if isinstance(one, dict)]
        ids = [[self.mapped.get((of, name), name) for name in one] for of, one in dicts]
        return all(len({*one}) == len(one) for one in ids)


class IcebergWorld(World):
    """A table of Iceberg; each act writes another file of metadata."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        super().__init__(folder, rng)
        self.folder = folder = folder.resolve()
        self.io = PyArrowFileIO()
        self.uuid = self.name()
        self.format = rng.choice([2, 2, 3])
        self.by_names = rng.random() < 0.5
        self.mapped: dict[Place, int] = {}
        self.kinds_by_name: dict[Place, str] = {}
        """What a name in a file without field ids was."""
        self.some_kinds = rng.sample([*KINDS], 2 if self.by_names else 6)
        self.specs: list[list[Column]] = [[]]
        self.spec = 0
        self.manifests: list[Manifest] = []
        self.snapshots: list[dict[str, Any]] = []
        self.n_metadata = self.sequence = self.n_snapshots = 0
        for name in ("data", "metadata"):
            (folder / name).mkdir(parents=True)
        for _ in range(rng.randrange(2, 6)):
            self._new_column(self.columns)
        if rng.random() < 0.4:
            self._new_struct()
        if self.by_names:
            self._map_names(self.columns)
            # pyiceberg reads no file that has a column without an id.
            self.allowed += [
                "missing from NameMapping",
                "Could not find field with name",
            ]
        if rng.random() < 0.3:
            self.partition()
        was_folder = rng.random() < 0.15
        self.data = folder if was_folder else folder / "data"
        files = [self._new_file() for _ in range(rng.randrange(1, 4))]
        if was_folder:
            self.rewrite_as_folder()
        self._append(files)

    @property
    def own_acts(self) -> Sequence[Callable[[], None]]:
        return (
            *(self.append, self.delete, self.list_twice, self.remove),
            *(self.rewrite_manifests, self.rename, self.swap, self.widen),
            *(self.add_column, self.drop_column, self.map_by_hand),
            *(self.partition, self.make_again, self.upgrade),
            self.delete_of_all,
        )

    @property
    def weights(self) -> Mapping[str, int]:
        more = {"append": 4, "delete": 4, "rename": 3, "swap": 2, "add_column": 2}
        more |= {"map_by_hand": 4, "delete_of_all": 4}
        return {
            **super().weights,
            **dict.fromkeys([*self.acts], 2),
            **more,
            "list_twice": 1,
        }

    def open(self) -> sx.Table:
        return sx.open_table(StaticTable.from_metadata(self._metadata_path()))

    def unlike_reader(self) -> str:
        """The rows by pyiceberg, where it can read them."""
        try:
            found = StaticTable.from_metadata(self._metadata_path()).scan().to_arrow()
        except Exception:  # noqa: BLE001 (whatever it cannot do)
            return ""
        return self.unlike(found)

    # -- columns -----------------------------------------------------------------------

    def _free(self, siblings: Sequence[Column], kind: str, of: int = 0) -> str:
        """A name for a column of a kind; empty if none can have it."""
        used, known = {one.name for one in siblings}, self.kinds_by_name
        some = [one for one in _NAMES if known.get((of, one), kind) == kind]
        some = [one for one in some if one not in used]
        return self.rng.choice(some) if some else ""

    def _new_column(self, to: list[Column], of: int = 0) -> Column | None:
        kind = self.rng.choice(self.some_kinds)
        name = self._free(to, kind, of)
        if not name:
            return None
        number = self.number()
        to.append(Column(number, name, f"f{number}", KINDS[kind]))
        return to[-1]

    def _new_struct(self) -> None:
        if name := self._free(self.columns, "struct"):
            number = self.number()
            self.columns.append(Column(number, name, f"f{number}", None))
            for _ in range(2):
                self._new_column(self.columns[-1].fields, number)

    def _places(self, columns: Sequence[Column], of: int = 0) -> dict[int, Place]:
        """The places of all columns and fields, by their numbers."""
        result = {}
        for one in columns:
            result[one.number] = (of, one.name)
            result |= self._places(one.fields, one.number)
        return result

    def _map_names(self, columns: Sequence[Column]) -> None:
        """Names are of the columns that have them now, if they fit to files."""
        before, places = dict(self.mapped), self._places(self.columns)
        for one in every(columns):
            place = places[one.number]
            if self.kinds_by_name.setdefault(place, kind_of(one)) == kind_of(one):
                self.mapped[place] = one.number
        files: list[Any] = [*self.files.values()]
        if not all(one.is_clear() for one in files):
            self.mapped.clear()
            self.mapped.update(before)

    def _is_mapped(self) -> bool:
        """Whether each column can be found by its name."""
        places = self._places(self.columns)
        return all(self.mapped.get(place) == number for number, place in places.items())

    def _schema(self) -> Schema:
        def of(one: Column) -> NestedField:
            kind = None if one.kind is None else TYPES[one.kind.name]
            default = one.default
            return NestedField(
                one.number,
                one.name,
                kind or StructType(*map(of, one.fields)),
                required=False,
                **({} if default is None else {"initial_default": default}),
            )

        return Schema(*map(of, self.columns))

    def _specs(self) -> list[PartitionSpec]:
        return [
            PartitionSpec(
                *(
                    PartitionField(
                        one.number,
                        1000 + one.number,
                        IdentityTransform(),
                        f"by_{one.number}",
                    )
                    for one in columns
                ),
                spec_id=i,
            )
            for i, columns in enumerate(self.specs)
        ]

    # -- files -------------------------------------------------------------------------

    def _new_file(self) -> File:
        rng, n = self.rng, self.rng.choice([1, 3, 8, 20])
        path = self.data / f"{self.name()}.parquet"
        by = self.specs[self.spec]
        values: dict[int, Any] = {}
        rows: dict[int, list[Any]] = {}
        for one in self.columns:
            rows[one.number] = one.draw(rng, n)
            if one in by:
                (values[one.number],) = one.draw(rng, 1)
                rows[one.number] = [values[one.number]] * n
        for one in self.columns:
            is_null = all(v is None for v in rows[one.number])
            may_lack = one in by or (is_null and one.default is None)
            if may_lack and len(rows) > 1 and rng.random() < 0.5:
                del rows[one.number]
        file = File(str(path), n, rows, values, mapped=self.mapped, spec=self.spec)
        file.record = Record(*(internal(values[one.number]) for one in by))
        by_name = self._is_mapped() and rng.random() < 0.7
        self._write(path, rows, by_name=by_name)
        if by_name:
            file.by_name = True
            file.rows = {
                one.name: [one.shown(value, name_of) for value in rows[one.number]]
                for one in self.columns
                if one.number in rows
            }
        return file

    def _write(
        self, path: Path, rows: Mapping[int, list[Any]], *, by_name: bool
    ) -> None:
        """A file with field ids, or with none, or on some of its columns."""
        rng = self.rng
        every_id = {
            one.number for c in self.columns if c.number in rows for one in every([c])
        }
        with_ids = set(every_id)
        if by_name:
            share = rng.choice([0.0, 0.0, 0.5])
            without = rng.choice(sorted(every_id))
            with_ids = {i for i in every_id if rng.random() < share} - {without}
        spelled = name_of if by_name or rng.random() < 0.7 else stored_of
        write_parquet(
            rng, path, self.columns, rows, spelled,
            lambda one: one.number if one.number in with_ids else None,
        )  # fmt: skip

    def _data_file(self, file: File) -> DataFile:
        told = metrics(self.rng, self.columns, file.n, file.numbered())
        return described(self.format, Path(file.path), file.n, file.record, **told)

    # -- snapshots ---------------------------------------------------------------------

    def _metadata_path(self) -> str:
        return str(self.folder / "metadata" / f"{self.n_metadata:05}.metadata.json")

    def _manifest(
        self,
        content: ManifestContent,
        spec: int,
        entries: list[Entry],
        gone: Sequence[Entry] = (),
    ) -> Manifest:
        """Write a manifest; entries that are not new exist, and some are deleted."""
        name = self.name()
        output = self.io.new_output(f"file://{self.folder}/metadata/{name}-m0.avro")
        spec_of, schema = self._specs()[spec], self._schema()
        writer = ManifestWriter(spec_of, schema, output, self._snapshot, "deflate")
        writer.kind, writer.number = content, self.format
        return Manifest(content, spec, entries, writer.write(entries, gone))

    def _commit(self, new: Sequence[Manifest] = ()) -> None:
        """A snapshot with these manifests, and those that stay."""
        self.manifests = [*self.manifests, *new]
        self.sequence += 1
        name = f"snap-{self._snapshot}.avro"
        output = self.io.new_output(f"file://{self.folder}/metadata/{name}")
        parent = self.snapshots[-1]["snapshot-id"] if self.snapshots else None
        writer = ManifestListWriterV2(
            output, self._snapshot, parent, self.sequence, "deflate"
        )
        with writer:
            writer.add_manifests([one.file for one in self.manifests])
        for manifest in self.manifests:
            manifest.commit(self.sequence)
        snapshot = {
            "snapshot-id": self._snapshot,
            "sequence-number": self.sequence,
            "timestamp-ms": 1_700_000_000_000 + self.sequence,
            "manifest-list": f"file://{self.folder}/metadata/{name}",
            "summary": {"operation": "overwrite"},
            "schema-id": 0,
        }
        if parent is not None:
            snapshot["parent-snapshot-id"] = parent
        self.snapshots.append(snapshot)
        self.n_snapshots += 1
        self._save()

    @property
    def _snapshot(self) -> int:
        """The number of the next snapshot."""
        return 7_000 + self.n_snapshots

    def _save(self) -> None:
        """Write the metadata."""
        self.n_metadata += 1
        schema = json.loads(self._schema().model_dump_json())
        properties = {}
        if self.mapped:
            properties[_MAPPING] = json.dumps(self._name_mapping())
        specs = [json.loads(one.model_dump_json()) for one in self._specs()]
        last = max([999, *(f["field-id"] for one in specs for f in one["fields"])])
        metadata: dict[str, Any] = {
            "format-version": self.format,
            "table-uuid": str(self.uuid),
            "location": f"file://{self.folder}",
            "last-sequence-number": self.sequence,
            "last-updated-ms": 1_700_000_000_000 + self.n_metadata,
            "last-column-id": self.n_made,
            "schemas": [{**schema, "schema-id": 0}],
            "current-schema-id": 0,
            "partition-specs": specs,
            "default-spec-id": self.spec,
            "last-partition-id": last,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "properties": properties,
            "snapshots": self.snapshots,
            "snapshot-log": [],
            "metadata-log": [],
        }
        if self.format > 2:
            metadata["next-row-id"] = 0
        if self.snapshots:
            now = self.snapshots[-1]["snapshot-id"]
            metadata["current-snapshot-id"] = now
            metadata["refs"] = {"main": {"snapshot-id": now, "type": "branch"}}
        Path(self._metadata_path()).write_text(json.dumps(metadata))

    def _name_mapping(self, of: int = 0) -> list[dict[str, Any]]:
        """The mapping as a property of the table."""
        names: dict[int, list[str]] = {}
        for (struct, name), number in self.mapped.items():
            if struct == of:
                names.setdefault(number, []).append(name)
        return [
            {"field-id": number, "names": some, "fields": self._name_mapping(number)}
            for number, some in names.items()
        ]

    # -- files that come and go --------------------------------------------------------

    def append(self) -> None:
        """Files are added, by one manifest or several."""
        self._append([self._new_file() for _ in range(self.rng.randrange(1, 4))])

    def _append(self, files: Sequence[File]) -> None:
        entries = []
        for one in files:
            self.files[one.path] = one
            entries.append(Entry(self._data_file(one), (one.path,), self._snapshot))
            if self.sequence and self.rng.random() < 0.2:
                entries[-1].sequence = self.rng.randrange(1, self.sequence + 1)
        parts = [entries] if self.rng.random() < 0.6 else [[one] for one in entries]
        self._commit(
            [self._manifest(ManifestContent.DATA, self.spec, one) for one in parts]
        )

    def remove(self) -> None:
        """A file goes, and the deletes that are of its rows alone."""
        for file in self.some([1]):
            path = file.path
            self.files = {k: one for k, one in self.files.items() if one.path != path}
            self._rewrite({path})
            self._commit()

    def _rewrite(self, paths: set[str], *, deletes_only: bool = False) -> None:
        """Write manifests anew without what is of these data files alone."""
        for manifest in [*self.manifests]:
            if deletes_only and manifest.content is ManifestContent.DATA:
                continue
            gone = [one for one in manifest.entries if {*one.of} <= paths]
            if not gone:
                continue
            self.manifests.remove(manifest)
            kept = [one for one in manifest.entries if one not in gone]
            shown = gone if self.rng.random() < 0.5 else []
            if kept or shown:
                new = self._manifest(manifest.content, manifest.spec, kept, shown)
                self.manifests.append(new)

    def rewrite_manifests(self) -> None:
        """The entries of all manifests of a kind are written into one."""
        by: dict[tuple[ManifestContent, int], list[Entry]] = {}
        for one in self.manifests:
            by.setdefault((one.content, one.spec), []).extend(one.entries)
        self.manifests = []
        new = [self._manifest(*key, entries) for key, entries in by.items() if entries]
        self._commit(new)

    def list_twice(self) -> None:
        """A file is named once more, in the same manifest as another or in its own."""
        for file in self.some([1]):
            entry = Entry(self._data_file(file), (file.path,), self._snapshot)
            self.files[f"{file.path} {self.sequence}"] = file
            self.allowed.append(r"names .* \d times")
            self._commit([self._manifest(ManifestContent.DATA, file.spec, [entry])])

    def delete(self) -> None:
        """Rows go, by files of positions or by vectors in one Puffin file."""
        self._delete(self.some([1, 2, 3]))

    def delete_of_all(self) -> None:
        """Rows of all files go by vectors, one Puffin file for each partition."""
        self.upgrade()
        self._delete(self.some([len(self.files)]))

    def _delete(self, files: Sequence[File]) -> None:
        groups: dict[Any, list[File]] = {}
        for one in files:
            if one.valid:
                groups.setdefault((one.spec, one.record), []).append(one)
        for (spec, record), of in groups.items():
            gone = {one.path: self.gone_from(one) for one in of}
            if self.format == 2:
                entries = [self._positions(record, gone)]
            else:
                self._rewrite({*gone}, deletes_only=True)
                entries = self._vectors(record, of)
            self._commit([self._manifest(ManifestContent.DELETES, spec, entries)])

    def _positions(self, record: Record, gone: Mapping[str, list[int]]) -> Entry:
        """A file of positions of one data file or several, which may name one twice."""
        rng = self.rng
        pairs = [(f"file://{path}", i) for path, rows in gone.items() for i in rows]
        if rng.random() < 0.3:
            pairs += rng.choices(pairs, k=2)
        pairs.sort()
        path = self.data / f"deletes-{self.name()}.parquet"
        columns = [[one for one, _ in pairs], [i for _, i in pairs]]
        pq.write_table(pa.table(columns, schema=POSITIONS), path)
        what: dict[str, Any] = {"content": DataFileContent.POSITION_DELETES}
        if rng.random() < 0.6:
            low, high = pairs[0][0].encode(), pairs[-1][0].encode()
            what |= {"lower_bounds": {PATH: low}, "upper_bounds": {PATH: high}}
        file = described(self.format, path, len(pairs), record, **what)
        return Entry(file, tuple(gone), self._snapshot)

    def _vectors(self, record: Record, files: Sequence[File]) -> list[Entry]:
        """Vectors of data files in one Puffin file."""
        path = self.data / f"{self.name()}.puffin"
        gone = {f"file://{one.path}": sorted(one.gone) for one in files}
        data, places = puffin_file(gone)
        path.write_bytes(data)
        result = []
        for file, (uri, rows), (at, size) in zip(
            files, gone.items(), places, strict=True
        ):
            told = described(
                self.format, path, len(rows), record,
                content=DataFileContent.POSITION_DELETES, file_format=FileFormat.PUFFIN,
                referenced_data_file=uri, content_offset=at, content_size_in_bytes=size,
            )  # fmt: skip
            result.append(Entry(told, (file.path,), self._snapshot))
        return result

    # -- columns that change -----------------------------------------------------------

    def rename(self) -> None:
        """A column or a field gets another name, and so does the mapping, if at all."""
        column = self.pick()
        assert column is not None
        of, _ = self._places(self.columns)[column.number]
        if name := self._free(self.siblings(column), kind_of(column), of):
            column.name = name
            self._follow([column])
            self._save()

    def swap(self) -> None:
        """Two columns of a kind get each other's names."""
        column = self.pick()
        assert column is not None
        other = self.rng.choice(self.siblings(column))
        if column.kind is other.kind and column.kind is not None:
            column.name, other.name = other.name, column.name
            if not any(self.specs):  # a file has the values of its partition
                self._follow([column, other])
            self._save()

    def _follow(self, columns: Sequence[Column]) -> None:
        """The mapping learns new names, which it takes from other columns.

        Not every writer does so; then the names of files are what they were.
        """
        if self.by_names and self.rng.random() < 0.75:
            self._map_names(columns)

    def add_column(self) -> None:
        """A column more, or a field; in the third format it may have a default."""
        structs = [one for one in self.columns if one.kind is None]
        if structs and self.rng.random() < 0.3:
            of = self.rng.choice(structs)
            new = self._new_column(of.fields, of.number)
        else:
            new = self._new_column(self.columns) if len(self.columns) < 8 else None
        if new is None or new.kind is None:
            return
        may_have = self.format > 2 and kind_of(new) in _DEFAULTS
        if may_have and self.rng.random() < 0.6:
            new.default = self.rng.choice(new.kind.pool)
        self._follow([new])
        self._save()

    def drop_column(self) -> None:
        """A column goes that no partition is by."""
        used = {one.number for spec in self.specs for one in spec}
        free = [one for one in self.columns if one.number not in used]
        if len(free) > 1:
            self.columns.remove(self.rng.choice(free))
            self._save()

    def widen(self) -> None:
        """A column gets a wider type."""
        known = [c for c in every(self.columns) if c.kind and c.kind.name in _WIDER]
        if known and not self.by_names:
            one = self.rng.choice(known)
            assert one.kind is not None
            one.kind = KINDS[_WIDER[one.kind.name]]
            self._save()

    def map_by_hand(self) -> None:
        """Names of files are given to other columns of their kinds."""
        if not self.by_names or any(self.specs):
            return
        swap = self.rng.sample(self.columns, 2) if len(self.columns) > 1 else []
        if swap and swap[0].kind is swap[1].kind and swap[0].kind is not None:
            one, other = (column.number for column in swap)
            ids = {one: other, other: one}
            for place, number in self.mapped.items():
                self.mapped[place] = ids.get(number, number)
            self._save()

    def partition(self) -> None:
        """Files that follow are partitioned by other columns, or by none."""
        # pyiceberg does not find the deletes in a partition of NaN.
        known = [c for c in self.columns if c.kind and c.kind.name not in FLOATS]
        self.specs.append(
            self.rng.sample(known, min(len(known), self.rng.choice([0, 1, 1, 2])))
        )
        self.spec = len(self.specs) - 1
        if self.snapshots:
            self._save()

    def upgrade(self) -> None:
        """A table of the second format becomes one of the third."""
        if self.format == 2:
            self.format = 3
            for one in (one for manifest in self.manifests for one in manifest.entries):
                one.file = upgraded(one.file)
            self._save()

    def make_again(self) -> None:
        """The table is dropped, and made anew of its files, which have no field ids."""
        named = [one for one in self.some([len(self.files)]) if one.by_name]
        if not named or any(self.specs):
            return
        self.uuid, self.n_made = self.name(), 0
        self.rng.shuffle(self.columns)
        ids = {0: 0}
        for one in every(self.columns):
            old, one.number, one.default = one.number, self.number(), None
            ids[old] = one.number
        kinds = self.kinds_by_name.items()
        self.kinds_by_name = {(ids[i], n): k for (i, n), k in kinds if i in ids}
        self.mapped.clear()
        self.files = {one.path: one for one in named}
        self._map_names(self.columns)
        self.manifests, self.snapshots, self.sequence = [], [], 0
        for one in named:
            one.gone = frozenset()
        entries = [Entry(self._data_file(f), (f.path,), self._snapshot) for f in named]
        self._commit([self._manifest(ManifestContent.DATA, self.spec, entries)])


def kind_of(column: Column) -> str:
    """The name of its type."""
    return "struct" if column.kind is None else column.kind.name
