"""Reading a condition as SQL text."""
