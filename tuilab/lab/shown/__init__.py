"""What a scenario shows beside its numbers: how far it is, texts, files."""
