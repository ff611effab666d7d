"""Read the NUMA nodes of this machine: their cores, their memory, and which may be used."""

from pathlib import Path
from typing import Any

from tuilab.probes import NotKnown, gather
from tuilab.probes.cpu import parse_cpu_list


def numa_facts(root: Path = Path("/")) -> dict[str, Any]:
    """Return the nodes, and the numbers of those that this process may use.

    `root` is the folder with /proc and /sys.
    """
    return gather({"nodes": lambda: _nodes(root), "allowed_nodes": lambda: _allowed(root)})


def _nodes(root: Path) -> dict[str, dict[str, Any]]:
    """Return the facts about each NUMA node by its number; raise NotKnown if there are none."""
    numbers = []
    for folder in (root / "sys/devices/system/node").glob("node[0-9]*"):
        numbers.append(int(folder.name.removeprefix("node")))
    if not numbers:
        raise NotKnown("this kernel reports no NUMA nodes")
    nodes = {}
    for number in sorted(numbers):
        nodes[str(number)] = _node(root / f"sys/devices/system/node/node{number}")
    return nodes


def _node(folder: Path) -> dict[str, Any]:
    """Return the cores and the memory of a node; the entry `missing` says why one is not known."""
    return gather(
        {
            "cpus": lambda: (folder / "cpulist").read_text().strip(),
            "memory_total_bytes": lambda: _memory(folder, "MemTotal"),
            "memory_free_bytes": lambda: _memory(folder, "MemFree"),
        }
    )


def _memory(folder: Path, key: str) -> int:
    """Return a number of a node's meminfo in bytes; raise NotKnown if it has no such line."""
    for line in (folder / "meminfo").read_text().splitlines():  # Node 0 MemTotal:  8156624 kB
        words = line.split()
        if words[2] == f"{key}:":
            return int(words[3]) * 1024
    raise NotKnown(f"meminfo has no {key}")


def _allowed(root: Path) -> list[int]:
    """Return the numbers of the nodes whose memory this process may use, or raise NotKnown."""
    for line in (root / "proc/self/status").read_text(errors="replace").splitlines():
        if line.startswith("Mems_allowed_list:"):
            return parse_cpu_list(line.split(":")[1])
    raise NotKnown("/proc/self/status does not report it")
