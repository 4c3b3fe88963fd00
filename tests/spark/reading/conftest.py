"""Both ways in which Spark comes to know the files of a plan."""

from __future__ import annotations

import pytest

from skipindex.spark.reading import frames


@pytest.fixture(params=["given", pytest.param("listed", marks=pytest.mark.slow)])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Spark is given our listing, or it lists the paths of the files.

    The second is for a driver without our classes: a quick run has the tests of paths.
    """
    if request.param == "listed":
        monkeypatch.setattr(frames, "_relation", lambda _: None)
    return str(request.param)
