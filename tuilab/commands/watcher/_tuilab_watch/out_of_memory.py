"""Say who holds the memory of a GPU when torch cannot allocate more.

Torch calls the observer before it raises the error, and at no other time, so this costs nothing
until then. The last such error of a process is in the file PID.memory, as JSON: a script may catch
an error and go on.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

HISTORY = "TUILAB_WATCH_MEMORY"  # if it is set, torch records which line allocates each block
ENDING = "memory"  # of the file
PARAMETERS = "parameters"
GRADIENTS = "gradients"
STATE = "optimizer state"
TENSORS = "other tensors of the script"
UNSEEN = "kept for the backward, or temporary"
_MOST_BLOCKS = 8
_LONGEST_LINE = 200  # characters
_MOST_ENTRIES = 100_000  # of the history


def watch(torch: Any, folder: str) -> None:
    """Have torch call the observer, once the script uses a GPU."""
    cuda: Any = getattr(torch, "cuda", None)
    attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
    call_later = getattr(cuda, "_lazy_call", None)
    if attach is None or call_later is None:
        return
    observer = make_observer(torch, folder)

    def begin() -> None:
        """Run when torch initialises CUDA, or now if it has done that."""
        try:
            attach(observer)
            if os.environ.get(HISTORY):
                cuda.memory._record_memory_history(
                    context="alloc", stacks="python", max_entries=_MOST_ENTRIES
                )
        except Exception as problem:
            sys.modules[__package__].write_trouble(folder, problem)

    call_later(begin)


def make_observer(torch: Any, folder: str) -> Callable[[int, int, int, int], None]:
    """Return the function that torch calls with the device and three numbers of bytes."""
    count = 0

    def observe(device: int, requested: int, device_allocated: int, device_free: int) -> None:
        nonlocal count
        count += 1
        try:
            report = describe(torch, device)
            report |= {"count": count, "requested": requested, "free": device_free}
            _write(os.path.join(folder, f"{os.getpid()}.{ENDING}"), report)
        except Exception as problem:
            sys.modules[__package__].write_trouble(folder, problem)

    return observe


def describe(torch: Any, device: int) -> dict[str, Any]:
    """Return the bytes that each kind of tensors holds on a GPU, and the largest blocks."""
    cuda: Any = getattr(torch, "cuda", None)
    stats = cuda.memory_stats_as_nested_dict(device)
    allocated = stats.get("allocated_bytes", {}).get("all", {}).get("current", 0)
    reserved = stats.get("reserved_bytes", {}).get("all", {}).get("current", 0)
    held = list(_held_tensors(torch, torch.device("cuda", device)))
    kinds = dict.fromkeys((PARAMETERS, GRADIENTS, STATE, TENSORS), 0)
    for kind, size, _ in held:
        kinds[kind] += size
    kinds[UNSEEN] = max(allocated - sum(kinds.values()), 0)
    blocks = _blocks_of_history(cuda, device)
    if not blocks:
        held.sort(key=lambda tensor: tensor[1], reverse=True)
        blocks = [[size, kind, words] for kind, size, words in held[:_MOST_BLOCKS]]
    return {
        "device": device,
        "allocated": allocated,
        "reserved": reserved,
        "kinds": kinds,
        "blocks": blocks,
    }


def _held_tensors(torch: Any, device: Any) -> Iterator[tuple[str, int, str]]:
    """Yield the kind, the bytes and the shape of the tensors that Python knows on a device.

    Each storage is counted once, for the first kind that has it.
    """
    seen: set[int] = set()
    for kind, tensor in _tensors_by_kind(torch):
        try:
            if tensor.device != device:
                continue
            storage = tensor.untyped_storage()
            place, size = storage.data_ptr(), storage.nbytes()
        except Exception:  # a tensor without a storage of its own, such as a DTensor
            continue
        if size and place not in seen:
            seen.add(place)
            dtype = str(tensor.dtype).removeprefix("torch.")
            yield kind, size, f"{dtype} {list(tensor.shape)}"


def _tensors_by_kind(torch: Any) -> Iterator[tuple[str, Any]]:
    """Yield all tensors that Python knows: parameters first, then gradients, then the others."""
    tensor_class = torch.Tensor
    parameter_class = torch.nn.Parameter
    optimizer_class = torch.optim.Optimizer
    objects = gc.get_objects()
    tensors = [thing for thing in objects if issubclass(type(thing), tensor_class)]
    optimizers = [thing for thing in objects if issubclass(type(thing), optimizer_class)]
    parameters = [tensor for tensor in tensors if issubclass(type(tensor), parameter_class)]
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            parameters.extend(group["params"])
    for parameter in parameters:
        yield PARAMETERS, parameter
    for parameter in parameters:
        if parameter.grad is not None:
            yield GRADIENTS, parameter.grad
    for optimizer in optimizers:
        for state in list(optimizer.state.values()):
            for value in _values_of(state):
                if issubclass(type(value), tensor_class):
                    yield STATE, value
    for tensor in tensors:
        yield TENSORS, tensor


def _values_of(state: Any) -> list[Any]:
    """Return the values of the state of a parameter, which is a dict in torch's own optimizers."""
    return list(state.values()) if isinstance(state, dict) else []


def _blocks_of_history(cuda: Any, device: int) -> list[list[Any]]:
    """Return the largest live blocks with the line that allocated each; none without a history."""
    if not os.environ.get(HISTORY):
        return []
    blocks = []
    for segment in cuda.memory._snapshot(device)["segments"]:
        if segment.get("device") != device:
            continue
        for block in segment["blocks"]:
            if block["state"].startswith("active"):
                blocks.append([block["size"], "", _own_line(block.get("frames") or [])])
    blocks.sort(key=lambda block: block[0], reverse=True)
    return blocks[:_MOST_BLOCKS]


def _own_line(frames: list[dict[str, Any]]) -> str:
    """Return the innermost line that is not in an installed package, as file:line function."""
    for frame in frames:
        path = str(frame.get("filename", ""))
        is_own = path.endswith(".py") and "site-packages" not in path and "/lib/python" not in path
        if is_own:
            line = f"{path}:{frame.get('line', 0)} {frame.get('name', '')}"
            return line[-_LONGEST_LINE:]
    return "no line of the script"


def _write(path: str, report: dict[str, Any]) -> None:
    """Write the report, whole or not at all."""
    new_path = f"{path}.new"
    fd = os.open(new_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(fd, "w", encoding="utf-8", errors="replace") as file:
        json.dump(report, file)
    os.replace(new_path, path)
