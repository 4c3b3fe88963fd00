"""Unchanged queries of a session read only files that can hold a matching row.

An optimizer rule, compiled in the driver, wraps the file index of every scan of Parquet
files.  The wrapped index lists what Spark's own lists, asks the planner with the final
conditions of the scan, and leaves out the files that hold no matching row.
"""
