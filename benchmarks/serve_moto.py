"""moto's S3 server, one request at a time; its time can stand still.

moto checks ``If-None-Match`` and writes in two steps, so two requests at once would
both succeed, which no real store allows.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    create_backend_app,
)
from moto.s3 import models
from werkzeug.serving import WSGIRequestHandler, make_server

CLOCK = "-clock"


class Quiet(WSGIRequestHandler):
    """Connections stay open, and no request is printed."""

    protocol_version = "HTTP/1.1"

    def log_request(self, *_: object) -> None:
        """Nothing."""


def main() -> None:
    """Serve; the first line of the output is the port."""
    app = DomainDispatcherApplication(create_backend_app)
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

    server = make_server(
        "127.0.0.1", 0, one_at_a_time, threaded=True, request_handler=Quiet
    )
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
