"""Advice about frequent failures, by the message of the exception.

Only the type of an exception is asked, because its methods may be code of the scenario.
"""

import re
import sys
from collections.abc import Iterable, Sequence
from types import ModuleType

_ASSERT = "run again with CUDA_LAUNCH_BLOCKING=1 or --device cpu: then the traceback shows the line"
_OLD = (
    "the NVIDIA driver is too old for this torch: update it, or install a build of torch for an"
    " older CUDA"
)
_NONE = (
    "torch sees no GPU: find the reason with `tuilab doctor`; CUDA_VISIBLE_DEVICES may hide the"
    " GPUs"
)
_BROKEN = (
    "the GPU or its driver failed, not the scenario: see `sudo dmesg | grep -i xid`; reset the GPU,"
    " or reboot"
)
_SMALL_SHM = (
    "/dev/shm is too small for the batches of the DataLoader: use fewer workers, smaller batches,"
    " or a larger /dev/shm"
)

# The first sentence that is in the message counts.
_CUDA = (
    ("device-side assert triggered", f"an index or label is out of range in a kernel: {_ASSERT}"),
    ("illegal memory access", f"a kernel used memory that is not its own: {_ASSERT}"),
    ("misaligned address", f"a kernel used memory that is not its own: {_ASSERT}"),
    ("unspecified launch failure", f"a kernel crashed: {_ASSERT}"),
    (
        "no kernel image is available",
        "this build of torch has no kernels for this GPU: install a build that has them",
    ),
    ("driver version is insufficient", _OLD),
    ("driver on your system is too old", _OLD),
    ("unsupported toolchain", _OLD),
    (
        "forward compatibility was attempted",
        (
            "the CUDA libraries and the NVIDIA driver have different versions: reboot, or update"
            " the driver"
        ),
    ),
    (
        "Found no NVIDIA driver",
        "this machine has no NVIDIA driver: install it, or run with --device cpu",
    ),
    (
        "not compiled with CUDA",
        "this build of torch has no CUDA: install a build with CUDA, or run with --device cpu",
    ),
    (
        "busy or unavailable",
        (
            "another process uses this GPU exclusively (see `nvidia-smi`): wait, choose another"
            " GPU, or run with --device cpu"
        ),
    ),
    (
        "invalid device ordinal",
        (
            "no GPU has this number: `tuilab doctor --all` lists the GPUs; CUDA_VISIBLE_DEVICES may"
            " hide some"
        ),
    ),
    ("No CUDA GPUs are available", _NONE),
    ("no CUDA-capable device", _NONE),
    (
        "system not yet initialized",
        "the GPUs are not linked yet: start nvidia-fabricmanager of the same version as the driver",
    ),
    (
        "re-initialize CUDA in forked",
        'CUDA does not survive a fork: start loader workers with multiprocessing_context="spawn"',
    ),
    (
        "stream is capturing",
        (
            "a CUDA graph is being captured, which does not allow this: do it before or after the"
            " capture"
        ),
    ),
    ("uncorrectable ECC error", _BROKEN),
    ("CUDA unknown error", _BROKEN),
    ("CUDA error: unknown error", _BROKEN),
    ("NCCL", "run again with NCCL_DEBUG=WARN: then NCCL names the rank, GPU or link"),
)
_FULL = (
    "out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_NOT_INITIALIZED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "Unable to find a valid cuDNN algorithm",
    "unable to find an engine to execute this computation",
)
_NAME = 100  # characters of an unknown name that are compared with known ones
_ANY = (
    ("shared memory", _SMALL_SHM),
    ("/dev/shm", _SMALL_SHM),
    (
        "Too many open files",
        "the limit of open files is too low: raise it, for example ulimit -n 65536",
    ),
    (
        "can't allocate memory",
        "the machine has no memory left: use a smaller size, or stop other programs",
    ),
    (
        "Lab.claim() got an unexpected keyword argument 'ratio'",
        "for two arms of a race, use lab.claim_ratio(key, ratio, ...)",
    ),
    (
        "got an unexpected keyword argument 'advises'",
        "to recommend a value of a variable, use lab.advise(name, values, ...)",
    ),
)


def hint_for(problem: BaseException, text: str) -> str:
    """Return the advice for an exception with the message `text`; an empty string without any."""
    if issubclass(type(problem), RuntimeError | AssertionError):
        if is_gpu_full(problem, text):
            return (
                f"the GPU has no memory left: use a smaller size, or another GPU; {_others(text)}"
            )
        advice = _find(_CUDA, text)
        if advice:
            return advice
    if issubclass(type(problem), ModuleNotFoundError):
        return "install the module into the environment that tuilab runs in"
    if type(problem) is AttributeError and type(problem.name) is str:
        names = _names_of(problem.obj)
        if names:
            return _did_you_mean(problem.name[:_NAME], names)
    return _find(_ANY, text)


def _names_of(owner: object) -> list[str]:
    """Return the public names of the lab or of a module; an empty list for other objects."""
    lab = sys.modules.get("tuilab.lab.lab")
    names: Iterable[object] = ()
    if lab and type(owner) is lab.Lab:
        names = dir(lab.Lab)
    elif type(owner) is ModuleType:
        names = vars(owner)
    public_names = []
    for name in names:
        if type(name) is str and name.isidentifier() and not name.startswith("_"):
            public_names.append(name)
    return public_names


def _did_you_mean(name: str, names: Sequence[str]) -> str:
    """Return a suggestion for a misspelt name, as Python prints it; empty if there is none."""
    from difflib import get_close_matches  # imported here: only misspelt names need it

    close = get_close_matches(name, names, n=1)
    if not close:
        return ""
    return f"did you mean {close[0]}?"


def is_of_cuda(problem: BaseException, text: str) -> bool:
    """Say whether an error is one of CUDA or its libraries, and so perhaps of an earlier call."""
    if not issubclass(type(problem), RuntimeError):
        return False
    return re.search(r"CUDA|cuBLAS|CUBLAS|cuDNN|CUDNN|NCCL", text) is not None


def is_gpu_full(problem: BaseException, text: str) -> bool:
    """Say whether the memory of a GPU was full."""
    if not issubclass(type(problem), RuntimeError):
        return False
    return any(sentence in text for sentence in _FULL)


def _others(text: str) -> str:
    """Return who else uses the memory of the GPU, if torch knows which of the processes this is."""
    processes = re.findall(r"Process (\d{1,10}) has ([\d.]{1,20} \w{1,5}) memory in use", text)
    if processes and "this process has" in text:
        names = [f"process {pid} ({size})" for pid, size in processes[:5]]
        return f"other processes use part of it: {', '.join(names)}"
    return "nvidia-smi shows who else uses it"


def _find(table: tuple[tuple[str, str], ...], text: str) -> str:
    """Return the advice for the first sentence of a table that is in a text; empty without any."""
    for sentence, advice in table:
        if sentence in text:
            return advice
    return ""
