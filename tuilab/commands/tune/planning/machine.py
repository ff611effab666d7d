"""Read the facts about this machine that decide which treatments apply."""

import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tuilab.probes.core_work import usable_cores
from tuilab.probes.cpu import cpu_facts, parse_cpu_list
from tuilab.probes.libraries import find_libraries
from tuilab.probes.numa import numa_facts

_COMPILERS = ("g++", "clang++")
# Instructions that multiply bfloat16 numbers. ARM calls its own ones bf16.
BF16_INSTRUCTIONS = ("amx_bf16", "avx512_bf16", "bf16")


class TunedMachine(msgspec.Struct, kw_only=True, frozen=True):
    """The machine that a tuning runs on.

    The capability of a GPU is a fact about the script, because the script chooses its GPU.
    """

    cores: int = 1  # logical cores that a process may use, a quota included
    physical_cores: int = 1  # of these
    nodes: list[int] = []  # memory nodes that a process may use
    # The instructions for bfloat16 of the CPU; None if the kernel does not report instructions.
    bf16_instructions: list[str] | None = None
    jemalloc: str = ""  # the path of the library; empty: not installed
    tcmalloc: str = ""
    has_numactl: bool = False
    has_compiler: bool = False  # for C++, which torch.compile needs


def read_machine(
    root: Path = Path("/"), environ: Mapping[str, str] = os.environ, prefix: str = sys.prefix
) -> TunedMachine:
    """Return the facts about this machine.

    `root` is the folder with /proc, /sys and /usr, and `prefix` is that of Python.
    """
    search_path = environ.get("PATH")
    facts = cpu_facts(root)
    numbers = usable_cores()
    cores = len(numbers)
    quota = facts.get("quota_cores")
    if quota:
        cores = max(1, min(cores, int(quota)))
    compilers = [environ.get("CXX", ""), *_COMPILERS]
    return TunedMachine(
        cores=cores,
        physical_cores=_count_physical_cores(facts, cores),
        nodes=_list_nodes(root, numbers),
        bf16_instructions=read_bf16_instructions(root),
        jemalloc=_find_library(root, prefix, "jemalloc"),
        tcmalloc=_find_library(root, prefix, "tcmalloc"),
        has_numactl=shutil.which("numactl", path=search_path) is not None,
        has_compiler=any(name and shutil.which(name, path=search_path) for name in compilers),
    )


def _count_physical_cores(facts: Mapping[str, Any], cores: int) -> int:
    """Return how many physical cores the usable logical ones belong to, at least 1.

    The kernel reports both numbers for the whole machine. The usable cores are assumed to share
    physical cores in the same proportion.
    """
    logical = facts.get("logical_cores")
    physical = facts.get("physical_cores")
    if not logical or not physical:
        return cores
    return max(1, min(cores, round(cores * float(physical) / float(logical))))


def _list_nodes(root: Path, cores: set[int]) -> list[int]:
    """Return the memory nodes that a process may use and that have some of these cores."""
    facts = numa_facts(root)
    allowed = facts.get("allowed_nodes") or []
    nodes = []
    for name, node in (facts.get("nodes") or {}).items():
        if int(name) in allowed and cores.intersection(parse_cpu_list(node.get("cpus", ""))):
            nodes.append(int(name))
    return nodes


def read_bf16_instructions(root: Path = Path("/")) -> list[str] | None:
    """Return the instructions for bfloat16; None if the kernel does not report any instructions."""
    try:
        text = (root / "proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return None
    match = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    if match is None:
        return None
    flags = match[1].split()
    return [name for name in BF16_INSTRUCTIONS if name in flags]


def _find_library(root: Path, prefix: str, name: str) -> str:
    """Return the path of an allocator that can be preloaded; empty if there is none."""
    pattern = f"lib{name}*.so*"
    paths = find_libraries(root, pattern)
    paths += sorted(str(path) for path in Path(prefix, "lib").glob(pattern))
    return paths[0] if paths else ""
