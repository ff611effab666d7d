"""The process of a scenario, and the only room that imports torch: the lab, races, arms, memory, the worker.

Imports the ground and the rooms up to `engine`; the names that scenarios use are loaded when they are asked for, so that a
worker can start here before torch is loaded.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuilab.lab.arms import ArmFailed as ArmFailed
    from tuilab.lab.lab import Lab as Lab


def __getattr__(name: str) -> Any:
    """Hand out `Lab` and `ArmFailed` on first use."""
    if name == "Lab":
        from tuilab.lab.lab import Lab

        return Lab
    if name == "ArmFailed":
        from tuilab.lab.arms import ArmFailed

        return ArmFailed
    raise AttributeError(f"module 'tuilab.lab' has no attribute {name!r}")
