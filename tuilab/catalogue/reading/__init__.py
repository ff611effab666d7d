"""How a source is read in little time: in one walk of its tree, and for a list without a tree."""
