"""Associated columns: what is asked for, and how a file's keys are looked up."""
