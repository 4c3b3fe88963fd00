"""What other systems skip: the same files, the same conditions, in one run."""
