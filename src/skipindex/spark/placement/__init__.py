"""Which row goes to which file, on Spark."""
