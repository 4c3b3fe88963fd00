"""Reading the columns of one data file, within the memory of a worker."""
