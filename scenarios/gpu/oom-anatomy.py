"""Count what fills the memory: an OutOfMemoryError names the last allocation only.

The error "CUDA out of memory. Tried to allocate 96.00 MiB" names the allocation that did not fit
any more. This allocation is often small, and its operator is not the cause: with a little more or
less memory another operator fails. Four parts fill the memory of a training step. Three depend only
on the number of parameters. With float32 and AdamW a parameter takes 4 bytes, its gradient 4 and
its state 8. The fourth part is the tensors that forward keeps for backward. This part grows with
the batch, and is often larger than the other three together.

The parts are not all there at the same time. If zero_grad sets the gradients to None, there are no
gradients during forward. The peak is often at the beginning of backward, where all kept tensors are
alive and the gradient of the logits is added. With a small batch the peak is in the step of the
optimizer, which needs temporary tensors. If the peak is in backward, it grows linearly with the
batch. So the peaks of two batch sizes give the peak of every larger batch.

A failed step keeps its tensors alive as long as the exception is handled, because the traceback
refers to the frames of forward. So a second attempt inside the `except` block has less memory than
the first.

The lesson trains a language model without attention on the device "meta", whose tensors have sizes
but no memory. It counts the bytes that operators allocate and that are not yet freed, and raises an
error at a limit. Its counts are exact for tensors. The allocator of a GPU adds rounding, holes and
workspaces. The chart shows the bytes during one step.

In practice: print `torch.cuda.max_memory_allocated()` for two batch sizes, and compute the largest
batch from these two peaks. To see who holds the memory, call
`torch.cuda.memory._record_memory_history(max_entries=100_000)` before the loop and
`torch.cuda.memory._dump_snapshot("snapshot.pickle")` after the error, and open the file at
pytorch.org/memory_viz. Without `max_entries` the history of a long run can take gigabytes. Retry
after the `except` block, and not inside it.
## Predict
A net has 134 million parameters in float32, so parameters, gradients and AdamW's state take 2.0
GiB. The net has a vocabulary of 50,304 words. How many GiB does a step with 4 sequences of 1024
tokens take at its peak?
## Look for
- [parts] for P bytes of parameters in n tensors, the gradients take P bytes and the state of AdamW
  2P + 4n
- [forward] after forward only these are alive: parameters, state of AdamW, batch, loss and the
  tensors that are kept for backward
- [peak] for 4 sequences the peak of a step is at least 2 times as large as parameters, gradients
  and state of AdamW
- [where] for 4 sequences the largest number of bytes is alive in the backward of the loss
- [operators] with limits of 50, 55, 60 and so on to 95 % of the peak, a step fails in at least 4
  different operators
- [small] if memory is limited to 50 to 95 % of the peak, the smallest allocation that fails is at
  most 2 % of the limit
- [forecast] a straight line through the peaks of 4 and 8 sequences gives the peak of 16 sequences
  to 0.1 %
- [traceback] in the except block of a failed forward 90 % or more of the limit is in use; after it,
  the bytes from before forward
- [gpu-forward] on a GPU forward raises memory_allocated by the bytes that are counted on the device
  "meta", to 5 %
- [gpu-error] on a GPU with too little memory for forward, the OutOfMemoryError names an allocation
  of at most half the bytes in use before forward
- [gpu-snapshot] on a GPU the allocated sizes of all segments in a snapshot sum to memory_allocated
- [gpu-line] on a GPU with a recorded history, the snapshot names the file of the lesson for the
  largest block that forward allocated
## Try next
`--batch 1`: the parameters and their state are the larger part, and the peak is in the step of the
optimizer. refutes: peak, where, forecast
## Source
- PyTorch documentation, "Understanding CUDA Memory Usage",
  https://docs.pytorch.org/docs/stable/torch_cuda_memory.html: the snapshot.
- PyTorch documentation, "My out of memory exception handler can't allocate memory" in the FAQ,
  https://docs.pytorch.org/docs/stable/notes/faq.html.
- Ours: the model, the limits and the forecast.
"""

import gc
import re
import weakref

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tuilab import Lab

WIDTH = 768
BLOCKS = 12
TOKENS = 1024
WORDS = 50_304
GPU_SIZES = (256, 4, 8192)  # width, blocks and words of the net on a GPU
GPU_BATCH = 8
GIB = 1 << 30
MIB = 1 << 20
UNITS = {"KiB": 1 << 10, "MiB": MIB, "GiB": GIB}


class LimitError(RuntimeError):
    """An allocation would cross the limit."""


