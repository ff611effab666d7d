"""tuilab: a lab in the terminal that checks the folklore of PyTorch training on your own box."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tuilab.lab.lab import Lab as Lab


def __getattr__(name: str) -> Any:
    """Hand out `Lab` on first use: `import tuilab` alone must not load torch."""
    if name == "Lab":
        from tuilab.lab.lab import Lab

        return Lab
    raise AttributeError(f"module 'tuilab' has no attribute {name!r}")
