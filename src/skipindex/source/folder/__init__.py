"""Plain folders of Parquet files: which of them count, and how new ones come to."""
