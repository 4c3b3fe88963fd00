"""A driver with a server of Spark Connect in it, and a client process beside it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import skipindex as sx
from ssb.session import local_session

folder = sys.argv[1]
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
spark = local_session(
    cores=2,
    memory="1g",
    conf={
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
    },
)
sx.enable(spark)
client = subprocess.run(
    [
        sys.executable,
        str(Path(__file__).with_name("connect_client.py")),
        f"sc://127.0.0.1:{port}",
        folder,
    ],
    stdout=subprocess.PIPE,
    text=True,
    check=True,
)
found = json.loads(client.stdout.splitlines()[-1])
found["plans"] = [(plan.n_read, plan.n_files) for plan in sx.last_plans(spark)]
spark.stop()
print(json.dumps(found))
