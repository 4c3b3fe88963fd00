"""Settings of Spark that read and write days before 1582 as they are."""

from __future__ import annotations

from typing import Final

REBASE: Final = {
    f"spark.sql.parquet.{kind}RebaseModeIn{way}": "CORRECTED"
    for kind in ("datetime", "int96")
    for way in ("Read", "Write")
}
"""Spark 3 refuses days before 1582, where Spark 4 takes them as they are."""
