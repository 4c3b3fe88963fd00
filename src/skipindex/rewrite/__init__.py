"""Rewriting the files of a table: which ones, into what, and safely.

No part of it needs Spark: ``skipindex.spark.writers.optimize`` hands in what writes the
rows.  ``planning`` chooses the files, ``transaction`` replaces them in one commit,
``vacuum`` deletes what nobody needs any more, ``statement`` reads the SQL form.
"""
