"""What a list of runs is made from, kept free of slow imports: which folders are runs, and what is kept of each."""
