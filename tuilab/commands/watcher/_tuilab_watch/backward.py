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
    backward = autograd.backward
    autograd.backward = _watched(watcher, backward)
    _register_with_jit(backward, autograd.backward)


def _register_with_jit(plain: Any, watched: Any) -> None:
    """Have a function that torch.jit.script compiles call what it would call without the wrapper.

    torch.jit identifies functions by their ids, so the wrapper needs the entries of the original.
    """
    module = sys.modules.get("torch.jit._builtins")
    operators = getattr(module, "_builtin_ops", None) or []
    new_operators = [(watched, name) for function, name in operators if function is plain]
    operators.extend(new_operators)
    names_by_id = getattr(module, "_builtin_table", None) or {}
    if id(plain) in names_by_id:
        names_by_id[id(watched)] = names_by_id[id(plain)]


def _watched(watcher: Any, backward: Any) -> Any:
    """Return a wrapper of torch.autograd.backward that marks each call."""
    # Locals are faster than attributes, and this function runs in each step.
    is_compiling = watcher.is_compiling
    aside = watcher.aside
    tensor_class = watcher.torch.Tensor
    # The function returns the id of a backward that is running, or _NOBODY. Checkpointing calls a
    # backward within another one.
    running_backward = getattr(watcher.torch._C, "_current_graph_task_id", lambda: _NOBODY)
    mark_unusual = _make_marker(watcher)
    count_function_modes, count_dispatch_modes = modes_of(watcher.torch)
    unscaled = watcher.unscaled.kept
    with_value = layout.last_of(layout.WENT_BACK, flags=layout.HAS_VALUE)

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
        if kwargs or is_compiling() or running_backward() != _NOBODY:
            return backward(
                tensors, grad_tensors, retain_graph, create_graph, grad_variables, inputs, **kwargs
            )
        began = _now()
        begin_ns = 0
        event = None
        if watcher.gpu is not None:
            called = began
            event = watcher.gpu.begin_backward()
            began = _now()
            begin_ns = began - called
        result = backward(tensors, grad_tensors, retain_graph, create_graph, grad_variables, inputs)
        ended = _now()
        try:
            spent_ns = watcher.spent_ns + begin_ns
            if spent_ns > _MOST_NS:
                spent_ns = _MOST_NS
            is_usual = (
                type(tensors) is tensor_class
                and tensors.is_cpu
                and not (unscaled or count_function_modes() or count_dispatch_modes())
            )
            value = None
            if is_usual and tensors.numel() == 1:
                value = tensors.item()
            if type(value) is float:
                put = watcher.put
                put(began, ended, value, with_value + spent_ns)
            else:
                with aside():
                    mark_unusual(tensors, began, ended, event, spent_ns)
            if watcher.exchange is not None:
                watcher.exchange.count_backward()
            watcher.spent_ns = _now() - ended
        except Exception as problem:
            watcher.fail(problem)
        return result

    return watched_backward


def _make_marker(watcher: Any) -> Any:
    """Return the function that marks a backward from any roots."""
    tensor_class = watcher.torch.Tensor
    without_value = layout.last_of(layout.WENT_BACK)
    with_value = layout.last_of(layout.WENT_BACK, flags=layout.HAS_VALUE)

    def mark(tensors: Any, began: int, ended: int, event: Any, spent_ns: int) -> None:
        """Mark a backward; its mark has no value unless it has one root, which is one number.

        A root on a GPU brings its value later.
        """
        root = tensors
        if type(tensors) is not tensor_class:
            root = only_root(tensors, tensor_class)
        value = None
        if root is not None:
            root = watcher.unscaled.of(root)
            if root.numel() == 1:
                if not root.is_cpu:
                    _mark_on_gpu(watcher, root, began, ended, event, spent_ns)
                    return
                value = root.item()
        if type(value) is float:
            watcher.put(began, ended, value, with_value + spent_ns)
        else:
            watcher.put(began, ended, 0.0, without_value + spent_ns)

    return mark


def _mark_on_gpu(
    watcher: Any, root: Any, began: int, ended: int, event: Any, spent_ns: int
) -> None:
    """Mark a backward whose root is on a GPU or another accelerator."""
    gpu = None
    if root.is_cuda:
        gpu = watcher.gpu_of(root)
    if gpu is None:
        watcher.mark(layout.WENT_BACK, began, ended, 0.0, spent_ns)
        return
    flags = 0
    if gpu.end_part(event, ended):
        flags |= layout.TIMED
    flags |= gpu.mark_value_later(root, ended)
    watcher.mark(layout.WENT_BACK, began, ended, 0.0, spent_ns, 0, flags)


def only_root(tensors: Any, tensor_class: Any) -> Any:
    """Return the only root if it is a plain tensor, else None.

    A tensor of another class may ask other ranks for its value.
    """
    if not isinstance(tensors, (list, tuple)) or len(tensors) != 1:
        return None
    if type(tensors[0]) is not tensor_class:
        return None
    return tensors[0]
