"""Writers at once on one table: who returns has all its rows, who fails has none."""
