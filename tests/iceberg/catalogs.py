"""Catalogs of Iceberg tables, in a folder."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog


def sql_catalog(folder: Path) -> SqlCatalog:
    """A catalog with the namespace ``db``."""
    result = SqlCatalog(
        "c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}/w"
    )
    result.create_namespace("db")
    return result
