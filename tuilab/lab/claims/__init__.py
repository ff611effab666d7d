"""What a scenario claims, and how a call becomes the record of a claim."""
