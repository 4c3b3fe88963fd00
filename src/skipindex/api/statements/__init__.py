"""The statements that ``enable`` adds to Spark SQL."""
