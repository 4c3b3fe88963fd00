"""How a folder is opened as a table."""
