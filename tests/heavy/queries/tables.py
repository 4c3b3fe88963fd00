"""Random tables on disk, with indexes in every state."""

from __future__ import annotations

import contextlib
import datetime as dt
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import skipindex as sx
from tests.heavy.queries.conditions import Ref
from tests.heavy.queries.values import DAY, KINDS, ROW, Kind
from tests.rewrite.arrow_writer import optimized

FORMS: Final = {
    "flat": 30, "hive": 22, "months": 10, "catalog": 14, "partitioned": 12,
    "elsewhere": 8, "bucketed": 4,
}  # fmt: skip
"""How a table lies: files in one folder; hive partitions; ``month=01`` folders; a table
of the catalog, one with partitions, one with partitions in folders of other names; and
buckets."""
FATES: Final = {
    "whole": 60, "part": 12, "stale": 12, "rewritten": 12, "damaged": 8, "below": 4,
    "none": 4,
}  # fmt: skip
"""What the indexes are: of all files; of some; of earlier files; of files that are
rewritten and not published; with a wrong byte; of one partition's folder alone; or not
there."""
KINDS_OF: Final[Mapping[str, tuple[Any, ...]]] = {
    "integer": (
        "bitmap",
        "bit_sliced",
        "range_bitmap",
        "bloom",
        "run_length",
        "exact",
    ),
    "float": ("bitmap", "bit_sliced", "range_bitmap", "exact"),
    "decimal": ("bitmap", "bit_sliced", "bloom"),
    "string": ("bitmap", "bloom", "ngram_bloom", "token_bloom", "range_bitmap"),
    "boolean": ("bitmap",),
    "binary": ("bitmap", "bloom"),
    "date": ("bitmap", "bit_sliced", "range_bitmap"),
    "moment": ("bit_sliced", "bitmap", "bloom"),
}
_NULL_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"


