"""List the GPUs that a run can use, for a form: CUDA's name, the free memory, the processes."""

from collections.abc import Mapping, Sequence
from typing import Any

from tuilab.probes import NotKnown
from tuilab.probes.gpu.nvml import Gpu, GpuLost, Gpus

_USED = "memory_used_bytes"


def describe_choices(gpus: Gpus, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the facts about each GPU that a run can use, in the order of CUDA's numbers.

    If the numbers are not known, they are all whole GPUs, with the reason.
    """
    try:
        numbered = cuda_numbers(gpus.available, environ)
    except NotKnown as problem:
        rows = [_row(gpus, gpu, gpu.label) for gpu in gpus.whole]
        return {"listed": rows, "no_numbers": str(problem)}
    rows = [_row(gpus, gpu, f"cuda:{number}") for number, gpu in enumerate(numbered)]
    return {"listed": rows, "no_numbers": ""}


def _row(gpus: Gpus, gpu: Gpu, label: str) -> dict[str, Any]:
    """Return the facts about a GPU under this label; unknown ones stay None or empty.

    `why` says why its processes are not known, or why it does not answer.
    """
    row: dict[str, Any] = {
        "label": label,
        "name": f"{gpu.name} {gpu.slice}".strip(),
        "bytes_free": None,
        "tenants": [],
        "why": "",
    }
    try:
        used = gpus.read(gpu, [_USED]).values.get(_USED)
        if used is not None and gpu.bytes_total is not None:
            row["bytes_free"] = gpu.bytes_total - int(used)
        row["tenants"] = [process._asdict() for process in gpus.tenants(gpu)]
        if not row["tenants"]:
            # In a container, the driver may leave out processes for which it has no pid.
            row["why"] = gpus.no_pids
    except (GpuLost, NotKnown) as problem:
        row["why"] = str(problem)
    return row


def cuda_numbers(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> list[Gpu]:
    """Return the GPUs and slices that a process may use, in the order of CUDA's numbers.

    NotKnown if the order is not known. CUDA is not asked, because it would take memory of a GPU.
    The order follows the rules of its driver.
    """
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return _whole_in_order(gpus, environ)
    words = [word.strip() for word in visible.split(",")]
    by_number: Sequence[Gpu] = []
    if any(word.isdecimal() for word in words):
        by_number = _whole_in_order(gpus, environ)
    numbered = []
    for word in words:
        gpu = _find(word, gpus, by_number)
        if gpu is None:
            break  # CUDA hides all GPUs after a mistake
        if gpu in numbered:
            return []  # CUDA ignores a list with a repetition
        numbered.append(gpu)
    return numbered


def _whole_in_order(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> list[Gpu]:
    """Return the GPUs as CUDA numbers them by default; NotKnown if it is not known."""
    whole = sorted((gpu for gpu in gpus if not gpu.slice), key=lambda gpu: gpu.index)
    if len(whole) != len(gpus):
        raise NotKnown(
            "with slices of a GPU (MIG), only CUDA knows how it numbers them; "
            "name a slice in CUDA_VISIBLE_DEVICES"
        )
    if len({gpu.name for gpu in whole}) > 1 and environ.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
        raise NotKnown(
            "CUDA numbers the fastest GPU first; "
            "set CUDA_DEVICE_ORDER=PCI_BUS_ID to number them as nvidia-smi does"
        )
    if [gpu.index for gpu in whole] != list(range(len(whole))):
        raise NotKnown(
            "a GPU does not answer, and only CUDA knows whether it has a number; "
            "see `tuilab doctor`"
        )
    return whole


def _find(word: str, gpus: Sequence[Gpu], by_number: Sequence[Gpu]) -> Gpu | None:
    """Return the GPU that a word of CUDA_VISIBLE_DEVICES names; None if it names none.

    A word is a number, or the beginning of a UUID that only one GPU has.
    """
    if word.isdecimal():
        number = int(word)
        return by_number[number] if number < len(by_number) else None
    if not word.startswith(("GPU-", "MIG-")):
        return None
    matches = [gpu for gpu in gpus if gpu.uuid.startswith(word)]
    return matches[0] if len(matches) == 1 else None
