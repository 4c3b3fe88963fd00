"""What 0.1.0 has recorded of attributes of joined tables does not count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import skipindex as sx
from skipindex.log import Snapshot, commit
from skipindex.log.manifest import Manifest
from skipindex.log.properties import TableProperties
from tests.tables import put_all

STORED = "city via 0123456789abcdef0123456789abcdef"
ASSOCIATED: dict[str, Any] = {
    "city": {
        "key": "k",
        "key_domain": ["int", 0, 64, 0],
        "table": "../customers",
        "table_key": "k",
        "table_key_domain": ["int", 0, 64, 0],
        "attribute": "city",
        "domain": ["string", 0, 0, 0],
        "fingerprint": "f" * 64,
        "indexes": [{"kind": "bitmap"}],
    }
}


def as_before(base: Snapshot) -> tuple[Manifest, TableProperties]:
    """The commit with the property, and with statistics of such a column."""
    stats = dict(base.manifest.stats)
    stats[STORED] = stats["x"]
    manifest = replace(base.manifest, stats=stats)
    return manifest, replace(base.properties, others={"associated": ASSOCIATED})


def test_a_commit_with_it_is_read_as_if_it_had_none(tmp_path: Path) -> None:
    put_all(tmp_path / "t", [{"k": [i], "x": [i], "city": [f"c{i}"]} for i in (1, 2)])
    table = sx.build_indexes(tmp_path / "t", {"x": "bitmap"}, workers=1).table
    commit(table.state.location, as_before, operation="test")
    table = sx.open_table(tmp_path / "t")
    assert table.status().notes == ()
    assert table.plan("x = 2 AND city > 'a'").paths == ["1.parquet"]
    assert {info.column for info in table.indexes} == {"k", "x", "city"}
    assert [column.name for column in table.status().columns] == ["k", "x", "city"]
    put_all(tmp_path / "t", [{"k": [i], "x": [i], "city": ["c"]} for i in (1, 2, 3)])
    report = table.refresh_indexes(workers=1)
    assert report.notes == ()
    assert report.table.plan("x = 3").paths == ["2.parquet"]
    snapshot = report.table.state.snapshot
    assert snapshot.properties.others == {"associated": ASSOCIATED}
    assert report.table.verify().ok
