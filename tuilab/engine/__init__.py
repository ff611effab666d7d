"""The processes that own a run: supervisor, sampler and judge, how they are started, told things and ended.

Imports the shared modules and the packages up to `runs`; never torch and never textual.
"""
