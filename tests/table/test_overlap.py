"""How many files hold a value, from statistics alone: as a count of all files says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skipindex as sx
from skipindex.cli import main
from skipindex.expressions.domain import Domain
from skipindex.table import FileStats, Overlap
from skipindex.table.statistics.overlap import ranked, spread
from tests.quick_run import examples
from tests.rewrite.arrow_writer import make_own

LONG, TEXT = Domain("int64"), Domain("string")
files = st.lists(
    st.tuples(
        st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted)
        | st.sampled_from(["anywhere", "nowhere"]),
        st.integers(1, 5),
        st.integers(0, 2),
    ),
    max_size=12,
)


def stats_of(ends: Sequence[Any]) -> FileStats:
    """Of ranges; a file that is nowhere holds no value."""
    ranges = [end if isinstance(end, list) else None for end in ends]
    lows, highs = ([r and r[i] for r in ranges] for i in (0, 1))
    known = FileStats.between(lows, highs, LONG)
    can_value = np.array([end != "nowhere" for end in ends], bool)
    return replace(known, can_value=can_value)


@examples(300)
@given(files=files)
def test_the_overlap_is_what_a_count_of_all_files_says(files: list[Any]) -> None:
    ends, sizes, partition = ([file[i] for file in files] for i in range(3))
    found = Overlap.of(stats_of(ends), sizes, np.array(partition, np.int64))
    total = weight = 0.0
    worst = 0
    for i, end in enumerate(ends):
        if end == "nowhere":
            continue
        others = [e for e, p in zip(ends, partition, strict=True) if p == partition[i]]
        known = [e for e in others if isinstance(e, list)]
        # A file that may hold any value holds those of its partition.
        widest = [
            min((e[0] for e in known), default=0),
            max((e[1] for e in known), default=0),
        ]
        ranges = [widest if e == "anywhere" else e for e in others if e != "nowhere"]
        for value in widest if end == "anywhere" else end:
            n = sum(low <= value <= high for low, high in ranges)
            total, weight = total + n * sizes[i] / 2, weight + sizes[i] / 2
            worst = max(worst, n)
    assert found.worst == worst
    assert found.mean == pytest.approx(total / weight if weight else 0)


@examples(100)
@given(
    texts=st.lists(st.tuples(st.binary(max_size=3), st.binary(max_size=3)).map(sorted))
)
def test_texts_are_ranked_by_their_bytes(texts: list[list[bytes]]) -> None:
    lows, highs = ([pair[i] for pair in texts] for i in (0, 1))
    found = ranked(FileStats.between(lows, highs, TEXT))
    order = {text: i for i, text in enumerate(sorted({*lows, *highs}))}
    assert [list(end) for end in found] == [
        [order[text] for text in end] for end in (lows, highs)
    ]


def test_a_partition_of_which_nothing_is_known_has_one_value() -> None:
    stats = stats_of([[3, 5], "anywhere", "anywhere"])
    low, high = spread(stats, np.array([0, 1, 1]))
    assert (low <= high).all()
    assert Overlap.of(stats, [1, 1, 1], np.array([0, 1, 1])) == Overlap(5 / 3, 2)


def chain(folder: Path, layout: Mapping[str, Any]) -> sx.Table:
    """Files of one size of which two hold 5 .. 10."""
    for i, (low, high) in enumerate([(0, 10), (5, 15), (20, 30)]):
        pq.write_table(
            pa.table({"x": [low, high], "t": ["a", "b"]}), folder / f"{i}.parquet"
        )
    sx.build_indexes(folder, {"x": []}, workers=1)
    return make_own(folder, layout)


def test_the_status_has_the_overlap_of_what_the_table_is_clustered_by(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = chain(tmp_path, {"cluster_by": ["x", "t", "gone"]})
    status = table.status()
    mean = (1.5 + 1.5 + 1) / 3
    assert status.overlap["x"] == Overlap(pytest.approx(mean), 2)
    assert status.overlap["t"] == Overlap(3, 3), "no statistics: it lies everywhere"
    assert status.overlap["gone"] is None
    assert "clustered by x: 1.3 files contain a value on average, 2 at most" in str(
        status
    )
    assert "clustered by gone: not known" in str(status)
    assert main(["describe", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["overlap"]
    assert told["t"] == asdict(Overlap(3, 3))


def test_the_overlap_opens_no_file(tmp_path: Path) -> None:
    table = chain(tmp_path, {"cluster_by": ["x"]})
    for path in tmp_path.glob("*.parquet"):
        path.unlink()
    assert table.status().overlap["x"] is not None
