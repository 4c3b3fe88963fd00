"""S3 servers of this machine, in processes of their own, which run this file.

moto's holds everything in memory and knows most of S3.  That of localbucket serves a
folder as it lies, three times as many ranges a second, and writes an object only if
absent where that is asked for.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import urllib.request
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
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
    with _served() as server:
        yield server


@contextmanager
def folder_server(folder: Path) -> Iterator[S3]:
    """The server of localbucket, whose buckets are the folders in ``folder``."""
    with _served(str(folder)) as server:
        yield server


@contextmanager
def _served(*folder: str) -> Iterator[S3]:
    """The server of a folder, or moto's, which prints its port."""
    with subprocess.Popen(  # noqa: S603 (this Python)
        [sys.executable, "-W", "ignore", __file__, *folder],
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


def _of_folder(folder: Path) -> ThreadingHTTPServer:
    import localbucket  # noqa: PLC0415 (the other server needs none)

    handler = localbucket.S3Handler
    handler.data_root = folder
    handler.log_message = lambda *_: None
    # Else the kernel keeps the body of an answer back until its head is acknowledged,
    # which takes 40 ms.
    handler.disable_nagle_algorithm = True
    # Of more connections that wait, the kernel drops some, which take a second more.
    ThreadingHTTPServer.request_queue_size = 128
    return ThreadingHTTPServer(("127.0.0.1", 0), handler)


def _of_moto() -> Any:
    """One request at a time; the time can stand still.

    moto checks ``If-None-Match`` and writes in two steps, so two requests at once would
    both succeed, which no real store allows.
    """
    from moto.moto_server import werkzeug_app  # noqa: PLC0415 (as above)
    from moto.s3 import models  # noqa: PLC0415
    from werkzeug.serving import WSGIRequestHandler, make_server  # noqa: PLC0415

    app = werkzeug_app.DomainDispatcherApplication(werkzeug_app.create_backend_app)
    lock = threading.Lock()
    time, stopped = models.utcnow, list[Any]()  # type: ignore[attr-defined]
    models.utcnow = (  # type: ignore[attr-defined]
        lambda: stopped[0] if stopped else time()
    )

    def one_at_a_time(environ: Any, start: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"].startswith(f"/{CLOCK}/"):
            stopped[:] = [time()] * int(environ["PATH_INFO"][-1])
            start("200 OK", [("Content-Length", "0")])
            return []
        with lock:
            return list(app(environ, start))

    class Quiet(WSGIRequestHandler):
        """Connections stay open, and no request is printed."""

        protocol_version = "HTTP/1.1"

        def log_request(self, *_: object) -> None:
            """Nothing."""

    return make_server(
        "127.0.0.1", 0, one_at_a_time, threaded=True, request_handler=Quiet
    )


if __name__ == "__main__":
    server = _of_folder(Path(sys.argv[1])) if sys.argv[1:] else _of_moto()
    print(server.server_port, flush=True)
    server.serve_forever()
