"""Tests of the user's own commands under the lab."""
