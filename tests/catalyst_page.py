"""The page of Catalyst's classes, made of the tables by which they are read.

``python -m tests.catalyst_page`` writes ``docs/reference/catalyst.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from skipindex.spark.catalyst.classes import (
    CALLS,
    COMPARISONS,
    TRANSPARENT,
    Part,
    Shape,
)
from skipindex.spark.catalyst.forms import FORMS
from skipindex.spark.catalyst.names import NAMES

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "catalyst.md"
HEAD = """\
# Expressions of Spark

Spark's optimizer brings conditions into a final form: it folds constants, moves casts
to literals, and resolves names.  skipindex translates this form, and the `Column`s of
PySpark 3.5.

The tables list the supported classes, with restrictions in the column *only*.  Any
other expression, such as a Python function, is opaque: every row may match its
condition.  Other conditions are still evaluated, and `plan.explain()` names the opaque
ones.

- A column is supported if the table has it with the same name and type, and without a
  collation or the padding of `CHAR`.
- All conditions are evaluated in the time zone of the first expression that depends on
  one.  An expression with a different zone is opaque.
- An expression that fails in ANSI mode, and is NULL or wraps around without it, is
  evaluated for both modes.  `try_add`, `try_cast` and the like are opaque.
- A condition of more than 100 levels, or of more than 32 MiB, is opaque.

`python -m tests.catalyst_page` writes this page.
"""


def page() -> str:
    return "\n".join(sections())


def sections() -> Iterator[str]:
    yield HEAD
    yield "## Names and values\n"
    chosen = {"Literal": FORMS["Literal"], "Cast": FORMS["Cast"], **NAMES}
    rows = [(name, form.sql, form.only) for name, form in chosen.items()]
    yield table("class", "SQL", "only", sorted(rows))
    yield "## Conditions and functions\n"
    rows = [
        (name, form.sql, form.only)
        for name, form in FORMS.items()
        if name not in chosen
    ]
    for shapes in (COMPARISONS, CALLS):
        rows += [(name, f"`{one.sql}`", only(one)) for name, one in shapes.items()]
    yield table("class", "SQL", "only", sorted(rows))
    yield "## Ignored wrappers\n"
    yield "These are translated as their operand.\n"
    yield "\n".join(f"- `{name}`" for name in TRANSPARENT) + "\n"


def only(shape: Shape) -> str:
    """What is understood of a class."""
    return "no `try_…`" if Part.MODE in shape.parts else ESCAPE.get(shape.sql, "")


ESCAPE = {"ilike": "a backslash as the escape"}


def table(*cells: object) -> str:
    *head, rows = cells
    assert isinstance(rows, list)
    lines = [" | ".join(map(str, head)), " | ".join("---" for _ in head)]
    lines += [" | ".join((f"`{name}`", *rest)) for name, *rest in rows]
    return "\n".join(f"| {line} |".replace("  |", " |") for line in lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
