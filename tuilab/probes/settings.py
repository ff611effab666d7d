"""The environment variables that change how training runs, and settings of them."""

import re
from typing import NamedTuple

# Whole names, no prefixes: a variable that is not in this list is never read.
VARIABLES = (
    "OMP_NUM_THREADS",
    "OMP_PROC_BIND",
    "OMP_PLACES",
    "OMP_SCHEDULE",
    "OMP_WAIT_POLICY",
    "OMP_DYNAMIC",
    "OMP_THREAD_LIMIT",
    "OMP_MAX_ACTIVE_LEVELS",
    "OMP_STACKSIZE",
    "MKL_NUM_THREADS",
    "MKL_DYNAMIC",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "MKL_THREADING_LAYER",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "KMP_HW_SUBSET",
    "KMP_SETTINGS",
    "GOMP_CPU_AFFINITY",
    "GOMP_SPINCOUNT",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "DNNL_MAX_CPU_ISA",
    "ONEDNN_MAX_CPU_ISA",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "ATEN_CPU_CAPABILITY",
    "MALLOC_CONF",
    "MALLOC_ARENA_MAX",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_MMAP_MAX_",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_PERTURB_",
    "GLIBC_TUNABLES",
    "LD_PRELOAD",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_TF32_OVERRIDE",
    "NVIDIA_VISIBLE_DEVICES",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "PYTORCH_JIT",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_COMPILE_DISABLE",
    "TORCHDYNAMO_DISABLE",
    "PYTHONHASHSEED",
)

# Variables that no library reads. A training script, or the program that starts it, passes their
# values on.
PASSED_ON = (
    "DATALOADER_NUM_WORKERS",
    "DATALOADER_PIN_MEMORY",
    "DATALOADER_PERSISTENT_WORKERS",
    "LAUNCH_PREFIX",
)
_SETTING = re.compile(r"([A-Z][A-Z0-9_]{1,60})=([\w./:,=+@% -]{1,200})", re.ASCII)


class VariableSetting(NamedTuple):
    """A variable and its value."""

    name: str
    value: str


def read_setting(text: str) -> VariableSetting:
    """Return the setting in a text such as OMP_NUM_THREADS=2.

    ValueError if it is not spelled like that, or the variable does not change training.
    """
    match = _SETTING.fullmatch(text)
    if not match:
        raise ValueError(f"a setting is spelled as in OMP_NUM_THREADS=2, not {text[:100]!r}")
    name, value = match.groups()
    if name not in VARIABLES and name not in PASSED_ON:
        raise ValueError(
            f"{name} is not a known setting of threads, allocators, workers or pinning"
        )
    return VariableSetting(name, value)
