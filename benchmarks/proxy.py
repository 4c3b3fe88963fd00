"""An HTTP proxy that delays every request, and counts requests and bytes."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf
from typing import TypeVar

Server = TypeVar("Server", bound=ThreadingHTTPServer)

_NOT_FORWARDED = {"connection", "transfer-encoding", "content-length", "keep-alive"}


@dataclass(frozen=True)
class Request:
    """One request that was answered.

    Args:
        method: of HTTP.
        path: with the query.
        began: when it came, in seconds.
        ended: when it was answered.
        n_bytes: of the body of the answer.
    """

    method: str
    path: str
    began: float
    ended: float
    n_bytes: int

    @property
    def is_later_page(self) -> bool:
        """Whether it goes on with a listing: a page has a thousand names."""
        return "continuation-token=" in self.path


def round_trips(requests: Sequence[Request]) -> int:
    """How many of the requests had to wait for another one's answer.

    That is the most of them of which no two were under way at once, less the later
    pages of a listing, as their number is that of the files.
    """
    n, free = 0, 0.0
    for one in sorted(requests, key=lambda one: one.ended):
        if one.began >= free:
            n, free = n + 1, one.ended
    return n - sum(one.is_later_page for one in requests)


class Proxy(ThreadingHTTPServer):
    """The proxy.

    Args:
        port: of the server behind it, on this machine.
        delay: of every request, in seconds.
        bandwidth: bytes a second, of all answers together.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, delay: float, bandwidth: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = port
        self.delay = delay
        self.bandwidth = bandwidth
        self.line = threading.Lock()
        self.requests: list[Request] = []

    @property
    def endpoint(self) -> str:
        """The URL that a store is opened with."""
        return f"http://127.0.0.1:{self.server_port}"

    def taken(self) -> list[Request]:
        """The requests since the last call."""
        taken, self.requests = self.requests, []
        return taken


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Else the kernel keeps the body of an answer back until its head is acknowledged,
    # which takes another 40 ms.
    disable_nagle_algorithm = True
    server: Proxy

    def setup(self) -> None:
        """One connection to the server behind, for all requests of a client's."""
        super().setup()
        self._behind = http.client.HTTPConnection("127.0.0.1", self.server.behind)

    def finish(self) -> None:
        """Close both."""
        self._behind.close()
        super().finish()

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def _forward(self) -> None:
        began = time.perf_counter()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        time.sleep(self.server.delay)
        self._behind.request(self.command, self.path, body, dict(self.headers))
        answer = self._behind.getresponse()
        data = answer.read()
        with self.server.line:
            time.sleep(len(data) / self.server.bandwidth)
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _NOT_FORWARDED:
                self.send_header(name, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else None
        self.send_header("Content-Length", length or str(len(data)))
        self.end_headers()
        ended = time.perf_counter()
        self.server.requests.append(
            Request(self.command, self.path, began, ended, len(data))
        )
        self.wfile.write(data)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _forward  # noqa: N815


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """The server, which runs until the end of the block."""
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def proxy(
    port: int, delay: float, bandwidth: float = inf
) -> AbstractContextManager[Proxy]:
    """A proxy that runs until the end of the block."""
    return serving(Proxy(port, delay, bandwidth))
