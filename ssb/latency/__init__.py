"""What skipping saves where every request to the store takes its time."""
