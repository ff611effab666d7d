"""Measure how many FLOPs a second a large matrix product reaches on one device.

python -P -m tuilab.lab.matmul_peak KIND DEVICE THREADS CORES PRECISION

prints one line of JSON: the rate, or why it was not measured. KIND is a dtype, or tf32. The other
arguments are those of the process that the rate is compared with; 0 threads or cores: all.
"""

import json
import os
import sys
import time

import torch

from tuilab.errors import BoxLacks
from tuilab.lab.device.choose_device import usable
from tuilab.lab.gpu_bench import product_flops

# By dtype of the FLOPs: the kind of product on a GPU.
_ON_GPU = {"float32": "ieee", "tf32": "tf32", "bfloat16": "bf16", "float16": "fp16"}
_ON_CPU = ("float32", "float64", "bfloat16", "float16")
_SIDES = (256, 512, 1024, 2048, 4096)  # of the matrices on a CPU
_LONG_ENOUGH_S = 0.1  # a product that takes so long is large enough
_BUDGET_S = 0.8  # for all products on a CPU


def main() -> None:
    """Print the rate of a product, or why there is none."""
    kind, device, threads, cores, precision = sys.argv[1:]
    try:
        answer = _measure(kind, device, int(threads), int(cores), precision)
    except BoxLacks as problem:
        answer = {"why": str(problem)[:300]}
    except RuntimeError as problem:  # a GPU without room for the matrices, for example
        answer = {"why": f"{type(problem).__name__}: {problem}"[:300]}
    print(json.dumps(answer))


def _measure(kind: str, device: str, threads: int, cores: int, precision: str) -> dict[str, object]:
    if device == "cuda":
        if kind not in _ON_GPU:
            return {"why": f"no product in {kind} is measured on a GPU"}
        gpu, _ = usable("cuda")
        return {"flops_s": product_flops(gpu, _ON_GPU[kind])}
    if device != "cpu" or kind not in _ON_CPU:
        return {"why": f"no product in {kind} is measured on a device {device}"}
    usable_cores = sorted(os.sched_getaffinity(0))
    if 0 < cores < len(usable_cores):
        os.sched_setaffinity(0, usable_cores[:cores])
    if threads:
        torch.set_num_threads(threads)
    if precision:
        torch.set_float32_matmul_precision(precision)
    return {"flops_s": _product_on_cpu(getattr(torch, kind))}


def _product_on_cpu(dtype: torch.dtype) -> float:
    """Return the FLOPs a second of the fastest product, of growing sizes within the budget."""
    best = 0.0
    began = time.perf_counter()
    with torch.no_grad():
        for side in _SIDES:
            a = torch.empty(side, side, dtype=dtype).normal_()
            b = torch.empty(side, side, dtype=dtype).normal_()
            product = torch.empty_like(a)
            took_s = 0.0
            is_last = False
            for _ in range(4):  # the first one may load kernels
                call_began = time.perf_counter()
                torch.mm(a, b, out=product)
                now = time.perf_counter()
                took_s = now - call_began
                best = max(best, 2 * side**3 / took_s)
                is_last = now - began > _BUDGET_S
                if is_last:
                    break
            if is_last or took_s > _LONG_ENOUGH_S:
                break
    return best


if __name__ == "__main__":
    main()
