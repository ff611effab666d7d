"""Report facts about a training: tuilab/commands/tune/script_facts.py describes each of them."""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import json
import os
import sys
import time
import weakref
from typing import Any

from .places import NOWHERE, Place, arguments_by_name, user_place
from .roots import RootFinder, are_channels_last, convolutions_of, device_of, is_compiled

_MOST = 30  # of each kind
_LONGEST_NAME = 100  # characters of a class
_LONGEST_FILE = 1000  # characters
_MOST_SUBSETS = 8  # of subsets
_DEFAULT_MB = 25.0
_MIB = 2**20


class FactFinder:
    """Finds the facts about one process."""

    def __init__(self, torch: Any, watcher: Any, finder: RootFinder | None) -> None:
        self._torch = torch
        self._watcher = watcher
        self._finder = finder
        self._loaders: Any = weakref.WeakKeyDictionary()  # places by DataLoader
        self._used_loaders: list[dict[str, Any]] = []
        self._optimizer_places: Any = weakref.WeakKeyDictionary()
        self._optimizers: list[dict[str, Any]] = []
        self._filling: Any = weakref.WeakSet()  # optimizers whose gradients are filled with zeros
        self._known: Any = weakref.WeakKeyDictionary()  # facts by optimizer
        self._fills_modules = False
        self._roots: list[dict[str, Any]] = []
        self._ddp: list[dict[str, Any]] = []
        self._steps = 0
        self._collections = 0
        self._collecting_ns = 0
        self._collection_began = 0
        self._has_gpu = False

    def begin(self) -> None:
        """Hook into torch."""
        self._watch_loaders()
        self._watch_optimizers()
        self._watch_ddp()
        self._watch_attention()

    # ---- what the script makes

    def _watch_loaders(self) -> None:
        module: Any = importlib.import_module("torch.utils.data.dataloader")
        loader_class = module.DataLoader
        iterator_class = module._BaseDataLoaderIter
        init = loader_class.__init__
        begin_loop = loader_class.__iter__
        next_batch = iterator_class.__next__

        @functools.wraps(init)
        def noticed_init(this: Any, *args: Any, **kwargs: Any) -> None:
            init(this, *args, **kwargs)
            _keep(self._loaders, this, user_place())

        @functools.wraps(begin_loop)
        def noticed_iter(this: Any) -> Any:
            loop = begin_loop(this)
            try:
                self._begin_loop(this, loop)
            except Exception as problem:
                self._watcher.fail(problem)
            return loop

        @functools.wraps(next_batch)
        def noticed_next(this: Any) -> Any:
            batch = next_batch(this)
            facts = this.__dict__.get("_tuilab_facts")
            if facts is not None:
                facts["batches"] += 1
            return batch

        loader_class.__init__ = noticed_init
        loader_class.__iter__ = noticed_iter
        iterator_class.__next__ = noticed_next

    def _begin_loop(self, loader: Any, loop: Any) -> None:
        facts = loader.__dict__.get("_tuilab_facts")
        if facts is None:
            facts = self._facts_of(loader)
            loader.__dict__["_tuilab_facts"] = facts
        facts["loops"] += 1
        loop.__dict__["_tuilab_facts"] = facts

    def _facts_of(self, loader: Any) -> dict[str, Any]:
        """Return the facts about a DataLoader; loaders of one line that are alike share them."""
        new_facts = self._describe_loader(loader)
        for facts in self._used_loaders:
            if {**facts, "loops": 0, "batches": 0} == new_facts:
                return facts
        if len(self._used_loaders) < _MOST:
            self._used_loaders.append(new_facts)
        return new_facts

    def _describe_loader(self, loader: Any) -> dict[str, Any]:
        data: Any = sys.modules["torch.utils.data"]
        dataset = loader.dataset
        facts = {
            "kind": _kind_of(dataset),
            "workers": int(loader.num_workers),
            "batch_size": _batch_size(loader),
            "pins": bool(loader.pin_memory),
            "keeps_workers": bool(getattr(loader, "persistent_workers", False)),
            "prefetch": _whole(getattr(loader, "prefetch_factor", None)),
            "is_iterable": isinstance(dataset, data.IterableDataset),
            "is_in_memory": _is_in_memory(data, dataset),
            "loops": 0,
            "batches": 0,
        }
        facts.update(_place_facts(self._loaders.get(loader, NOWHERE)))
        return facts

    def _watch_optimizers(self) -> None:
        optimizer_class = self._torch.optim.Optimizer
        init = optimizer_class.__init__

        @functools.wraps(init)
        def noticed_init(this: Any, *args: Any, **kwargs: Any) -> None:
            init(this, *args, **kwargs)
            _keep(self._optimizer_places, this, user_place())

        optimizer_class.__init__ = noticed_init
        self._watch_zero_grad(optimizer_class)
        self._watch_zero_grad(self._torch.nn.Module)

    def _watch_zero_grad(self, owner: Any) -> None:
        zero_grad = owner.zero_grad
        default = inspect.signature(zero_grad).parameters["set_to_none"].default
        is_compiling = self._watcher.is_compiling

        @functools.wraps(zero_grad)
        def noticed_zero_grad(this: Any, set_to_none: Any = default) -> None:
            if not set_to_none and not is_compiling():
                if isinstance(this, self._torch.nn.Module):
                    self._fills_modules = True
                else:
                    self._filling.add(this)
            zero_grad(this, set_to_none)

        owner.zero_grad = noticed_zero_grad

    def see(self, optimizer: Any) -> None:
        """Describe an optimizer that makes its first step."""
        parameters: list[Any] = []
        for group in optimizer.param_groups:
            parameters += group["params"]
        defaults = getattr(optimizer, "defaults", {})
        device = str(parameters[0].device.type) if parameters else ""
        self._has_gpu = self._has_gpu or device == "cuda"
        groups = optimizer.param_groups
        are_floats = all(parameter.is_floating_point() for parameter in parameters)
        are_dense = not any(_has_sparse_gradient(parameter) for parameter in parameters)
        facts = {
            "kind": _kind_of(optimizer),
            "tensors": len(parameters),
            "numbers": sum(parameter.numel() for parameter in parameters),
            "device": device,
            "is_fused": all(bool(group.get("fused")) for group in groups),
            "is_foreach": any(group.get("foreach") is True for group in groups),
            "takes_fused": "fused" in defaults and are_floats and are_dense,
            "takes_foreach": "foreach" in defaults and are_dense,
            "fills_with_zeros": False,
        }
        if defaults.get("differentiable"):
            facts["takes_fused"] = False
            facts["takes_foreach"] = False
        facts.update(_place_facts(self._optimizer_places.get(optimizer, NOWHERE)))
        if len(self._optimizers) < _MOST:
            self._optimizers.append(facts)
            self._known[optimizer] = facts

    def _watch_ddp(self) -> None:
        ddp_class = self._torch.nn.parallel.DistributedDataParallel
        init = ddp_class.__init__
        names = list(inspect.signature(init).parameters)[1:]

        @functools.wraps(init)
        def noticed_init(this: Any, *args: Any, **kwargs: Any) -> None:
            init(this, *args, **kwargs)
            given = arguments_by_name(names, args, kwargs)
            facts = {
                "has_bucket_view": bool(given.get("gradient_as_bucket_view")),
                "is_static": bool(given.get("static_graph")),
                "bucket_mb": float(given.get("bucket_cap_mb") or _DEFAULT_MB),
                "finds_unused": bool(given.get("find_unused_parameters")),
            }
            facts.update(_place_facts(user_place()))
            if len(self._ddp) < _MOST:
                self._ddp.append(facts)

        ddp_class.__init__ = noticed_init

    def _watch_attention(self) -> None:
        functional = self._torch.nn.functional
        attend = getattr(functional, "scaled_dot_product_attention", None)
        finder = self._finder
        if attend is None or finder is None:
            return
        is_compiling = self._watcher.is_compiling

        @functools.wraps(attend)
        def noticed_attention(*args: Any, **kwargs: Any) -> Any:
            if not is_compiling():
                finder.count_attention()
            return attend(*args, **kwargs)

        functional.scaled_dot_product_attention = noticed_attention

    # ---- what the steps show

    def stepped(self) -> None:
        """Take note of a step; count the garbage collections from the first step on."""
        self._steps += 1
        if self._steps == 1:
            gc.callbacks.append(self._notice_collection)

    def _notice_collection(self, phase: str, info: dict[str, int]) -> None:
        now_ns = time.monotonic_ns()
        if phase == "start":
            self._collection_began = now_ns
        elif self._collection_began:
            self._collections += 1
            self._collecting_ns += now_ns - self._collection_began

    def take_roots(self) -> None:
        """Describe the roots that were found in the first steps."""
        if self._finder is None:
            return
        for root in self._finder.roots[:_MOST]:
            module = root.module
            parameters = list(module.parameters())
            convolutions = convolutions_of(module)
            steps = max(self._steps + 1, 1)  # the step that has just been made is not counted yet
            dtype = str(parameters[0].dtype).rpartition(".")[2] if parameters else ""
            self._roots.append(
                {
                    "kind": _kind_of(module),
                    "numbers": sum(parameter.numel() for parameter in parameters),
                    "dtype": dtype,
                    "device": device_of(module),
                    "is_compiled": is_compiled(module),
                    "is_autocast": root.is_autocast,
                    "autocast_dtype": root.autocast_dtype,
                    "convolutions": len(convolutions),
                    "are_channels_last": are_channels_last(self._torch, convolutions),
                    "attentions": -(-root.attentions // steps),
                }
            )

    # ---- reports

    def report(self) -> None:
        """Report all facts. A later report of the same thing replaces an earlier one."""
        for optimizer in list(self._filling):
            facts = self._known.get(optimizer)
            if facts is not None:
                facts["fills_with_zeros"] = True
        if self._fills_modules:
            for facts in self._optimizers:
                facts["fills_with_zeros"] = True
        self._put("loaders", self._used_loaders)
        self._put("optimizers", self._optimizers)
        self._put("roots", self._roots)
        self._put("ddp", self._ddp)
        self._put("settings", [self._settings()])

    def _put(self, part: str, facts: list[dict[str, Any]]) -> None:
        for index, item in enumerate(facts):
            report = {"part": part, "index": index, "facts": item}
            self._watcher.report_script_facts(json.dumps(report, ensure_ascii=False))

    def _settings(self) -> dict[str, Any]:
        torch = self._torch
        cores = 0
        if hasattr(os, "sched_getaffinity"):
            cores = len(os.sched_getaffinity(0))
        get_precision = getattr(torch, "get_float32_matmul_precision", str)
        is_deterministic = getattr(torch, "are_deterministic_algorithms_enabled", bool)
        cudnn = torch.backends.cudnn
        facts = {
            "torch": str(torch.__version__)[:_LONGEST_NAME],
            "has_cuda": self._has_gpu,
            "capability": "",
            "threads": torch.get_num_threads(),
            "cores": cores,
            "matmul_precision": str(get_precision()),
            "cudnn_benchmark": bool(cudnn.benchmark),
            "is_deterministic": bool(is_deterministic() or cudnn.deterministic),
            "world": _world(),
            "collections": self._collections,
            "collecting_ns": self._collecting_ns,
        }
        cuda: Any = sys.modules.get("torch.cuda")
        if self._has_gpu and cuda is not None:
            facts["capability"] = ".".join(str(number) for number in cuda.get_device_capability())
        return facts


def _keep(places: Any, thing: Any, place: Place) -> None:
    """Keep the place of a thing, unless the thing cannot be a key."""
    try:
        places[thing] = place
    except TypeError:
        return


def _kind_of(thing: Any) -> str:
    return type(thing).__name__[:_LONGEST_NAME]


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int) and value >= 0 else None


def _batch_size(loader: Any) -> int | None:
    """Return the size of a batch, which a sampler of batches may know instead of the loader."""
    if loader.batch_size is not None:
        return _whole(loader.batch_size)
    sampler = getattr(loader, "batch_sampler", None)
    return _whole(getattr(sampler, "batch_size", None))


def _place_facts(place: Place) -> dict[str, Any]:
    file, line = place
    if not file or len(file) > _LONGEST_FILE:
        return {}
    return {"file": file, "line": line}


def _is_in_memory(data: Any, dataset: Any) -> bool:
    """Return whether a dataset is a TensorDataset, or consists of subsets of one."""
    for _ in range(_MOST_SUBSETS):
        if not isinstance(dataset, data.Subset):
            break
        dataset = dataset.dataset
    return type(dataset) is data.TensorDataset


def _has_sparse_gradient(parameter: Any) -> bool:
    gradient = parameter.grad
    return gradient is not None and bool(gradient.is_sparse)


def _world() -> int:
    """Return the number of ranks."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_world_size())
    text = os.environ.get("WORLD_SIZE", "")
    return int(text) if text.isdecimal() and int(text) else 1
