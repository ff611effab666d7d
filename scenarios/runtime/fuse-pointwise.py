"""Take the fused operator that the library has: torch.jit.script fuses nothing on a CPU, and torch.compile costs seconds first.

GELU written out, x * 0.5 * (1 + erf(x / sqrt(2))), is five operators. Each reads its input from memory and writes its result
there, and three results are kept for backward. Nothing of that is needed: a kernel that has a number of x in a register takes
all five steps, and backward can take them again from x. Such operators are bound by their bytes: fewer bytes are less time.

Who fuses? The library, for what has a name: `F.gelu`. The guide says `@torch.jit.script`, and means a GPU.
For a CPU TorchScript fuses only if torch was built with LLVM, which the wheels are not: the script calls the
same five operators. `torch.compile` writes one kernel for both, where there is a C++ compiler, once it has
compiled for some seconds. (The guide writes 1.41421 for the root: six digits.)

The other example of the guide is an RNN cell. nn.LSTMCell is not fused on a CPU; nn.LSTM is one operator for all steps.
## Predict
GELU is written out: x * 0.5 * (1 + erf(x / sqrt(2))). How many operators does its `torch.jit.script` call on a CPU?
## Look for
- [written-out] written out it calls 5 operators, and keeps 3 tensors of the size of x
- [library] F.gelu calls 1 operator, and keeps 1
- [script] on a CPU the script of what is written out still calls the 5 operators in its fourth call, and keeps 3
- [same] results and gradients of all three agree to 1e-12 in float64
- [constant] with 1.41421 for the root what is written out is off by up to 7.4e-7 in float64
- [cell] on a CPU nn.LSTMCell calls 10 operators or more
- [sequence] nn.LSTM calls as many operators for 16 steps as for 8
- [kernel] compiled, forward and backward are one kernel each
- [compiled] compiled, it keeps 1 tensor of the size of x
- [library-time] written out it takes at least twice as long as F.gelu
- [script-time] on a CPU written out takes at most 1.3 times as long as its script
## Try next
`--divisor 1.41421`: the root of the guide, now in GELU itself. refutes: same
`--compile`: torch.compile makes its kernels, in a directory of its own. After how many calls that has paid is shown.
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 6,
https://www.toymoban.com/news/detail-808122.html: fuse pointwise operations with `@torch.jit.script`, this GELU; RNN cells.
Ours: what is called and kept, the compiler of today and its price.
"""

import os
import tempfile
import time
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.benchmark import Timer

from tuilab import Lab


def written_out(x, root: float = 1.4142135623730951):
    return x * 0.5 * (1 + torch.erf(x / root))


def step(f, x):
    y = f(x)
    return torch.stack([y.detach(), *torch.autograd.grad(y.sum(), x)])


def call_ms(f, x):
    return 1e3 * Timer("f(x)", globals={"f": f, "x": x}).blocked_autorange(min_run_time=0.02).median


def compiled(lab, x):
    import torch._inductor.config as inductor
    from torch._inductor import metrics

    with tempfile.TemporaryDirectory() as own:
        os.environ["TORCHINDUCTOR_CACHE_DIR"], inductor.compile_threads = own, 1  # no process beside this one
        f, began = torch.compile(written_out), time.perf_counter()
        if why := lab.raises(step, f, x):
            return None, None, f"a torch.compile that works ({why[:200]}): apt install g++ python3-dev"
        seconds = time.perf_counter() - began
        y, plain, quick = f(x), call_ms(written_out, x), call_ms(f, x)  # y is held: older versions let go of what it saved
        kept = sum(tensor.nbytes for tensor in y.grad_fn.saved_tensors) / x.nbytes
    paid = f"{1e3 * seconds / (plain - quick):,.0f} calls" if plain > quick else "none"
    lab.text(f"first step: {seconds:.1f} s, paid after {paid}, each a forward of {x.numel():,} numbers", title="torch.compile")
    return metrics.generated_kernel_count, kept, ""


def run(
    lab: Lab,
    divisor: float = 1.4142135623730951,  # of x: the root of 2, 1..2
    compile: bool = False,  # torch.compile as well, which takes 5 to 60 seconds and a C++ compiler
) -> None:
    device = lab.device()
    on_gpu, made = device.type == "cuda", []
    lab.warns(lambda: made.append(torch.jit.script(written_out)))  # deprecated, and the subject
    plain, script = partial(written_out, root=divisor), partial(made[0], root=divisor)
    arms = {"written out": plain, "script": script, "F.gelu": F.gelu}

    @lab.once
    def exact():
        lab.stage("counting operators and bytes")
        x = torch.randn(4096, requires_grad=True)  # on the CPU
        _ = [script(x) for _ in range(3)]  # TorchScript looks on before it fuses
        counted = {name: lab.count(arm, x) for name, arm in arms.items()}
        found = [[one.operators - one.calls["aten.detach"], one.saved_bytes / x.nbytes] for one in counted.values()]
        lab.bars("bytes kept for backward", {name: one.saved_bytes for name, one in counted.items()}, unit="B")
        lab.claim("written-out", found[0], equals=[5, 3])
        lab.claim("script", found[1], equals=[5, 3], answers=found[1][0])
        lab.claim("library", found[2], equals=[1, 1])
        x = torch.linspace(-6, 6, 1001, dtype=torch.float64, requires_grad=True)
        lab.claim("same", max((step(arm, x) - step(F.gelu, x)).abs().max() for arm in arms.values()), at_most=1e-12)
        lab.claim("constant", (written_out(x, 1.41421) - F.gelu(x)).abs().max(), equals=7.4e-7, tolerance=1e-8)
        lab.claim("cell", lab.count(nn.LSTMCell(32, 32), x.float().view(-1, 1).expand(-1, 32)).operators, at_least=10)
        steps = [lab.count(nn.LSTM(32, 32), torch.randn(count, 8, 32)).operators for count in (8, 16)]
        lab.claim("sequence", steps[1], equals=steps[0], lacks="" if torch.backends.mkldnn.is_available() else "oneDNN")

        lab.axes("call_ms", x="numbers in x", y="forward", log="xy")
        for power in lab.sweep(range(10, 21, 2), "larger and larger x"):
            x = torch.randn(2**power, device=device)
            for name, arm in arms.items():
                lab.log(2**power, arm=name, call_ms=call_ms(arm, x))
        lab.stage("torch.compile")
        kernels, kept, lacks = compiled(lab, x.requires_grad_()) if compile else (None, None, "--compile")
        lab.claim("kernel", kernels, equals=2, lacks=lacks)
        lab.claim("compiled", kept, equals=1, lacks=lacks)

    lab.stage("timing the forward")
    x = torch.randn(2**26 if on_gpu else 2**20, device=device)
    lab.claim_ratio("library-time", "plain/library", at_least=2)
    lab.claim_ratio("script-time", "plain/script", at_most=1.3, lacks="--device cpu" if on_gpu else "")
    lab.race(plain=lambda: plain(x), script=lambda: script(x), library=lambda: F.gelu(x), same=1e-5, seconds=0.4)
