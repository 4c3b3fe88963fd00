"""Plain folders of Parquet files."""
