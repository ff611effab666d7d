"""Times arms against each other, and notices what disturbs them meanwhile."""
