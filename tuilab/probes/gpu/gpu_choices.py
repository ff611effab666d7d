"""The GPUs that a run can have, as a form lists them: CUDA's name of each, what is free on it, and who computes there."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from tuilab.probes import NotKnown
from tuilab.probes.gpu.nvml import Gpu, GpuLost, Gpus

_USED = "memory_used_bytes"


def listed(gpus: Gpus, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return what there is to say of each GPU, by CUDA's numbers; where these are not known, of all of them, and why."""
    try:
        visible = cuda_numbers(gpus.found, environ)
    except NotKnown as problem:
        return {
            "listed": [_row(gpus, gpu, gpu.label) for gpu in list(gpus.whole)],
            "no_numbers": str(problem),
        }
    return {
        "listed": [_row(gpus, gpu, f"cuda:{number}") for number, gpu in enumerate(visible)],
        "no_numbers": "",
    }


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
        row["bytes_free"] = (
            None if used is None or gpu.bytes_total is None else gpu.bytes_total - int(used)
        )
        row["tenants"] = [one._asdict() for one in gpus.tenants(gpu)]
        row["why"] = (
            "" if row["tenants"] else gpus.no_pids
        )  # in a container the driver may leave out those that it cannot name
    except (GpuLost, NotKnown) as problem:
        row["why"] = str(problem)
    return row


def cuda_numbers(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> list[Gpu]:
    """Return the GPUs and slices that a process may use, that which it calls cuda:0 first; NotKnown where the order is not.

    CUDA is not asked, as it would take memory of a GPU. The order follows the rules of its driver.
    """
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return _whole_in_order(gpus, environ)
    words = [word.strip() for word in visible.split(",")]
    by_number = _whole_in_order(gpus, environ) if any(word.isdecimal() for word in words) else []
    named = (_named(word, gpus, by_number) for word in words)
    found = [
        gpu for gpu in takewhile(lambda gpu: gpu is not None, named) if gpu
    ]  # what comes after a mistake is hidden
    return (
        found if len(set(found)) == len(found) else []
    )  # CUDA takes a list with a repetition for none at all


def _whole_in_order(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> list[Gpu]:
    """Return the whole GPUs as CUDA counts them by itself."""
    whole = sorted((gpu for gpu in gpus if not gpu.slice), key=lambda gpu: gpu.index)
    if len(whole) != len(gpus):
        raise NotKnown(
            "with slices of a GPU (MIG), only CUDA knows how it numbers them; name a slice in CUDA_VISIBLE_DEVICES"
        )
    if len({gpu.name for gpu in whole}) > 1 and environ.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
        raise NotKnown(
            "CUDA numbers the fastest GPU first; set CUDA_DEVICE_ORDER=PCI_BUS_ID to number them as nvidia-smi does"
        )
    if [gpu.index for gpu in whole] != list(range(len(whole))):
        raise NotKnown(
            "a GPU does not answer, and only CUDA knows whether it has a number; see `tuilab doctor`"
        )
    return whole


def _named(word: str, gpus: Sequence[Gpu], by_number: Sequence[Gpu]) -> Gpu | None:
    """Return what a word of CUDA_VISIBLE_DEVICES means: a number, or as much of a name as is enough."""
    if word.isdecimal():
        return by_number[int(word)] if int(word) < len(by_number) else None
    found = [gpu for gpu in gpus if word.startswith(("GPU-", "MIG-")) and gpu.uuid.startswith(word)]
    return found[0] if len(found) == 1 else None
