"""The stages of planning, and the indexes that each probes."""
