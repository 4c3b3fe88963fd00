"""From a predicate to the files that can hold a matching row.

::

    text ──sql.parse──▶ Predicate ──push_not, bind──▶ BoundPredicate ──simplify──▶
        ──stages: all files together, then the rows of the files left──▶ Plan

The one law: a file is skipped only if it is proved that the predicate is TRUE
for none of its rows.  WHERE keeps TRUE alone, and after ``push_not`` only AND and
OR stand above the atoms, so UNKNOWN may be read as FALSE.  Every source answers
one atom with ``Bounds``, rows (or files) that are certainly and possibly TRUE, or
with None, "unknown".  Nothing here ever takes the complement of a set.

"This comparison is NULL" and "this statistic is missing" are different things:
the first rules a row out, the second rules nothing out.
"""
