"""Rewriting the files of a table: which ones, into what, and safely.

No part of it needs Spark: ``skipindex.spark.writers.optimize`` hands in what writes the
rows.  ``selection`` chooses the files, ``transaction`` replaces them in one commit,
``vacuum`` deletes what is no longer needed.
"""
