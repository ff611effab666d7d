"""The charts of a report: which there are, and their shapes. Templates compute nothing."""
