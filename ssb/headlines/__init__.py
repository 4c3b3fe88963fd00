"""The headline results of the articles that skipindex comes from, measured here."""
