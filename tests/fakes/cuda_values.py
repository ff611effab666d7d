"""A GPU with values: torch gets a device `cuda:0` whose memory is that of the host.

`cuda_values.cpp` gives torch the driver, the memory and the operators, `cuda_values_calls.py` the
functions below torch.cuda. Tensors are plain tensors, so autograd, autocast, modules, optimizers and
meters do what they do on a GPU. A process loads the model before torch, and keeps it to its end.

It exists to run the code that lessons keep for a GPU. It does not model:
- time, unless `start_time` gives it one (`timed_gpu.py`): a kernel has finished when its call
  returns, and events read the clock of the host;
- the rounding of a GPU: kernels are those of the CPU, so TF32 and float8 give other bits;
- cuDNN, Triton, NCCL, kernels in a profile, other GPUs, errors that appear later;
- memory within a kernel, segments of the allocator, and streams (a graph is computed while it is
  captured, and a tensor that is read too early has its value).
"""

import ctypes
import sys
from importlib.util import find_spec
from pathlib import Path


def build(library: Path) -> None:
    """Compile the part in C++. It takes some 10 seconds."""
    # imported here: it loads pytest, which the process with the GPU does not need
    from tests.fakes.compiled import compile_library

    folder = _torch_folder()
    compile_library(
        Path(__file__).with_suffix(".cpp"),
        library,
        "-O0",  # half the time of -O1
        "-std=c++20",
        f"-isystem{folder / 'include'}",
        f"-L{folder / 'lib'}",
        "-lc10",
        "-ltorch_cpu",
        "-lstdc++",
        lack="the model of a GPU is in C++",
    )


def load(library: Path) -> None:
    """Load torch with a GPU. The model comes first, because torch asks only once what there is."""
    assert "torch" not in sys.modules
    folder = _torch_folder() / "lib"
    for path in (*folder.glob("libgomp*"), folder / "libc10.so", folder / "libtorch_cpu.so"):
        ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    # imported here: it loads torch
    from tests.fakes.cuda_values_calls import install

    install()


def _torch_folder() -> Path:
    """Return the folder of torch, without loading it."""
    spec = find_spec("torch")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent
