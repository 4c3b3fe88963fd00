"""Parquet files, read as Spark reads them."""
