"""Check whether a GPU works, and how fast, in a process that uses it through torch.

python -P -m tuilab.doctor.gpu_speed DEVICE

prints a line of JSON about the GPU, or why there is none, then a line for each check.
"""

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

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
import re
from collections.abc import Iterable
from typing import NamedTuple

Check = Callable[["Cuda"], DoctorFinding]


def kernel(gpu: "Cuda") -> DoctorFinding:
    if reason := gpu.why_not():
        return failed(reason, NVIDIA_SMI)
    return passed("a test kernel ran")


def architecture(gpu: "Cuda") -> DoctorFinding:
    """Check whether this build of torch has kernels for the GPU."""
    from tuilab.lab.device.torch_gpus import architectures

    name, built_for = gpu.architecture, architectures()
    message = f"{name}; torch is built for {', '.join(built_for) or 'n/a'}"
    if not any(target.startswith(("sm_", "compute_")) for target in built_for):
        return unknown(f"{message}; these are not NVIDIA architectures")
    how = kernels_for(name, built_for)
    if how == "machine code":
        return passed(message)
    step = describe_fix("no kernel image", torch_build().removeprefix("CUDA "))
    if not how:
        return failed(f"{message}, and has no kernels for this GPU", step)
    return warn(f"{message}; each kernel is {how} at its first use", step)


def launch(gpu: "Cuda") -> DoctorFinding:
    from tuilab.lab.gpu_bench import launch_s

    message = f"{1e6 * launch_s(gpu):.3g} us to launch a small kernel from torch"
    if os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"):
        return warn(
            f"{message}; CUDA_LAUNCH_BLOCKING makes torch wait for each kernel",
            "unset CUDA_LAUNCH_BLOCKING (it is only for debugging)",
        )
    return passed(message)


def event_clock(gpu: "Cuda") -> DoctorFinding:
    from tuilab.lab.gpu_bench import event_tick_s

    tick_s = event_tick_s(gpu)
    if tick_s is None:
        return unknown(
            "events gave the same time for kernels of different lengths: the clock is too coarse,"
            " or does not advance"
        )
    return passed(f"events resolve differences of {1e6 * tick_s:.3g} us")


def copies(gpu: "Cuda", *, is_pinned: bool) -> DoctorFinding:
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


def main(wanted: str) -> None:
    """Print the findings about a GPU, a line each."""
    os.write(1, b"\n")  # so that the time of the first check does not include the start of torch
    from tuilab.lab.device.choose_device import usable

    try:
        gpu, why = usable(wanted)
    except BoxLacks as problem:
        _say({"lacks": str(problem)})
        return
    _say({"device": f"cuda:{gpu.index}", "why": why, "uuid": gpu.uuid, "name": gpu.name})
    for name, check in CHECKS.items():
        tell(name, answer(partial(_ask, check, gpu), Box()))


def _ask(check: Check, gpu: "Cuda", box: Box) -> DoctorFinding:
    """Run a check and return its finding; an error of the GPU itself is a failure."""
    try:
        return check(gpu)
    except RuntimeError as problem:
        first, *_ = str(problem).splitlines() or [type(problem).__name__]
        if type(problem).__name__ == "OutOfMemoryError":
            return unknown(f"not enough GPU memory is free: {first}", OTHER_GPU)
        if type(problem).__name__ == "AcceleratorError":
            return failed(first, NVIDIA_SMI)
        return unknown(first)


def _say(what: dict[str, str]) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


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
    version = _version(architecture.removeprefix("sm_"))
    targets = [target for name in built if (target := _target(name))]
    if any(target.is_machine_code and _runs(target, version) for target in targets):
        return "machine code"
    can_translate = any(
        not one.is_machine_code
        and one.version <= version
        and (not one.is_special or one.version == version)
        for one in targets
    )
    return "translated by the driver" if can_translate else ""


def _runs(target: _Target, version: tuple[int, int]) -> bool:
    if target.is_special:
        return target.version == version
    return target.version[0] == version[0] and target.version[1] <= version[1]


def _target(name: str) -> _Target | None:
    match = re.fullmatch(r"(sm|compute)_(\d{2,3})([af]?)", name)
    return _Target(match[1] == "sm", _version(match[2]), match[3] == "a") if match else None


def _version(digits: str) -> tuple[int, int]:
    return divmod(int(digits), 10)


if __name__ == "__main__":
    main(sys.argv[1])
    sys.stdout.flush()
    os._exit(0)  # the normal exit of torch takes a quarter of a second
