"""Scripts: steps of a session, the same with skipping on and off."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from tests.heavy.queries.conditions import TRUE, Ref
from tests.heavy.queries.tables import CHANGES, REPLACING, Made
from tests.heavy.queries.texts import Draft, Source, Writer
from tests.heavy.queries.values import KINDS

SETTINGS: Final[Mapping[str, Sequence[str]]] = {
    "spark.sql.ansi.enabled": ("true", "false"),
    "spark.sql.session.timeZone": (
        *("UTC", "America/New_York", "Asia/Kolkata", "Europe/Berlin"),
        *("Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Casablanca"),
    ),
    "spark.sql.caseSensitive": ("true", "false"),
    "spark.sql.timestampType": ("TIMESTAMP_LTZ", "TIMESTAMP_NTZ"),
    "spark.sql.parquet.filterPushdown": ("true", "false"),
    "spark.sql.adaptive.enabled": ("true", "false"),
    "spark.sql.parquet.enableVectorizedReader": ("true", "false"),
    "spark.sql.optimizer.inSetConversionThreshold": ("0", "2", "100"),
    "spark.sql.parquet.pushdown.inFilterThreshold": ("0", "1000"),
    "spark.sql.autoBroadcastJoinThreshold": ("-1", "2000", "10485760"),
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": ("true", "false"),
    "spark.sql.sources.useV1SourceList": ("", "parquet"),
    "spark.sql.optimizer.runtime.bloomFilter.enabled": ("true", "false"),
    "spark.sql.sources.partitionColumnTypeInference.enabled": ("true", "false"),
    "spark.sql.parquet.binaryAsString": ("true", "false"),
    "spark.sql.parquet.inferTimestampNTZ.enabled": ("true", "false"),
    "spark.sql.parquet.int96TimestampConversion": ("true", "false"),
    "spark.sql.parquet.datetimeRebaseModeInRead": ("LEGACY", "CORRECTED"),
    "spark.sql.parquet.int96RebaseModeInRead": ("LEGACY", "CORRECTED"),
    "spark.sql.hive.manageFilesourcePartitions": ("true", "false"),
    "spark.sql.sources.bucketing.enabled": ("true", "false"),
    "spark.sql.parquet.mergeSchema": ("true", "false"),
    "spark.sql.files.maxPartitionBytes": ("3000", "134217728"),
    "spark.sql.codegen.wholeStage": ("true", "false"),
    "spark.sql.optimizer.excludedRules": tuple(
        f"org.apache.spark.sql.catalyst.optimizer.{rule}"
        for rule in ("ConstantFolding", "PushDownPredicates", "OptimizeIn")
    ),
}
"""Of the session, by name; each may change how a query is understood or run."""

DERIVED: Final = (
    *("where", "where twice", "values", "select", "renamed", "joined", "counted"),
    *("dropped", "sorted", "unioned", "window", "deduplicated"),
)
"""How `frames.derive` makes a frame of a frame."""
_LITERAL: Final = re.compile(r"-?\d+(\.\d+)?[LD]?|(date|timestamp|x)?'[^'\\\\:]*'")
"""What is a literal for Spark, as parameters must be."""


@dataclass(frozen=True)
class Step:
    """One step.

    Args:
        kind: ``sql``, ``collect``, ``count`` and ``together`` give rows; ``do`` is a
            statement, ``frame`` defines a DataFrame, ``explain`` plans it, ``set`` is a
            setting, ``change`` what others do to the files; ``cache``, ``write``.
        draft: the query; with ``{t}`` for the table's name, ``{path}`` for its folder.
        name: of the frame or the setting.
        value: of the setting; or how a frame reads, or what changes.
        drafts: that run at the same time.
    """

    kind: str
    draft: Draft = field(default_factory=lambda: Draft(""))
    name: str = ""
    value: str = ""
    drafts: tuple[Draft, ...] = ()
    seed: int = 0


@dataclass(frozen=True)
class Script:
    """Steps on one table.

    Args:
        steps: of the script.
        settings: of the session when it begins.
        variables: texts of values by name, and how they are passed.
        passed: ``parameters``, ``variables``, or ``text``.
        copied: whether each of the runs has a copy of the table.
        session: ``home``, ``new`` or ``clone``.
        reference: how skipping is off: ``setting``, ``disable`` or ``never`` on.
        registers: whether the table is made known beforehand.
        on_first: whether the run with skipping is the first of the two.
    """

    steps: tuple[Step, ...]
    settings: Mapping[str, str]
    variables: Mapping[str, str]
    passed: str
    copied: bool
    session: str
    reference: str
    registers: bool
    on_first: bool

    def smaller(self) -> Iterator[Script]:
        """Scripts that are a step simpler."""
        for i in range(len(self.steps)):
            if len(self.steps) > 1:
                yield replace(self, steps=self.steps[:i] + self.steps[i + 1 :])
        for name in self.settings:
            left = {k: v for k, v in self.settings.items() if k != name}
            yield replace(self, settings=left)
        for i, step in enumerate(self.steps):
            for j, condition in enumerate(step.draft.conditions):
                shorter = () if condition == TRUE else (*condition.smaller(), TRUE)
                for simpler in shorter:
                    conditions = list(step.draft.conditions)
                    conditions[j] = simpler
                    draft = replace(step.draft, conditions=tuple(conditions))
                    steps = list(self.steps)
                    steps[i] = replace(step, draft=draft)
                    yield replace(self, steps=tuple(steps))

    def under(self, name: str, value: str) -> Script:
        """The same under one setting from its beginning to its end."""
        steps = tuple(step for step in self.steps if step.name != name)
        return replace(self, steps=steps, settings={**self.settings, name: value})

    def __str__(self) -> str:
        """All that is needed to do it by hand."""
        lines = [f"settings {dict(self.settings)}", f"session {self.session}"]
        lines += [f"off by {self.reference}, on first: {self.on_first}"]
        if self.variables:
            lines.append(f"{self.passed} {dict(self.variables)}")
        for step in self.steps:
            parts = [step.kind, step.name, step.value, step.draft.sql()]
            parts += [draft.sql() for draft in step.drafts]
            lines.append("  " + " | ".join(part for part in parts if part))
        return "\n".join(lines)


class Drawer:
    """Draws the script of one case."""

    def __init__(self, rng: Random, made: Made, spark_version: tuple[int, ...]) -> None:
        """Take what it is drawn from."""
        self.rng = rng
        self.made = made
        self.version = spark_version
        self.passed = self._passed()
        self.variables: dict[str, str] = {}
        self.steps: list[Step] = []
        self.copied = False

    def _passed(self) -> str:
        odds = self.rng.random()
        if odds < 0.08:
            return "parameters"
        return "variables" if odds < 0.14 and self.version >= (4, 0) else "text"

    def draw(self) -> Script:
        """A script."""
        rng = self.rng
        form = rng.choices(
            [self.plain, self.frame, self.kept, self.view, self.cached, self.writing,
             self.changing, self.together],
            [40, 14, 12, 10, 5, 9, 8, 2],
        )[0]  # fmt: skip
        form()
        for name, text in self.variables.items():
            if not _LITERAL.fullmatch(text):
                self.variables[name] = "3"
        return Script(
            steps=tuple(self.steps),
            settings=dict(self._setting() for _ in range(rng.choice([0, 0, 1, 2, 4]))),
            variables=dict(self.variables),
            passed=self.passed,
            copied=self.copied,
            session=rng.choices(["home", "new", "clone"], [90, 5, 5])[0],
            reference=rng.choices(["setting", "disable", "never"], [75, 10, 15])[0],
            registers=rng.random() < 0.15,
            on_first=rng.random() < 0.5,
        )

    def _setting(self) -> tuple[str, str]:
        name = self.rng.choice(sorted(SETTINGS))
        return name, self.rng.choice(SETTINGS[name])

    def _set(self) -> Step:
        name, value = self._setting()
        return Step("set", name=name, value=value)

    def source(self) -> Source:
        """The table, as text may name it."""
        names = ["v", "v", "v"]
        names += ["{t}"] * 4 * bool(self.made.ddl)
        if self.made.form not in ("months", "elsewhere"):
            names.append("parquet.`{path}`")
        if self.made.form == "elsewhere":
            names = ["{t}"]
        return Source(self.rng.choice(names), self.made.refs())

    def renamed(self) -> tuple[str, Source]:
        """A query of renamed and computed columns, and what has them."""
        refs: dict[str, Ref] = {}
        parts = []
        for name, ref in self.made.refs().items():
            if name == "id" or self.rng.random() < 0.4:
                parts.append(f"`{name}`")
                refs[name] = ref
                continue
            parts.append(f"`{name}` AS x_{name}")
            refs[f"x_{name}"] = Ref(f"x_{name}", ref.kind, ref.samples)
        extra = self.rng.choice(["i * 2", "-i", "coalesce(i, 0)", "i % 5", "abs(i)"])
        parts.append(f"{extra} AS computed")
        refs["computed"] = Ref("computed", KINDS["i"], list(range(0, 200, 9)))
        parts.append("upper(s) AS capitals")
        refs["capitals"] = Ref("capitals", KINDS["s"], ["V01", "V02A", "V03É"])
        text = f"SELECT {', '.join(parts)} FROM {self.source().text}"
        return text, Source("w", refs)

    def writer(self, *sources: Source) -> Writer:
        """What writes queries, with variables where the case has them."""
        variables = None if self.passed == "text" else self.variables
        return Writer(self.rng, sources or (self.source(),), variables)

    def query(self, *sources: Source) -> Step:
        """A step that asks something."""
        return Step("sql", self.writer(*sources).draw())

    def read(self, name: str = "v") -> Step:
        """A frame that reads the table in one of many ways."""
        ways = ["path"] * 6 + ["schema", "merge", "files", "several", "slash"]
        ways += ["recursive", "glob", "base", "modified"]
        if self.made.lacking or self.made.narrow:
            ways += ["schema", "merge"] * 3
        if self.made.ddl:
            ways += ["table"] * 3
        if self.made.form == "elsewhere":
            ways = ["table"]
        return Step("frame", name=name, value=self.rng.choice(ways))

    def plain(self) -> None:
        """Queries of text."""
        self.steps += [self.read(), self.query()]
        folders = [name for name in self.made.partitions if name in self.made.refs()]
        if folders and self.rng.random() < 0.4:
            draft = self.writer().mixed(self.rng.choice(folders))
            self.steps.append(Step("sql", draft))
        if self.rng.random() < 0.3:
            self.steps.append(self.query())

    def frame(self) -> None:
        """DataFrames made by methods."""
        self.steps += [self.read(), self.methods()]
        self.steps.append(Step("collect", name="f"))

    def methods(self) -> Step:
        """A frame of another frame."""
        refs = self.made.refs()
        asked = self.writer(Source("v", refs))
        asked.variables = None
        return Step(
            "frame",
            Draft("", (asked.ask(refs), asked.ask(refs, 1))),
            name="f",
            value=self.rng.choice(DERIVED),
            seed=self.rng.randrange(2**31),
        )

    def kept(self) -> None:
        """A frame that is defined, and collected after something has changed."""
        self.steps += [self.read(), self.methods()]
        seen = self.rng.choice(["collect", "explain", "count", "", ""])
        if seen:
            self.steps.append(Step(seen, name="f"))
        changes = CHANGES
        if seen == "collect":  # Spark's list of files is that of the first run
            changes = tuple(one for one in CHANGES if one not in REPLACING)
        for _ in range(self.rng.randint(1, 2)):
            if self.rng.random() < 0.6:
                self.steps.append(self._set())
            else:
                self.steps.append(self._change(changes))
        self.steps.append(Step("collect", name="f"))
        if self.rng.random() < 0.5:
            self.steps.append(self.query())

    def _change(self, changes: Sequence[str] = CHANGES) -> Step:
        self.copied = True
        what = self.rng.choice(changes)
        return Step("change", value=what, seed=self.rng.randrange(2**31))

    def view(self) -> None:
        """A view of renamed and computed columns."""
        text, source = self.renamed()
        self.steps.append(self.read())
        if self.made.ddl and self.rng.random() < 0.4 and "v" not in text.split():
            self.copied = True  # a name of its own in the catalog
            self.steps.append(Step("do", Draft(f"CREATE VIEW {{t}}_w AS {text}")))
            source = replace(source, text="{t}_w")
        else:
            view = f"CREATE OR REPLACE TEMPORARY VIEW w AS {text}"
            self.steps.append(Step("do", Draft(view)))
        self.steps.append(self.query(source, self.source()))
        if self.rng.random() < 0.3:
            self.steps.append(self._set())
            self.steps.append(self.query(source))

    def cached(self) -> None:
        """A frame or a view that is cached."""
        self.steps += [self.read(), self.methods(), Step("cache", name="f")]
        self.steps.append(Step("collect", name="f"))
        if self.rng.random() < 0.5:
            self.steps.append(self._set())
        self.steps += [Step("collect", name="f"), self.query()]

    def changing(self) -> None:
        """Queries before and after files have changed."""
        if self.rng.random() < 0.4:
            asked = Step("sql", self.writer().arrivals())
            changed = self._change(["overwrite alike", "overwrite", "add", "swap"])
            self.steps += [self.read(), asked, changed, asked]
            return
        self.steps += [self.read(), self.query(), self._change()]
        if self.rng.random() < 0.5:
            self.steps.append(self.refresh())
        if self.rng.random() < 0.5:
            self.steps.append(self.read())
        self.steps.append(self.query())

    def refresh(self) -> Step:
        """A statement that lists the files anew."""
        if self.made.ddl and self.rng.random() < 0.6:
            return Step("do", Draft("REFRESH TABLE {t}"))
        return Step("do", Draft('REFRESH "{path}"'))

    def writing(self) -> None:
        """Writes into the table that is read, or into another one."""
        self.copied = True
        self.steps += [self.read()]
        if self.rng.random() < 0.3:
            self.steps.append(self.query())
        source = self.source()
        condition = self.writer(source).ask(source.refs)
        select = f"SELECT * FROM {source.text} WHERE «0»"
        if self.made.ddl:
            texts = [
                f"INSERT INTO {{t}} {select}",
                f"INSERT INTO {{t}} {select} LIMIT 0",
            ]
            texts += [f"INSERT OVERWRITE {{t}} {select}"] * 2
            texts += [f"CREATE TABLE {{t}}_c USING parquet AS {select}"]
        else:
            texts = [f"CREATE TABLE {{t}}_c USING parquet AS {select}"]
            texts += [f"INSERT OVERWRITE DIRECTORY '{{root}}/o' USING parquet {select}"]
        if self.rng.random() < 0.3:
            way = self.rng.choice(["append", "overwrite", "overwrite other"])
            self.steps.append(
                Step("write", Draft(select, (condition,)), name="v", value=way)
            )
        else:
            text = self.rng.choice(texts)
            if "OVERWRITE {t}" in text and self.rng.random() < 0.7:
                mode = "spark.sql.sources.partitionOverwriteMode"
                self.steps.append(Step("set", name=mode, value="dynamic"))
            self.steps.append(Step("do", Draft(text, (condition,))))
            if "_c USING" in text:
                refs = source.refs
                self.steps.append(self.query(Source("{t}_c", refs)))
        self.steps.append(self.query())
        if self.rng.random() < 0.4:
            self.steps += [self.read(), self.query()]

    def together(self) -> None:
        """Queries of several threads."""
        writer = self.writer()
        writer.variables = None
        drafts = tuple(writer.draw() for _ in range(self.rng.randint(3, 6)))
        self.steps += [self.read(), Step("together", drafts=drafts)]
