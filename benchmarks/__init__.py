"""What every part costs, beside its limit or reference, measured in the same run."""
