"""Azure's own emulator, if it is installed: ``npm install --global azurite``."""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from email.utils import formatdate

import obstore
import pytest

import skipindex as sx
from skipindex.storage.file_system.location import Location, location_of
from tests.storage.test_object_stores import parquet

ACCOUNT = "devstoreaccount1"
KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/"
    "K1SZFPTOtr/KBHBeksoGMGw=="
)
"""Of every emulator."""
VERSION = "2021-08-06"
COMMAND = shutil.which("azurite-blob")

pytestmark = pytest.mark.skipif(COMMAND is None, reason="azurite is not installed")


def make_container(url: str) -> None:
    date = formatdate(usegmt=True)
    headers = f"x-ms-date:{date}\nx-ms-version:{VERSION}"
    resource = f"/{ACCOUNT}/{ACCOUNT}/box\nrestype:container"
    text = "PUT" + "\n" * 12 + f"{headers}\n{resource}"
    seal = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    request = urllib.request.Request(f"{url}/box?restype=container", method="PUT")
    for name, value in {
        "x-ms-date": date,
        "x-ms-version": VERSION,
        "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(seal).decode()}",
        "Content-Length": "0",
    }.items():
        request.add_header(name, value)
    urllib.request.urlopen(request).close()


@pytest.fixture(scope="module")
def place() -> Iterator[Location]:
    """A folder of a container."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert COMMAND is not None
    options = ["--inMemoryPersistence", "--blobHost", "127.0.0.1", "--silent"]
    with subprocess.Popen(
        [COMMAND, *options, "--blobPort", str(port), "--skipApiVersionCheck"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            for _ in range(300):
                with socket.socket() as asked:
                    if not asked.connect_ex(("127.0.0.1", port)):
                        break
                time.sleep(0.2)
            url = f"http://127.0.0.1:{port}/{ACCOUNT}"
            make_container(url)
            uri = f"abfss://box@{ACCOUNT}.dfs.core.windows.net/a b/t"
            yield location_of(uri, {"account_key": KEY, "endpoint": url})
        finally:
            server.terminate()


def test_a_table_on_azure(place: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write("k=a b%20/f.parquet", parquet([1, 2, 3]))
    report = sx.build_indexes(place, {"x": "bitmap"}, workers=1)
    assert report.notes == ()
    assert sx.plan_files("x = 8", table=place).paths == []
    place.write("k=a b%20/f.parquet", parquet([7, 8, 9]))
    assert sx.plan_files("x = 8", table=place).paths == ["k=a b%20/f.parquet"]
    assert not place.write_new("_skipindex/log/00000000000000000000.json", b"")
    put = obstore.put

    def repeated(*args: object, **settings: object) -> object:
        put(*args, **settings)  # type: ignore[arg-type]
        return put(*args, **settings)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(obstore, "put", repeated)
        assert place.write_new("_x/1", b"x")
        assert not place.write_new("_x/1", b"x")
    place.move("_x/1", "_x/2")
    assert place.names("_x") == ["2"]
    place.delete("_x/2")
    place.delete("_x/2")
    assert place.stat("_x/2") is None
