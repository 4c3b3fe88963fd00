"""Which files of a table a rewrite takes, and in what groups."""
