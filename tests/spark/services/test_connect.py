"""Spark Connect: what a client can do, and that a server in a driver is pruned."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.spark.cluster.clusters import ROOT
from tests.spark.versions import since

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("grpc") is None, reason="pip install pyspark[connect]"
    ),
    since(4, 0, what="a server of Spark Connect in its package"),
]


def test_a_client_builds_writes_and_reads(tmp_path: Path) -> None:
    script = Path(__file__).with_name("connect_server.py")
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    enable, last_plans, optimize = found["refused"]
    assert "skipindex.read" in enable
    assert "skipindex.read" in last_plans
    assert "classic session" in optimize
    assert found["interrupted"]
    assert found["version"] == -1, "an interrupted build commits nothing"
    assert (found["files"], found["notes"]) == (12, [])
    calls = [tuple(call) for call in found["calls"]]
    assert calls == sorted(set(calls))
    assert calls[-1] == (calls[-1][1],) * 2
    assert (found["rows"], found["count"], found["explicit"]) == ([77], 10, 7)
    n_rows = 2 * len([i for i in range(1000) if i % 7 == 3])
    assert found["written"] == [20, n_rows]
    assert found["verified"]
    assert found["sql"] == 1
    assert found["plans"][-1] == [1, 12], "the server's driver has enabled its sessions"
