"""One module a system; each imports its library when it is made, not before."""
