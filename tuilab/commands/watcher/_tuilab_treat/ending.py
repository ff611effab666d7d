"""End the process at its last step: no final checkpoint, no upload, no functions of atexit."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from typing import Any

_WAIT_FOR_RANKS_S = 10.0
_PERIOD_S = 0.005
_KEY = "tuilab/left"
# These processes end by themselves once nobody needs them, and remove shared memory then.
_LEFT_ALONE = (b"resource_tracker", b"torch_shm_manager")


def leave(torch: Any, watcher: Any) -> None:
    """End this process with exit code 0. It never returns."""
    try:
        _finish_marks(watcher)
        _wait_for_ranks()
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            _flush(stream)
        _shut_down_loaders()
        _end_children(os.getpid())
    finally:
        os._exit(0)


def _finish_marks(watcher: Any) -> None:
    """Put the marks that are still to come: values on the GPU, and the end of the script."""
    try:
        if watcher.gpu is not None:
            cuda: Any = sys.modules.get("torch.cuda")
            cuda.synchronize()
            watcher.gpu.finish()
    except Exception as problem:
        watcher.fail(problem)
    watcher.end()


def _flush(stream: Any) -> None:
    try:
        stream.flush()
    except Exception:
        return


def _wait_for_ranks() -> None:
    """Wait until all ranks are here, so that none loses a connection that it still needs."""
    distributed: Any = sys.modules.get("torch.distributed")
    try:
        if distributed is None or not distributed.is_available():
            return
        if not distributed.is_initialized() or distributed.get_world_size() < 2:
            return
        store = distributed.distributed_c10d._get_default_store()
        world = distributed.get_world_size()
        deadline = time.monotonic() + _WAIT_FOR_RANKS_S
        store.add(_KEY, 1)
        while store.add(_KEY, 0) < world and time.monotonic() < deadline:
            time.sleep(_PERIOD_S)
        if distributed.get_rank() == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
            time.sleep(10 * _PERIOD_S)  # the store is in this process: let the others read it
    except Exception:
        return  # the store has ended with the rank that holds it: all ranks were here


def _shut_down_loaders() -> None:
    """Let the workers of DataLoaders finish their batch, and end.

    A worker that is killed while it makes a batch may leave its shared memory behind.
    """
    module: Any = sys.modules.get("torch.utils.data.dataloader")
    kind = getattr(module, "_MultiProcessingDataLoaderIter", None)
    if kind is None:
        return
    try:
        # `type`, because `isinstance` may run code of the objects.
        for iterator in [each for each in gc.get_objects() if type(each) is kind]:
            iterator._shutdown_workers()
    except Exception:
        return  # they are killed next


def _end_children(pid: int) -> None:
    """End the processes that this process has started, such as workers of a DataLoader."""
    for child in _descendants(pid):
        try:
            os.kill(child, signal.SIGKILL)
        except OSError:
            continue


def _descendants(pid: int) -> list[int]:
    """Return the processes below a process, the outermost first."""
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return _children_of_multiprocessing()
    for name in names:
        if name.isdecimal():
            parent = _parent_of(name)
            if parent is not None:
                children.setdefault(parent, []).append(int(name))
    below = []
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), []):
            if not _is_left_alone(child):
                below.append(child)
                waiting.append(child)
    return below


def _children_of_multiprocessing() -> list[int]:
    module: Any = sys.modules.get("multiprocessing")
    if module is None:
        return []
    return [child.pid for child in module.active_children() if child.pid]


def _parent_of(name: str) -> int | None:
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            # The name of the program, in brackets, may have spaces and brackets.
            fields = file.read().rpartition(b")")[2].split()
        return int(fields[1])
    except (OSError, ValueError, IndexError):
        return None


def _is_left_alone(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read()
    except OSError:
        return False
    return any(word in words for word in _LEFT_ALONE)
