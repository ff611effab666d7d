"""On which nodes runs are placed, and which nodes can be used."""

from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.engine.engines import Tell
from tuilab.errors import BoxLacks, UsageError
from tuilab.fleet.cluster import Node
from tuilab.text.display import plural, show


@dataclass(frozen=True)
class FleetPlacement:
    """On which nodes the user wants the runs."""

    address: str = ""
    count: int = 0  # the number of nodes on which each order runs; 0: on one free node
    is_per_node: bool = False  # each order runs on every node
    nnodes: int = 0  # the number of nodes over which the ranks of a run are divided; 0: one node
    gpus: float | None = None  # for each run; None: all GPUs of its node


def chosen(nodes: Sequence[Node], placement: FleetPlacement, tell: Tell) -> list[Node]:
    """Return the nodes that can be used; print why others cannot.

    Prints a warning if their software differs. Raises BoxLacks if no node can be used, UsageError
    if the user asks for more nodes than there are.
    """
    from tuilab import __version__

    fit: list[Node] = []
    for node in nodes:
        reason = _why_not(node, placement, __version__)
        if reason:
            tell(f"{show(node.name, 60)} is not used: {reason}")
        else:
            fit.append(node)
    versions = {(node.python, node.torch) for node in fit}
    if len(versions) > 1:
        software = []
        for node in fit:
            torch = node.torch or "n/a"
            software.append(f"{show(node.name, 60)} Python {node.python}, torch {torch}")
        tell(
            f"the nodes have different software, so their results may differ: {'; '.join(software)}"
        )
    if not fit:
        raise BoxLacks("no node can run this; the reasons are above")
    for option, count in (("--count", placement.count), ("--nnodes", placement.nnodes)):
        if count > len(fit):
            node_count = plural(len(fit), "node")
            raise UsageError(
                f"{option} {count} is too many: {node_count} can be used; use at most {len(fit)}"
            )
    return fit


def _why_not(node: Node, placement: FleetPlacement, version: str) -> str:
    """Return why a node cannot be used, often with the step that helps, or an empty string."""
    if node.lacks:
        return node.lacks
    if not node.tuilab:
        return "tuilab is not installed; install it there, for the Python of Ray"
    if node.tuilab != version:
        return (
            f"it has tuilab {show(node.tuilab, 40)}, but this machine has {version}; install the"
            " same version"
        )
    if node.cpus < 1:
        return "Ray has no CPU cores there"
    if placement.gpus and node.gpus < placement.gpus:
        return (
            f"--gpus {placement.gpus:g} is more than the {plural(int(node.gpus), 'GPU')} that Ray"
            " has there"
        )
    return ""
