"""The processes of a run: supervisor, sampler and judge, their messages, and how they end.

Imports the shared modules and the packages up to `runs`; never torch and never textual.
"""
