"""What is proposed of partition columns is true of the rows of the sampled files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipindex as sx
from skipindex.cli import main

FIRST = datetime(2021, 11, 28, 23, 30, tzinfo=UTC)
PARTS = "year={0:%Y}/month={0:%m}/day={0:%d}"


def put(
    root: Path, folder: Callable[[datetime], str], columns: Mapping[str, pa.DataType]
) -> sx.Table:
    """A file for each of 40 times, with one more column of times a year later."""
    for number in range(40):
        moment = FIRST + number * timedelta(days=31)
        path = root / folder(moment) / f"{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        values = {
            name: pa.array([moment.replace(tzinfo=None), None]).cast(kind)
            for name, kind in columns.items()
        }
        later = [moment + timedelta(days=366)] * 2
        times = pa.array(later, pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"id": [1, 2], "later": times, **values}), path)
    return sx.open_table(root)


def parts(column: str) -> dict[str, str]:
    return {
        "year": f"year({column})",
        "month": f"month({column})",
        "day": f"dayofmonth({column})",
    }


@pytest.mark.parametrize(
    ("kind", "folder", "expected", "zone"),
    [
        (pa.timestamp("us", "UTC"), PARTS, parts("dt"), "UTC"),
        (pa.timestamp("us"), PARTS, parts("dt"), None),
        (pa.date32(), PARTS, parts("dt"), None),
        (pa.timestamp("us"), "on={0:%Y-%m-%d}", {"on": "date(dt)"}, None),
        (pa.string(), "on={0:%Y-%m-%d}", {"on": "substring(dt, 1, 10)"}, None),
    ],
    ids=["timestamp", "timestamp_ntz", "date", "one folder a day", "text of a day"],
)
def test_what_folders_were_made_of_is_found(
    tmp_path: Path,
    kind: pa.DataType,
    folder: str,
    expected: dict[str, str],
    zone: str | None,
) -> None:
    table = put(tmp_path / "t", folder.format, {"dt": kind})
    found = table.propose_derived()
    assert [(dict(one.columns), one.timezone) for one in found] == [(expected, zone)]
    declared = table.declare_derived(found[0].columns, timezone=found[0].timezone)
    assert declared.propose_derived() == ()


def test_another_time_zone_or_column_is_not_proposed(tmp_path: Path) -> None:
    columns = {"dt": pa.timestamp("us", "UTC"), "same": pa.timestamp("us")}
    table = put(tmp_path / "t", PARTS.format, columns)
    found = table.propose_derived(timezone="Asia/Tokyo")
    assert [dict(one.columns) for one in found] == [parts("same")]


def test_folders_of_something_else_are_not_explained(tmp_path: Path) -> None:
    columns = {"dt": pa.timestamp("us")}
    other = put(tmp_path / "a", lambda day: f"year={day.year + 7}", columns)
    single = put(tmp_path / "b", lambda _: "year=2021", columns)
    assert other.propose_derived() == ()
    assert single.propose_derived() == ()


def test_the_status_names_the_proposal_until_something_is_declared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = put(tmp_path / "t", PARTS.format, {"dt": pa.date32()})
    said = "year, month, day: partition columns that may be computed from a time"
    status = table.status()
    assert status.undeclared == ("year", "month", "day")
    assert [said in line for line in f"{status}".splitlines()].count(True) == 1
    assert main(["describe", table.folder]) == 0
    told = capsys.readouterr().out
    assert told.count(said) == told.count("propose_derived") == 1
    (proposal, *_) = table.propose_derived()
    declared = table.declare_derived(proposal.columns, timezone=proposal.timezone)
    assert declared.status().undeclared == ()
    assert "propose_derived" not in f"{declared.status()}"


def test_the_status_of_other_partitions_names_no_proposal(tmp_path: Path) -> None:
    table = put(tmp_path / "t", "Hour={0:%H}/y={0:%Y}".format, {"dt": pa.date32()})
    assert table.status().undeclared == ("Hour",)
    for file in (tmp_path / "t").rglob("*.parquet"):
        file.write_bytes(b"no Parquet file")
    known = sx.open_table(tmp_path / "t", schema=table.schema)
    assert known.status().undeclared == ("Hour",), "no data file is read"
    number = {"n": pa.array([1])}
    for name in ("year=2022", "y=2022"):
        (tmp_path / name / name).mkdir(parents=True)
        pq.write_table(pa.table(number), tmp_path / name / name / "f.parquet")
        assert sx.open_table(tmp_path / name).status().undeclared == ()
