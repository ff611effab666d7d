"""Treat how the process holds memory, and report what its variables have done to it."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from .reports import Reports

NAMES = ("gc-freeze", "expandable-segments", "jemalloc", "tcmalloc", "numa")
_ALLOCATOR_VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


def treat(
    torch: Any, wanted: dict[str, str], reports: Reports, watcher: Any
) -> list[tuple[str, Callable[[], None]]]:
    """Return what is to be done once the training has made some steps, and for which treatment."""
    late: list[tuple[str, Callable[[], None]]] = []
    for name, value in wanted.items():
        if name == "gc-freeze":
            late.append((name, lambda: _freeze(reports)))
        elif name == "expandable-segments":
            late.append((name, lambda: _check_segments(reports)))
        elif name == "numa":
            late.append((name, partial(_check_node, value, reports)))
        else:
            _check_allocator(name, reports)
    return late


def _freeze(reports: Reports) -> None:
    """Collect garbage once more, and not again by itself."""
    if not gc.isenabled():
        why = "the script has switched the garbage collector off"
        reports.skipped("gc-freeze", why, is_already_set=True)
        return
    gc.collect()
    gc.freeze()
    gc.disable()
    reports.did("gc-freeze", f"gc.freeze() with {gc.get_freeze_count()} objects, gc.disable()")


def _check_segments(reports: Reports) -> None:
    """Report whether the allocator of a GPU got the variable."""
    treatment = "expandable-segments"
    cuda: Any = sys.modules.get("torch.cuda")
    if cuda is None or not cuda.is_initialized():
        reports.skipped(treatment, "the training uses no GPU")
        return
    for variable in _ALLOCATOR_VARIABLES:
        if "expandable_segments:true" in os.environ.get(variable, "").lower():
            reports.did(treatment, f"{variable} has expandable_segments:True")
            return
    reports.skipped(treatment, "the process did not get the variable")


def _check_allocator(name: str, reports: Reports) -> None:
    """Report whether the library of an allocator was loaded."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            is_loaded = name in maps.read()
    except OSError:
        reports.skipped(name, "this system does not show which libraries a process has loaded")
        return
    if is_loaded:
        reports.did(name, f"lib{name} allocates memory")
    else:
        reports.skipped(name, f"lib{name} was not loaded")


def _check_node(value: str, reports: Reports) -> None:
    """Report which cores and which memory the process may use."""
    treatment = f"numa={value}" if value else "numa"
    try:
        with open("/proc/self/status", encoding="utf-8", errors="replace") as status:
            lines = status.read().splitlines()
    except OSError:
        reports.skipped(treatment, "this system does not show the memory of a process")
        return
    allowed = {}
    for line in lines:
        name, _, words = line.partition(":")
        allowed[name] = words.strip()
    nodes = allowed.get("Mems_allowed_list", "")
    cores = allowed.get("Cpus_allowed_list", "")
    reports.did(
        treatment, f"the process runs on cores {cores}, and may use memory of nodes {nodes}"
    )
