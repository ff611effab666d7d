"""The processes that own a run: supervisor, sampler and judge, how they are started, told things and ended.

Imports the ground and the rooms up to `runs`; never torch and never textual.
"""
