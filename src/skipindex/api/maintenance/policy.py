"""The limits of maintenance: a policy, and a budget of seconds and bytes."""

from __future__ import annotations

import os
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

from skipindex.advice import MAX_BYTES_RATIO
from skipindex.api.checks import duration_in
from skipindex.build.memory import bytes_in
from skipindex.errors import TableError, one_line
from skipindex.table.queries import OF_LOG, is_of_log

STEPS: Final = ("refresh", "merge", "cluster", "advise", "vacuum")

BudgetLike: TypeAlias = int | str | timedelta | None
PolicyLike: TypeAlias = "Policy | Mapping[str, Any] | str | os.PathLike[str] | None"


@dataclass(frozen=True, slots=True)
class Policy:
    """What maintenance may do.

    Args:
        steps: the steps that it may take.
        queries: the record of queries: ``"log"``, or ``"log:FOLDER"``.
        days: only queries of so many last days count.
        least_queries: recorded queries without which nothing is chosen again.
        max_bytes_ratio: the cap of all indexes, as a fraction of the data's bytes.
        publish: whether rewritten files may become visible to readers that list the
            folder, when the retention is over.  Such readers may see rows twice
            meanwhile.
        in_place: whether data files that skipindex has not written may be rewritten, as
            by ``optimize(in_place=True)``.  Then a table without a layout gets the one
            that its recorded queries suggest, and ``vacuum`` deletes the old files.
    """

    steps: tuple[str, ...] = STEPS
    queries: str = OF_LOG
    days: float = 7.0
    least_queries: int = 20
    max_bytes_ratio: float = MAX_BYTES_RATIO
    publish: bool = False
    in_place: bool = False

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            TableError: a value is not accepted.
        """
        steps: Any = self.steps
        good = {
            "steps": isinstance(steps, tuple) and all(one in STEPS for one in steps),
            "queries": is_of_log(self.queries),
            "days": _is_number(self.days) and 0 < self.days <= 36525,
            "least_queries": _is_number(self.least_queries) and self.least_queries >= 1,
            "max_bytes_ratio": _is_number(self.max_bytes_ratio)
            and 0 < self.max_bytes_ratio < float("inf"),
            "publish": isinstance(self.publish, bool),
            "in_place": isinstance(self.in_place, bool),
        }
        for name, is_good in good.items():
            if not is_good:
                raise TableError(
                    f"a policy cannot have {name} = {getattr(self, name)!r} (see "
                    "skipindex.api.types.Policy)"
                )

    @classmethod
    def of(cls, policy: PolicyLike) -> Policy:
        """A policy as an argument: values by name, or a file of TOML.

        Raises:
            TableError: the file cannot be read, or a value does not exist.
        """
        if policy is None or isinstance(policy, Policy):
            return policy or cls()
        values: Any = policy
        if isinstance(policy, str | os.PathLike):
            try:
                values = tomllib.loads(Path(policy).read_text("utf-8"))
            except (OSError, ValueError) as error:
                told = one_line(str(error))
                raise TableError(f"cannot read the policy: {told}") from error
        names = [one.name for one in fields(cls)]
        is_mapping = isinstance(values, Mapping)
        unknown = sorted(values.keys() - set(names)) if is_mapping else [str(values)]
        if unknown:
            told = ", ".join(map(repr, unknown))
            raise TableError(f"a policy has no {told} (accepted: {', '.join(names)})")
        given = dict(values)
        if isinstance(given.get("steps"), list | tuple):
            given["steps"] = tuple(map(str, given["steps"]))
        return cls(**given)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(slots=True)
class Budget:
    """The seconds and the bytes that are left of a budget; None is no limit."""

    seconds: float | None
    n_bytes: int | None
    _began: float
    _used: int = 0

    @classmethod
    def of(cls, budget: BudgetLike) -> Budget:
        """A budget as an argument: such as ``"10min"``, ``"50GB"``, or both.

        Raises:
            TableError: it is no amount of time or bytes.
        """
        seconds: float | None = None
        n_bytes: int | None = None
        parts = budget.split(",") if isinstance(budget, str) else [budget]
        for part in parts if budget is not None else ():
            text = part.strip() if isinstance(part, str) else part
            duration = None if text == "0" else duration_in(text)
            if duration is not None:
                seconds = duration.total_seconds()
            else:
                n_bytes = bytes_in(text)
                if n_bytes is None or n_bytes < 0:
                    raise TableError(
                        f"not a budget: {budget!r} (accepted: such as '10min', '50GB', "
                        "'10min,50GB', a number of bytes, or a timedelta)"
                    )
        return cls(seconds, n_bytes, time.monotonic())

    def spend(self, n_bytes: int) -> None:
        """Take what was read and written."""
        self._used += n_bytes

    @property
    def is_limited(self) -> bool:
        """Whether it ends."""
        return self.seconds is not None or self.n_bytes is not None

    @property
    def seconds_left(self) -> float:
        """The seconds until it ends."""
        if self.seconds is None:
            return float("inf")
        return self.seconds - (time.monotonic() - self._began)

    def bytes_left(self, rate: float) -> float:
        """The bytes that fit, where a second takes ``rate`` of them."""
        left = float("inf") if self.n_bytes is None else self.n_bytes - self._used
        return max(0.0, min(left, self.seconds_left * rate))
