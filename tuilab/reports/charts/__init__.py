"""The charts of a report: which there are, and their shapes; templates only write them down."""
