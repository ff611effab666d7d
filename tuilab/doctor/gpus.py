"""Checks of the GPUs through NVML: driver, CUDA, MIG, other users, throttling, memory errors."""

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
    """Return the GPUs of this machine, or the reason why NVML does not list them."""
    return open_gpus()


def driver(box: Box) -> DoctorFinding:
    """Check whether the driver answers; without any sign of a GPU, the answer is n/a."""
    gpus = _gpus()
    if isinstance(gpus, str):
        says_no_gpu = any(words in gpus for words in _NO_GPU)
        if says_no_gpu and not is_gpu_there(box.root):
            return unknown(gpus)
        return failed(
            gpus,
            "check the driver with `nvidia-smi`; repair it, or ask the administrator of this"
            " machine",
        )
    facts = gpus.facts()
    return passed(f"driver {facts.get('driver', 'n/a')}, NVML {facts.get('nvml', 'n/a')}")


def cuda(box: Box) -> DoctorFinding:
    """Check whether the driver supports the CUDA of torch; a newer minor version is fine."""
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
    needed = build.removeprefix("CUDA ")
    if int(needed.split(".")[0]) > int(newest.split(".")[0]):
        return failed(
            f"torch needs CUDA {needed}, but the driver supports only {newest}",
            describe_driver_fix(needed),
        )
    return passed(f"torch is built for CUDA {needed}, the driver supports {newest}")


def devices(box: Box) -> DoctorFinding:
    """Report the GPUs; fail if one of them cannot be used."""
    gpus = _open()
    if gpus.unusable:
        lost = "; ".join(f"GPU {index}: {why}" for index, why in gpus.unusable.items())
        return failed(
            lost,
            "find the cause with `nvidia-smi -q`; reset the GPU (sudo nvidia-smi --gpu-reset) or"
            " reboot",
        )
    return passed("; ".join(f"{gpu.label} {gpu.name}" for gpu in gpus.available))


def mig(box: Box) -> DoctorFinding:
    """Warn if MIG is on: a run then uses a slice of the GPU."""
    has_mig_of, unanswered = _each(lambda gpus, gpu: gpus.has_mig(gpu))
    on = [index for index, is_on in has_mig_of.items() if is_on]
    if on:
        names = ", ".join(f"GPU {index}" for index in on)
        finding = warn(
            f"MIG is on for {names}: a run uses a slice",
            "choose a slice: export CUDA_VISIBLE_DEVICES=MIG-... (`nvidia-smi -L` lists them)",
        )
        return _beside(unanswered, finding)
    return _beside(unanswered, passed("off"))


def others(box: Box) -> DoctorFinding:
    """Check for other processes: they take memory, and time from every measurement."""
    tenants_of, unanswered = _each(_other_tenants)
    busy = [f"GPU {index}: {in_words(tenants)}" for index, tenants in tenants_of.items() if tenants]
    if not busy:
        return _beside(unanswered, passed("no process uses the GPUs"))
    return _beside(unanswered, warn("; ".join(busy), OTHER_GPU))


def _other_tenants(gpus: Gpus, gpu: Gpu) -> list[GpuProcess]:
    return [process for process in gpus.tenants(gpu) if process.pid != os.getpid()]


def in_words(tenants: Sequence[GpuProcess]) -> str:
    """Return the number of processes on a GPU, and their memory."""
    return f"{plural(len(tenants), 'process', 'processes')}, {memory_of(tenants)}"


def memory_of(tenants: Sequence[GpuProcess]) -> str:
    """Return the memory of processes, as far as the driver reports it."""
    used_bytes = [process.bytes_used for process in tenants if process.bytes_used is not None]
    return size(sum(used_bytes)) if used_bytes else "memory n/a"


def clocks(box: Box) -> DoctorFinding:
    """Warn if a GPU is throttled now; idle GPUs and clocks set by the user do not count."""
    mask_of, unanswered = _each(lambda gpus, gpu: _meter(gpus, gpu, "throttle_mask"))
    masks = {index: int(mask) for index, mask in mask_of.items() if mask is not None}
    if not masks:
        return _beside(unanswered, unknown("the driver does not report throttling"))
    slow = []
    for index, mask in masks.items():
        reasons = set(throttle_names(mask)) - _HARMLESS
        if reasons:
            slow.append(f"GPU {index}: {', '.join(sorted(reasons))}")
    if slow:
        finding = warn("; ".join(slow), f"times will be longer; see the cause with {WHY_SLOW}")
        return _beside(unanswered, finding)
    return _beside(unanswered, passed("the clocks are not throttled"))


