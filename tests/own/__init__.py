"""Training scripts that other people's libraries drive, watched as they are: pytest -m own."""
