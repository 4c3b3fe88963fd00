"""The Catalyst classes that are translated, and their counterparts in SQL.

A class is listed with what it may hold beside its operands.  An expression of it that
holds anything else, such as ``try_add``'s mode, is not understood.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from skipindex.spark.catalyst.node import Held


class Part(Enum):
    """What an expression may hold beside its operands."""

    MODE = "fails, or is NULL, as the session has it: plans are for both"
    FLAG = "whether it fails or is NULL: plans are for both"
    ZONE = "the time zone, which is that of the plan"
    BACKSLASH = "a backslash as the escape"
    NAME = "a name, which says nothing"

    def accepts(self, held: Held) -> bool:
        """Whether a value that an expression holds is one of these."""
        match self, held:
            case Part.MODE, str() as mode:
                return mode in {"LEGACY", "ANSI"}
            case Part.MODE, [str() as mode, bool()]:
                return mode in {"LEGACY", "ANSI"}
            case Part.FLAG, bool():
                return True
            case Part.ZONE, str() | None:
                return True
            case Part.BACKSLASH, "\\":
                return True
            case Part.NAME, str():
                return True
        return False


@dataclass(frozen=True, slots=True)
class Shape:
    """An expression that SQL writes as a call of all its operands, in their order.

    Args:
        sql: the function or the operator.
        parts: what it holds beside its operands.
    """

    sql: str
    parts: tuple[Part, ...] = ()

    def accepts(self, held: Sequence[Held]) -> bool:
        """Whether it is this and nothing else that an expression holds.

        Older versions of Spark lack some of the last parts.
        """
        return len(held) <= len(self.parts) and all(
            part.accepts(one) for part, one in zip(self.parts, held, strict=False)
        )


def _plain(**names: str) -> dict[str, Shape]:
    return {name: Shape(sql) for name, sql in names.items()}


def _with(*parts: Part, **names: str) -> dict[str, Shape]:
    return {name: Shape(sql, parts) for name, sql in names.items()}


COMPARISONS: Final[Mapping[str, Shape]] = MappingProxyType(
    _plain(
        EqualNullSafe="<=>",
        EqualTo="=",
        GreaterThan=">",
        GreaterThanOrEqual=">=",
        LessThan="<",
        LessThanOrEqual="<=",
    )
)
"""Their operands are of one type, once they are resolved."""

CALLS: Final[Mapping[str, Shape]] = MappingProxyType(
    _plain(And="and", Or="or", Not="not", IsNull="isnull", IsNotNull="isnotnull")
    | _plain(IsNaN="isnan", Coalesce="coalesce", Greatest="greatest", Least="least")
    | _plain(If="if")
    | _plain(
        AddMonths="add_months",
        DateAdd="date_add",
        DateDiff="datediff",
        DateSub="date_sub",
        DayOfMonth="dayofmonth",
        DayOfWeek="dayofweek",
        DayOfYear="dayofyear",
        LastDay="last_day",
        Month="month",
        Quarter="quarter",
        TruncDate="trunc",
        UnixDate="unix_date",
        WeekDay="weekday",
        WeekOfYear="weekofyear",
        Year="year",
    )
    | _plain(
        Ascii="ascii",
        BitLength="bit_length",
        Concat="concat",
        Contains="contains",
        EndsWith="endswith",
        Left="left",
        Length="length",
        Lower="lower",
        OctetLength="octet_length",
        Reverse="reverse",
        Right="right",
        StartsWith="startswith",
        StringInstr="instr",
        StringLPad="lpad",
        StringRPad="rpad",
        StringRepeat="repeat",
        StringReplace="replace",
        Substring="substring",
        Upper="upper",
    )
    | _plain(Signum="signum", UnaryPositive="positive")
    | _with(
        Part.MODE,
        Add="+",
        Divide="/",
        IntegralDivide="div",
        Multiply="*",
        Pmod="pmod",
        Remainder="%",
        Subtract="-",
    )
    | _with(Part.FLAG, Abs="abs", MakeDate="make_date", Round="round")
    | _with(Part.FLAG, Ceil="ceil", Floor="floor", UnaryMinus="negative")
    | _plain(CurrentTimestamp="current_timestamp", Now="now")
    | _with(Part.ZONE, CurrentDate="current_date", LocalTimestamp="localtimestamp")
    | _with(Part.FLAG, MakeInterval="make_interval")
    | _with(Part.BACKSLASH, ILike="ilike")
    | _with(
        Part.ZONE,
        DateFormatClass="date_format",
        Hour="hour",
        Minute="minute",
        Second="second",
        TruncTimestamp="date_trunc",
    )
)
"""Classes whose operands, and nothing else, are the arguments of SQL's function."""

TRANSPARENT: Final[Mapping[str, Shape]] = MappingProxyType(
    {
        "Alias": Shape("", (Part.NAME,)),
        "KnownFloatingPointNormalized": Shape(""),
        "KnownNotNull": Shape(""),
        "NormalizeNaNAndZero": Shape(""),
    }
)
"""Classes whose value is that of their one operand, as values compare."""
