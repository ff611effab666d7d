"""Adam finds the curvature at once and the constant last; one seed hides it.

Fit w0 x² + w1 x + w2 to samples of 5 x² + 3 with Adam, as if there were no closed form. After 1000 steps every run has w0 to
within 1 %, while w2 is anywhere between 2.8 and 5.2, depending on the random start. The source prints 3.4504 from a single run
and calls that close; it is one draw from this range.

The features differ in scale: x² reaches 100, the constant stays 1, so the loss is thousands of times steeper along w0 than
along w2. For gradient descent no step size would suit both; Adam has one for each weight, the gradient divided by what it
remembers of earlier ones. At the start they were hundreds, and the memory of the source's Adam (beta2 = 0.999) is as long as
the run: it still divides by them when the constant, first carried along by x², has to come back. With a shorter memory (0.99),
more time or a better scale (x from -1 to 1) all seeds end near 5, 0, 3. And for a model that is linear in its weights, least
squares needs no steps at all.

A step here is dozens of operators on a hundred numbers. A GPU can do each of them before the next one is launched: expect it to
be launch-bound, to find the same weights, and to take longer about it than a CPU. A problem this small is none for a GPU.
## Predict
Five random starts, 1000 steps of Adam each: how far apart are the smallest and the largest w2?
## Look for
- [curvature] every seed finds the curvature 5 to within 1 %
- [intercept-spread] the seeds disagree about the intercept by 1 or more
- [source-intercept] the source's intercept 3.4504 lies among those of the seeds
- [memory] at the end Adam still divides the gradient of the constant by 10 or more
- [steepness] the loss is 4000 times steeper in its steepest direction than in its flattest, or more
- [least-squares] least squares gives 5, 0 and 3 to 9 digits
- [warning] torch warns about the source's torch.tensor(torch.randn(...)), which copies a tensor through the constructor
## Try next
`--steps 2000`: patience; all seeds come within 0.2 of 3, so that 3.4504 is not among them.
refutes: intercept-spread, source-intercept
`--beta2 0.99`: the same steepness and a shorter memory; all seeds end at 3.
refutes: intercept-spread, source-intercept, memory
`--span 1`: the same curve seen from -1 to 1: no gradient is large, and 1000 steps are enough.
refutes: intercept-spread, source-intercept, memory, steepness
## Source
EffectivePyTorch, chapter "PyTorch basics", https://github.com/vahidk/EffectivePyTorch. Its text says stochastic gradient
descent, and its code is Adam. Ours: five seeds, the memory, the scales and least squares.
"""

import torch

from tuilab import Lab


def features(x):  # (n) -> (n, 3)
    return torch.stack([x * x, x, torch.ones_like(x)], 1)


def curve(x):
    return 5 * x * x + 3


def fit(seed, span, beta2, device):
    """Take one step of Adam after another and yield the weights (3), the loss and what Adam remembers."""
    random = torch.Generator().manual_seed(seed)  # on the CPU, so that every device sees the same numbers
    w = torch.randn(3, generator=random).to(device).requires_grad_()
    optimizer = torch.optim.Adam([w], lr=0.1, betas=(0.9, beta2))
    while True:
        x = span * (2 * torch.rand(100, generator=random) - 1).to(device)
        loss = (features(x) @ w - curve(x)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield w.detach().clone(), loss.detach(), optimizer.state[w]


def run(
    lab: Lab,
    steps: int = 1000,  # steps of Adam, 10..20000
    seeds: int = 5,  # random starts, each an arm, 2..12
    span: float = 10.0,  # x runs from -span to span, 0.1..100
    beta2: float = 0.999,  # how long Adam remembers: 1 / (1 - beta2) steps, 0.5..0.9999
) -> None:
    device = lab.device()

    for metric, y in (("intercept", "w2, the intercept"), ("slope", "w1, the slope"), ("curvature", "w0, the curvature")):
        lab.axes(metric, x="step of Adam", y=y)
    lab.axes("loss", x="step of Adam", log="y")
    found, divisors = [], []
    for seed in range(seeds):
        lab.stage(f"seed {seed}")
        states = fit(seed, span, beta2, device)
        for step in range(steps):
            w, loss, memory = next(states)
            lab.log(step, arm=f"seed {seed}", intercept=w[2], loss=loss, slope=w[1], curvature=w[0])
            lab.progress(seed * steps + step + 1, seeds * steps)
        found.append(w.tolist())
        divisors.append((memory["exp_avg_sq"][2] / (1 - beta2**steps)).sqrt().item())
    off = max(abs(w0 - 5) for w0, _, _ in found)
    intercepts = sorted(w2 for _, _, w2 in found)
    lab.claim("curvature", 100 * off / 5, at_most=1, unit="%")
    lab.claim("intercept-spread", intercepts[-1] - intercepts[0], at_least=1, answers=True)
    lab.claim("source-intercept", 3.4504, between=(intercepts[0], intercepts[-1]))

    lab.claim("memory", divisors, at_least=10)

    lab.stage("without steps")
    x = torch.linspace(-span, span, 1001, dtype=torch.float64)
    steepness = torch.linalg.eigvalsh(features(x).T @ features(x))  # of the loss, in ascending order
    lab.claim("steepness", steepness[-1] / steepness[0], at_least=4000)
    solution = torch.linalg.lstsq(features(x), curve(x)[:, None]).solution
    lab.claim("least-squares", solution.flatten(), equals=[5, 0, 3], tolerance=1e-9)
    warned = lab.warns(lambda: torch.tensor(torch.randn(3, 1), requires_grad=True))
    lab.claim("warning", [one.partition(":")[0] for one in warned], equals=["UserWarning"])
