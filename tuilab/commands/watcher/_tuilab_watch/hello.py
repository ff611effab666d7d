"""Describe a process to tuilab: before its first mark, and again when more is known."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

_MOST_LOADERS = 8
_MOST_OPTIMIZERS = 8
_MOST_SUBSETS = 8  # of subsets
_NAME_LIMIT = 60  # characters of the name of a class
_COARSE = ("float32", "float16", "bfloat16")  # the coarsest last


class Hello:
    """The facts about a process, among them the coarsest dtype that it was seen to compute in."""

    def __init__(self) -> None:
        self.dtype = ""
        self.loaders: list[dict[str, Any]] = []  # the DataLoaders that were used, each kind once
        self.optimizers: list[dict[str, Any]] = []  # the optimizers that stepped, each kind once
        self.has_compiled = False  # whether torch.compile was seen to compile anything

    def to_json(self, torch: Any, mode: str) -> str:
        """Return the facts as JSON."""
        rank, world = rank_and_world()
        cores = 0  # unknown
        if hasattr(os, "sched_getaffinity"):
            cores = len(os.sched_getaffinity(0))
        facts = {
            "pid": os.getpid(),
            "python": sys.version.split()[0],
            "executable": sys.executable or "",
            "rank": rank,
            "local_rank": os.environ.get("LOCAL_RANK", ""),
            "world": world,
            "mode": mode,
            "dtype": self.dtype or "float32",
            "cores": cores,
            "loaders": self.loaders,
            "optimizers": self.optimizers,
            "has_compiled": self.has_compiled,
        }
        if torch is not None:
            facts["torch"] = str(torch.__version__)
            facts["threads"] = torch.get_num_threads()
        return json.dumps(facts)

    def add_dtype(self, dtype: Any) -> bool:
        """Take a dtype into account; return whether that changes the facts."""
        name = str(dtype).rpartition(".")[2]
        is_coarser = _coarseness(name) > _coarseness(self.dtype)
        if is_coarser or not self.dtype:
            self.dtype = name
            return True
        return False

    def add_loader(self, loader: Any) -> bool:
        """Add the facts about a DataLoader; return whether they are new."""
        facts = {
            "workers": int(loader.num_workers),
            "is_iterable": is_iterable(loader),
            "is_persistent": bool(getattr(loader, "persistent_workers", False)),
            "is_in_memory": is_in_memory(loader),
        }
        if facts in self.loaders or len(self.loaders) >= _MOST_LOADERS:
            return False
        self.loaders.append(facts)
        return True

    def add_optimizer(self, optimizer: Any, parameters: list[Any]) -> bool:
        """Add the facts about an optimizer with these parameters; return whether they are new."""
        facts = {
            "class": type(optimizer).__name__[:_NAME_LIMIT],
            "takes_fused": takes_fused(optimizer, parameters),
            "is_fused": all(group.get("fused") for group in optimizer.param_groups),
        }
        if facts in self.optimizers or len(self.optimizers) >= _MOST_OPTIMIZERS:
            return False
        self.optimizers.append(facts)
        return True

    def add_compiled(self) -> bool:
        """Note that torch.compile has compiled something; return whether that is new."""
        is_new = not self.has_compiled
        self.has_compiled = True
        return is_new


def _coarseness(dtype: str) -> int:
    """Return a number that grows with the coarseness of a dtype; -1 for all other dtypes."""
    if dtype in _COARSE:
        return _COARSE.index(dtype)
    return -1


def takes_fused(optimizer: Any, parameters: list[Any]) -> bool:
    """Return whether an optimizer could run with fused=True.

    A fused step is not differentiable, and needs real numbers and dense gradients.
    """
    defaults = optimizer.defaults
    if "fused" not in defaults or defaults.get("differentiable"):
        return False
    for parameter in parameters:
        if not parameter.is_floating_point():
            return False
        gradient = parameter.grad
        if gradient is not None and gradient.is_sparse:
            return False
    return True


def is_iterable(loader: Any) -> bool:
    """Return whether a loader has an IterableDataset.

    If it has, each worker has to select its own items.
    """
    data_module = sys.modules.get("torch.utils.data")
    return data_module is not None and isinstance(loader.dataset, data_module.IterableDataset)


def is_in_memory(loader: Any) -> bool:
    """Return whether a loader takes its items from a TensorDataset, or from subsets of one.

    Such an item is made in microseconds, and a worker would only copy it.
    """
    data_module = sys.modules.get("torch.utils.data")
    dataset = loader.dataset
    for _ in range(_MOST_SUBSETS):
        if data_module is None or not isinstance(dataset, data_module.Subset):
            break
        dataset = dataset.dataset
    return data_module is not None and type(dataset) is data_module.TensorDataset


def rank_and_world() -> tuple[str, str]:
    """Return the rank of this process, and the number of processes.

    A script may give them to torch only, and not to the environment.
    """
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return str(distributed.get_rank()), str(distributed.get_world_size())
    return os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")


def watch_autocast(torch: Any, report_dtype: Any) -> None:
    """Report the dtype of the first autocast that is entered and enabled.

    After that, autocast runs without the wrapper.
    """
    autocast = torch.autocast
    enter = autocast.__enter__

    def watched_enter(this: Any) -> Any:
        if getattr(this, "_enabled", False):
            if autocast.__enter__ is watched_enter:
                autocast.__enter__ = enter
            report_dtype(getattr(this, "fast_dtype", ""))
        return enter(this)

    autocast.__enter__ = watched_enter
