"""Everything that the figures of a run depend on, and what the report says of it."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

import skipindex
from ssb.data.generate import (
    DEFAULT_SEED,
    FORMAT_VERSION,
    Dataset,
    find_or_generate,
)
from ssb.data.scale import Sizes
from ssb.grid.records import Records
from ssb.progress import progress_lines
from ssb.session import scaled_session
from ssb.steps import Context

RUN: Final = "run.json"
FOLDER: Final = "headlines"
"""Of the results, beside the data."""
_PACKAGES: Final = ("pyspark", "pyarrow", "numpy", "pyroaring", "crc32c", "zstandard")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the figures depend on; a record of another setting is not used.

    Args:
        scale: of the data.
        files: that a layout has, apart from the small ones.
        data_seed: of the draws that TPC-H does not make.
        data_version: of the data's format.
        lookups: how many are drawn.
        seed: of the look-ups.
        version: of the library.
        source: a checksum of the library's source.
    """

    scale: float
    files: int
    data_seed: int
    data_version: int
    lookups: int
    seed: int
    version: str
    source: str

    @classmethod
    def of(cls, dataset: Dataset, *, lookups: int, seed: int) -> Setting:
        """The setting of a run of the library as it is now."""
        return cls(
            scale=dataset.scale,
            files=dataset.n_files,
            data_seed=dataset.seed,
            data_version=FORMAT_VERSION,
            lookups=lookups,
            seed=seed,
            version=skipindex.__version__,
            source=source_checksum(),
        )


def begun(
    parsed: argparse.Namespace, *, lookups: int, seed: int, files: int
) -> Context:
    """Make the data if they are missing, and write down what the run is.

    Args:
        parsed: what it was told of the data and of Spark.
        lookups: how many are drawn.
        seed: of the look-ups.
        files: of the data, where the command was told none.
    """
    Sizes.of(parsed.scale)  # refuses a bad scale before the seconds that Spark takes
    log = progress_lines()
    spark = scaled_session("ssb headlines", scale=parsed.scale, memory=parsed.memory)
    dataset = find_or_generate(
        parsed.out,
        scale=parsed.scale,
        seed=DEFAULT_SEED,
        files=parsed.files or files,
        spark=spark,
        log=log,
    )
    folder = dataset.path / FOLDER
    setting = Setting.of(dataset, lookups=lookups, seed=seed)
    write_run(folder, setting, java_version(spark))
    records = Records(folder, asdict(setting))
    return Context(spark, dataset, records, folder / "work", log)


def java_version(spark: SparkSession) -> str:
    """Of the JVM of a session."""
    jvm = spark.sparkContext._jvm  # noqa: SLF001 (no public name)
    assert jvm is not None
    return str(jvm.System.getProperty("java.version"))


def source_checksum() -> str:
    """Twelve hexadecimal digits that change with the code of the library."""
    root = Path(skipindex.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.suffix in {".py", ".java"}:
            digest.update(f"{path.relative_to(root)}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def write_run(folder: Path, setting: Setting, java: str) -> None:
    """Write ``run.json``: the setting, the machine, the versions and the command.

    Args:
        folder: of the results.
        setting: of the run.
        java: the version of the JVM.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stored = {
        "setting": asdict(setting),
        "machine": machine(),
        "versions": {**versions(), "java": java},
        "command": command(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    text = json.dumps(stored, indent=2)
    (folder / RUN).write_text(f"{text}\n", encoding="utf-8")


def machine() -> dict[str, Any]:
    """What the run ran on."""
    pages, page = (os.sysconf(name) for name in ("SC_PHYS_PAGES", "SC_PAGE_SIZE"))
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory (GiB)": round(pages * page / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Of the library, of Python and of the packages that do the work."""
    found = {"skipindex": skipindex.__version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def command() -> str:
    """The command line of this process."""
    return " ".join(["python -m ssb", *sys.argv[1:]])
