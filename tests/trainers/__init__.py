"""Training scripts as other people write them, each to be started by itself: none knows of tuilab, none downloads."""
