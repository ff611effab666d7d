"""Pick one row of each matrix with one index, not with a loop.

A batch holds matrices, and you need another row of each: the last token of each sequence, or the
chosen action of each state. The obvious code is a loop over `x[i][index[i]]`. It hides a step.
Python selects by a whole number, so it reads the index out of its tensor. On a CPU the read is a
call like the others. On a GPU each read waits until all work that was queued before it is done,
once for every matrix of the batch.

TorchScript runs the same loop without Python, and keeps the index in its tensor, so it reads
nothing. But it dispatches each operator as Python does, and the dispatch is most of the cost. The
source gained 10 %, probably on a GPU: its vectorised form calls `.cuda()`, so it fails for tensors
on a CPU. `torch.jit.script` is deprecated by now, and the result shows its warning.

`x[arange, index]` asks for all rows in one operator. The source flattens x instead, and adds an
offset to each index. Then an index that is out of range for its own matrix takes a row of a
neighbour, without an error. The indexed form refuses such an index; on a GPU an assertion ends the
process. The gain of both forms depends on the size of a row: next to long rows, the calls of the
loop count for less.

In practice: write `x[torch.arange(len(x), device=x.device), index]`, or `x.gather(1, index)` with
an index of the shape of the result. Check `index.max() < x.shape[1]` while the index is still on
the CPU.
## Predict
A loop over a batch of 64 matrices collects `x[i][index[i]]` and stacks them. How many operators
does it call?
## Look for
- [same] the loop, its script, and the flattened, indexed and gathered forms give the same rows bit
  for bit
- [loop] the loop over 64 matrices calls 257 operators: 4 for each matrix, and 1 that stacks
- [script] TorchScript calls 193 operators for 64 matrices: 3 for each, and 1 that stacks
- [vectorised] the flattened, indexed and gathered forms call at most 6 operators, and as many for
  128 matrices as for 64
- [reads] the loop over 64 matrices reads 64 indices out of their tensor, and the other forms read
  none
- [backward] for 64 matrices the backward of the loop makes at least 64 tensors like x, and that of
  the indexed form at most 2
- [neighbour] for an index that is too large the flattened form returns the first row of the next
  matrix
- [refused] on a CPU the loop and the indexed form raise an IndexError for an index that is too
  large
- [negative] for the index -1 the flattened form returns the last row of the matrix before, and the
  indexed form the last row of its own
- [cuda] with the .cuda() of the source the flattened form fails for tensors on a CPU
- [script-time] on a CPU the loop takes at most 1.1 times as long as its script
- [script-loss] on a CPU the script takes at most 1.2 times as long as the loop
- [gpu-script-time] on a GPU the loop takes at least 1.1 times as long as its script
- [index-time] the loop takes at least 100 times as long as the indexed form for a whole batch
- [flat-time] the loop takes at least 100 times as long as the flattened form of the source
## Try next
`--picks 8`: eight rows of each matrix. An index of eight numbers is no whole number, so Python
reads none, and the loop calls the operators of the script. refutes: loop, reads
`--width 256`: copying a row takes longer than a call. On a CPU both gains are WEAKER THAN CLAIMED.
## Source
EffectivePyTorch, chapter "Optimizing runtime with TorchScript",
https://github.com/vahidk/EffectivePyTorch: the script about 10 % faster, the flattened form about
100 times, for sizes that are not named. Ours: the counts, the reads, the bytes, and the wrong
indices.
"""

import torch
from torch.utils.benchmark import Timer

from tuilab import Lab

LENGTH = 64  # rows of a matrix


def by_loop(x, index):  # (rows, LENGTH, width), (rows,) or (rows, picks)
    picked = []
    for i in range(len(x)):
        picked.append(x[i][index[i]])
    return torch.stack(picked)  # (rows, width) or (rows, picks, width)


def flattened(x, index):  # as in the source, without its .cuda()
    offset = torch.arange(len(x), device=x.device) * x.shape[1]
    return rows_of_flat_table(x, index, offset)


def flattened_with_cuda(x, index):  # as in the source
    offset = torch.arange(len(x)).cuda() * x.shape[1]
    return rows_of_flat_table(x, index, offset)


def rows_of_flat_table(x, index, offset):
    if index.dim() == 2:
        offset = offset[:, None]  # (rows, 1)
    return x.view(-1, x.shape[2])[index + offset]


def indexed(x, index):
    rows = torch.arange(len(x), device=x.device)
    if index.dim() == 2:
        rows = rows[:, None]  # (rows, 1)
    return x[rows, index]


def gathered(x, index):
    where = index.view(len(x), -1, 1).expand(-1, -1, x.shape[2])  # (rows, picks, width)
    return x.gather(1, where).view(*index.shape, x.shape[2])


def compile_script(lab):
    """Return the TorchScript of the loop, and show what torch says about it."""
    scripts = []

    def compile_it():
        scripts.append(torch.jit.script(by_loop))

    warnings = lab.warns(compile_it)
    lab.text("\n".join(warnings) or "nothing", title="torch.jit.script warns")
    return scripts[0]


