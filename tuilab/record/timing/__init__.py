"""Selects the times of the arms, and the clock that they were judged on."""
