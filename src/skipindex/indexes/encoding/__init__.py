"""How columns and row sets become bytes: what the kinds of index share."""