def draw(rows, picks, width, device):
    """Return x and an index for each of its matrices."""
    shape = (rows,)
    if picks > 1:
        shape = (rows, picks)
    x = torch.randn(rows, LENGTH, width, device=device)
    index = torch.randint(LENGTH, shape, device=device)
    return x, index


def measure_pick_ms(arm, x, index):
    names = {"arm": arm, "x": x, "index": index}
    timer = Timer("arm(x, index)", "arm(x, index); arm(x, index)", globals=names)
    return 1e3 * timer.blocked_autorange(min_run_time=0.01).median


def count_operators(lab, arms, picks, width, device):
    lab.stage("counting")
    x, index = draw(64, picks, width, device)
    more_x, more_index = draw(128, picks, width, device)
    counted = {}
    operators = {}
    for name, arm in arms.items():
        counted[name] = lab.count(arm, x, index)
        operators[name] = counted[name].operators
    lab.bars("operators for 64 matrices", operators)

    same = []
    reads = []
    for count in counted.values():
        same.append(torch.equal(count.value, counted["loop"].value))
        reads.append(count.calls["aten._local_scalar_dense"])
    lab.claim("same", same, equals=[True] * 5)
    lab.claim("loop", operators["loop"], equals=257, answers=True)
    lab.claim("script", operators["script"], equals=193)
    lab.claim("reads", reads, equals=[64, 0, 0, 0, 0])

    is_constant = []
    for name in ("flattened", "indexed", "gathered"):
        for_twice = lab.count(arms[name], more_x, more_index).operators
        is_constant.append(for_twice == operators[name] and for_twice <= 6)
    lab.claim("vectorised", is_constant, equals=[True] * 3)

    leaf = x.clone().requires_grad_()
    made = []
    for arm in (by_loop, indexed):
        backward = lab.count(arm, leaf, index, backward=True).backward
        made.append(backward.born_bytes / leaf.nbytes)
    lab.claim("backward", [made[0] >= 64, made[1] <= 2], equals=[True, True])


def try_wrong_indices(lab, width):
    lab.stage("wrong indices")
    x = torch.randn(3, LENGTH, width)  # on the CPU: on a GPU an assertion would end the process
    large = torch.tensor([LENGTH, 0, 0])
    lab.claim("neighbour", torch.equal(flattened(x, large)[0], x[1, 0]))
    errors = []
    for arm in (by_loop, indexed):
        error = lab.raises(arm, x, large)
        errors.append(error.partition(":")[0])
    lab.claim("refused", errors, equals=["IndexError", "IndexError"])

    negative = torch.tensor([0, -1, 0])
    is_row_before = torch.equal(flattened(x, negative)[1], x[0, -1])
    is_own_row = torch.equal(indexed(x, negative)[1], x[1, -1])
    lab.claim("negative", [is_row_before, is_own_row], equals=[True, True])


def try_cuda(lab, width, device):
    """Call the form of the source on a CPU; a run on the CPU leaves a GPU of the machine alone."""
    x, index = draw(3, 1, width, "cpu")
    lacks = ""
    error = ""
    if device.type == "cpu" and torch.accelerator.is_available():
        lacks = "--device cuda"
    else:
        error = lab.raises(flattened_with_cuda, x, index)
    lab.text(error, title="the .cuda() of the source, on a CPU")
    lab.claim("cuda", error != "", lacks=lacks)


def run(
    lab: Lab,
    rows: int = 2048,  # matrices in the batch of the race, 1..10000 (quick 1024)
    picks: int = 1,  # rows of each matrix to pick, 1..64
    width: int = 4,  # numbers in a row, 1..1024
) -> None:
    device = lab.device()
    script = compile_script(lab)
    arms = {
        "loop": by_loop,
        "script": script,
        "flattened": flattened,
        "indexed": indexed,
        "gathered": gathered,
    }
    x, index = draw(rows, picks, width, device)

    @lab.once
    def exact():
        lab.axes("pick_ms", x="matrices", y="picking rows", log="xy")
        for size in lab.sweep([4, 16, 64, 256], "larger and larger batches"):
            part, part_index = draw(size, picks, width, device)
            for name, arm in arms.items():
                lab.log(size, arm=name, pick_ms=measure_pick_ms(arm, part, part_index))
        count_operators(lab, arms, picks, width, device)
        try_wrong_indices(lab, width)
        try_cuda(lab, width, device)

    lab.stage("timing")
    is_cpu = device.type == "cpu"
    needs_cpu = "" if is_cpu else "--device cpu"
    needs_gpu = "a CUDA device" if is_cpu else ""
    lab.claim_ratio("script-time", "loop/script", at_most=1.1, lacks=needs_cpu)
    lab.claim_ratio("script-loss", "script/loop", at_most=1.2, lacks=needs_cpu)
    lab.claim_ratio("gpu-script-time", "loop/script", at_least=1.1, lacks=needs_gpu)
    lab.claim_ratio("index-time", "loop/indexed", at_least=100)
    lab.claim_ratio("flat-time", "loop/flattened", at_least=100)
    lab.race(
        loop=lambda: by_loop(x, index),
        script=lambda: script(x, index),
        flattened=lambda: flattened(x, index),
        indexed=lambda: indexed(x, index),
        same=0.0,
        seconds=0.3,
    )
