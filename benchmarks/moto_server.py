"""S3 servers of this machine, in processes of their own.

moto's, ``serve_moto.py``, holds everything in memory and knows most of S3.  That of
localbucket, ``serve_folder.py``, serves a folder as it lies, and three times as fast.
"""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

CLOCK = "-clock"
"""What stops the time at the server; no name of a bucket."""
SERVER_KEY = "A-MOTO-KEY"
SERVER_SECRET = "A-MOTO-SECRET"  # noqa: S105 (moto takes any)


@dataclass(frozen=True)
class S3:
    """A running server."""

    port: int

    @property
    def options(self) -> Mapping[str, Any]:
        """What ``storage_options`` must be."""
        return {
            "access_key_id": SERVER_KEY,
            "secret_access_key": SERVER_SECRET,
            "region": "us-east-1",
            "endpoint": f"http://127.0.0.1:{self.port}",
        }

    def new_bucket(self) -> str:
        """The name of a bucket that is empty."""
        name = f"b{uuid.uuid4().hex[:12]}"
        self.put(name)
        return name

    def put(self, name: str) -> None:
        """Write an empty object of any key, or a bucket."""
        url = f"http://127.0.0.1:{self.port}/{quote(name)}"
        key = f"Credential={SERVER_KEY}/20260101/us-east-1/s3/aws4_request"
        request = urllib.request.Request(url, data=b"", method="PUT")
        request.add_header("Authorization", f"AWS4-HMAC-SHA256 {key}")
        urllib.request.urlopen(request).close()  # noqa: S310 (our own server)

    def stop_clock(self, *, stopped: bool) -> None:
        """Let the server's time stand still, or go on."""
        url = f"http://127.0.0.1:{self.port}/{CLOCK}/{stopped:d}"
        urllib.request.urlopen(url).close()


@contextmanager
def moto_server() -> Iterator[S3]:
    """The server of moto, empty, which runs until the end of the block."""
    with _served("serve_moto.py") as server:
        yield server


@contextmanager
def folder_server(folder: Path) -> Iterator[S3]:
    """The server of localbucket, whose buckets are the folders in ``folder``."""
    with _served("serve_folder.py", str(folder)) as server:
        yield server


@contextmanager
def _served(script: str, *arguments: str) -> Iterator[S3]:
    """The server of a script of this folder, which prints its port."""
    path = Path(__file__).with_name(script)
    with subprocess.Popen(  # noqa: S603 (this Python)
        [sys.executable, "-W", "ignore", str(path), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"},
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield S3(int(process.stdout.readline()))
        finally:
            process.terminate()
