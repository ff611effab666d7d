"""Read the free memory of each GPU through NVML, in a process of its own.

If NVML hangs or crashes, the run continues. torch can report it as well, but it takes half a
gigabyte of each GPU that it is asked about.
"""

import json
import subprocess
import sys
from contextlib import suppress

from tuilab.probes import NotKnown
from tuilab.probes.gpu.nvml import GpuLost, open_gpus
from tuilab.text.display import show

_KILLED_PATIENCE_S = 1.0
_PATIENCE_S = 10.0  # NVML has to wake each GPU if the driver does not keep it loaded


def free_bytes(patience_s: float = _PATIENCE_S) -> dict[str, int]:
    """Return the free bytes of each GPU and slice, by NVML's UUID; NotKnown if NVML fails."""
    command = [sys.executable, "-P", "-m", __name__]
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        output, _ = child.communicate(timeout=patience_s)
    except subprocess.TimeoutExpired as problem:
        child.kill()
        with suppress(subprocess.TimeoutExpired):  # a process that hangs in the driver does not end
            child.communicate(timeout=_KILLED_PATIENCE_S)
        raise NotKnown(f"NVML has not answered for {patience_s:g} s") from problem
    try:
        answer = json.loads(output)
    except ValueError as problem:
        raise NotKnown("NVML ended the process that asked it") from problem
    if isinstance(answer, str):
        raise NotKnown(show(answer, 200))
    return {str(uuid): int(free) for uuid, free in answer.items()}


def _ask() -> dict[str, int] | str:
    """Return the free bytes by UUID, or why they are not known."""
    gpus = open_gpus()
    if isinstance(gpus, str):
        return gpus
    free = {}
    for gpu in list(gpus.available):
        try:
            used = gpus.read(gpu, ["memory_used_bytes"]).values.get("memory_used_bytes")
        except GpuLost:
            continue
        if used is not None and gpu.bytes_total is not None:
            free[gpu.uuid] = gpu.bytes_total - int(used)
    return free


if __name__ == "__main__":
    print(json.dumps(_ask()))
