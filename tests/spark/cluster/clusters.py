"""Spark clusters on this machine whose Python workers do not have skipindex."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark.sql import SparkSession

from ssb.session import local_session

ROOT: Final = Path(__file__).parents[3]
HOSTS: Final = ("127.0.0.1", "127.0.0.2")
"""Of the workers: Spark runs no speculative copy of a task on the task's own host."""
_STARTING_SECONDS: Final = 120.0
_CLASSES: Final = "org.apache.spark.deploy"
_SITE: Final = '''
import sys
from importlib.machinery import PathFinder


class OnlyFromZips:
    """Finds skipindex where it was sent to, and never where it is installed."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "skipindex":
            return None
        found = PathFinder.find_spec(name, [p for p in sys.path if p.endswith(".zip")])
        if found is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return found


sys.meta_path.insert(0, OnlyFromZips)
'''


def write_site(folder: Path) -> Path:
    """A folder for ``PYTHONPATH``: a Python with it lacks skipindex."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_SITE)
    return folder


def session_on(master: str, site: str, folder: str, **more: str) -> SparkSession:
    """The session of a driver on a cluster.

    Args:
        master: of Spark.
        site: what the executors' Python has in front of its path.
        folder: for the warehouse.
        more: settings, with two underscores for a dot.
    """
    conf = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": site,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
    }
    others = {name.replace("__", "."): value for name, value in more.items()}
    return local_session(master=master, conf=conf | others)


def driver(
    script: str, master: str, site: Path, folder: Path, *arguments: str
) -> dict[str, Any]:
    """What a script in this folder prints last, run as a driver of its own.

    Args:
        script: its name.
        master: of Spark.
        site: what the executors' Python has in front of its path.
        folder: where the script may write.
        arguments: of the script, after those.

    Raises:
        AssertionError: the script failed.
    """
    path = Path(__file__).parent / script
    done = subprocess.run(
        [sys.executable, str(path), master, str(site), str(folder), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        },
    )
    assert done.returncode == 0, done.stderr.rpartition("Traceback")[2][:4000]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """The URL of a standalone master with a worker on each of the hosts."""
    port = _free_port()
    url = f"spark://{HOSTS[0]}:{port}"
    master = ["--host", HOSTS[0], "--port", str(port), "--webui-port", "0"]
    size = ["--webui-port", "0", "--cores", "1", "--memory", "1g"]
    commands = [[f"{_CLASSES}.master.Master", *master]]
    for host in HOSTS:
        work = str(folder / f"work-{host}")
        options = ["--host", host, *size, "--work-dir", work]
        commands.append([f"{_CLASSES}.worker.Worker", *options, url])
    started: list[subprocess.Popen[bytes]] = []
    logs = [folder / f"log-{i}" for i in range(len(commands))]
    try:
        for command, log in zip(commands, logs, strict=True):
            started.append(_start(command, log, folder))
            if len(started) == 1:
                _wait_for(log, "I have been elected leader", started[0])
        for log, process in zip(logs[1:], started[1:], strict=True):
            _wait_for(log, "Successfully registered with master", process)
        yield url
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(30)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((HOSTS[0], 0))
        port: int = found.getsockname()[1]
        return port


def _start(command: list[str], log: Path, folder: Path) -> subprocess.Popen[bytes]:
    """A process of Spark's, as ``start-master.sh`` starts it, without a daemon."""
    home = Path(pyspark.__file__).parent
    removed = {"PYTHONPATH", "SPARK_LOCAL_IP", "SPARK_MASTER_HOST"}
    environment = {k: v for k, v in os.environ.items() if k not in removed}
    environment |= {
        "SPARK_HOME": str(home),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_NO_DAEMONIZE": "1",
    }
    with log.open("wb") as sink:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), *command],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment,
        )


def _wait_for(log: Path, text: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _STARTING_SECONDS
    while text not in (found := log.read_text(errors="replace")):
        assert process.poll() is None, found[-3000:]
        assert time.monotonic() < deadline, f"no {text!r} in: {found[-3000:]}"
        time.sleep(0.2)
