"""How much memory is free on each GPU, asked of NVML by a process of its own: it may hang or crash, and a run goes on.

torch can tell it, too, but takes half a gigabyte of each GPU that it is asked about.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

from tuilab.probes import NotKnown
from tuilab.probes.gpu.nvml import GpuLost, Gpus, open_gpus
from tuilab.text.display import show

_PATIENCE_WITH_THE_KILLED_S = 1.0
_PATIENCE_S = 10.0  # NVML wakes each GPU where no driver keeps them awake


def free_bytes(patience_s: float = _PATIENCE_S) -> dict[str, int]:
    """Return by NVML's UUID what is free on each GPU and slice; NotKnown where NVML does not say."""
    command = [sys.executable, "-P", "-m", __name__]
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        said, _ = child.communicate(timeout=patience_s)
    except subprocess.TimeoutExpired as problem:
        child.kill()
        with suppress(subprocess.TimeoutExpired):  # what hangs in the driver does not die
            child.communicate(timeout=_PATIENCE_WITH_THE_KILLED_S)
        raise NotKnown(f"NVML has not answered for {patience_s:g} s") from problem
    try:
        told = json.loads(said)
    except ValueError as problem:
        raise NotKnown("NVML ended the process that asked it") from problem
    if isinstance(told, str):
        raise NotKnown(show(told, 200))
    return {str(uuid): int(free) for uuid, free in told.items()}


def _ask() -> dict[str, int] | str:
    gpus = open_gpus()
    return gpus if isinstance(gpus, str) else dict(_told(gpus))


def _told(gpus: Gpus) -> Iterator[tuple[str, int]]:
    for gpu in list(gpus.found):
        try:
            used = gpus.read(gpu, ["memory_used_bytes"]).values.get("memory_used_bytes")
        except GpuLost:
            continue
        if used is not None and gpu.bytes_total is not None:
            yield gpu.uuid, gpu.bytes_total - int(used)


if __name__ == "__main__":
    print(json.dumps(_ask()))
