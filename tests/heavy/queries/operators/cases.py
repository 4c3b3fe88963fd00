"""A case: statements and queries of one form, under drawn settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

SETTINGS: Final[Mapping[str, Sequence[str]]] = {
    "skipindex.answers": ("true", "true", "false"),
    "skipindex.rowsFromPlanner": ("0", "0", "2000", "4m"),
    "skipindex.rowGroups": ("true", "true", "false"),
    "spark.sql.adaptive.enabled": ("true", "false", "false"),
    "spark.sql.autoBroadcastJoinThreshold": ("-1", "-1", "10485760", "20000"),
    "spark.sql.shuffle.partitions": ("1", "3", "5"),
    "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": ("true", "false"),
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": ("true", "true", "false"),
    "spark.sql.exchange.reuse": ("true", "true", "false"),
    "spark.sql.cbo.enabled": ("true", "false"),
    "spark.sql.files.maxPartitionBytes": ("20000", "134217728"),
    "spark.sql.codegen.wholeStage": ("true", "false"),
    "spark.sql.optimizer.runtime.bloomFilter.enabled": ("true", "false"),
    "spark.sql.legacy.bucketedTableScan.outputOrdering": ("true", "false"),
    "spark.sql.sources.bucketing.enabled": ("true", "false"),
    "spark.sql.join.preferSortMergeJoin": ("true", "false"),
}
"""Of the session, by name; each may change how a plan runs."""


@dataclass(frozen=True)
class Step:
    """A statement or a query.

    Args:
        kind: ``ask`` gives rows that are compared, and has a cost; ``do`` is a
            statement; ``frame`` defines a DataFrame and a view of it, ``cache`` caches
            it, ``again`` collects the same object, ``replan`` makes a DataFrame of its
            optimized plan, ``drop`` frees its cache; ``stream`` asks in each batch;
            ``list`` makes a frame of the copied table as it is now, ``bare`` takes its
            indexes, ``grow`` adds the files of a table to it; ``where`` filters a
            frame.
        text: SQL, with ``«0»`` for the first condition.
        conditions: of the text.
        name: of the frame, or of the table that is copied.
        within: a query with the rows among which LIMIT may choose.
        ordered: whether the rows have one order.
    """

    kind: str
    text: str = ""
    conditions: tuple[str, ...] = ()
    name: str = ""
    within: str = ""
    ordered: bool = False

    def sql(self, text: str | None = None) -> str:
        """The text with its conditions."""
        text = self.text if text is None else text
        for i, condition in enumerate(self.conditions):
            text = text.replace(f"«{i}»", condition)
        return text


@dataclass(frozen=True)
class Case:
    """What is run twice.

    Args:
        form: its name.
        steps: one after the other.
        settings: of the session.
        on_first: whether the run with skipping is the first of the two.
        copied: a table that each run gets a copy of, as the steps change it.
    """

    form: str
    steps: tuple[Step, ...]
    settings: Mapping[str, str]
    on_first: bool
    copied: str = ""

    def smaller(self) -> Iterator[Case]:
        """Cases that are a little simpler."""
        for i in range(len(self.steps)):
            if len(self.steps) > 1:
                yield replace(self, steps=self.steps[:i] + self.steps[i + 1 :])
        for name in self.settings:
            left = {k: v for k, v in self.settings.items() if k != name}
            yield replace(self, settings=left)
        for i, step in enumerate(self.steps):
            for j, condition in enumerate(step.conditions):
                if condition == "true":
                    continue
                conditions = list(step.conditions)
                conditions[j] = "true"
                steps = list(self.steps)
                steps[i] = replace(step, conditions=tuple(conditions))
                yield replace(self, steps=tuple(steps))

    def __str__(self) -> str:
        """All that is needed to do it by hand."""
        first = "enabled" if self.on_first else "plain"
        lines = [f"{self.form}, {first} first, settings {dict(self.settings)}"]
        for step in self.steps:
            parts = (step.kind, step.name, step.sql())
            lines.append("  " + " | ".join(part for part in parts if part))
        return "\n".join(lines)


def drawn_settings(rng: Random) -> dict[str, str]:
    """Some settings."""
    n = rng.choice([0, 1, 2, 4])
    return {name: rng.choice(SETTINGS[name]) for name in rng.sample(list(SETTINGS), n)}
