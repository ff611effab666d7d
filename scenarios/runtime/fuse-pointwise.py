"""Use the fused operator of the library before you reach for a compiler.

GELU written out, x * 0.5 * (1 + erf(x / sqrt(2))), is a chain of pointwise operators. Each reads
its input from memory and writes its result there, and autograd keeps some results for backward. A
fused kernel loads a number of x into a register, takes all steps there, and writes one number.
Backward can take the steps again from x. The time of such operators is the time of their bytes, so
fewer bytes mean less time.

Three tools fuse. The library has fused operators for formulas with a name, such as `F.gelu`.
`torch.compile` writes one kernel for forward and one for backward, after some seconds. The guide
recommends `@torch.jit.script`. TorchScript watches its first calls and then compiles: for a GPU
always, for a CPU only if torch was built with LLVM. `torch._C._llvm_enabled()` shows whether your
torch was. The claims count the operators of a script on a CPU, and its launches on a GPU.

The guide also names RNN cells. `nn.LSTM` is one operator for all steps of a sequence. `nn.LSTMCell`
is one operator on a GPU, and many on a CPU. The guide writes 1.41421 for the root of 2, which is
short of the digits of float32. `torch.jit.script` is deprecated by now.

In practice: write `F.gelu(x)`, `F.layer_norm`, `F.cross_entropy` or `nn.LSTM` instead of the
formula. For a formula of your own, put `@torch.compile` on the function that holds all its steps.
Do not write new code with `torch.jit.script`.
## Predict
GELU is written out: x * 0.5 * (1 + erf(x / sqrt(2))). How many operators does its
`torch.jit.script` call on a CPU?
## Look for
- [written-out] GELU written out calls 5 operators, and keeps 3 tensors of the size of x for
  backward
- [library] F.gelu calls 1 operator, and keeps 1 tensor of the size of x
- [script] on a CPU the TorchScript of GELU still calls 5 operators in its fourth call, and keeps 3
  tensors
- [llvm] on a CPU the TorchScript calls fewer operators than the formula exactly if torch was built
  with LLVM
- [gpu-launches] on a GPU the written-out GELU launches 5 kernels, and the fourth call of its
  TorchScript launches 1
- [same] results and gradients of the formula, its TorchScript and F.gelu agree to 1e-12 in float64
- [constant] with 1.41421 for the root of 2 the written-out GELU is off by up to 7.4e-7
- [cell] on a CPU nn.LSTMCell calls at least 10 operators for one step
- [sequence] nn.LSTM calls as many operators for 16 steps as for 8
- [kernel] torch.compile makes 2 kernels of GELU, one for forward and one for backward
- [compiled] the compiled GELU keeps 1 tensor of the size of x
- [library-time] the written-out GELU takes at least twice as long as F.gelu
- [script-time] on a CPU the written-out GELU takes at most 1.3 times as long as its TorchScript
- [gpu-script-time] on a GPU the written-out GELU takes at least twice as long as its TorchScript
## Try next
`--divisor 1.41421`: the root of the guide, in two of the three forms. refutes: same
`--compile`: torch.compile makes its kernels in a directory of its own. The result shows after how
many calls the compilation has paid.
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 6,
https://www.toymoban.com/news/detail-808122.html: fuse pointwise operations with
`@torch.jit.script`, this GELU, and RNN cells. Ours: the counts, the CPU, and the compiler of today
with its price.
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

ROOT_OF_2 = 1.4142135623730951
GPU_NUMBERS = 2**26  # 256 MiB: larger than the caches of a GPU


def written_out(x, root: float = ROOT_OF_2):  # TorchScript needs the type
    return x * 0.5 * (1 + torch.erf(x / root))


def compile_script(lab, function):
    """Return the TorchScript of a function, without the warning that TorchScript is deprecated."""
    scripts = []

    def compile_it():
        scripts.append(torch.jit.script(function))

    lab.warns(compile_it)
    return scripts[0]


def call_three_times(function, x):
    """Call a script until it is compiled: it watches its first calls."""
    for _ in range(3):
        function(x)


def output_and_gradient(function, x):  # (numbers,) -> (2, numbers)
    y = function(x)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    return torch.stack([y.detach(), gradient])


def measure_call_ms(function, x):
    timer = Timer("function(x)", globals={"function": function, "x": x})
    return 1e3 * timer.blocked_autorange(min_run_time=0.02).median


def count_launches(function, x):
    """Return how many kernels a call launches on a GPU."""
    with torch.profiler.profile() as profile:
        function(x)
        torch.accelerator.synchronize()
    return sum(event.count for event in profile.key_averages() if "Launch" in event.key)


def count_on_cpu(lab, arms):
    """Count operators and bytes of each arm for a tensor on the CPU."""
    lab.stage("counting operators and bytes")
    x = torch.randn(4096, requires_grad=True)
    call_three_times(arms["script"], x)
    costs = {}
    kept_bytes = {}
    for name, arm in arms.items():
        counted = lab.count(arm, x)
        detached = counted.calls["aten.detach"]  # by a script, of the tensors that it keeps
        operators = counted.operators - detached
        costs[name] = [operators, counted.saved_bytes / x.nbytes]
        kept_bytes[name] = counted.saved_bytes
    lab.bars("bytes kept for backward", kept_bytes, unit="B")
    lab.claim("written-out", costs["written out"], equals=[5, 3])
    lab.claim("library", costs["F.gelu"], equals=[1, 1])

    # No public function shows whether torch was built with LLVM.
    has_llvm = torch._C._llvm_enabled()  # noqa: SLF001
    operators = costs["script"][0]
    lacks = ""
    if has_llvm:
        lacks = "a torch without LLVM"
    lab.claim("script", costs["script"], equals=[5, 3], answers=operators, lacks=lacks)
    is_fused = operators < costs["written out"][0]
    lab.claim("llvm", is_fused == has_llvm)


def compare_numbers(lab, arms):
    x = torch.linspace(-6, 6, 1001, dtype=torch.float64, requires_grad=True)
    expected = output_and_gradient(F.gelu, x)
    differences = []
    for arm in arms.values():
        difference = output_and_gradient(arm, x) - expected
        differences.append(difference.abs().max())
    lab.claim("same", max(differences), at_most=1e-12)
    short = written_out(x, 1.41421)
    lab.claim("constant", (short - F.gelu(x)).abs().max(), equals=7.4e-7, tolerance=1e-8)


def count_recurrent(lab):
    cell = nn.LSTMCell(32, 32)
    lab.claim("cell", lab.count(cell, torch.randn(8, 32)).operators, at_least=10)
    net = nn.LSTM(32, 32)
    short = lab.count(net, torch.randn(8, 8, 32))  # (steps, batch, features)
    long = lab.count(net, torch.randn(16, 8, 32))
    lacks = ""
    if not torch.backends.mkldnn.is_available():
        lacks = "oneDNN"
    lab.claim("sequence", long.operators, equals=short.operators, lacks=lacks)


def claim_launches(lab, arms, device):
    """Claim what the formula and its script launch, if there is a GPU."""
    if device.type != "cuda":
        lab.claim("gpu-launches", lacks="a CUDA device")
        return
    x = torch.randn(4096, device=device)
    call_three_times(arms["script"], x)
    formula = count_launches(arms["written out"], x)
    script = count_launches(arms["script"], x)
    lacks = ""
    if formula == 0:
        lacks = "a profiler that sees launches"
    lab.claim("gpu-launches", [formula, script], equals=[5, 1], lacks=lacks)


def compile_gelu(lab, x):
    """Return the kernels of torch.compile, the share of x that it keeps, and what is missing."""
    import torch._inductor.config as inductor
    from torch._inductor import metrics

    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        inductor.compile_threads = 1  # no further process
        compiled = torch.compile(written_out)
        began = time.perf_counter()
        error = lab.raises(output_and_gradient, compiled, x)
        seconds = time.perf_counter() - began
        if error:
            reason = f"a torch.compile that works ({error[:200]}): apt install g++ python3-dev"
            return None, None, reason
        y = compiled(x)
        kept_bytes = sum(tensor.nbytes for tensor in y.grad_fn.saved_tensors)
        saved_ms = measure_call_ms(written_out, x) - measure_call_ms(compiled, x)
    show_price(lab, seconds, saved_ms, x.numel())
    return metrics.generated_kernel_count, kept_bytes / x.nbytes, ""


def show_price(lab, seconds, saved_ms, numbers):
    paid_after = "never"
    if saved_ms > 0:
        paid_after = f"after {1e3 * seconds / saved_ms:,.0f} calls"
    text = f"first step: {seconds:.1f} s, paid {paid_after}, each a forward of {numbers:,} numbers"
    lab.text(text, title="torch.compile")


def run(
    lab: Lab,
    divisor: float = 1.4142135623730951,  # of x: the root of 2, 1..2
    compile: bool = False,  # torch.compile as well: 5 to 60 seconds, and a C++ compiler
) -> None:
    device = lab.device()
    is_gpu = device.type == "cuda"
    plain = partial(written_out, root=divisor)
    script = partial(compile_script(lab, written_out), root=divisor)
    arms = {"written out": plain, "script": script, "F.gelu": F.gelu}

    @lab.once
    def exact():
        count_on_cpu(lab, arms)
        compare_numbers(lab, arms)
        count_recurrent(lab)
        claim_launches(lab, arms, device)

        lab.axes("call_ms", x="numbers in x", y="forward", log="xy")
        for power in lab.sweep(range(10, 21, 2), "larger and larger x"):
            x = torch.randn(2**power, device=device)
            for name, arm in arms.items():
                lab.log(2**power, arm=name, call_ms=measure_call_ms(arm, x))

        lab.stage("torch.compile")
        kernels = None
        kept = None
        lacks = "--compile"
        if compile:
            kernels, kept, lacks = compile_gelu(lab, x.requires_grad_())
        lab.claim("kernel", kernels, equals=2, lacks=lacks)
        lab.claim("compiled", kept, equals=1, lacks=lacks)

    lab.stage("timing the forward")
    numbers = 2**20
    if is_gpu:
        numbers = GPU_NUMBERS
    x = torch.randn(numbers, device=device)
    call_three_times(script, x)
    lab.claim_ratio("library-time", "plain/library", at_least=2)
    needs_cpu = "--device cpu" if is_gpu else ""
    needs_gpu = "" if is_gpu else "a CUDA device"
    lab.claim_ratio("script-time", "plain/script", at_most=1.3, lacks=needs_cpu)
    lab.claim_ratio("gpu-script-time", "plain/script", at_least=2, lacks=needs_gpu)
    lab.race(
        plain=lambda: plain(x),
        script=lambda: script(x),
        library=lambda: F.gelu(x),
        same=1e-5,
        seconds=0.4,
    )
