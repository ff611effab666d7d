"""Checks of torch in a worker: that it loads, its threads, and its variables.

torch is loaded in a thread. A check that has waited long enough is n/a; the next one may succeed.
"""

import functools
import os
import re
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from tuilab.doctor import Box, DoctorFinding, failed, passed, unknown, warn
from tuilab.doctor.storage import REMOTE, mounted
from tuilab.probes import NotKnown
from tuilab.probes.cpu import cpu_facts
from tuilab.probes.gpu.is_present import describe_fix, is_gpu_there
from tuilab.text.display import plural, show

_RUNTIMES = {
    "GNU OpenMP": r"libgomp[\w.-]*\.so",
    "Intel OpenMP": r"libiomp5[\w.-]*\.so",
    "LLVM OpenMP": r"libomp[\w.-]*\.so",
}
_ALLOCATORS = {"jemalloc": r"libjemalloc", "tcmalloc": r"libtcmalloc", "mimalloc": r"libmimalloc"}
_READERS = {  # prefix of a variable -> the libraries that read it
    "KMP_": ("Intel OpenMP", "LLVM OpenMP"),
    "GOMP_": ("GNU OpenMP",),
    "MALLOC_CONF": ("jemalloc",),
    "TCMALLOC_": ("tcmalloc",),
}
_LOADING_S = 2.0  # a check waits so long for torch: less than the patience of the doctor
_GIVE_UP_S = 6.0  # after so long no check waits for torch any more
_OWN_ALLOCATORS = frozenset(_ALLOCATORS)


def load(box: Box) -> DoctorFinding:
    """Measure how long torch takes to load; warn if it takes longer than two seconds."""
    began = _began()
    try:
        torch = _loading().result(_LOADING_S)
    except TimeoutError:
        return warn(
            f"torch is not loaded after {_LOADING_S:g} s; every process of a run loads it again",
            _why_slow(box),
        )
    except Exception as problem:
        return failed(
            f"import torch: {type(problem).__name__}: {problem}",
            "pip install --force-reinstall torch",
        )
    return passed(f"torch {show(torch.__version__, 60)} loaded in {time.monotonic() - began:.1f} s")


def _why_slow(box: Box) -> str:
    """Return the next step for a slow import: its thousands of files may be on a network disk."""
    point, kind = mounted(box, Path(sys.prefix))
    if kind.startswith(REMOTE):
        return f"keep the venv on a local disk: {sys.prefix} is on {kind} ({point})"
    return (
        "the machine is busy, or this is the first import since it started; run `tuilab doctor`"
        " again"
    )


def threads(box: Box) -> DoctorFinding:
    """Check whether the number of threads of torch fits the usable cores and the CPU limit."""
    torch = _torch()
    count = torch.get_num_threads()
    usable = len(os.sched_getaffinity(0))
    quota_cores = cpu_facts(box.root).get("quota_cores")
    message = (
        f"{plural(count, 'thread')} in one operator, {torch.get_num_interop_threads()} between"
        " operators"
    )
    variable = box.environ.get("OMP_NUM_THREADS")
    if variable:
        message += f" (OMP_NUM_THREADS={variable})"
    if count > usable:
        return warn(
            f"{message}, but only {plural(usable, 'core')} usable",
            f"export OMP_NUM_THREADS={usable}",
        )
    if quota_cores is not None and count > max(quota_cores, 1):
        return warn(
            f"{message}, but this container is limited to {quota_cores:.3g} cores",
            f"export OMP_NUM_THREADS={max(int(quota_cores), 1)}",
        )
    if variable and count == 1 and usable > 1:
        return warn(
            f"{message}, for {usable} usable cores",
            "unset OMP_NUM_THREADS, unless you want one thread",
        )
    return passed(f"{message}, for {plural(usable, 'usable core')}")


def affinity(box: Box) -> DoctorFinding:
    """Check whether OpenMP binds the main thread to a core: DataLoader workers inherit that."""
    cores_before = len(os.sched_getaffinity(0))
    torch = _torch()
    matrix = torch.ones(256, 256)
    torch.mm(matrix, matrix)  # the first parallel operator creates the threads and binds them
    cores_after = len(os.sched_getaffinity(0))
    settings = []
    for name in ("OMP_PROC_BIND", "KMP_AFFINITY", "GOMP_CPU_AFFINITY"):
        if name in box.environ:
            settings.append(f"{name}={box.environ[name]}")
    # With a setting, the thread may have been bound before this check began.
    has_one_of_many = cores_after == 1 and (os.cpu_count() or 1) > 1
    if cores_after < cores_before or (settings and has_one_of_many):
        binder = ", ".join(settings) or "OpenMP"
        return warn(
            f"{binder} binds the main thread to {plural(cores_after, 'core')}, and"
            " DataLoader workers inherit that",
            "unset the variable for runs with a DataLoader, or call os.sched_setaffinity in"
            " worker_init_fn",
        )
    return passed(f"the main thread can use {plural(cores_after, 'core')}")


