"""What lessons keep for a GPU runs on a model of one, so that a mistake there is found without a GPU.

Exact claims hold there as well. Times are not judged.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TUILAB, run_of
from tests.fakes import cuda_values
from tests.scenarios import gpu_lessons
from tests.scenarios.conftest import LIMIT_S
from tests.warm_process import WarmTuilab
from tuilab.catalogue import catalog

# A lesson with one of these has claims that only a GPU can test.
FOR_GPU = r"CUDA device|lacks_units"
LESSONS = {entry.id for entry in catalog.load() if re.search(FOR_GPU, Path(entry.path).read_text())}
# Reasons that concern this run on the model, and no GPU.
OTHER_LACKS = r"^--device cpu|^the package "
# Sizes that take a CPU too long: options, and constants of the lesson.
OPTIONS = {
    "checkerboard": ("--size", "32", "--channels", "16"),
    "dims-of-8": ("--size", "64"),
    "matmul-dtypes": ("--size", "64"),
    "pin-memory": ("--mb", "1"),
}
CONSTANTS: dict[str, dict[str, Any]] = {
    "amp-vgg": {"GPU_WIDTH": 8},
    "channels-last": {"SIZES_GPU": {"width": 8, "batch": 2, "side": 16}},
    "conv-algos": {"FIXED_SHAPES": [[4, 4, 3, 8]], "WARM_UP_STEPS": 1, "TIMED_STEPS": 2},
    "create-on-device": {"GPU_NUMBERS": 10_000},
    "dims-of-8": {"TOKENS": 8, "HIDDEN": 8},
    "embedding-bound": {"GPU_SAMPLES": 64, "GPU_TABLE_BYTES": 1 << 20},
    "fp8": {"GPU_ROWS": 16, "GPU_SIZE": 64},
    "fuse-pointwise": {"GPU_NUMBERS": 1 << 16},
    "grad-accum": {"GPU_ROWS": 64, "GPU_WIDTH": 64},
    "layer-precision": {"GPU_FACTOR": 1, "GPU_ROWS": 64},
    "no-grad": {"GPU_WIDTH": 16},
    "non-blocking": {"SIZE": 64},
    "pin-memory": {"REPEATS": 1},
}
# Claims that the model cannot make, or whose value it does not have. Each of them fails there.
LAUNCHES = "no kernel is in a profile"
ROUNDING = "products are those of a CPU"
STREAMS = "streams do not wait for each other, and no copy is late"
TRITON = "torch.compile makes kernels with Triton"
GPUS = "there is one GPU, and no NCCL"
DETERMINISM = "kernels do not ask whether they have to be deterministic"
ALIVE = "10 KiB more are alive on the model in one of four nets, and it is not known why"
NOT_MODELLED: dict[str, dict[str, str]] = {
    "bucket-order": {"gpu-overlap": GPUS},
    "ckpt-mlp": {"alone": ALIVE, "second-cell": ALIVE, "excess": ALIVE},
    "compile-modes": {
        "kernel": TRITON,
        "warm": TRITON,
        "compiled-time": TRITON,
        "gpu-graphs-time": TRITON,
    },
    "conv-algos": {"tries": LAUNCHES, "late": LAUNCHES},
    "cuda-graphs": {"launches": LAUNCHES},
    "determinism-cost": {
        "nan": DETERMINISM,
        "forgotten": DETERMINISM,
        "fills": DETERMINISM,
        "gpu-raises": DETERMINISM,
        "gpu-index-add": DETERMINISM,
    },
    "fp8": {"gpu-fast": ROUNDING, "gpu-promoted": ROUNDING},
    "fsdp-vs-ddp": {"gpu-ring": GPUS},
    "fuse-pointwise": {"gpu-launches": LAUNCHES, "kernel": TRITON, "compiled": TRITON},
    "loader-start": {"cuda": "a forked child can use the GPU"},
    "matmul-dtypes": {"geforce": "the GPU is no GeForce"},
    "no-sync": {"gpu-time": GPUS},
    "non-blocking": {"gpu-streams": STREAMS, "sync-point": STREAMS, "stale": STREAMS},
    "profiler": {
        "counts": "operators of a convolution differ",
        "nested": "operators of a convolution differ",
        "forward": "operators of a convolution differ",
        "schedule": "operators of a convolution differ",
        "kernels": LAUNCHES,
    },
    "tf32": {"gpu": ROUNDING, "gpu-conv": ROUNDING},
}

# Lessons that are not run, and why.
NOT_RUN = {
    "oom-anatomy": "no history of allocations, and no limit of the memory of a process",
    "prealloc": "no segments of the allocator; its arms train on all sizes",
    "zero-grad": "DistributedDataParallel does not end on a device that only looks like CUDA",
}


@pytest.fixture(scope="module")
def on_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmTuilab]:
    """Wait with torch and the model, and fork for each run."""
    if shutil.which("g++") is None:
        pytest.skip("no g++: the model of a GPU is in C++")
    compiled = os.environ.get(gpu_lessons.LIBRARY)  # by an earlier run, to save time
    library = Path(compiled or tmp_path_factory.mktemp("model") / "libcuda_values.so")
    if not library.exists():
        cuda_values.build(library)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(gpu_lessons.LIBRARY, str(library))
        waiting = WarmTuilab(TUILAB, "tests.scenarios.gpu_lessons")
        yield waiting
    waiting.end()


@pytest.mark.library
@pytest.mark.timeout(LIMIT_S + 200)  # with the compilation of the model
@pytest.mark.parametrize("lesson", sorted(LESSONS - NOT_RUN.keys()))
def test_gpu_claims_of_a_lesson_are_made(on_model: WarmTuilab, root: Path, lesson: str) -> None:
    constants = json.dumps(CONSTANTS.get(lesson, {}))
    surroundings = {"TUILAB_ROOT": str(root), gpu_lessons.CONSTANTS: constants}
    words = ("run", lesson, "--quick", "--device", "cuda", *OPTIONS.get(lesson, ()))

    run = run_of(on_model.run(words, {**os.environ, **surroundings}, Path.cwd(), LIMIT_S))

    assert run["state"] == "succeeded", run["reason"]
    missed = {}
    for claim in run["claims"]:
        is_lacking = claim["verdict"] == "NOT TESTABLE HERE"
        if is_lacking and not re.search(OTHER_LACKS, claim["why"]):
            missed[claim["key"]] = claim["why"]
        if claim["verdict"] is None or (claim["measured"] and claim["verdict"] == "REFUTED"):
            missed[claim["key"]] = claim["why"]
    assert missed.keys() == NOT_MODELLED.get(lesson, {}).keys(), missed