class MemoryModel(TorchDispatchMode):
    """Counts the bytes of the storages that operators allocate and that are still alive."""

    def __init__(self):
        super().__init__()
        self.storages = weakref.WeakSet()
        self.live_bytes = 0
        self.peak_bytes = 0
        self.peak_operator = ""
        self.limit = None
        self.curve = []  # live bytes after each operator

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.note(tensor.untyped_storage(), operator)
        self.curve.append(self.live_bytes)
        return result

    def note(self, storage, operator):
        size = storage.nbytes()
        if size == 0 or storage in self.storages:
            return
        if self.limit is not None and self.live_bytes + size > self.limit:
            raise LimitError(f"{operator}: {size} bytes")
        self.storages.add(storage)
        weakref.finalize(storage, self.free, size)
        self.live_bytes += size
        if self.live_bytes > self.peak_bytes:
            self.peak_bytes = self.live_bytes
            self.peak_operator = str(operator)

    def free(self, size):
        self.live_bytes -= size

    def reset_peak(self):
        self.peak_bytes = self.live_bytes


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mlp = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Linear(4 * width, width),
        )

    def forward(self, x):  # (batch, tokens, width)
        return x + self.mlp(x)


class Training:
    """A language model without attention, its optimizer and a batch."""

    def __init__(self, device, batch, width=WIDTH, blocks=BLOCKS, words=WORDS):
        with torch.device(device):
            layers = [nn.Embedding(words, width)]
            for _ in range(blocks):
                layers.append(Block(width))
            layers.append(nn.Linear(width, words, bias=False))
            self.net = nn.Sequential(*layers)
            self.inputs = torch.zeros(batch, TOKENS, dtype=torch.long)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), foreach=True)

    def forward(self):
        logits = self.net(self.inputs)  # (batch, tokens, words)
        return F.cross_entropy(logits.flatten(0, 1), self.inputs.flatten())

    def step(self):
        self.optimizer.zero_grad()
        self.forward().backward()
        self.optimizer.step()

    def parameter_bytes(self):
        return sum(parameter.nbytes for parameter in self.net.parameters())

    def gradient_bytes(self):
        return sum(parameter.grad.nbytes for parameter in self.net.parameters())

    def state_bytes(self):
        total = 0
        for state in self.optimizer.state.values():
            total += sum(tensor.nbytes for tensor in state.values())
        return total


def count_kept_bytes(training):
    """Return the bytes that forward keeps for backward, without parameters."""
    storages = {parameter.untyped_storage() for parameter in training.net.parameters()}
    sizes = []

    def note(tensor):
        storage = tensor.untyped_storage()
        if storage not in storages:
            storages.add(storage)
            sizes.append(storage.nbytes())
        return tensor

    def unpack(tensor):
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, unpack):
        loss = training.forward()
    del loss
    return sum(sizes)


def start_training(batch):
    """Return a training on meta after its first step, and the model of its memory."""
    memory = MemoryModel()
    with memory:
        training = Training("meta", batch)
        training.step()  # makes the state of the optimizer
    memory.reset_peak()
    memory.curve.clear()
    return training, memory


def measure_peak_bytes(batch):
    training, memory = start_training(batch)
    with memory:
        training.step()
    return memory.peak_bytes


def claim_parts(lab, training, memory):
    """Claim what is alive at which time of a step, and return its peak."""
    parameters = training.parameter_bytes()
    tensors = len(list(training.net.parameters()))
    parts = [training.gradient_bytes(), training.state_bytes()]
    lab.claim("parts", parts, equals=[parameters, 2 * parameters + 4 * tensors], unit="B")

    kept = count_kept_bytes(training)  # with the batch, which backward needs again
    training.optimizer.zero_grad()
    with memory:
        loss = training.forward()
        expected = parameters + training.state_bytes() + kept + loss.nbytes
        lab.claim("forward", memory.live_bytes, equals=expected, unit="B")
        del loss
        memory.curve.clear()
        memory.reset_peak()
        training.step()
    for number, live_bytes in enumerate(memory.curve):
        lab.log(number, live_bytes=live_bytes)

    parts_bytes = {
        "parameters": parameters,
        "gradients": training.gradient_bytes(),
        "state of AdamW": training.state_bytes(),
        "kept for backward": kept,
    }
    lab.bars("parts of a step", parts_bytes, unit="B")
    formula = 2 * parameters + training.state_bytes()
    peak = memory.peak_bytes
    lab.claim("peak", peak / formula, at_least=2, answers=peak / GIB)
    lab.claim("where", "softmax_backward" in memory.peak_operator)
    return peak


def try_limit(training, memory, limit):
    """Return the operator that crosses the limit, and the bytes that it asks for."""
    memory.limit = limit
    try:
        with memory:
            training.step()
    except LimitError as error:
        operator, _, size = str(error).partition(": ")
        return operator, int(size.removesuffix(" bytes"))
    finally:
        memory.limit = None
    return "none", limit


