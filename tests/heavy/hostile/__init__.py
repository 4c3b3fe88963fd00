"""Tables whose logs are hostile: planned and vacuumed in a process with limits."""
