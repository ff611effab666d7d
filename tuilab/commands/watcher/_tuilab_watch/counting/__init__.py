"""Count what a few steps compute and copy. All other steps run as if nothing were counted."""

COUNT = "TUILAB_WATCH_COUNT"  # the variable; "1": count
