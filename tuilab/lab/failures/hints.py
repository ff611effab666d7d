"""What to do about failures that people meet often: what an exception says, and the advice for it.

Its type is asked and not itself: it may answer with code of the scenario.
"""

import re
import sys
from collections.abc import Sequence
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

# The first sentence that is found counts.
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
_NAME = 100  # characters that are compared of one that nothing has
_ANY = (
    (
        "shared memory",
        (
            "/dev/shm is too small for the batches of the DataLoader: use fewer workers, smaller"
            " batches, or a larger /dev/shm"
        ),
    ),
    (
        "/dev/shm",
        (
            "/dev/shm is too small for the batches of the DataLoader: use fewer workers, smaller"
            " batches, or a larger /dev/shm"
        ),
    ),
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
    """Return what to do about an exception that says `text`, or nothing."""
    if issubclass(type(problem), RuntimeError | AssertionError):
        if is_gpu_full(problem, text):
            return (
                f"the GPU has no memory left: use a smaller size, or another GPU; {_others(text)}"
            )
        if match := _find(_CUDA, text):
            return match
    if issubclass(type(problem), ModuleNotFoundError):
        return "install the module into the environment that tuilab runs in"
    if (
        type(problem) is AttributeError
        and type(problem.name) is str
        and (names := _names_of(problem.obj))
    ):
        return _meant(problem.name[:_NAME], names)
    return _find(_ANY, text)


def _names_of(owner: object) -> list[str]:
    """Return the names that the lab or a module has, without asking it; of the user's own objects nothing is known."""
    lab = sys.modules.get("tuilab.lab.lab")
    names = (
        dir(lab.Lab)
        if lab and type(owner) is lab.Lab
        else vars(owner)
        if type(owner) is ModuleType
        else ()
    )
    return [
        name
        for name in names
        if type(name) is str and name.isidentifier() and not name.startswith("_")
    ]


def _meant(name: str, names: Sequence[str]) -> str:
    """Return what a name was meant for, as Python itself says it where nobody catches the exception."""
    from difflib import get_close_matches  # only who misspells waits for it

    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else ""


def is_of_cuda(problem: BaseException, text: str) -> bool:
    """Say whether CUDA or one of its libraries told of an error: it may have happened long before."""
    return (
        issubclass(type(problem), RuntimeError)
        and re.search(r"CUDA|cuBLAS|CUBLAS|cuDNN|CUDNN|NCCL", text) is not None
    )


def is_gpu_full(problem: BaseException, text: str) -> bool:
    """Say whether the memory of a GPU did not suffice."""
    return issubclass(type(problem), RuntimeError) and any(sentence in text for sentence in _FULL)


def _others(text: str) -> str:
    """Return who else has memory of the GPU, where torch names them; where it does not know itself, one of them may be it."""
    processes = re.findall(r"Process (\d{1,10}) has ([\d.]{1,20} \w{1,5}) memory in use", text)
    if processes and "this process has" in text:
        return "other processes use part of it: " + ", ".join(
            f"process {pid} ({size})" for pid, size in processes[:5]
        )
    return "nvidia-smi shows who else uses it"


def _find(table: tuple[tuple[str, str], ...], text: str) -> str:
    return next((advice for sentence, advice in table if sentence in text), "")
