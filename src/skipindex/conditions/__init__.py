"""From a condition in SQL to questions about single columns.

Neither tables nor indexes are known here, but for what a column is named and how its
values are ordered.

WHERE keeps the rows for which its condition is TRUE.  After ``push_not`` only AND and
OR stand above the atoms, so UNKNOWN may be read as FALSE.  "This comparison is NULL"
and "this statistic is missing" are different things: the first rules a row out, the
second rules nothing out.
"""