@dataclass
class Made:
    """A table, and all that is known of it.

    Args:
        number: of the table in its run.
        root: the folder of all that belongs to it; copies of it are tables too.
        form: of ``FORMS``.
        kinds: by column of the files.
        partitions: by partition column.
        clustered: the columns whose values are near in a file.
        lacking: the columns that some files do not have.
        narrow: the columns that some files store in fewer bits.
        ddl: statements that make the table of the catalog ``{name}`` in ``{root}``.
        fate: of ``FATES``.
    """

    number: int
    root: Path
    form: str
    kinds: dict[str, Kind]
    partitions: dict[str, Kind]
    clustered: set[str]
    lacking: set[str]
    narrow: set[str]
    fate: str
    ddl: list[str] = field(default_factory=list)
    samples: dict[str, list[Any]] = field(default_factory=dict)
    n_rows: int = 0
    int96: bool = False

    @property
    def path(self) -> Path:
        """The table's folder."""
        return self.root / "t"

    @property
    def schema_text(self) -> str:
        """The columns as DDL, partition columns last."""
        return ", ".join(
            f"`{name}` {kind.sql}"
            for name, kind in (self.kinds | self.partitions).items()
        )

    def refs(self) -> dict[str, Ref]:
        """Its columns, as a query refers to them."""
        return {
            name: Ref(
                name,
                kind,
                self.samples.get(name, []),
                3 if name in self.partitions else 1,
            )
            for name, kind in (self.kinds | self.partitions).items()
        }

    def rows(self, rng: Random, place: int, n_rows: int, *, odd: bool) -> pa.Table:
        """Rows for one file.

        Args:
            rng: what is drawn from.
            place: of the values of clustered columns.
            n_rows: how many.
            odd: whether the file lacks columns, or stores some in fewer bits.
        """
        columns: dict[str, pa.Array] = {}
        for name, kind in self.kinds.items():
            if name == "id":
                first, self.n_rows = self.n_rows, self.n_rows + n_rows
                columns[name] = pa.array(range(first, self.n_rows), pa.int64())
                continue
            if odd and name in self.lacking:
                continue
            nulls = rng.choice([0, 0, 0.05, 0.3, 1 if rng.random() < 0.2 else 0])
            values = [
                None
                if rng.random() < nulls
                else kind.draw(
                    rng, place if name in self.clustered else rng.randrange(20)
                )
                for _ in range(n_rows)
            ]
            known = [value for value in values if value is not None]
            self.samples.setdefault(name, []).extend(known[:3])
            small = odd and name in self.narrow
            columns[name] = _array(values, kind.arrow, small=small)
        return pa.table(columns)

    def write(self, path: Path, rows: pa.Table) -> None:
        """Write a file, over another one perhaps."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            path.unlink()
        pq.write_table(
            rows, path, use_deprecated_int96_timestamps=self.int96, row_group_size=40
        )

    def files(self, root: Path | None = None) -> list[Path]:
        """The data files below a copy of the table."""
        top = (root or self.root) / "t"
        return sorted(
            path
            for path in top.rglob("*.parquet")
            if not path.relative_to(top).parts[0].startswith("_")
        )


def _array(values: list[Any], dtype: pa.DataType, *, small: bool) -> pa.Array:
    if small:
        for narrow in (pa.int16(), pa.int32(), pa.float32()):
            if narrow.bit_width < dtype.bit_width:
                with contextlib.suppress(pa.ArrowInvalid, pa.ArrowTypeError):
                    return pa.array(values, narrow)
    return pa.array(values, dtype)


def weighted(rng: Random, weights: Mapping[str, int]) -> str:
    """A key, as often as its weight says."""
    return rng.choices(list(weights), list(weights.values()))[0]


def make(number: int, seed: int, root: Path, spark: SparkSession) -> Made:
    """The table of a number: the same one for the same seed."""
    rng = Random(f"{seed} table {number}")
    names = rng.sample(sorted(KINDS), rng.randint(6, 10))
    names = [name for name in KINDS if name in {*names, "i", "s"}]
    form = weighted(rng, FORMS)
    made = Made(
        number,
        root,
        form,
        kinds={"id": ROW, **{name: KINDS[name] for name in names}},
        partitions={},
        clustered={name for name in names if rng.random() < 0.6} | {"i"},
        lacking=set(rng.sample(names, 1)) if rng.random() < 0.25 else set(),
        narrow={"i", "l", "d", "sh"}
        if form == "catalog" and rng.random() < 0.3
        else set(),
        fate=weighted(rng, FATES),
        int96=rng.random() < 0.1,
    )
    n_files = rng.randint(8, 18)
    _lay(made, rng, n_files, spark)
    index(made, rng)
    if made.form == "elsewhere":
        _elsewhere(made, rng)
    return made


def _lay(made: Made, rng: Random, n_files: int, spark: SparkSession) -> None:
    table = "CREATE TABLE {name} (" + made.schema_text + ") USING parquet "
    folders: list[str] = [""]
    match made.form:
        case "catalog":
            made.ddl = [table + "LOCATION '{root}/t'"]
        case "hive":
            folders = _partitions(made, rng)
        case "months":
            made.kinds["ctime"] = KINDS["ts"]
            made.partitions = dict.fromkeys(("year", "month", "day"), KINDS["i"])
        case "partitioned" | "elsewhere":
            made.kinds.pop("p", None)
            made.partitions = {"p": KINDS["i"]}
            folders = [f"p={n}" for n in range(4)]
            made.samples["p"] = list(range(4))
            by = "PARTITIONED BY (p) LOCATION '{root}/t'"
            columns = made.schema_text.rpartition(", ")[0]
            made.ddl = [f"CREATE TABLE {{name}} ({columns}, p INT) USING parquet {by}"]
            made.ddl += ["ALTER TABLE {name} RECOVER PARTITIONS"]
        case "bucketed":
            _bucketed(made, rng, n_files, spark)
            return
    places = (
        rng.sample(range(n_files), n_files) if rng.random() < 0.3 else range(n_files)
    )
    for file, place in enumerate(places):
        rows = made.rows(rng, place, rng.randint(20, 120), odd=file % 3 == 1)
        folder = made.path / folders[file % len(folders)]
        if made.form == "months":
            folder, rows = _month(made, rng, rows, file)
        made.write(folder / f"{file:03}.parquet", rows)


def _partitions(made: Made, rng: Random) -> list[str]:
    cases: list[tuple[str, list[Any]]] = [
        ("i", [0, 1, 2, None]),
        ("s", ["a", "é x", "A=b%", None]),
        ("s", ["01", "2", "abc"]),
        ("i", ["01", "02", "03"]),
        ("dt", [dt.date(2020, 1, n) for n in (1, 2, 3)]),
        ("d", ["1.5", "2"]),
    ]
    kind, values = rng.choice(cases)
    made.partitions = {"p": KINDS[kind]}
    made.samples["p"] = [
        int(v) if kind == "i" else float(v) if kind == "d" else v
        for v in values
        if v is not None
    ]
    return [f"p={_NULL_FOLDER if v is None else quote(str(v))}" for v in values]


def _month(made: Made, rng: Random, rows: pa.Table, file: int) -> tuple[Path, pa.Table]:
    """Rows of one day, with their time, and the folder of the day."""
    day = DAY + dt.timedelta(days=9 * file)
    for name, value in (("year", day.year), ("month", day.month), ("day", day.day)):
        made.samples.setdefault(name, []).append(value)
    rows = _on_day(made, rng, rows, day)
    folder = f"year={day.year}/month={day.month:02}/day={day.day:02}"
    return made.path / folder, rows


def _on_day(made: Made, rng: Random, rows: pa.Table, day: dt.date) -> pa.Table:
    """The rows with a ``ctime`` of a day in UTC."""
    midnight = dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC)
    times = [
        midnight + dt.timedelta(seconds=rng.randrange(86_400))
        for _ in range(rows.num_rows)
    ]
    made.samples.setdefault("ctime", []).extend(times[:3])
    place = rows.column_names.index("ctime")
    return rows.set_column(place, "ctime", pa.array(times, KINDS["ts"].arrow))


def _elsewhere(made: Made, rng: Random) -> None:
    """Partitions of the catalog whose folders have other names."""
    outside = ["out/p=1", "out/p=02", "out/plain"]
    within = ["t/odd/p=3", "t/plain", "t/p=0/p=2"] if rng.random() < 0.3 else []
    for number, folder in enumerate(rng.sample(outside + within, 2), 10):
        rows = made.rows(rng, number + 5, 30, odd=False)
        made.write(made.root / folder / "900.parquet", rows)
        place = f"LOCATION '{{root}}/{folder}'"
        made.ddl.append(f"ALTER TABLE {{name}} ADD PARTITION (p={number}) {place}")
        made.samples["p"].append(number)
    if rng.random() < 0.5:  # two partitions of the same files
        made.ddl.append(
            "ALTER TABLE {name} ADD PARTITION (p=20) LOCATION '{root}/t/p=1'"
        )
        made.samples["p"].append(20)
    if rng.random() < 0.5:
        made.ddl.append(
            "ALTER TABLE {name} PARTITION (p=2) SET LOCATION '{root}/t/p=3'"
        )
    if rng.random() < 0.5 and (made.root / "out").exists():
        _build(made.root / "out", {"*": "minmax"})


def _bucketed(made: Made, rng: Random, n_files: int, spark: SparkSession) -> None:
    staged = made.root / "staged"
    made.lacking = set()
    for place in range(n_files):
        rows = made.rows(rng, place, rng.randint(20, 120), odd=False)
        made.write(staged / f"{place:03}.parquet", rows)
    name = f"staged{made.number}"
    frame = spark.read.schema(made.schema_text).parquet(str(staged))
    writer = frame.repartition(3, "s").write.bucketBy(4, "i").sortBy("i")
    writer.option("path", str(made.path)).mode("overwrite").saveAsTable(name)
    spark.sql(f"DROP TABLE {name}")
    shutil.rmtree(staged)
    made.ddl = [
        "CREATE TABLE {name} (" + made.schema_text + ") USING parquet "
        "CLUSTERED BY (i) SORTED BY (i) INTO 4 BUCKETS LOCATION '{root}/t'"
    ]


def _request(made: Made, rng: Random) -> dict[str, Any]:
    request: dict[str, Any] = {}
    for name, kind in made.kinds.items():
        if kind.family == "struct":
            request[f"{name}.a"] = rng.choice(KINDS_OF["integer"])
        elif kind.family in KINDS_OF and rng.random() < 0.7:
            known = KINDS_OF[kind.family]
            request[name] = rng.sample(known, min(len(known), rng.randint(1, 2)))
    return request


def _build(folder: Path, request: Mapping[str, Any]) -> None:
    """Build what the types allow."""
    request = dict(request)
    while True:
        try:
            sx.build_indexes(folder, request, workers=1)
        except (sx.UnsupportedTypeError, sx.PredicateError) as error:
            wrong = [
                n for n in request if f"'{n}'" in str(error) or f" {n} " in str(error)
            ]
            request.pop(wrong[0] if wrong else next(iter(request)))
        except sx.TableError:  # Spark refuses its folders too
            return
        else:
            return


def index(made: Made, rng: Random) -> None:
    """Build the indexes, and let happen what the fate says."""
    request = _request(made, rng)
    aside = made.root / "aside"
    match made.fate:
        case "none":
            return
        case "below":
            _build(made.files()[0].parent, request)
            return
        case "part":
            for path in made.files()[1::4]:
                target = aside / path.relative_to(made.root)
                target.parent.mkdir(parents=True, exist_ok=True)
                path.rename(target)
    _build(made.path, request)
    if made.form == "months" and rng.random() < 0.5:
        columns = {part: f"{part}(ctime)" for part in ("year", "month", "day")}
        with contextlib.suppress(sx.SkipIndexError):
            sx.open_table(made.path).declare_derived(columns, timezone="UTC")
    if aside.exists():
        for path in sorted(aside.rglob("*.parquet")):
            path.rename(made.root / path.relative_to(aside))
        shutil.rmtree(aside)
    if made.fate == "rewritten":
        # What the writer without Spark cannot unite stays as it is.
        with contextlib.suppress(sx.SkipIndexError, pa.ArrowException):
            by = sorted(made.clustered) or sorted(made.kinds)
            optimized(made.path, cluster_by=[rng.choice(by)], rows_per_file=50)
    if made.fate == "stale":
        for _ in range(rng.randint(1, 3)):
            change(made, made.root, rng, rng.choice(["overwrite", "add", "delete"]))
    if made.fate == "damaged":
        change(made, made.root, rng, "damage")


CHANGES: Final = (
    *(
        "add",
        "overwrite",
        "overwrite alike",
        "overwrite alike",
        "delete",
        "rename",
        "touch",
        "swap",
    ),
    *("rebuild", "damage", "drop indexes"),
)
REPLACING: Final = frozenset({"overwrite", "overwrite alike", "swap", "touch"})
"""Changes after which a file of the same name holds something else."""


def change(made: Made, root: Path, rng: Random, what: str) -> None:
    """Do to a copy of the table what others may do at any time."""
    files = made.files(root)
    if not files:
        return
    path = rng.choice(files)
    rows = made.rows(rng, rng.randrange(22), rng.randint(20, 60), odd=False)
    if made.form == "months":  # what was declared of the folders stays true
        day = dt.date(*(int(part.partition("=")[2]) for part in path.parts[-4:-1]))
        rows = _on_day(made, rng, rows, day)
    match what:
        case "add":
            made.write(path.with_name(f"new{rng.randrange(10**6):06}.parquet"), rows)
        case "overwrite":
            made.write(path, rows)
        case "overwrite alike":
            _overwrite_alike(path, rows)
        case "delete" if len(files) > 1:
            path.unlink()
        case "rename":
            path.rename(path.with_name(f"moved{rng.randrange(10**6):06}.parquet"))
        case "touch":
            path.touch()
        case "swap":
            other = rng.choice([file for file in files if file.parent == path.parent])
            if other != path:
                spare = path.with_suffix(".spare")
                path.rename(spare)
                other.rename(path)
                spare.rename(other)
        case "rebuild":
            _build(root / "t", {"i": "bit_sliced", "s": "bitmap"})
        case "damage":
            _damage(root / "t" / "_skipindex", rng)
        case "drop indexes":
            shutil.rmtree(root / "t" / "_skipindex", ignore_errors=True)


def _overwrite_alike(path: Path, rows: pa.Table) -> None:
    """Write other rows in as many bytes, which an older listing cannot tell."""
    size = path.stat().st_size
    while rows.num_rows:
        padding = 0
        for _ in range(4):  # a longer text may need a longer length before it
            sink = pa.BufferOutputStream()
            with pq.ParquetWriter(sink, rows.schema) as writer:
                writer.write_table(rows)
                writer.add_key_value_metadata({"padding": "x" * padding})
            content = sink.getvalue().to_pybytes()
            padding += size - len(content)
            if padding < 0:
                break
            if len(content) == size:
                path.write_bytes(content)
                return
        rows = rows.slice(rows.num_rows // 3 + 1)


def _damage(folder: Path, rng: Random) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in rng.sample(files, min(len(files), 2)):
        content = bytearray(path.read_bytes())
        match rng.randrange(4):
            case 0:
                path.unlink()
            case 1:
                path.write_bytes(content[: len(content) // 2])
            case _ if content:
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
                path.write_bytes(bytes(content))
