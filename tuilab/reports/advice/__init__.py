"""Which settings follow from what was measured on a box: chosen among values that raced, and only while the box is the same."""
