"""The environments of the cells: made once, with uv where it is, else with pip."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.heavy.matrix.cells import ROOT, Cell, name_of, project, requirements

FOLDER: Final = ROOT / ".matrix"


class NoCellError(Exception):
    """The environment of a cell cannot be made."""


class LackError(NoCellError):
    """The machine has no such Python or Java, and cannot get one."""


def prepared(cell: Cell) -> Path:
    """The Python of the cell's environment, with what the cell needs installed.

    Raises:
        LackError: there is no such Python.
        NoCellError: something cannot be installed.
    """
    home = FOLDER / cell.name
    python, stamp = home / "bin" / "python", home / "installed.txt"
    wanted = "\n".join([f"python {cell.python}", *requirements(cell, project())])
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    found = _python(cell.python)
    uv = shutil.which("uv")
    if not python.exists():
        _run(
            [*([uv, "venv"] if uv else [str(found), "-m", "venv"]), str(home)]
            + (["--quiet", "--python", str(found)] if uv else [])
        )
    into = (
        [uv, "pip", "install", "--python", str(python)]
        if uv
        else [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
    )
    _run([*into, "--quiet", *requirements(cell, project())])
    # Without its dependencies: PySpark is no part of every cell.
    _run([*into, "--quiet", "--no-deps", "--editable", str(ROOT)])
    stamp.write_text(wanted)
    return python


def versions(python: Path, cell: Cell) -> dict[str, str]:
    """What is installed: Python, Spark, and all that the package depends on."""
    names = sorted({*map(name_of, project()["dependencies"]), "pandas", "pyspark"})
    script = """
import importlib.metadata as m, json, platform, sys
found = {"python": platform.python_version()}
for name in sys.argv[1:]:
    try:
        found[name] = m.version(name)
    except m.PackageNotFoundError:
        pass
print(json.dumps(found))
"""
    command = [str(python), "-c", script, *names]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(answer.stdout)
    assert ("pyspark" in found) == bool(cell.spark), f"{cell.name} has {found}"
    return found


def variables(python: Path, cell: Cell) -> Mapping[str, str]:
    """The environment variables of the tests.

    Raises:
        LackError: there is no Java for Spark.
    """
    found = dict(os.environ)
    found["PATH"] = f"{python.parent}{os.pathsep}{found['PATH']}"
    if cell.spark and "JAVA_HOME" not in found:
        answer = subprocess.run(
            [str(ROOT / ".ci" / "java")], stdout=subprocess.PIPE, text=True, check=False
        )
        if answer.returncode:
            raise LackError("this machine has no Java for Spark")
        found["JAVA_HOME"] = answer.stdout.strip()
    return found


def _python(version: str) -> Path:
    """A Python of that version: on the path, pyenv's, or one that uv has or gets."""
    homes = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [
        shutil.which(f"python{version}"),
        *sorted(homes.glob(f"{version}.*/bin/python{version}"), reverse=True),
    ]
    for candidate in filter(None, candidates):
        if _is_python(str(candidate), version):
            return Path(candidate)
    uv = shutil.which("uv")
    if uv:
        subprocess.run([uv, "python", "install", "--quiet", version], check=False)
        answer = subprocess.run(
            [uv, "python", "find", version], capture_output=True, text=True, check=False
        )
        if _is_python(answer.stdout.strip(), version):
            return Path(answer.stdout.strip())
    tried = "uv could not install it" if uv else "there is no uv to install it"
    raise LackError(f"this machine has no Python {version}, and {tried}")


def _is_python(command: str, version: str) -> bool:
    """Whether it runs: a shim of pyenv's may not."""
    script = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run(
            [command, "-c", script], capture_output=True, text=True, check=False
        )
    except OSError:
        return False
    return answer.stdout.strip() == version


def _run(command: list[str]) -> None:
    answer = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if answer.returncode:
        lines = answer.stderr.strip().splitlines()[-5:]
        raise NoCellError(f"{' '.join(command[:4])} … failed: {' / '.join(lines)}")
