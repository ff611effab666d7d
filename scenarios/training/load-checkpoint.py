"""Load large weights with mmap=True and assign=True onto meta: no copy is made.

The usual code for a checkpoint holds the weights twice. The net allocates its parameters and fills
them with random numbers. `torch.load` allocates tensors of the same sizes, and `load_state_dict`
copies these into the parameters. A model that needs more than half of the memory cannot be loaded.
The loaded tensors are freed when nothing refers to them, but this is after the peak.

Each copy can be left out. `torch.load(path, mmap=True)` maps the file: the memory of the tensors is
the pages of the file. The system reads a page when your code first uses it. A net that is built
under `torch.device("meta")` has shapes and no memory. `load_state_dict(state, assign=True)` makes
the loaded tensors the parameters. With all three, the process needs no memory of its own for the
weights. If the process changes a weight, as an optimizer does, the system makes a private copy of
the page. The file does not change.

`assign=True` has side effects. The net gets new parameter objects. An optimizer that was made
before keeps the old parameters, and does not train the net. The new parameters have the dtype of
the file. Tied weights become two parameters, so tie them again after the load. A buffer that is not
in the file stays on meta. Without `assign=True`, a net on meta stays empty, and only a warning says
so.

Do not change a file while it is mapped. `torch.save` to the same path empties the file first, and
the next read of a mapped weight kills the process with a bus error. On some network disks, mapped
files are slow or hang. Copy such a file to a local disk first, or load it without mmap.

`weights_only=True`, the default, refuses files that hold other objects than tensors and plain
containers. With `weights_only=False`, `torch.load` runs any code that the author of the file put
into it.

In practice: build the net under `torch.device("meta")`, call `net.load_state_dict(torch.load(path,
mmap=True), assign=True)`, and make the optimizer afterwards. Check that `is_meta` is False for each
parameter and buffer. Save each checkpoint to a new file. Keep `weights_only=True` for each file
that you did not write.
## Predict
A net is built as usual, and loads its checkpoint with torch.load and load_state_dict. How many
times the bytes of the file does the process hold at the peak?
## Look for
- [copied] before the loaded tensors are freed, torch.load and load_state_dict take 2 times the
  bytes of the file as process memory
- [mapped] torch.load with mmap=True and load_state_dict take the bytes of the file only once as
  process memory
- [assigned] torch.load and load_state_dict with assign=True onto a net on meta take the bytes of
  the file only once as process memory
- [nothing] with mmap=True and assign=True, a net on meta takes less than 0.1 times the bytes of the
  file, even after each weight is read
- [changed] if each mapped weight is changed in place, the weights take the bytes of the file once
  as process memory
- [file] changing mapped weights in place does not change their file
- [overwritten] saving mapped weights onto their own file ends the process with SIGBUS, and leaves
  an empty file
- [same] loading with and without mmap=True and assign=True gives the same weights bit for bit
- [optimizer] an optimizer that was made before load_state_dict with assign=True changes no
  parameter of the net
- [dtype] a float32 net stays float32 when it loads a bfloat16 file, and becomes bfloat16 with
  assign=True
- [no-op] load_state_dict without assign=True leaves a net on meta, and warns that this is a no-op
- [buffer] after load_state_dict with assign=True onto a net on meta, a buffer with persistent=False
  is still on meta
- [refused] torch.load refuses a file with an object that runs code, and raises an UnpicklingError
- [executed] with weights_only=False, torch.load runs the code of an object in the file
- [load-time] for a file in the page cache, torch.load and load_state_dict take at least twice as
  long without mmap=True and assign=True as with both
## Try next
`--no-mmap`: all tensors are read into memory. refutes: mapped, nothing, overwritten
`--no-assign`: all weights are copied into the parameters that exist.
refutes: assigned, nothing, optimizer, dtype, buffer
## Source
- PyTorch documentation, "Tips for loading an nn.Module from a checkpoint",
  https://docs.pytorch.org/tutorials/recipes/recipes/module_load_state_dict_tips.html: mmap, meta
  and assign.
- PyTorch documentation, `torch.load`,
  https://docs.pytorch.org/docs/stable/generated/torch.load.html: weights_only.
- "Remove mmap parameter from ModelLoader", https://github.com/facebookresearch/fairseq2/pull/547:
  mapped files on network disks made jobs hang.
- Ours: the bytes, the bus error, the optimizer, the dtype and the buffer.
"""

