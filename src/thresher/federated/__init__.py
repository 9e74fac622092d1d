"""Many parties with rows of their own, and the secure sums by which they fit one model together."""
