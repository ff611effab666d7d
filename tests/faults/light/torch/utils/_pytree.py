tree_leaves = list
