"""Writing, appending and optimizing with Spark."""
