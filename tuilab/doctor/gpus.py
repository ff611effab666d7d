"""Checks of the GPUs through NVML: the driver and what torch was built for, MIG, who else is there, what holds them back."""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tuilab.doctor import (
    DO_NOT_TRAIN,
    OTHER_GPU,
    WHY_SLOW,
    Box,
    DoctorFinding,
    failed,
    passed,
    unknown,
    warn,
)
from tuilab.judging import calibration_file
from tuilab.judging.calibration_file import Calibration
from tuilab.probes import NotKnown
from tuilab.probes.gpu.is_present import describe_driver_fix, is_gpu_there
from tuilab.probes.gpu.nvml import Gpu, GpuLost, Gpus, open_gpus, throttle_names
from tuilab.probes.gpu.tenants import GpuProcess
from tuilab.record.gpus.raced_gpu import nvml_uuid
from tuilab.text.display import plural
from tuilab.text.words import size

_NO_GPU = ("no NVIDIA driver", "sees no GPU", "not loaded")
_HARMLESS = {"idle", "clocks set by the user"}


@functools.cache
def _gpus() -> Gpus | str:
    return open_gpus()


def driver(box: Box) -> DoctorFinding:
    gpus = _gpus()
    if isinstance(gpus, str):
        is_absent = any(words in gpus for words in _NO_GPU) and not is_gpu_there(box.root)
        return (
            unknown(gpus)
            if is_absent
            else failed(
                gpus,
                "check the driver with `nvidia-smi`; repair it, or ask the administrator of this machine",
            )
        )
    known = gpus.facts()
    return passed(f"driver {known.get('driver', 'n/a')}, NVML {known.get('nvml', 'n/a')}")


def cuda(box: Box) -> DoctorFinding:
    """Whether the driver can run the CUDA that torch was built for; a newer minor version it can."""
    from tuilab.doctor.facts import torch_build

    newest = _open().facts().get("cuda")
    build = torch_build()
    if newest is None:
        return unknown("the driver does not report its CUDA version")
    if not build.startswith("CUDA "):
        return warn(
            f"torch is built for {build}, but this machine has an NVIDIA GPU",
            "run `pip uninstall torch`, then install a build with CUDA: https://pytorch.org",
        )
    wanted = build.removeprefix("CUDA ")
    if int(wanted.split(".")[0]) > int(newest.split(".")[0]):
        return failed(
            f"torch needs CUDA {wanted}, but the driver supports only {newest}",
            describe_driver_fix(wanted),
        )
    return passed(f"torch is built for CUDA {wanted}, the driver supports {newest}")


def devices(box: Box) -> DoctorFinding:
    gpus = _open()
    if gpus.unusable:
        lost = "; ".join(f"GPU {index}: {why}" for index, why in gpus.unusable.items())
        return failed(
            lost,
            "find the cause with `nvidia-smi -q`; reset the GPU (sudo nvidia-smi --gpu-reset) or reboot",
        )
    return passed("; ".join(f"{gpu.label} {gpu.name}" for gpu in gpus.available))


def mig(box: Box) -> DoctorFinding:
    found, silent = _each(lambda gpus, gpu: gpus.has_mig(gpu))
    on = [index for index, is_on in found.items() if is_on]
    if on:
        words = f"MIG is on for {_named(on)}: a run uses a slice"
        return _beside(
            silent,
            warn(
                words,
                "choose a slice: export CUDA_VISIBLE_DEVICES=MIG-... (`nvidia-smi -L` lists them)",
            ),
        )
    return _beside(silent, passed("off"))


def others(box: Box) -> DoctorFinding:
    """Who else computes there: it takes memory, and time from every measurement."""
    found, silent = _each(
        lambda gpus, gpu: [one for one in gpus.tenants(gpu) if one.pid != os.getpid()]
    )
    busy = {index: processes for index, processes in found.items() if processes}
    if not busy:
        return _beside(silent, passed("no process uses the GPUs"))
    words = [f"GPU {index}: {in_words(found)}" for index, found in busy.items()]
    return _beside(silent, warn("; ".join(words), OTHER_GPU))


def in_words(found: Sequence[GpuProcess]) -> str:
    """Return how many processes compute on a GPU, and the memory that they have."""
    return f"{plural(len(found), 'process', 'processes')}, {memory_of(found)}"


def memory_of(found: Sequence[GpuProcess]) -> str:
    """Return the memory that processes have, as far as the driver tells it."""
    known = [one.bytes_used for one in found if one.bytes_used is not None]
    return size(sum(known)) if known else "memory n/a"


