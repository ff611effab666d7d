"""The engine `ray`: its options, their checks, and the start of runs. Only the last loads Ray."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from tuilab.errors import UsageError

if TYPE_CHECKING:
    from tuilab.engine.engines import Take, Tell
    from tuilab.engine.messages import RunOrder

WHERE = "on the nodes of a Ray cluster"
OPTIONS = (
    click.Option(
        ["--address"],
        metavar="HOST:PORT",
        help=(
            "With Ray: address of the cluster (default: RAY_ADDRESS, else the cluster of this"
            " machine)."
        ),
    ),
    click.Option(["--per-node"], is_flag=True, help="With Ray: run on every node."),
    click.Option(
        ["--count"],
        type=click.IntRange(1, 10_000),
        metavar="N",
        help="With Ray: run on N nodes (default: on one free node).",
    ),
    click.Option(
        ["--nnodes"],
        type=click.IntRange(2, 64),
        metavar="N",
        help="With Ray: divide the ranks of one run over N nodes.",
    ),
    click.Option(
        ["--gpus"],
        type=click.FloatRange(0, 1000),
        metavar="N",
        help="With Ray: give a run N GPUs of its node (default: all).",
    ),
)
SEVERAL = ("per_node", "count")


def check(given: Mapping[str, Any]) -> None:
    """Raise UsageError if options exclude each other, or if Ray cannot give that share of GPUs."""
    gpus = given["gpus"] or 0
    has_four_digits = gpus == round(gpus, 4)  # Ray counts ten-thousandths of a GPU
    is_share_above_one = gpus > 1 and gpus % 1
    if not has_four_digits or is_share_above_one:
        raise UsageError(
            f"--gpus {gpus:g} is not possible with Ray; use a whole number, or a share below 1 such"
            " as 0.5"
        )
    is_per_node = given.get("per_node")
    count = given.get("count")
    if is_per_node and count:
        raise UsageError(
            "--per-node runs on every node, --count on some nodes; use only one of them"
        )
    if given["nnodes"] and (is_per_node or count):
        option = "--per-node" if is_per_node else "--count"
        raise UsageError(
            f"--nnodes divides one run over nodes, {option} starts a run on each node; use only one"
            " of them"
        )


def has_several(given: Mapping[str, Any]) -> bool:
    """Return whether each order runs on several nodes."""
    return bool(given.get("per_node")) or (given.get("count") or 1) > 1


def carry(
    orders: "Sequence[RunOrder]", given: Mapping[str, Any], tell: "Tell", take: "Take"
) -> bool:
    """Carry out the orders on the nodes of a Ray cluster; return whether Ctrl-C was pressed.

    `given` has the options of the user. Raises UsageError or BoxLacks if the cluster cannot be
    joined, or if its nodes do not fit. Only this function loads Ray.
    """
    from tuilab.fleet import fleet_queue
    from tuilab.fleet.cluster import Cluster
    from tuilab.fleet.placement import FleetPlacement

    placement = FleetPlacement(
        address=given["address"] or "",
        count=given.get("count") or 0,
        is_per_node=bool(given.get("per_node")),
        nnodes=given["nnodes"] or 0,
        gpus=given["gpus"],
    )
    # Ray prints the output of the nodes to stdout.
    nowhere = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    with nowhere, contextlib.redirect_stdout(nowhere):
        cluster = Cluster(placement.address)
        try:
            return fleet_queue.carry(orders, cluster, placement, tell, take)
        finally:
            cluster.close()
