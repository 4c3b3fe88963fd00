"""Real SSB data, made from TPC-H data."""
