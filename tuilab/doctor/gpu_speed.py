"""Check whether a GPU works, and how fast, in a process that uses it through torch.

python -P -m tuilab.doctor.gpu_speed DEVICE

prints a line of JSON about the GPU, or why there is none, then a line for each check.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tuilab.doctor import (
    NVIDIA_SMI,
    OTHER_GPU,
    Box,
    DoctorFinding,
    answer,
    failed,
    passed,
    unknown,
    warn,
)
from tuilab.doctor.ask_all import tell
from tuilab.doctor.facts import torch_build
from tuilab.errors import BoxLacks
from tuilab.probes.gpu.is_present import describe_fix

if TYPE_CHECKING:
    from tuilab.lab.device.cuda import Cuda

Check = Callable[["Cuda"], DoctorFinding]


def kernel(gpu: "Cuda") -> DoctorFinding:
    """Check whether torch can run a small kernel on the GPU."""
    reason = gpu.why_not()
    if reason:
        return failed(reason, NVIDIA_SMI)
    return passed("a test kernel ran")


def architecture(gpu: "Cuda") -> DoctorFinding:
    """Check whether this build of torch has kernels for the GPU."""
    from tuilab.lab.device.torch_gpus import architectures

    name = gpu.architecture
    built_for = architectures()
    message = f"{name}; torch is built for {', '.join(built_for) or 'n/a'}"
    if not any(target.startswith(("sm_", "compute_")) for target in built_for):
        return unknown(f"{message}; these are not NVIDIA architectures")
    source = kernels_for(name, built_for)
    if source == "machine code":
        return passed(message)
    step = describe_fix("no kernel image", torch_build().removeprefix("CUDA "))
    if not source:
        return failed(f"{message}, and has no kernels for this GPU", step)
    return warn(f"{message}; each kernel is {source} at its first use", step)


def launch(gpu: "Cuda") -> DoctorFinding:
    """Measure a kernel launch; warn if CUDA_LAUNCH_BLOCKING makes torch wait for each kernel."""
    from tuilab.lab.gpu_bench import launch_s

    message = f"{1e6 * launch_s(gpu):.3g} us to launch a small kernel from torch"
    if os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"):
        return warn(
            f"{message}; CUDA_LAUNCH_BLOCKING makes torch wait for each kernel",
            "unset CUDA_LAUNCH_BLOCKING (it is only for debugging)",
        )
    return passed(message)


def event_clock(gpu: "Cuda") -> DoctorFinding:
    """Measure the smallest difference that CUDA events resolve; n/a if they resolve none."""
    from tuilab.lab.gpu_bench import event_tick_s

    tick_s = event_tick_s(gpu)
    if tick_s is None:
        return unknown(
            "events gave the same time for kernels of different lengths: the clock is too coarse,"
            " or does not advance"
        )
    return passed(f"events resolve differences of {1e6 * tick_s:.3g} us")


def copies(gpu: "Cuda", *, is_pinned: bool) -> DoctorFinding:
    """Measure copies from and to host memory, which is pinned or pageable."""
    from tuilab.lab.gpu_bench import copy_rates

    to_gpu, to_host = copy_rates(gpu, is_pinned=is_pinned)
    memory = "pinned" if is_pinned else "pageable"
    return passed(
        f"{memory} host memory: {to_gpu / 1e9:.3g} GB/s to the GPU, {to_host / 1e9:.3g} GB/s back"
    )


def product(gpu: "Cuda", *, kind: str) -> DoctorFinding:
    from tuilab.lab.gpu_bench import product_flops

    return passed(f"{product_flops(gpu, kind) / 1e12:.3g} TFLOP/s")


def bandwidth(gpu: "Cuda") -> DoctorFinding:
    from tuilab.lab.gpu_bench import memory_rate

    return passed(f"{memory_rate(gpu) / 1e9:.4g} GB/s read and written")


CHECKS: dict[str, Check] = {
    "gpu.kernel": kernel,
    "gpu.architecture": architecture,
    "gpu.launch": launch,
    "gpu.event_clock": event_clock,
    "gpu.copy_pinned": partial(copies, is_pinned=True),
    "gpu.copy_pageable": partial(copies, is_pinned=False),
    "gpu.product_ieee": partial(product, kind="ieee"),
    "gpu.product_tf32": partial(product, kind="tf32"),
    "gpu.product_bf16": partial(product, kind="bf16"),
    "gpu.product_fp16": partial(product, kind="fp16"),
    "gpu.bandwidth": bandwidth,
}


def main(device: str) -> None:
    """Print the findings about a GPU, a line each."""
    os.write(1, b"\n")  # so that the time of the first check does not include the start of torch
    from tuilab.lab.device.choose_device import usable

    try:
        gpu, why = usable(device)
    except BoxLacks as problem:
        _print_json({"lacks": str(problem)})
        return
    _print_json({"device": f"cuda:{gpu.index}", "why": why, "uuid": gpu.uuid, "name": gpu.name})
    for name, check in CHECKS.items():
        tell(name, answer(partial(_ask, check, gpu), Box()))


def _ask(check: Check, gpu: "Cuda", box: Box) -> DoctorFinding:
    """Run a check and return its finding; an error of the GPU itself is a failure."""
    try:
        return check(gpu)
    except RuntimeError as problem:
        kind = type(problem).__name__
        lines = str(problem).splitlines() or [kind]
        if kind == "OutOfMemoryError":
            return unknown(f"not enough GPU memory is free: {lines[0]}", OTHER_GPU)
        if kind == "AcceleratorError":
            return failed(lines[0], NVIDIA_SMI)
        return unknown(lines[0])


def _print_json(fields: dict[str, str]) -> None:
    os.write(1, json.dumps(fields).encode() + b"\n")


class _Target(NamedTuple):
    """A target of the compiler: sm_90a is for version (9, 0) and no other."""

    is_machine_code: bool
    version: tuple[int, int]
    is_special: bool  # it runs on this version only


def kernels_for(architecture: str, built: Iterable[str]) -> str:
    """Return how kernels get to a GPU: `machine code`, `translated by the driver`, or nothing.

    Machine code runs on its own generation from its minor version on: that of sm_80 runs on sm_86.
    The driver translates code for older GPUs.
    """
    version = _parse_version(architecture.removeprefix("sm_"))
    can_translate = False
    for name in built:
        target = _parse_target(name)
        if target is None or not _can_run(target, version):
            continue
        if target.is_machine_code:
            return "machine code"
        can_translate = True
    return "translated by the driver" if can_translate else ""


def _can_run(target: _Target, version: tuple[int, int]) -> bool:
    """Say whether a GPU of a version can run the kernels of a target, translated if necessary."""
    if target.is_special:
        return target.version == version
    if target.is_machine_code:
        return target.version[0] == version[0] and target.version[1] <= version[1]
    return target.version <= version


def _parse_target(name: str) -> _Target | None:
    """Return an architecture such as `sm_90a` in parts; None for one that is not NVIDIA's."""
    match = re.fullmatch(r"(sm|compute)_(\d{2,3})([af]?)", name)
    if match is None:
        return None
    return _Target(match[1] == "sm", _parse_version(match[2]), match[3] == "a")


def _parse_version(digits: str) -> tuple[int, int]:
    return divmod(int(digits), 10)


if __name__ == "__main__":
    main(sys.argv[1])
    sys.stdout.flush()
    os._exit(0)  # the normal exit of torch takes a quarter of a second