import ctypes
import faulthandler
import hashlib
import multiprocessing
import os
import re
import resource
import signal
import tempfile
from pathlib import Path

import torch
from torch import nn

from tuilab import Lab

ROLLUP = "/proc/self/smaps_rollup"
ON_LINUX = ("copied", "mapped", "assigned", "nothing", "changed", "file", "overwritten")
LAYERS = 8


def build_net(width, device="cpu"):
    with torch.device(device):
        return nn.Sequential(*[nn.Linear(width, width, bias=False) for _ in range(LAYERS)])


class Loading:
    """A way to load a checkpoint: with or without mmap, meta and assign."""

    def __init__(self, path, width, mmap, assign):
        self.path = path
        self.width = width
        self.mmap = mmap
        self.assign = assign

    def load(self):
        """Return the net, and the tensors of the file."""
        net = build_net(self.width, "meta" if self.assign else "cpu")
        state = torch.load(self.path, mmap=self.mmap)
        net.load_state_dict(state, assign=self.assign)
        return net, state


def read_anonymous_bytes():
    """Return the memory of this process that is not the page of a file."""
    rollup = Path(ROLLUP).read_text()
    return 1024 * int(re.search(r"Anonymous: +(\d+) kB", rollup).group(1))


def free_unused_memory():
    """Give freed memory back to the system; otherwise a new tensor takes it, and nothing grows."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


def measure_loading(loading):
    """Return the bytes that are new after loading, reading and changing all weights."""
    free_unused_memory()
    before = read_anonymous_bytes()
    net, state = loading.load()
    new_bytes = [read_anonymous_bytes() - before]
    for parameter in net.parameters():
        parameter.detach().max()  # reads every number, and makes no large tensor
    new_bytes.append(read_anonymous_bytes() - before)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(2)
    new_bytes.append(read_anonymous_bytes() - before)
    del state  # alive until here
    return new_bytes


def send_result(pipe, function, argument):
    pipe.send(function(argument))


def call_in_fork(function, argument):
    """Call a function in a process that ends with it, and return its value."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=send_result, args=(sender, function, argument))
    process.start()
    sender.close()
    value = receiver.recv()
    process.join()
    return value


def save_onto_own_file(path, mmap):
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the process dies on purpose: no core file
    torch.save(torch.load(path, mmap=mmap), path)


def claim_overwriting(lab, folder, mmap):
    lab.stage("saving onto the mapped file")
    path = os.path.join(folder, "own.pt")
    torch.save(build_net(256).state_dict(), path)
    context = multiprocessing.get_context("fork")
    process = context.Process(target=save_onto_own_file, args=(path, mmap))
    process.start()
    process.join()
    result = [process.exitcode, os.path.getsize(path)]
    lab.claim("overwritten", result, equals=[-signal.SIGBUS, 0])