def clocks(box: Box) -> DoctorFinding:
    """What holds the clocks down at this moment."""
    found, silent = _each(lambda gpus, gpu: _meter(gpus, gpu, "throttle_mask"))
    held = {
        i: set(throttle_names(int(mask))) - _HARMLESS
        for i, mask in found.items()
        if mask is not None
    }
    if not held:
        return _beside(silent, unknown("the driver does not report throttling"))
    slow = [f"GPU {index}: {', '.join(sorted(names))}" for index, names in held.items() if names]
    if slow:
        return _beside(
            silent, warn("; ".join(slow), f"times will be longer; see the cause with {WHY_SLOW}")
        )
    return _beside(silent, passed("the clocks are not throttled"))


def memory_errors(box: Box) -> DoctorFinding:
    found, silent = _each(lambda gpus, gpu: _meter(gpus, gpu, "ecc_uncorrected"))
    known = {index: count for index, count in found.items() if count is not None}
    if not known:
        return _beside(silent, unknown("these GPUs do not count memory errors"))
    bad = [f"GPU {index}: {count:.0f}" for index, count in known.items() if count]
    if bad:
        words = f"uncorrected errors since the last reset: {'; '.join(bad)}"
        return _beside(silent, failed(words, DO_NOT_TRAIN))
    return _beside(silent, passed("no uncorrected errors"))


def calibrated(box: Box) -> DoctorFinding:
    """Which of them were calibrated, and when: each has luck of its own."""
    known = calibration_file.load_gpus()
    days = {gpu.label: _day(known, gpu) for gpu in _open().available}
    found = "; ".join(f"{label}: {day or 'never'}" for label, day in days.items())
    step = "run `tuilab calibrate --device cuda:N` (5 minutes)"
    if not any(days.values()):
        return unknown(f"{found}; how often verdicts about time are wrong there is unknown", step)
    return passed(found)


def _day(known: Mapping[str, Calibration], gpu: Gpu) -> str:
    days = (
        one.day or "on an unknown day" for uuid, one in known.items() if nvml_uuid(uuid, [gpu.uuid])
    )
    return next(days, "")


def variables(box: Box) -> DoctorFinding:
    slow = []
    if box.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"):
        slow.append("CUDA_LAUNCH_BLOCKING makes torch wait for each kernel")
    if box.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING", "0") not in ("", "0"):
        slow.append("PYTORCH_NO_CUDA_MEMORY_CACHING makes every allocation slow")
    if slow:
        names = " ".join(sentence.split()[0] for sentence in slow)
        return warn("; ".join(slow), f"unset {names} (only for debugging)")
    visible = box.environ.get("CUDA_VISIBLE_DEVICES")
    return passed(
        "no environment variable hides a GPU"
        if visible is None
        else f"CUDA_VISIBLE_DEVICES={visible or '(empty: no GPU)'}"
    )


def _open() -> Gpus:
    gpus = _gpus()
    if isinstance(gpus, str):
        raise NotKnown(gpus)
    return gpus


def _each(ask: Callable[[Gpus, Gpu], Any]) -> tuple[dict[int, Any], str]:
    """Return by index what each GPU answers, and in words which of them do not."""
    gpus = _open()
    found, silent = {}, []
    for gpu in gpus.whole:
        try:
            found[gpu.index] = ask(gpus, gpu)
        except (GpuLost, NotKnown) as problem:
            silent.append(f"{gpu.label}: n/a ({problem})")
    if not found:
        raise NotKnown("; ".join(silent) or "no GPU answers")
    return found, "; ".join(silent)


def _meter(gpus: Gpus, gpu: Gpu, name: str) -> float | None:
    """Return one value of a GPU, None where it has no such meter; NotKnown where it has one and does not tell."""
    reading = gpus.read(gpu, [name])
    if reading.missing.get(name, "Not Supported") != "Not Supported":
        raise NotKnown(reading.missing[name])
    return reading.values.get(name)


def _beside(silent: str, finding: DoctorFinding) -> DoctorFinding:
    """Return a finding that tells of the GPUs which do not answer, too."""
    return replace(finding, found=f"{finding.found}; {silent}") if silent else finding


def _named(indexes: list[int]) -> str:
    return ", ".join(f"GPU {index}" for index in indexes)


CHECKS = {
    "gpu.driver": driver,
    "gpu.devices": devices,
    "gpu.cuda": cuda,
    "gpu.mig": mig,
    "gpu.others": others,
    "gpu.clocks": clocks,
    "gpu.memory_errors": memory_errors,
    "gpu.calibration": calibrated,
    "gpu.variables": variables,
}
