"""``python -m tests.heavy.soundness``: check the whole matrix, exit 1 if it is wrong.

One type by one judge: ``python -m tests.heavy.case soundness --seed 1 --part int8``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.heavy.soundness.cases import (
    Judge,
    judge_by_oracle,
    judge_by_spark,
    judge_foreign,
)
from tests.heavy.soundness.large import sweep_large
from tests.heavy.soundness.pools import pools
from tests.heavy.soundness.report import Checked, matrix, page

_JUDGES: Final[dict[str, tuple[Judge, int]]] = {
    "oracle": (judge_by_oracle, 1),
    "Spark": (judge_by_spark, 100),
    "files of others": (judge_foreign, 100),
}
"""With how many conditions of each type, for the oracle of each form."""
_N_LARGE: Final = 150
"""Conditions on files of many rows."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the matrix; 0 if nothing was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.heavy.soundness")
    parser.add_argument("--seed", type=int, default=1, help="of all choices")
    parser.add_argument("--out", type=Path, help="where to write the page")
    parser.add_argument("--matrix", type=Path, help="where to write every figure")
    options = parser.parse_args(arguments)
    checked, seed = Checked(), options.seed
    sweep_large(n=_N_LARGE, seed=seed, result=checked.by_numpy)
    for name, (judge, n) in _JUDGES.items():
        for pool in pools():
            began, before = time.perf_counter(), checked.n_verdicts
            judge(pool, n, seed, checked)
            n_more, seconds = checked.n_verdicts - before, time.perf_counter() - began
            print(
                f"{pool.name}, {name}: {n_more:,} verdicts in {seconds:.0f} s, "
                f"{len(checked.failures)} breaches in all",
                file=sys.stderr,
                flush=True,
            )
    text = page(checked, seed=seed)
    if options.out:
        options.out.write_text(text)
    if options.matrix:
        options.matrix.parent.mkdir(parents=True, exist_ok=True)
        options.matrix.write_text(matrix(checked, seed=seed))
    print(text)
    return int(bool(checked.failures))


if __name__ == "__main__":
    sys.exit(main())
