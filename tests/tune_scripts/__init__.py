"""Training scripts for `tuilab tune`: each has one planted slowness, or something that tuning must survive.

Each script is started by itself and knows nothing of tuilab. `SLOW_SCRIPTS` says what is planted.
"""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class SlowScript:
    """A script with one planted slowness."""

    name: str  # of the file, without its extension
    treatments: tuple[str, ...]  # each of them removes the slowness; names as in `--only`
    at_least: float  # times that a step is faster under the first of them, on idle cores
    ranks: int = 1  # more than one: the script is started by torchrun
    needs_gpu: bool = False  # it runs on a GPU, or on the model of a GPU with time
    needs_compiler: bool = False  # torch.compile needs g++
    cores: int = 1  # free cores without which the treatment gains nothing
    processor_flag: str = ""  # of /proc/cpuinfo, without which the treatment gains nothing

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.py"


SLOW_SCRIPTS = (
    SlowScript(name="waiting_loader", treatments=("workers",), at_least=1.5),
    SlowScript(name="working_loader", treatments=("workers",), at_least=1.3, cores=2),
    SlowScript(
        name="float32_products", treatments=("bf16",), at_least=1.3, processor_flag="amx_bf16"
    ),
    SlowScript(name="unfused_adam", treatments=("fused",), at_least=1.5),
    SlowScript(name="recompiled_steps", treatments=("compile",), at_least=1.5, needs_compiler=True),
    SlowScript(name="garbage_storm", treatments=("gc-freeze",), at_least=1.5),
    SlowScript(name="too_many_threads", treatments=("threads",), at_least=1.5),
    SlowScript(name="contiguous_images", treatments=("channels-last",), at_least=1.3),
    SlowScript(name="zeroed_gradients", treatments=("set-to-none",), at_least=1.5),
    SlowScript(name="small_operators", treatments=("compile",), at_least=1.5, needs_compiler=True),
    SlowScript(name="small_buckets", treatments=("ddp-bucket",), at_least=1.3, ranks=2),
    SlowScript(name="gpu_pageable_copies", treatments=("pin",), at_least=1.3, needs_gpu=True),
    SlowScript(name="gpu_ieee_float32", treatments=("tf32", "bf16"), at_least=1.5, needs_gpu=True),
    SlowScript(name="gpu_small_kernels", treatments=("compile",), at_least=1.5, needs_gpu=True),
    SlowScript(
        name="gpu_growing_batches",
        treatments=("expandable-segments",),
        at_least=1.2,
        needs_gpu=True,
    ),
)
