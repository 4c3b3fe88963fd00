"""The laws of the library, and what guards each: quick tests, long sweeps, mutants.

``python -m tests.laws`` writes the table into ``docs/testing.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.heavy.mutants.catalogue import MUTANTS
from tests.heavy.mutants.mutant import Mutant

ROOT: Final = Path(__file__).resolve().parent
PAGE: Final = ROOT.parent / "docs" / "testing.md"
BEGIN: Final = "<!-- the guards of the laws, written by `python -m tests.laws` -->"
END: Final = "<!-- end of the guards -->"


@dataclass(frozen=True, slots=True)
class Law:
    """A law of ``docs/architecture.md``.

    Args:
        name: as it is there.
        quick: the tests of each commit that fail if it is broken: files or folders
            below ``tests``.
        heavy: the sweeps that look for a case in which it is broken.
    """

    name: str
    quick: Sequence[str]
    heavy: Sequence[str]

    @property
    def mutants(self) -> list[Mutant]:
        """The broken variants that its quick tests must notice."""
        paths = tuple(f"tests/{path}" for path in self.quick)
        return [m for m in MUTANTS if any(t.startswith(paths) for t in m.tests)]


_VERDICTS: Final = (
    *("soundness", "soundness-spark", "soundness-foreign", "soundness-large"),
)
LAWS: Final = (
    Law(
        "Sound",
        (
            *("planner/test_soundness.py", "heavy/soundness", "planner/test_plan.py"),
            *("planner/stages", "conditions/test_simplify.py", "indexes", "table"),
            *("planner/test_before_listing.py", "expressions/test_atoms.py"),
            *("expressions/test_patterns.py", "traps/test_logic.py", "source"),
        ),
        (*_VERDICTS, "queries"),
    ),
    Law(
        "Tight",
        (
            *("indexes/test_contract.py", "indexes/kinds", "indexes/bit_slices"),
            *("planner/stages/test_row_marks.py", "planner/stages/test_row_counts.py"),
            "planner/stages/test_compared_columns.py",
        ),
        _VERDICTS,
    ),
    Law(
        "No NOT",
        ("expressions/test_predicate.py", "planner/test_soundness.py"),
        _VERDICTS,
    ),
    Law(
        "Unknown",
        (
            *("table/test_statistics.py", "table/test_ends.py"),
            *("planner/stages/test_computed_statistics.py", "traps/test_unreadable.py"),
            *("planner/stages/test_price.py", "planner/stages/test_file_maps.py"),
        ),
        (*_VERDICTS, "hostile"),
    ),
    Law(
        "Literals",
        (
            *("conditions/catalogue", "conditions/binding", "conditions/functions"),
            *(
                "conditions/sql",
                "planner/test_nanoseconds.py",
                "expressions/test_domain.py",
            ),
            *("source/test_stored.py", "spark/catalyst", "spark/semantics"),
        ),
        ("conditions", "soundness-spark", "soundness-foreign", "queries"),
    ),
    Law(
        "Checked bytes",
        (
            *("traps/test_bit_flips.py", "traps/test_damage.py", "storage", "log"),
            *("indexes/test_bad_input.py", "rewrite", "traps/test_upgrades.py"),
            "build/test_memory.py",
        ),
        ("kills", "cached", "hostile", "concurrent", "model", "folder"),
    ),
    Law(
        "Same rows",
        (
            *(
                "planner/rows",
                "planner/test_answers_of_indexes.py",
                "planner/test_engine.py",
            ),
            *("delta", "iceberg", "heavy/lives"),
            *("planner/stages/test_limit.py", "planner/test_verify.py"),
            *("traps/test_staleness.py", "spark/reading", "spark/pruning"),
            "spark/iceberg",
        ),
        (
            *("queries", "operators", "kills", "delta", "iceberg", "iceberg-sql"),
            *("rows", "folder", "foreign-delta", "foreign-iceberg"),
        ),
    ),
    Law("One way", ("test_architecture.py", "indexes/test_contract.py"), ("mutants",)),
)


def table() -> str:
    """The table of the page."""
    lines = [
        "| law | quick tests | long sweeps | mutants |",
        "|---|---|---|--:|",
    ]
    for number, law in enumerate(LAWS, 1):
        quick, heavy = (
            ", ".join(f"`{one}`" for one in some) for some in (law.quick, law.heavy)
        )
        lines.append(
            f"| {number}. {law.name} | {quick} | {heavy} | {len(law.mutants)} |"
        )
    lines += ["", f"Each of the {len(MUTANTS)} mutants breaks a law."]
    return "\n".join(lines)


def with_table(page: str) -> str:
    """The page with the table of today."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