def hash_file(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def claim_memory(lab, loadings, path):
    lab.axes("anonymous_bytes", x="1 loaded, 2 read, 3 changed", y="new memory of the process")
    file_bytes = os.path.getsize(path)
    file_hash = hash_file(path)
    times = {}  # new bytes divided by those of the file
    bars = {}
    for arm, loading in loadings.items():
        lab.stage(arm)
        new_bytes = call_in_fork(measure_loading, loading)
        for step, count in enumerate(new_bytes):
            lab.log(step + 1, arm=arm, anonymous_bytes=count)
        bars[arm] = new_bytes[0]
        times[arm] = [count / file_bytes for count in new_bytes]
    lab.bars("new memory after loading", bars, unit="B")

    lab.claim("copied", times["copied"][0], equals=2, tolerance=0.1, answers=True)
    lab.claim("mapped", times["mapped"][0], equals=1, tolerance=0.1)
    lab.claim("assigned", times["assigned"][0], equals=1, tolerance=0.1)
    lab.claim("nothing", max(times["mapped and assigned"][:2]), at_most=0.1)
    lab.claim("changed", times["mapped and assigned"][2], equals=1, tolerance=0.1)
    lab.claim("file", hash_file(path) == file_hash)


def claim_weights(lab, loadings):
    lab.stage("weights")
    same = []
    expected, _ = loadings["copied"].load()
    for loading in loadings.values():
        net, _ = loading.load()
        pairs = zip(net.parameters(), expected.parameters(), strict=True)
        same.append(all(torch.equal(ours, theirs) for ours, theirs in pairs))
    lab.claim("same", same, equals=[True] * 4)


def is_trained_after_load(assign):
    """Return whether an optimizer that was made before the load changes the net."""
    net = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net.load_state_dict(nn.Linear(4, 4).state_dict(), assign=assign)
    before = net.weight.detach().clone()
    net(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    return not torch.equal(net.weight, before)


def dtype_after_load(assign):
    net = nn.Linear(4, 4)
    net.load_state_dict(nn.Linear(4, 4).bfloat16().state_dict(), assign=assign)
    return str(net.weight.dtype)


class Scaled(nn.Module):
    """A layer with a buffer that is not saved."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.register_buffer("scale", torch.ones(4), persistent=False)


def claim_side_effects(lab, assign):
    lab.stage("side effects of assign")
    trained = [is_trained_after_load(False), is_trained_after_load(assign)]
    lab.claim("optimizer", trained, equals=[True, False])
    dtypes = [dtype_after_load(False), dtype_after_load(assign)]
    lab.claim("dtype", dtypes, equals=["torch.float32", "torch.bfloat16"])

    with torch.device("meta"):
        empty = nn.Linear(4, 4)
        scaled = Scaled()
    warnings = lab.warns(empty.load_state_dict, nn.Linear(4, 4).state_dict())
    is_warned = any("no-op" in warning for warning in warnings)
    lab.claim("no-op", [empty.weight.is_meta, is_warned], equals=[True, True])
    lab.warns(scaled.load_state_dict, Scaled().state_dict(), True, assign)
    on_meta = [scaled.weight.is_meta, scaled.scale.is_meta]
    lab.claim("buffer", on_meta, equals=[False, True])


class MakesFolder:
    """An object whose file makes a folder when it is loaded."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.makedirs, (self.folder, 0o777, True)


def load_everything(path):
    torch.load(path, weights_only=False)


def claim_code(lab, folder):
    lab.stage("a file that runs code")
    path = os.path.join(folder, "code.pt")
    made = os.path.join(folder, "made by loading")
    torch.save(MakesFolder(made), path)
    error = lab.raises(torch.load, path)
    is_refused = error.startswith("UnpicklingError") and not os.path.exists(made)
    lab.claim("refused", is_refused)
    load_everything(path)
    lab.claim("executed", os.path.exists(made))


def load_into(net, path, mmap, assign):
    net.load_state_dict(torch.load(path, mmap=mmap), assign=assign)


def run(
    lab: Lab,
    width: int = 1024,  # of the 8 layers, 256..4096
    mmap: bool = True,  # map the file where a claim says so
    assign: bool = True,  # assign where a claim says so
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.pt")
        torch.save(build_net(width).state_dict(), path)
        loadings = {
            "copied": Loading(path, width, False, False),
            "mapped": Loading(path, width, mmap, False),
            "assigned": Loading(path, width, False, assign),
            "mapped and assigned": Loading(path, width, mmap, assign),
        }

        @lab.once
        def exact():
            if os.path.exists(ROLLUP):
                claim_memory(lab, loadings, path)
                claim_overwriting(lab, folder, mmap)
            else:
                for key in ON_LINUX:
                    lab.claim(key, lacks="smaps_rollup, of Linux 4.14 or newer")
            claim_weights(lab, loadings)
            claim_side_effects(lab, assign)
            claim_code(lab, folder)

        lab.stage("timing")
        lab.claim_ratio("load-time", "copied/assigned", at_least=2)
        copied_net = build_net(width)
        assigned_net = build_net(width)
        lab.race(
            copied=lambda: load_into(copied_net, path, False, False),
            assigned=lambda: load_into(assigned_net, path, mmap, assign),
            seconds=0.4,
            device=torch.device("cpu"),
        )