def memory_errors(box: Box) -> DoctorFinding:
    """Fail if a GPU has counted memory errors that ECC could not correct."""
    count_of, unanswered = _each(lambda gpus, gpu: _meter(gpus, gpu, "ecc_uncorrected"))
    counted = {index: count for index, count in count_of.items() if count is not None}
    if not counted:
        return _beside(unanswered, unknown("these GPUs do not count memory errors"))
    bad = [f"GPU {index}: {count:.0f}" for index, count in counted.items() if count]
    if bad:
        words = f"uncorrected errors since the last reset: {'; '.join(bad)}"
        return _beside(unanswered, failed(words, DO_NOT_TRAIN))
    return _beside(unanswered, passed("no uncorrected errors"))


def calibrated(box: Box) -> DoctorFinding:
    """Report when each GPU was calibrated: the noise of times differs between GPUs."""
    calibrations = calibration_file.load_gpus()
    day_of = {gpu.label: _find_day(calibrations, gpu) for gpu in _open().available}
    message = "; ".join(f"{label}: {day or 'never'}" for label, day in day_of.items())
    step = "run `tuilab calibrate --device cuda:N` (5 minutes)"
    if not any(day_of.values()):
        return unknown(f"{message}; how often verdicts about time are wrong there is unknown", step)
    return passed(message)


def _find_day(calibrations: Mapping[str, Calibration], gpu: Gpu) -> str:
    """Return the day on which a GPU was calibrated, or an empty string if it never was."""
    for uuid, calibration in calibrations.items():
        if nvml_uuid(uuid, [gpu.uuid]):
            return calibration.day or "on an unknown day"
    return ""


def variables(box: Box) -> DoctorFinding:
    """Warn about variables that slow down CUDA, and report which GPUs are visible."""
    slow = []
    if box.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"):
        slow.append("CUDA_LAUNCH_BLOCKING makes torch wait for each kernel")
    if box.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING", "0") not in ("", "0"):
        slow.append("PYTORCH_NO_CUDA_MEMORY_CACHING makes every allocation slow")
    if slow:
        names = " ".join(sentence.split()[0] for sentence in slow)
        return warn("; ".join(slow), f"unset {names} (only for debugging)")
    visible = box.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return passed("no environment variable hides a GPU")
    return passed(f"CUDA_VISIBLE_DEVICES={visible or '(empty: no GPU)'}")


def _open() -> Gpus:
    """Return the GPUs of this machine; raise NotKnown if NVML does not list them."""
    gpus = _gpus()
    if isinstance(gpus, str):
        raise NotKnown(gpus)
    return gpus


def _each(ask: Callable[[Gpus, Gpu], Any]) -> tuple[dict[int, Any], str]:
    """Return the answer of each GPU by its index, and a sentence about GPUs that do not answer.

    Slices (MIG) are not asked. Raises NotKnown if no GPU answers.
    """
    gpus = _open()
    answers = {}
    unanswered = []
    for gpu in gpus.whole:
        try:
            answers[gpu.index] = ask(gpus, gpu)
        except (GpuLost, NotKnown) as problem:
            unanswered.append(f"{gpu.label}: n/a ({problem})")
    if not answers:
        raise NotKnown("; ".join(unanswered) or "no GPU answers")
    return answers, "; ".join(unanswered)


def _meter(gpus: Gpus, gpu: Gpu, name: str) -> float | None:
    """Return one value of a GPU, or None if it has no such meter.

    Raises NotKnown if it has one that does not answer.
    """
    reading = gpus.read(gpu, [name])
    if reading.missing.get(name, "Not Supported") != "Not Supported":
        raise NotKnown(reading.missing[name])
    return reading.values.get(name)


def _beside(unanswered: str, finding: DoctorFinding) -> DoctorFinding:
    """Return a finding with the sentence about GPUs that do not answer added to its text."""
    if not unanswered:
        return finding
    return replace(finding, found=f"{finding.found}; {unanswered}")


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
