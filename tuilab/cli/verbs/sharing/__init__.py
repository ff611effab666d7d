"""Verbs for runs that leave this box or come from another."""
