"""The process of a scenario, and the only package that imports torch.

The lab, comparisons, arms, memory, the worker.

It imports the packages up to `engine`. Scenarios import `Lab` and `ArmFailed` from `tuilab`.
"""