def runtimes(box: Box) -> DoctorFinding:
    """Warn if several OpenMP libraries are loaded: their threads compete."""
    maps = _read_maps()
    loaded = [name for name, pattern in _RUNTIMES.items() if re.search(pattern, maps)]
    if len(loaded) > 1:
        return warn(
            f"{' and '.join(loaded)} are loaded at the same time: their threads compete",
            "remove one of them from LD_PRELOAD: unset LD_PRELOAD",
        )
    if not loaded:
        return unknown("no OpenMP library is loaded")
    return passed(loaded[0])


def variables(box: Box) -> DoctorFinding:
    """Check for variables that no loaded library reads."""
    maps = _read_maps()
    patterns = _RUNTIMES | _ALLOCATORS
    loaded = {name for name, pattern in patterns.items() if re.search(pattern, maps)}
    sentences = []
    for name in sorted(box.environ):
        sentence = why_idle(name, loaded)
        if sentence:
            sentences.append(sentence)
    if sentences:
        return warn(
            "; ".join(sentences),
            "unset the variables that you do not need, or add the library to LD_PRELOAD",
        )
    prefixes = ("OMP_", "KMP_", "GOMP_", "MKL_", "MALLOC_", "TCMALLOC_", "GLIBC_")
    count = sum(name.startswith(prefixes) for name in box.environ)
    message = f"{plural(count, 'variable')} of OpenMP, MKL and allocators set"
    if count:
        message += ", each read by a loaded library"
    return passed(message)


def why_idle(name: str, loaded: set[str]) -> str:
    """Return why a variable has no effect; nothing if it has one, or if that is unknown."""
    for prefix, readers in _READERS.items():
        if name.startswith(prefix) and not loaded & set(readers):
            return f"{name} is set, but {' or '.join(readers)} is not loaded"
    is_of_glibc = name.startswith("MALLOC_") and name.endswith("_")
    replacements = sorted(loaded & _OWN_ALLOCATORS)
    if is_of_glibc and replacements:
        return f"{name} is set, but {' and '.join(replacements)} replaces glibc's allocator"
    return ""


def preload(box: Box) -> DoctorFinding:
    """Check that each library in LD_PRELOAD is loaded; the linker only warns about a bad path."""
    value = box.environ.get("LD_PRELOAD", "")
    if not value:
        return unknown("LD_PRELOAD is not set")
    maps = _read_maps()
    missing = []
    for path in re.split(r"[ :]+", value):
        if path and os.path.basename(path) not in maps:
            missing.append(path)
    if missing:
        return failed(
            f"not loaded: {', '.join(missing)}",
            "correct the path: export LD_PRELOAD=PATH (the linker only warns about a wrong path)",
        )
    return passed(f"loaded: {value}")


def instructions(box: Box) -> DoctorFinding:
    """Report which instructions torch uses; warn if ATEN_CPU_CAPABILITY sets them."""
    torch = _torch()
    capability = torch.backends.cpu.get_cpu_capability()
    variable = box.environ.get("ATEN_CPU_CAPABILITY")
    if variable:
        return warn(
            f"operators use {capability}, as ATEN_CPU_CAPABILITY={variable}",
            "unset ATEN_CPU_CAPABILITY, unless you need it",
        )
    return passed(f"operators use {capability}")


def cuda(box: Box) -> DoctorFinding:
    """Check whether torch can use the GPUs, without running anything on one."""
    torch = _torch()
    # Imported here because it imports torch.
    from tuilab.lab.device import torch_gpus

    gpu_count = torch_gpus.count()
    if gpu_count:
        return passed(
            f"torch sees {plural(gpu_count, 'GPU')}; `auto` uses the one with the most free memory"
            " that works"
        )
    reason = torch_gpus.why_no_cuda()
    has_amd_gpu = torch.version.hip and (box.root / "dev/kfd").exists()
    if not is_gpu_there(box.root) and not has_amd_gpu:
        return unknown(f"{reason}, and /dev has no GPU")
    message = f"{reason}; `auto` uses the CPU, and the result says so"
    if torch.version.cuda is None:
        return warn(message, describe_fix(reason, ""))
    return failed(message, describe_fix(reason, torch.version.cuda))


@functools.cache
def _loading() -> "Future[Any]":
    """Load torch in a thread, so that no check waits for it forever."""
    return ThreadPoolExecutor(1).submit(import_module, "torch")


@functools.cache
def _began() -> float:
    """Return when this process began to load torch: the time of the first call."""
    return time.monotonic()


def _torch() -> Any:
    """Return torch; raise NotKnown if it does not load, or not in the time of this check."""
    until_give_up_s = _began() + _GIVE_UP_S - time.monotonic()
    patience_s = min(_LOADING_S, max(until_give_up_s, 0.0))
    try:
        return _loading().result(patience_s)
    except TimeoutError as problem:
        raise NotKnown("torch is still being loaded") from problem
    except Exception as problem:
        raise NotKnown("torch does not load") from problem


def _read_maps() -> str:
    """Return the mapped files of this process, the loaded libraries among them."""
    _torch()
    return Path("/proc/self/maps").read_text(errors="replace")


CHECKS = {
    "torch.load": load,
    "torch.threads": threads,
    "torch.affinity": affinity,
    "torch.openmp": runtimes,
    "torch.variables": variables,
    "torch.preload": preload,
    "torch.instructions": instructions,
    "torch.cuda": cuda,
}
