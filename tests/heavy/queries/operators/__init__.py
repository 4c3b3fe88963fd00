"""Random queries whose plans Spark evaluates more than once, or not where they stand.

Plain and with skipping on they have the same rows, and cost no more jobs, exchanges and
files than they may.
"""
