"""The times of arms, on the clocks that they were taken by."""
