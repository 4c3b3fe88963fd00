"""The stages of a plan: what is asked of which index, and in what order."""
