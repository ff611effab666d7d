"""Report how DistributedDataParallel exchanges gradients, from the steps that torch itself samples.

Torch times the first ten iterations of a module, and then one in a hundred. On the CPU a sample
is five readings of a clock, so here it is one in ten. On a GPU torch waits at each sample for the
step before it, so torch's own rate stays there. An iteration is a forward whose backward exchanges
gradients: those within `no_sync` do not count.

The times of an iteration are known in the next one, until another sample replaces them. They are
read after a backward, because torch holds a lock on them while gradients are exchanged.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import weakref
from typing import Any

from . import layout

_MODULE = "torch.nn.parallel.distributed"
_EVERY = 10  # iterations, of which one is sampled on the CPU
_FIRST = 12  # backwards of a module that are each read: torch samples ten in a row
_SETTLED = 10  # iterations, after which torch makes no other buckets
_MOST_MODULES = 16
_LONGEST = 200  # characters of a text, such as the name of a hook
_MOST_BUCKETS = 100
# The names here, and those of torch. All are nanoseconds. On a GPU the first three are times of the
# GPU, and the others say when the CPU launched the work.
_TIMES = {
    "compute": "backward_compute_time",
    "exchange": "backward_comm_time",
    "both": "backward_compute_comm_overlap_time",
    "began": "backward_compute_time_start",
    "ended": "backward_compute_time_end",
}


class _WatchedModule:
    """A DistributedDataParallel module of the script, and what was reported about it."""

    def __init__(self, module: Any, number: int) -> None:
        self.reference = weakref.ref(module)
        self.number = number
        self.is_on_gpu = module.device_type != "cpu"
        self.iteration = 0  # of the last sample that was read
        self.facts: dict[str, Any] = {}


class ExchangeReports:
    """Puts the samples of one process into its marks."""

    def __init__(self, watcher: Any) -> None:
        self._watcher = watcher
        self._modules: list[_WatchedModule] = []
        self._count = 0
        self._backwards = 0

    def forget(self) -> None:
        """Begin again in a forked child."""
        self._modules = []
        self._watcher.exchange = None

    def hook(self) -> None:
        """Notice each DistributedDataParallel that the script makes."""
        module: Any = sys.modules.get(_MODULE)
        wrapper = getattr(module, "DistributedDataParallel", None)
        if wrapper is None:
            return
        init = wrapper.__init__

        @functools.wraps(init)
        def watched_init(this: Any, *args: Any, **kwargs: Any) -> None:
            init(this, *args, **kwargs)
            try:
                self._add(this)
            except Exception as problem:
                self._watcher.fail(problem)

        wrapper.__init__ = watched_init

    def _add(self, module: Any) -> None:
        """Watch a module, and let torch sample it more often if that costs next to nothing.

        With TORCH_DISTRIBUTED_DEBUG=DETAIL torch prints each sample. A rate that the script sets
        later replaces this one.
        """
        reducer = getattr(module, "reducer", None)  # without gradients to exchange there is none
        if reducer is None or len(self._modules) >= _MOST_MODULES:
            return
        self._count += 1
        watched = _WatchedModule(module, self._count)
        is_printing = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "").upper() == "DETAIL"
        if not watched.is_on_gpu and not is_printing:
            reducer._set_ddp_runtime_logging_sample_rate(_EVERY)
        self._modules.append(watched)
        self._report_facts(watched, module.logger._get_ddp_logging_data())
        self._watcher.exchange = self
        self._backwards = 0

    def count_backward(self) -> None:
        """Read the samples that may be new after a backward."""
        self._backwards += 1
        if self._backwards <= _FIRST * len(self._modules) or self._backwards % _EVERY == 1:
            self._read()

    def _read(self) -> None:
        for watched in list(self._modules):
            module = watched.reference()
            if module is None:
                self._modules.remove(watched)
            else:
                self._report_sample(watched, module.logger._get_ddp_logging_data())

    def _report_facts(self, watched: _WatchedModule, data: Any) -> None:
        """Report the facts about a module, if they are new."""
        facts = _facts_of(watched, data.ints_map, data.strs_map)
        if facts != watched.facts:
            watched.facts = facts
            self._watcher.text(layout.EXCHANGED, json.dumps(facts))

    def _report_sample(self, watched: _WatchedModule, data: Any) -> None:
        """Report a sample if it is new."""
        numbers = data.ints_map
        iteration = numbers.get("iteration", 0)
        if iteration == watched.iteration:
            return
        watched.iteration = iteration
        if iteration <= _SETTLED:
            self._report_facts(watched, data)
        sample = {"module": watched.number, "iteration": iteration}
        for name, torch_name in _TIMES.items():
            sample[name] = numbers.get(torch_name, 0)
        self._watcher.text(layout.EXCHANGED, json.dumps(sample))


def _facts_of(
    watched: _WatchedModule, numbers: dict[str, int], texts: dict[str, str]
) -> dict[str, Any]:
    """Return what matters to the exchange of a module: its bytes, its buckets and its options."""
    buckets = texts.get("rebuilt_bucket_sizes") or texts.get("bucket_sizes", "")
    return {
        "of": watched.number,
        "name": texts.get("module_name", "")[:_LONGEST],
        "backend": texts.get("backend_name", "")[:_LONGEST],
        "hook": texts.get("comm_hook", "")[:_LONGEST],
        "is_on_gpu": watched.is_on_gpu,
        "is_float32": texts.get("dtypes") == "float",
        "is_view": bool(numbers.get("gradient_as_bucket_view", 0)),
        "world": numbers.get("world_size", 0),
        "bytes": numbers.get("total_parameter_size_bytes", 0),
        "buckets": [int(size) for size in buckets.split(",")[:_MOST_BUCKETS] if size.strip()],
    }