def claim_limits(lab, training, memory, peak):
    rows = []
    operators = set()
    shares = []
    for percent in lab.sweep(range(50, 100, 5), "less and less memory"):
        limit = peak * percent // 100
        operator, size = try_limit(training, memory, limit)
        operators.add(operator)
        shares.append(100 * size / limit)
        rows.append((f"{limit / GIB:.2f} GiB", operator, f"{size / MIB:.1f} MiB"))
    head = ("limit", "operator that fails", "tried to allocate")
    lab.table("what the error would name", rows, head=head)
    lab.claim("operators", len(operators), at_least=4)
    lab.claim("small", min(shares), at_most=2, unit="%")


def claim_traceback(lab, training, memory, peak):
    training.optimizer.zero_grad()
    with memory:
        before = memory.live_bytes
        memory.limit = before + (peak - before) // 4  # is crossed in forward
        live_inside = 0
        try:
            training.forward()
        except LimitError:
            live_inside = memory.live_bytes
        is_kept = live_inside >= 0.9 * memory.limit
        memory.limit = None
        gc.collect()
        is_freed = memory.live_bytes == before
    lab.claim("traceback", [is_kept, is_freed], equals=[True, True])


def claim_forecast(lab, batch, peak):
    lab.stage("larger batches")
    twice = measure_peak_bytes(2 * batch)
    predicted = peak + 3 * (twice - peak)
    real = measure_peak_bytes(4 * batch)
    lab.claim("forecast", predicted / real, equals=1, tolerance=0.001)


def asked_bytes(error):
    """Return the bytes that the message of an OutOfMemoryError names; 0 for another error."""
    match = re.search(r"Tried to allocate ([\d.]+) (KiB|MiB|GiB)", error)
    if match is None:
        return 0
    return float(match[1]) * UNITS[match[2]]


def largest_block(snapshot):
    """Return the largest block that is in use and whose stack was recorded."""
    largest = {"size": 0, "frames": []}
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            is_known = block["state"] == "active_allocated" and block.get("frames")
            if is_known and block["size"] > largest["size"]:
                largest = block
    return largest


def claim_gpu(lab, device):
    keys = ("gpu-forward", "gpu-error", "gpu-snapshot", "gpu-line")
    if device.type != "cuda":
        for key in keys:
            lab.claim(key, lacks="a CUDA device")
        return
    lab.stage("on the GPU")
    cuda = torch.get_device_module(device)
    training = Training(device, GPU_BATCH, *GPU_SIZES)
    training.step()
    training.optimizer.zero_grad()
    counted = count_kept_bytes(Training("meta", GPU_BATCH, *GPU_SIZES))
    counted -= training.inputs.nbytes  # was there before

    before = cuda.memory_allocated(device)
    set_history = cuda.memory._record_memory_history  # noqa: SLF001  (has no public name)
    set_history(stacks="python", device=device)
    loss = training.forward()
    allocated = cuda.memory_allocated(device)
    snapshot = cuda.memory._snapshot(device)  # noqa: SLF001  (has no public name)
    set_history(enabled=None, device=device)
    lab.claim("gpu-forward", (allocated - before) / counted, equals=1, tolerance=0.05)

    segments = [part for part in snapshot["segments"] if part["device"] == device.index]
    total = sum(segment["allocated_size"] for segment in segments)
    lab.claim("gpu-snapshot", total, equals=allocated, unit="B")
    frames = largest_block(snapshot)["frames"]
    lines = [f"{frame['filename']}:{frame['line']} {frame['name']}" for frame in frames]
    lab.text("\n".join(lines), title="who allocated the largest block")
    lab.claim("gpu-line", any(frame["filename"] == __file__ for frame in frames))

    del loss
    cuda.empty_cache()
    total = cuda.get_device_properties(device).total_memory
    limit = cuda.memory_reserved(device) + counted // 3  # is crossed in forward
    cuda.set_per_process_memory_fraction(limit / total, device)
    error = lab.raises(training.forward)
    cuda.set_per_process_memory_fraction(1.0, device)
    is_out_of_memory = error.startswith("OutOfMemoryError")
    is_small = asked_bytes(error) <= before / 2
    lab.text(error, title="the error")
    lab.claim("gpu-error", [is_out_of_memory, is_small], equals=[True, True])


def run(
    lab: Lab,
    batch: int = 4,  # sequences of 1024 tokens, 1..64
) -> None:
    device = lab.device()
    lab.axes("live_bytes", x="operator of the step", y="bytes of live tensors")
    lab.stage("a step on meta")
    training, memory = start_training(batch)
    peak = claim_parts(lab, training, memory)
    claim_limits(lab, training, memory, peak)
    claim_traceback(lab, training, memory, peak)
    claim_forecast(lab, batch, peak)
    claim_gpu(lab, device)
