"""The GPUs that a run can have, as a form lists them: CUDA's name of each, what is free on it, and who computes there."""

from collections.abc import Mapping
from typing import Any

from tuilab.probes import NotKnown
from tuilab.probes.gpu.cuda_numbers import cuda_numbers
from tuilab.probes.gpu.nvml import Gpu, GpuLost, Gpus

_USED = "memory_used_bytes"


def listed(gpus: Gpus, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return what there is to say of each GPU, by CUDA's numbers; where these are not known, of all of them, and why."""
    try:
        visible = cuda_numbers(gpus.found, environ)
    except NotKnown as problem:
        return {"listed": [_row(gpus, gpu, gpu.label) for gpu in list(gpus.whole)], "no_numbers": str(problem)}
    return {"listed": [_row(gpus, gpu, f"cuda:{number}") for number, gpu in enumerate(visible)], "no_numbers": ""}


def _row(gpus: Gpus, gpu: Gpu, label: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "label": label,
        "name": f"{gpu.name} {gpu.slice}".strip(),
        "bytes_free": None,
        "tenants": [],
        "why": "",
    }
    try:
        used = gpus.read(gpu, [_USED]).values.get(_USED)
        row["bytes_free"] = None if used is None or gpu.bytes_total is None else gpu.bytes_total - int(used)
        row["tenants"] = [one._asdict() for one in gpus.tenants(gpu)]
        row["why"] = "" if row["tenants"] else gpus.no_pids  # in a container the driver may leave out those that it cannot name
    except (GpuLost, NotKnown) as problem:
        row["why"] = str(problem)
    return row
