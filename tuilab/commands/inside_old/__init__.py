"""What stands on PYTHONPATH as well where torch is older than 2.5 and has no door of its own: a sitecustomize."""
