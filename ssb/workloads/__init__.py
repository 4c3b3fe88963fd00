"""What the skipping benchmark asks: fixed queries, and look-ups drawn from the data."""
