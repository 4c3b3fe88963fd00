"""Names to columns, literals to domains, terms to conditions on one column."""
