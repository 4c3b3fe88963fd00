"""How many rows each table has at a scale factor."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ssb import SsbError

MIN_SCALE = 0.01
MAX_SCALE = 1000.0


@dataclass(frozen=True, slots=True)
class Sizes:
    """Row counts that follow from the scale factor alone.

    ``n_tpch_parts`` is the number of parts in TPC-H, ``n_parts`` in SSB, and
    ``n_ordered_parts`` the number of those that an order may name.
    """

    n_customers: int
    n_suppliers: int
    n_parts: int
    n_ordered_parts: int
    n_tpch_parts: int
    n_orders: int

    @classmethod
    def of(cls, scale: float) -> Sizes:
        """The sizes at ``scale``.

        In steps of 0.001 every table of TPC-H and of SSB has a whole number of
        rows.  The part table grows with the base-2 logarithm, the range that the
        orders draw from with the natural one: that is what the generator does.

        Raises:
            SsbError: if there are no such data.
        """
        thousandths = round(scale * 1000) if math.isfinite(scale) else 0
        whole = math.isclose(thousandths, scale * 1000, rel_tol=1e-9)
        if not (MIN_SCALE <= scale <= MAX_SCALE and whole):
            raise SsbError(
                f"no SSB data at scale {scale!r}: accepted is {MIN_SCALE} to "
                f"{MAX_SCALE:.0f} in steps of 0.001"
            )
        n_tpch_parts = 200 * thousandths
        return cls(
            n_customers=30 * thousandths,
            n_suppliers=2 * thousandths,
            n_parts=_grown(n_tpch_parts, math.log2(max(scale, 1))),
            n_ordered_parts=_grown(n_tpch_parts, math.log(max(scale, 1))),
            n_tpch_parts=n_tpch_parts,
            n_orders=1500 * thousandths,
        )

    @property
    def default_files(self) -> int:
        """100 files at scale 1, so of 60,000 rows, but never fewer than 10."""
        return max(10, round(self.n_orders / 15_000))


def _grown(n_tpch_parts: int, logarithm: float) -> int:
    return min(n_tpch_parts, 200_000 * (1 + math.floor(logarithm)))
