"""The kinds of index. Every module here is one kind, found by being here."""
