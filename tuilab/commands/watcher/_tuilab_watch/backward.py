"""Watch each backward: how long it takes, and the value of its root.

If the root is on a GPU, its value is marked once it has landed.
"""

from __future__ import annotations

import functools
import sys
import time
from typing import Any

from . import layout
from .aside import modes_of

_now = time.monotonic_ns
_NOBODY = -1
_MOST_NS = layout.MOST


def watch(watcher: Any) -> None:
    """Wrap torch.autograd.backward, which every `loss.backward()` calls."""
    autograd = watcher.torch.autograd
    plain = autograd.backward
    autograd.backward = _watched(watcher, plain)
    _tell_jit(plain, autograd.backward)


def _tell_jit(plain: Any, watched: Any) -> None:
    """Have a function that torch.jit.script compiles call what it would call without the wrapper.

    torch.jit identifies functions by their ids, so the wrapper needs the entries of the original.
    """
    module = sys.modules.get("torch.jit._builtins")
    known, table = (
        getattr(module, "_builtin_ops", None) or [],
        getattr(module, "_builtin_table", None) or {},
    )
    known.extend([(watched, name) for function, name in known if function is plain])
    table.update({id(watched): name for key, name in table.items() if key == id(plain)})


def _watched(watcher: Any, backward: Any) -> Any:
    is_compiling = watcher.is_compiling
    # It returns the id of a backward that is running, or _NOBODY. Checkpointing calls a backward
    # within another one.
    within = getattr(watcher.torch._C, "_current_graph_task_id", lambda: _NOBODY)
    tell, aside, plain = _telling(watcher), watcher.aside, watcher.torch.Tensor
    functions, dispatch = modes_of(watcher.torch)
    kept, with_value = (
        watcher.unscaled.kept,
        layout.last_of(layout.WENT_BACK, flags=layout.HAS_VALUE),
    )

    # The parameters are those of torch since 1.8, each by its name: packing and unpacking `*args`
    # takes longer.
    @functools.wraps(backward)
    def watched_backward(
        tensors: Any,
        grad_tensors: Any = None,
        retain_graph: Any = None,
        create_graph: Any = False,
        grad_variables: Any = None,
        inputs: Any = None,
        **kwargs: Any,
    ) -> Any:
        if kwargs or is_compiling() or within() != _NOBODY:
            return backward(
                tensors, grad_tensors, retain_graph, create_graph, grad_variables, inputs, **kwargs
            )
        called = began = _now()
        event = None
        if watcher.gpu is not None:
            event, began = watcher.gpu.event(), _now()
        result = backward(tensors, grad_tensors, retain_graph, create_graph, grad_variables, inputs)
        ended = _now()
        try:
            spent_ns = watcher.spent_ns + began - called
            if spent_ns > _MOST_NS:
                spent_ns = _MOST_NS
            is_usual = (
                type(tensors) is plain
                and tensors.is_cpu
                and not (kept or functions() or dispatch())
            )
            if is_usual and tensors.numel() == 1 and type(value := tensors.item()) is float:
                put = watcher.put
                put(began, ended, value, with_value + spent_ns)
            else:
                with aside():
                    tell(tensors, began, ended, event, spent_ns)
            watcher.spent_ns = _now() - ended
        except Exception as problem:
            watcher.fail(problem)
        return result

    return watched_backward


def _telling(watcher: Any) -> Any:
    """Return the function that marks a backward."""
    plain = watcher.torch.Tensor
    without, with_value = (
        layout.last_of(layout.WENT_BACK),
        layout.last_of(layout.WENT_BACK, flags=layout.HAS_VALUE),
    )

    def tell(tensors: Any, began: int, ended: int, event: Any, spent_ns: int) -> None:
        root = tensors if type(tensors) is plain else only_one(tensors, plain)
        if root is not None:
            root = watcher.unscaled.of(root)
        if root is not None and root.numel() == 1:
            if not root.is_cpu:
                _tell_on_gpu(watcher, root, began, ended, event, spent_ns)
                return
            value = root.item()
            if type(value) is float:
                watcher.put(began, ended, value, with_value + spent_ns)
                return
        watcher.put(began, ended, 0.0, without + spent_ns)

    return tell


def _tell_on_gpu(
    watcher: Any, root: Any, began: int, ended: int, event: Any, spent_ns: int
) -> None:
    gpu = watcher.gpu_of(root) if root.is_cuda else None
    if gpu is None:
        watcher.mark(layout.WENT_BACK, began, ended, 0.0, spent_ns)
        return
    flags = layout.TIMED if gpu.times(event, ended) else 0
    watcher.mark(layout.WENT_BACK, began, ended, 0.0, spent_ns, 0, flags | gpu.lands(root, ended))


def only_one(tensors: Any, plain: Any) -> Any:
    """Return the only root if it is a plain tensor, else None.

    A tensor of another class may ask other ranks for its value.
    """
    if isinstance(tensors, (list, tuple)) and len(tensors) == 1 and type(tensors[0]) is plain:
        return tensors[0]
    return None
