"""Building indexes: requests become tasks, tasks write packs, one commit names them."""
