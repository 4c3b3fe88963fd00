"""What a plan says of itself: evidence, explanations, and checks against the data."""
