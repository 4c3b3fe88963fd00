"""From a predicate to the files that can hold a matching row.

::

    text ──sql.parse──▶ Predicate ──push_not, bind──▶ BoundPredicate ──simplify──▶
        ──stages: all files together, then the rows of the files left──▶ Plan

The one law: a file is skipped only if it is proved that the predicate is TRUE
for none of its rows.  All before the stages is in ``conditions``.  Every source
answers one atom with ``Bounds``, rows (or files) that are certainly and possibly TRUE,
or with None, "unknown".  Nothing here ever takes the complement of a set.
"""
