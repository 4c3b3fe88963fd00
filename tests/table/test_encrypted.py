"""Files that are encrypted in part or as a whole, of which no key is known.

Arrow ends the process where it is asked for the metadata of an encrypted column, so a
process of its own runs every way into such a table.
"""

from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import skipindex as sx
from skipindex.errors import TableError
from tests.tables import build, kept, put

EVERY_WAY = """
import sys
import skipindex as sx
from skipindex.cli import main
from skipindex.rewrite.selection.eligible_files import eligible_files
from skipindex.source.parquet.footers import row_counts

folder = sys.argv[1]
for indexes in (None, {"id": "bitmap"}, {"*": ["bitmap", "bloom"]}):
    report = sx.build_indexes(folder, indexes, workers=1, memory="300MB")
    print(report)
table = report.table
assert table.refresh_indexes(workers=1).files == 0
table.advise()
print(table.status(), table.verify())
eligible_files(table.state, range(len(table)))
print(row_counts(table.state.location, table.paths))
for condition in ("id = 15", "iban = '1-5'"):
    plan = table.plan(condition)
    print("kept", plan.paths, plan.verify().violations)
assert [main([name, folder]) for name in ("build", "refresh", "describe")] == [0] * 3
"""


class _Keys(pe.KmsClient):  # type: ignore[misc]
    """Keys that are hidden by nothing."""

    def __init__(self, _: pe.KmsConnectionConfig) -> None:
        pe.KmsClient.__init__(self)

    def wrap_key(self, key: bytes, master: str) -> bytes:
        return base64.b64encode(master.encode().ljust(16, b"_") + key)

    def unwrap_key(self, wrapped: bytes, _: str) -> bytes:
        return base64.b64decode(wrapped)[16:]


def rows(i: int) -> pa.Table:
    """Ten rows whose values are those of file ``i`` alone."""
    own = range(10 * i, 10 * i + 10)
    return pa.table({"id": own, "iban": [f"{i}-{j}" for j in range(10)]})


def encrypt(path: Path, table: pa.Table, *, plaintext_footer: bool) -> None:
    """Write a file whose column ``iban`` is encrypted."""
    asked = pe.EncryptionConfiguration(
        footer_key="footer",
        column_keys={"column": ["iban"]},
        plaintext_footer=plaintext_footer,
    )
    keys = pe.CryptoFactory(_Keys).file_encryption_properties(
        pe.KmsConnectionConfig(), asked
    )
    with pq.ParquetWriter(path, table.schema, encryption_properties=keys) as writer:
        writer.write_table(table)


@pytest.mark.few(1)
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
def test_columns_are_encrypted(tmp_path: Path, first: bool) -> None:
    """The file is read for the encrypted column, and indexed on the others."""
    for i in (1, 2):
        put(tmp_path / f"{i}.parquet", rows(i))
    name = "0.parquet" if first else "9.parquet"
    encrypt(tmp_path / name, rows(int(name[0])), plaintext_footer=True)
    run = [sys.executable, "-c", EVERY_WAY, str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"1 files: column 'iban' is encrypted (first: {name})" in done.stdout
    assert "kept ['1.parquet'] ()" in done.stdout
    both = sorted(["1.parquet", name])
    assert f"kept {both} ()" in done.stdout


def test_the_footer_is_encrypted(tmp_path: Path) -> None:
    """Nothing is known of the file, so it is read."""
    put(tmp_path / "0.parquet", rows(0))
    encrypt(tmp_path / "1.parquet", rows(1), plaintext_footer=False)
    report = sx.build_indexes(tmp_path, {"id": "bitmap"}, workers=1)
    assert report.notes == (
        "1 files: not readable: its footer is encrypted (first: 1.parquet)",
    )
    assert kept(report.table, "id = 3") == ["0.parquet", "1.parquet"]
    (tmp_path / "0.parquet").unlink()
    with pytest.raises(TableError, match="encrypted"):
        build(tmp_path)
