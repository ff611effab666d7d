"""Run a training script on the GPU of `tests/fakes/cuda_values.py`, with a model of its time.

    python -m tests.fakes.timed_gpu LIBRARY SCRIPT [ARGUMENT...]

LIBRARY is the compiled model. The script, torch and tuilab find a device `cuda:0` that is slow, so
that the host can compute the values in time. `cuda_time.h` has its speeds. Which treatment helps
follows from a few rules, and the host really waits, so that every clock shows it:

- A launch takes the host 200 µs. The GPU computes asynchronously, one kernel after another, and has
  a queue of 1,024 kernels.
- A kernel takes as long as its bytes, or as its floating point operations if it is a product: 1 byte
  a nanosecond; 1 operation in float32, 4 in TF32, 8 in float16 and bfloat16.
- `.item()`, `.cpu()`, synchronization and copies from pageable memory wait for the queue. Copies
  from pinned memory with `non_blocking=True` do not, and are twice as fast.
- Operators on lists of tensors (foreach, fused optimizers) are one kernel.
- torch.compile merges operators in a row that are no products into one kernel. With
  `mode="reduce-overhead"` the whole graph is one launch, as is the replay of a CUDA graph.
- The GPU has 32 MiB. `cuda_blocks.h` models the caching allocator: memory of the driver takes the
  host 4 ms. If there is none, the allocator waits for the queue and gives its free segments back.
  With expandable segments, free blocks join.

Not modelled: copies during kernels, other streams, occupancy and caches, memory formats, back ends of
cuDNN and of attention, rounding of TF32, kernels in a profile, times of Triton (a compilation takes as
long as tracing), other GPUs.
"""

import runpy
import sys
from pathlib import Path
from typing import Any

from tests.fakes import cuda_values

CAPACITY_BYTES = 32 << 20
COMPILED = 1  # regions of cuda_time.h
CUDA_GRAPH = 2


def load(library: Path) -> None:
    """Load torch with the GPU, and start its time."""
    cuda_values.load(library)
    # imported here: they load torch
    import torch

    from tests.fakes import cuda_values_calls

    cuda_values_calls.set_capacity(CAPACITY_BYTES)
    torch.ops.cuda_values.start_time(CAPACITY_BYTES)
    cuda_values_calls.has_time = True
    _replace_inductor()


def _replace_inductor() -> None:
    """Compile graphs by tracing them, because Triton cannot make kernels for this GPU."""
    import torch
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch._aot_autograd.utils import make_boxed_func
    from torch._inductor import compile_fx

    model = torch.ops.cuda_values

    def compile_graph(graph: Any, inputs: Any, config_patches: Any = None, **more: Any) -> Any:
        has_graphs = bool((config_patches or {}).get("triton.cudagraphs"))
        kind = CUDA_GRAPH if has_graphs else COMPILED

        def compile_traced(traced: Any, examples: Any) -> Any:
            def call(*arguments: Any) -> Any:
                model.begin_region(kind)
                try:
                    return traced(*arguments)
                finally:
                    model.end_region()

            return make_boxed_func(call)

        return aot_autograd(fw_compiler=compile_traced)(graph, inputs)

    compile_fx.compile_fx = compile_graph  # type: ignore[assignment]


if __name__ == "__main__":
    library, *words = sys.argv[1:]
    load(Path(library))
    sys.argv = words
    sys.path[0] = str(Path(words[0]).resolve().parent)
    runpy.run_path(words[0], run_name="__main__")
