"""Pick one row of each matrix with one index, not with a loop: the loop also reads every index back.

`x[i][index[i]]` looks like one step and is four: select the matrix, select the index, read the index out of its tensor, because
Python needs a whole number to select by, and select the row. Nobody wrote the read down. On a CPU it is a call like the others;
on a GPU each one waits until all that was launched before is done, once for every row of the batch.

TorchScript runs the same loop without Python. It keeps the index in its tensor, so the reads are gone, and a
quarter of the operators with them. But each operator is dispatched as before, and that is most of what it
costs: the source gained 10 %, a CPU of today less. Two claims say that the two are close, one for each side.
`torch.jit.script` is deprecated by now; what it says is shown below.

`x[arange, index]` asks for all rows in one operator. The form of the source flattens x first and adds an offset to each index.
That is its bug: an index that is out of range for its own matrix is a good one for the flat table, and takes a row of a
neighbour in silence. The indexed form refuses it; on a GPU an assertion ends the process.
## Predict
A loop over a batch of 64 matrices collects `x[i][index[i]]` and stacks them. How many operators does it call?
## Look for
- [same] loop, script, flattened, indexed and gathered give bitwise the same rows
- [loop] the loop over 64 matrices calls 257 operators, four for each and one that stacks
- [script] TorchScript calls 193, three for each and one that stacks
- [vectorised] flattened, indexed and gathered call at most 6, and as many for 128 matrices as for 64
- [reads] the loop reads 64 indices out of their tensor, and no other form reads one
- [backward] in backward the loop makes at least 64 tensors of the size of all of x, indexed at most 2
- [neighbour] for an index that is too large the flattened form returns the first row of the next matrix
- [refused] on a CPU the loop and the indexed form raise an IndexError for the same index
- [negative] for the index -1 the flattened form returns the last row of the matrix before, the indexed one that of its own
- [script-time] the loop takes at most 1.5 times as long as its script
- [script-loss] and the script takes at most 1.2 times as long as the loop
- [index-time] the loop takes at least 100 times as long as the indexed form for a whole batch
## Try next
`--picks 8`: eight rows of each matrix. An index of eight numbers is no whole number, so Python reads none, and the loop calls
what the script calls. refutes: loop, reads
## Source
EffectivePyTorch, chapter "Optimizing runtime with TorchScript", https://github.com/vahidk/EffectivePyTorch: the script about
10 % faster, the flattened form about 100 times. Ours: what is called, read and kept, and the wrong indices.
"""

import torch
from torch.utils.benchmark import Timer

from tuilab import Lab

LENGTH, WIDTH = 64, 16


def by_loop(x, index):  # (rows, LENGTH, WIDTH), (rows,) or (rows, picks) -> (rows, WIDTH) or (rows, picks, WIDTH)
    picked = []
    for i in range(len(x)):
        picked.append(x[i][index[i]])
    return torch.stack(picked)


def flattened(x, index):  # as in the source
    first = torch.arange(len(x), device=x.device) * x.shape[1]
    return x.view(-1, x.shape[2])[first.view(-1, *[1] * (index.dim() - 1)) + index]


def indexed(x, index):
    rows = torch.arange(len(x), device=x.device)
    return x[rows if index.dim() == 1 else rows[:, None], index]


def gathered(x, index):
    where = index.view(len(x), -1, 1).expand(-1, -1, x.shape[2])  # (rows, picks, WIDTH)
    return x.gather(1, where).view(*index.shape, x.shape[2])


def make(rows, picks, device):
    shape = (rows,) if picks == 1 else (rows, picks)
    return torch.randn(rows, LENGTH, WIDTH, device=device), torch.randint(LENGTH, shape, device=device)


def run(
    lab: Lab,
    rows: int = 2048,  # matrices in the batch of the race, 1..10000 (quick 512)
    picks: int = 1,  # rows of each matrix to pick, 1..64
) -> None:
    device = lab.device()
    made = []
    warned = lab.warns(lambda: made.append(torch.jit.script(by_loop)))
    arms = {"loop": by_loop, "script": made[0], "flattened": flattened, "indexed": indexed, "gathered": gathered}
    x, index = make(rows, picks, device)

    @lab.once
    def exact():
        lab.text("\n".join(warned) or "nothing", title="what torch.jit.script says")
        lab.axes("pick_ms", x="matrices", y="picking rows", log="xy")
        for size in lab.sweep([4, 16, 64, 256], "larger and larger batches"):
            for name, arm in arms.items():
                timer = Timer("arm(*pair)", "arm(*pair); arm(*pair)", globals={"arm": arm, "pair": make(size, picks, device)})
                lab.log(size, arm=name, pick_ms=1e3 * timer.blocked_autorange(min_run_time=0.01).median)

        lab.stage("counting")
        pair = make(64, picks, device)
        counted = {name: lab.count(arm, *pair) for name, arm in arms.items()}
        twice = {name: lab.count(arm, *make(128, picks, device)) for name, arm in arms.items()}
        lab.bars("operators for 64 matrices", {name: one.operators for name, one in counted.items()})
        lab.claim("same", [torch.equal(one.value, counted["loop"].value) for one in counted.values()], equals=[True] * 5)
        lab.claim("loop", counted["loop"].operators, equals=257, answers=True)
        lab.claim("script", counted["script"].operators, equals=193)
        found = [twice[name].operators == counted[name].operators <= 6 for name in ("flattened", "indexed", "gathered")]
        lab.claim("vectorised", found, equals=[True] * 3)
        reads = [one.calls["aten._local_scalar_dense"] for one in counted.values()]
        lab.claim("reads", reads, equals=[64, 0, 0, 0, 0])
        leaf = pair[0].clone().requires_grad_()
        born = [lab.count(arm, leaf, pair[1], backward=True).backward.born_bytes / leaf.nbytes for arm in (by_loop, indexed)]
        lab.claim("backward", [born[0] >= 64, born[1] <= 2], equals=[True, True])

        lab.stage("wrong indices")
        few = torch.randn(3, LENGTH, WIDTH)  # on the CPU: a GPU would end the process
        large, negative = torch.tensor([LENGTH, 0, 0]), torch.tensor([0, -1, 0])
        lab.claim("neighbour", torch.equal(flattened(few, large)[0], few[1, 0]))
        refusals = [lab.raises(arm, few, large).split(":")[0] for arm in (by_loop, indexed)]
        lab.claim("refused", refusals, equals=["IndexError"] * 2)
        found = [torch.equal(flattened(few, negative)[1], few[0, -1]), torch.equal(indexed(few, negative)[1], few[1, -1])]
        lab.claim("negative", found, equals=[True, True])

    lab.stage("timing")
    lab.claim_ratio("script-time", "loop/script", at_most=1.5, lacks="" if device.type == "cpu" else "--device cpu")
    lab.claim_ratio("script-loss", "script/loop", at_most=1.2, lacks="" if device.type == "cpu" else "--device cpu")
    lab.claim_ratio("index-time", "loop/indexed", at_least=100)
    raced = {name: lambda arm=arms[name]: arm(x, index) for name in ("loop", "script", "indexed")}
    lab.race(**raced, same=0.0, seconds=0.3)
