"""``storage_options``: what the file system of a URI is opened with."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.build.task import BuildTask
from skipindex.errors import StorageError, TableError
from skipindex.planner.stages.pack_cache import CacheSession
from skipindex.storage.file_system.location import Location, location_of
from skipindex.storage.file_system.object_store import StoreFiles
from tests.storage.s3_server import KEY, SECRET, s3_server
from tests.storage.test_pack import Bytes

URI = "s3://bucket/t"
PLACE = {"region": "eu-test-1", "endpoint": "https://127.0.0.1:1"}
KEYS = {"access_key_id": KEY, "secret_access_key": SECRET}


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Mapping[str, Any]]:
    """The options of a server with a table of two files at ``URI``."""
    with s3_server() as server:
        for i in range(2):
            pq.write_table(pa.table({"x": [i, i + 10]}), tmp_path / "f")
            server.objects[f"bucket/t/{i}.parquet"] = (tmp_path / "f").read_bytes()
        yield server.options


def test_a_table_is_indexed_and_planned_with_the_options_alone(
    stored: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "wrong")
    report = sx.build_indexes(URI, {"x": "bitmap"}, workers=2, storage_options=stored)
    assert report.files == 2
    assert report.table.plan("x = 11").paths == ["1.parquet"]
    plan = sx.plan_files("x = 0", table=URI, storage_options=stored)
    assert plan.paths == ["0.parquet"]
    assert plan.count() == 1
    table = sx.open_table(URI, storage_options=stored)
    assert table.refresh().verify().ok
    assert SECRET not in repr(table) + str(plan.explain())
    with pytest.raises(TableError, match=r"'bucket/t'") as raised:
        sx.open_table(URI, storage_options={**stored, "access_key_id": "other"})
    assert SECRET not in str(raised.value)


def test_no_text_has_the_options() -> None:
    location = location_of(URI, {**KEYS, **PLACE})
    task = BuildTask(location, ("f",), ())
    for value in (location, task, pickle.loads(pickle.dumps(task))):
        assert SECRET not in repr(value)
        assert KEY not in repr(value)
    assert location.spark_path("f") == "s3://bucket/t/f"
    assert location.full("f") == "bucket/t/f"


def store_of(location: Location) -> StoreFiles:
    files = location.files
    assert isinstance(files, StoreFiles)
    return files


def test_workers_open_the_same_store() -> None:
    location = location_of(URI, {**KEYS, **PLACE})
    again = pickle.loads(pickle.dumps(location))
    assert again == location
    store = store_of(again).store
    assert store == store_of(location).store
    assert store.config == {
        "bucket": "bucket",
        "access_key_id": KEY,
        "secret_access_key": SECRET,
        "region": "eu-test-1",
        "endpoint": "https://127.0.0.1:1",
    }


def test_two_stores_with_buckets_of_one_name_share_no_pack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Location, "view", lambda *_: Bytes(b""))
    one = location_of(URI, {**KEYS, **PLACE})
    two = location_of(URI, {**KEYS, **PLACE, "endpoint": "https://127.0.0.1:2"})
    assert one != two
    with CacheSession() as session:
        packs = [session.packs.pack(location, "p") for location in (one, two, one)]
    assert packs[0] is packs[2]
    assert packs[0] is not packs[1]


ACCOUNT = {"container_name": "box", "account_name": "account"}
BUCKET = {"bucket": "bucket"}
EU: dict[str, Any] = {"region": "eu-west-1", "skip_signature": "true"}


@pytest.mark.parametrize(
    ("uri", "root", "options", "config"),
    [
        (
            "gs://bucket/a%20b/",
            "bucket/a b",
            {"skip_signature": True},
            {**BUCKET, "skip_signature": "true"},
        ),
        (
            "gs://bucket/t",
            "bucket/t",
            {"bearer_token": "T", "retry_timeout": timedelta(seconds=5)},
            {**BUCKET, "bearer_token": "T"},
        ),
        (
            "abfss://box@account.dfs.core.windows.net/t",
            "box/t",
            {"account_key": "c2VjcmV0"},
            {**ACCOUNT, "account_key": "c2VjcmV0"},
        ),
        (
            "wasbs://box@account.blob.core.windows.net/t",
            "box/t",
            {"sas_key": "sv=1&sig=2"},
            {**ACCOUNT, "sas_key": "sv=1&sig=2"},
        ),
        ("s3a://bucket/t", "bucket/t", {**EU, "timeout": 3}, {**BUCKET, **EU}),
        ("s3://bucket/t", "bucket/t", {**EU, "timeout": "3s"}, {**BUCKET, **EU}),
        (
            "s3://bucket/t",
            "bucket/t",
            {"AWS_REGION": "eu-west-1", "aws_skip_signature": True},
            {**BUCKET, **EU},
        ),
        ("s3://bucket/t", "bucket/t", {**EU, "allow_http": True}, {**BUCKET, **EU}),
        (
            "s3://KEY:SECRET%2F@bucket/t/?region=eu-west-1",
            "bucket/t",
            {},
            {
                **BUCKET,
                "region": "eu-west-1",
                "access_key_id": "KEY",
                "secret_access_key": "SECRET/",
            },
        ),
    ],
)
def test_what_a_store_is_opened_with(
    uri: str, root: str, options: Mapping[str, Any], config: Mapping[str, Any]
) -> None:
    location = location_of(uri, options)
    assert location.root == root
    assert store_of(location).store.config == config
    spelled = uri.partition("?")[0].replace("KEY:SECRET%2F@", "").rstrip("/")
    assert location.spark_path("f") == f"{spelled}/f"
    assert "SECRET" not in repr(location) + location.uri


def test_the_region_of_a_bucket_is_looked_up_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def region_of(bucket: str) -> str:
        asked.append(bucket)
        return "eu-west-3"

    monkeypatch.setattr(pafs, "resolve_s3_region", region_of)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    location = location_of("s3://bucket/a%20b/c", KEYS)
    assert location.root == "bucket/a b/c"
    assert store_of(location).store.config["region"] == "eu-west-3"
    assert asked == ["bucket"]
    monkeypatch.setenv("AWS_REGION", "eu-west-2")
    assert "region" not in store_of(location_of(URI, KEYS)).store.config
    assert asked == ["bucket"]


def test_a_store_that_takes_no_notice_of_conditions_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "f")
    with s3_server(conditional=False) as server:
        server.objects["bucket/t/f.parquet"] = (tmp_path / "f").read_bytes()
        with pytest.raises(StorageError, match="only if absent") as raised:
            sx.build_indexes(URI, {"x": "bitmap"}, storage_options=server.options)
        assert "\n" not in str(raised.value)
        assert not any("/log/" in key or ".tmp" in key for key in server.objects)
        assert sx.plan_files("x = 7", table=URI, storage_options=server.options).paths


def test_without_the_extra_the_command_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "obstore"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(TableError, match=r"pip install 'skipindex\[stores\]'"):
        sx.open_table("s3://no-extra/t", storage_options=PLACE)


@pytest.mark.parametrize(
    ("uri", "options", "message"),
    [
        (
            URI,
            {"key": "SECRET"},
            r"options \['key'\]: .*'key' is not valid",
        ),
        (URI, {5: "SECRET"}, "S3Store takes"),
        (URI, {**PLACE, "bucket": "SECRET"}, "Duplicate key aws_bucket"),
        (URI, {**PLACE, "access_key_id": "SECRET"}, "bucket/t' .*Missing Secret"),
        (URI, {**PLACE, "timeout": "SECRET"}, "S3Store takes"),
        (
            URI,
            {**PLACE, "skip_signature": "SECRET"},
            "parse ..... as boolean",
        ),
        ("/data/t", {"region": "SECRET"}, "'/data/t' takes no storage_options"),
        ("file:///t", {"region": "SECRET"}, "takes no storage_options"),
        ("hdfs://h/t", {"user": "SECRET"}, "'hdfs://h/t' takes no storage_options"),
        ("s3://K:SECRET@b/t", PLACE, "the URI 's3://b/t' has a key or options too"),
        ("s3://b/t?session_token=SECRET", PLACE, "URI 's3://b/t' has a key or options"),
        (URI, {**PLACE, "AWS_REGION": "SECRET"}, "given under two names"),
        (URI, {**PLACE, "endpoint_url": "SECRET"}, "under two names"),
    ],
)
def test_what_is_refused(uri: str, options: Mapping[str, Any], message: str) -> None:
    with pytest.raises(TableError, match=message) as raised:
        sx.open_table(uri, storage_options=options)
    assert "SECRET" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_a_table_that_is_open_has_its_options(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "f.parquet")
    table = sx.open_table(tmp_path)
    with pytest.raises(TableError, match=r"is open and keeps its storage_options"):
        sx.open_table(table, storage_options=PLACE)
    assert sx.open_table(tmp_path, storage_options={}).paths == ["f.parquet"]
