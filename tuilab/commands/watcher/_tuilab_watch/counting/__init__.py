"""Count what a few steps compute and copy. All other steps run as if nothing were counted."""
