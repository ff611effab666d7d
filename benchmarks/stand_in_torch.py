"""Take steps with a stand-in for torch that does next to nothing, to count instructions.

    python benchmarks/stand_in_torch.py all|steps|nothing short|long STEPS

Nearly all that is counted is the watcher. A step has a batch, a backward and an optimizer step. A
long step takes 1 ms or more, so the CPU time of each long step is read, but never that of a short
step.
"""

import importlib
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

PERIODS_NS = {"short": 10**18, "long": 0}  # between two readings of the CPU time
WATCHER = Path(__file__).resolve().parent.parent / "tuilab" / "commands" / "watcher"


class Tensor:
    """A root with one element on the CPU."""

    is_cpu = True
    is_cuda = False
    dtype = "torch.float32"
    grad = None

    def numel(self) -> int:
        return 1

    def item(self) -> float:
        return 0.5

    def is_floating_point(self) -> bool:
        return True


class Optimizer:
    """An optimizer that calls the hooks, as those of torch do."""

    defaults: dict[str, Any] = {}

    def __init__(self, before_step: list[Any], after_step: list[Any]) -> None:
        self.param_groups = [{"params": [Tensor()]}]
        self._before_step = before_step
        self._after_step = after_step

    def step(self) -> None:
        for hook in self._before_step:
            hook(self, (), {})
        for hook in self._after_step:
            hook(self, (), {})


class DataLoader:
    """A loader without workers, whose batches do not end."""

    num_workers = 0
    dataset: tuple[int, ...] = ()

    def __iter__(self) -> "_BaseDataLoaderIter":
        return _BaseDataLoaderIter()


class _BaseDataLoaderIter:
    """The name is that of torch, because the watcher looks for it."""

    def __init__(self) -> None:
        self._num_workers = 0

    def __next__(self) -> int:
        return 0


class Autocast:
    """A context that no step enters."""

    def __enter__(self) -> None: ...


def backward(
    tensors: Tensor,
    grad_tensors: Any = None,
    retain_graph: Any = None,
    create_graph: Any = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Do nothing, with the parameters of torch.autograd.backward."""


def is_dynamo_compiling() -> bool:
    """Return False, by a function of Python as in torch."""
    return False


def always(value: Any) -> Callable[[], Any]:
    """Return a function of C that returns one value, as quick as those of torch."""
    return iter(lambda: value, None).__next__


def put_torch(before_step: list[Any], after_step: list[Any]) -> ModuleType:
    """Put the stand-in, and the modules that the watcher looks for, into sys.modules."""
    torch: Any = ModuleType("torch")
    torch.__version__ = "2.13.0"
    torch.Tensor = Tensor
    torch.autocast = Autocast
    torch.get_num_threads = always(1)
    torch.is_grad_enabled = always(True)
    torch.compiler = ModuleType("torch.compiler")
    torch.compiler.is_dynamo_compiling = is_dynamo_compiling
    torch._C = ModuleType("torch._C")
    torch._C._current_graph_task_id = always(-1)
    torch._C._len_torch_function_stack = always(0)
    torch._C._len_torch_dispatch_stack = always(0)
    torch.autograd = ModuleType("torch.autograd")
    torch.autograd.backward = backward
    optimizers: Any = ModuleType("torch.optim.optimizer")
    optimizers.register_optimizer_step_pre_hook = before_step.append
    optimizers.register_optimizer_step_post_hook = after_step.append
    loading: Any = ModuleType("torch.utils.data.dataloader")
    loading.DataLoader = DataLoader
    loading._BaseDataLoaderIter = _BaseDataLoaderIter
    for module in (torch, optimizers, loading):
        sys.modules[module.__name__] = module
    return torch  # type: ignore[no-any-return]


def take_steps(torch: Any, optimizer: Optimizer, count: int) -> None:
    """Take steps, of which each has a batch, a backward and an optimizer step."""
    batches = iter(DataLoader())
    loss = Tensor()
    for _ in range(count):
        next(batches)
        torch.autograd.backward(loss, None, None, False, inputs=None)
        optimizer.step()


def main() -> None:
    how, length, steps = sys.argv[1:]
    before_step: list[Any] = []
    after_step: list[Any] = []
    torch = put_torch(before_step, after_step)
    sys.path.insert(0, str(WATCHER))
    with tempfile.TemporaryDirectory() as folder:
        if how != "nothing":
            core_time: Any = importlib.import_module("_tuilab_watch.core_time")
            # With the usual period, the count would depend on the clock.
            core_time._EVERY_NS = PERIODS_NS[length]
            watcher = importlib.import_module("_tuilab_watch.watcher").Watcher(folder)
            watcher.begin(torch, is_all=how == "all")
        take_steps(torch, Optimizer(before_step, after_step), int(steps))


if __name__ == "__main__":
    main()
