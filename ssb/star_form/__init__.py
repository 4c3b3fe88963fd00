"""The star form: unchanged SQL over five tables."""
