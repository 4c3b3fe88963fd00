"""Mutants of ``spark.catalyst``, which no test needs Spark for."""

from __future__ import annotations

from typing import Final

from tests.heavy.mutants.mutant import Mutant

_TESTS: Final = ("tests/spark/catalyst/test_translator.py",)

CATALYST: Final = (
    Mutant(
        "catalyst-other-type",
        "spark.catalyst.names._attribute",
        "write.columns.get(name) == kind",
        "name in write.columns",
        "a column that the query reads with another type has other values",
        _TESTS,
    ),
    Mutant(
        "catalyst-padded-text",
        "spark.catalyst.names._is_harmless",
        "str(value).startswith('varchar(')",
        "True",
        "Spark pads CHAR when it reads",
        _TESTS,
    ),
    Mutant(
        "catalyst-more-held",
        "spark.catalyst.classes.Shape.accepts",
        "len(held) <= len(self.parts)",
        "True",
        "what a newer version lets an expression hold is ignored",
        _TESTS,
    ),
    Mutant(
        "catalyst-class-of-others",
        "spark.catalyst.node._name",
        "name != class_name and name.isidentifier()",
        "name != class_name",
        "a class of a package below Spark's is taken for one of Spark's",
        _TESTS,
    ),
    Mutant(
        "catalyst-second-zone",
        "spark.catalyst.translator.Translator.takes_zone",
        "zone in {None, self.zone}",
        "True",
        "an expression with another zone is judged for the first one",
        _TESTS,
    ),
    Mutant(
        "catalyst-cast-zone",
        "spark.catalyst.forms._cast",
        "'timestamp' in {kind, child.kind} and (not _in_zone(write, zone))",
        "False",
        "a cast is judged for the session's zone",
        _TESTS,
    ),
    Mutant(
        "catalyst-trimmed-characters",
        "spark.catalyst.forms._trim",
        "reversed(node.children)",
        "node.children",
        "SQL names the characters first, and Catalyst the text",
        _TESTS,
    ),
    Mutant(
        "catalyst-at-least",
        "spark.catalyst.forms._at_least",
        "case [1]:",
        "case [_]:",
        "two known values of three are more than one",
        _TESTS,
    ),
    Mutant(
        "catalyst-case-without-else",
        "spark.catalyst.forms._case",
        "node.held != (() if has_else else (None,))",
        "False",
        "the last condition is taken for the value after ELSE",
        _TESTS,
    ),
    Mutant(
        "catalyst-rows-of-other-types",
        "spark.catalyst.forms._row_member",
        "not (values and (alike or '' in kinds))",
        "not values",
        "Spark casts the rows of a list",
        _TESTS,
    ),
    Mutant(
        "catalyst-float-computed-as-double",
        "spark.catalyst.literals.literal",
        "compared or kind == 'double'",
        "True",
        "a sum of floats is rounded to a float",
        _TESTS,
    ),
    Mutant(
        "catalyst-not-alike",
        "spark.catalyst.translator.Translator.compared_operands",
        "len(kinds) == 1 and '' not in kinds",
        "True",
        "without ANSI mode an integer is rounded to a FLOAT that it is compared with",
        _TESTS,
    ),
    Mutant(
        "catalyst-decimal-type",
        "spark.catalyst.literals._decimal",
        "compared or read_as == (precision, scale)",
        "True",
        "the digits of a decimal's type decide where a sum is rounded",
        _TESTS,
    ),
)
