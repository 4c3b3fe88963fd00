"""A server with as much of S3 as obstore asks for; it takes one key alone."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

from benchmarks.proxy import serving

KEY = "THE-KEY"
SECRET = "THE-SECRET"
REGION = "eu-test-1"
_DATE = "2026-01-02T03:04:05.000Z"
_HTTP_DATE = "Fri, 02 Jan 2026 03:04:05 GMT"


class _Store(ThreadingHTTPServer):
    """Objects by ``bucket/key``.

    Args:
        conditional: heed ``If-None-Match``, as some servers do not.
    """

    daemon_threads = True

    def __init__(self, *, conditional: bool = True) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.conditional = conditional
        self.lock = threading.Lock()
        self.max_copy = 5 << 30
        self.tags_copies_anew = False
        """As Azure and GCS do, and S3 where the key of its encryption is a user's."""
        self.tags: dict[str, str] = {}
        self.read: dict[str, int] = {}
        """By object, how many bytes were read of it."""

    def tag(self, name: str) -> str:
        """The ETag of an object."""
        return self.tags.get(name, _tag(self.objects[name]))

    @property
    def options(self) -> Mapping[str, str]:
        """What ``storage_options`` must be."""
        return {
            "access_key_id": KEY,
            "secret_access_key": SECRET,
            "region": REGION,
            "endpoint": f"http://127.0.0.1:{self.server_port}",
        }


def _tag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Store

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        length = headers.pop("length", str(len(body)))
        for name, value in {**headers, "Content-Length": length}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _serve(self) -> None:
        url = urlsplit(self.path)
        name = unquote(url.path).removeprefix("/")
        query = {k: v[0] for k, v in parse_qs(url.query, True).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if f"Credential={KEY}/" not in self.headers.get("Authorization", ""):
            self._answer(403)
        elif f"/{REGION}/s3/" not in self.headers["Authorization"]:
            self._answer(400)
        elif not name.partition("/")[2]:
            if self.command == "POST":
                self._delete(name.rstrip("/"), body)
            else:
                self._bucket(name.rstrip("/"), query)
        elif self.command == "PUT":
            self._store(name, body)
        else:
            self._fetch(name)

    do_GET = do_HEAD = do_PUT = do_POST = _serve

    def _bucket(self, bucket: str, query: Mapping[str, str]) -> None:
        prefix = query.get("prefix", "")
        rows, folders = [], set()
        for name, data in sorted(self.server.objects.items()):
            key = name.removeprefix(f"{bucket}/")
            if not key.startswith(prefix):
                continue
            rest = key[len(prefix) :]
            if query.get("delimiter") and "/" in rest:
                folders.add(prefix + rest.partition("/")[0] + "/")
                continue
            rows.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{len(data)}</Size>"
                f"<LastModified>{_DATE}</LastModified>"
                f"<ETag>{escape(self.server.tag(name))}</ETag></Contents>"
            )
        rows += [
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
            for folder in sorted(folders)
        ]
        found = f"<KeyCount>{len(rows)}</KeyCount><IsTruncated>false</IsTruncated>"
        text = f"<ListBucketResult>{found}{''.join(rows)}</ListBucketResult>"
        self._answer(200, text.encode())

    def _delete(self, bucket: str, body: bytes) -> None:
        keys = re.findall("<Key>(.*?)</Key>", body.decode())
        for key in keys:
            self.server.objects.pop(f"{bucket}/{unescape(key)}", None)
        rows = [f"<Deleted><Key>{key}</Key></Deleted>" for key in keys]
        self._answer(200, f"<DeleteResult>{''.join(rows)}</DeleteResult>".encode())

    def _store(self, name: str, body: bytes) -> None:
        if source := self.headers.get("x-amz-copy-source"):
            self._copy(unquote(source).lstrip("/"), name)
            return
        self.server.tags.pop(name, None)
        once = self.server.conditional and self.headers.get("If-None-Match") == "*"
        with self.server.lock:
            if once and name in self.server.objects:
                self._answer(412)
                return
            self.server.objects[name] = body
        self._answer(200, ETag=_tag(body))

    def _copy(self, source: str, name: str) -> None:
        data = self.server.objects.get(source)
        if data is None:
            self._answer(404)
        elif len(data) > self.server.max_copy:
            self._answer(400, b"<Error><Code>InvalidRequest</Code></Error>")
        else:
            self.server.objects[name] = data
            if self.server.tags_copies_anew:
                self.server.tags[name] = _tag(name.encode() + data)
            tag = escape(self.server.tag(name))
            text = f"<ETag>{tag}</ETag><LastModified>{_DATE}</LastModified>"
            text = f"<CopyObjectResult>{text}</CopyObjectResult>"
            self._answer(200, text.encode())

    def _fetch(self, name: str) -> None:
        data = self.server.objects.get(name)
        if data is None:
            self._answer(404)
            return
        marks = {"Last_Modified": _HTTP_DATE, "ETag": self.server.tag(name)}
        if self.headers.get("If-Match") not in {None, marks["ETag"]}:
            self._answer(412)
            return
        if self.command == "HEAD":
            self._answer(200, length=str(len(data)), **marks)
            return
        span = self.headers.get("Range", "").removeprefix("bytes=")
        first, _, last = span.partition("-")
        start, stop = int(first or 0), min(int(last or len(data)) + 1, len(data))
        read = self.server.read
        read[name] = read.get(name, 0) + stop - start
        where = f"bytes {start}-{stop - 1}/{len(data)}"
        self._answer(206, data[start:stop], Content_Range=where, **marks)


def s3_server(*, conditional: bool = True) -> AbstractContextManager[_Store]:
    """A server that runs until the end of the block."""
    return serving(_Store(conditional=conditional))
