"""The rows of a plan, or of its files, for engines other than Spark.

All of them read one dataset of Arrow: the files of the plan, each of which was looked
at, with the columns of the table.  The plan's condition is part of the dataset, as an
expression that is TRUE for the rows for which Spark's is, so the rows are Spark's.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Rows: TypeAlias = Literal["matching", "files"]
"""The rows for which the condition is TRUE, or all rows of the files to read."""
