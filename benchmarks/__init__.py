"""What tuilab costs, beside its peers."""
