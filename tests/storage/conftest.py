"""One S3 server for all tests of a session that ask for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.moto_server import S3, moto_server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    with moto_server() as server:
        yield server
