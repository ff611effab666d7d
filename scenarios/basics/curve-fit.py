"""Repeat a fit with several seeds: one seed hides that Adam has not arrived yet.

A fit of w0 x² + w1 x + w2 to samples of 5 x² + 3 has a closed form. Here Adam fits the three
weights, as it would fit a net. After 1000 steps every run has found the curvature w0 and the slope
w1. The intercept w2 depends on the random start. The source prints 3.4504 from one run and calls
it relatively close. It is one draw from a range, and one run does not show the range.

The features differ in scale: x² reaches 100, and the constant is 1. So the loss is thousands of
times steeper along w0 than along w2. No step size of gradient descent suits both. Adam divides the
step of each weight by the size of its earlier gradients. At the start the gradients were hundreds,
and the memory of the source's Adam (beta2 = 0.999) is as long as the run. So Adam still divides by
these sizes when the intercept, which x² first carried away, has to come back.

A shorter memory, more steps or a better scale bring all seeds to 5, 0, 3. And a model that is
linear in its weights needs no steps: least squares solves it. On a GPU each step launches dozens
of kernels for a hundred numbers. Expect the run to be launch-bound, and slower than on a CPU.

In practice: scale the features before you fit, for example to -1..1. Judge a training by several
seeds and by its loss curve, not by one result. For a linear model call `torch.linalg.lstsq`.
## Predict
Five random starts, 1000 steps of Adam each, and the true intercept is 3. How far apart are the
smallest and the largest w2?
## Look for
- [curvature] every seed finds the curvature 5 to within 1 %
- [slope] every seed finds the slope 0 to within 0.01
- [source-slope] the slope 0.000409 of the source is between the slopes of the seeds
- [intercept-spread] the smallest and the largest intercept of the seeds differ by at least 1
- [source-intercept] the intercept 3.4504 of the source is between the intercepts of the seeds
- [memory] at the end Adam still divides the gradient of the constant by 10 or more
- [steepness] the loss is at least 4000 times steeper in its steepest direction than in its flattest
- [descent] torch.optim.SGD with the rate 0.1 of the source gives no finite weight within 100 steps
- [least-squares] least squares gives 5, 0 and 3 to 9 digits
- [warning] torch.tensor(torch.randn(3, 1), requires_grad=True) of the source gives a UserWarning
## Try next
`--steps 2000`: with twice the steps, all seeds come within 0.2 of 3. refutes: source-slope,
intercept-spread, source-intercept
`--beta2 0.99`: the same steepness and a shorter memory, so all seeds end at 3.
refutes: source-slope, intercept-spread, source-intercept, memory
`--span 1`: the same curve from -1 to 1. No gradient is large, and 1000 steps are enough.
refutes: source-slope, intercept-spread, source-intercept, memory, steepness, descent
## Source
EffectivePyTorch, chapter "PyTorch basics", https://github.com/vahidk/EffectivePyTorch: it prints
4.9924, 0.000409 and 3.4504. Its text says stochastic gradient descent, and its code is Adam. Ours:
five seeds, the memory, the scales, gradient descent and least squares.
"""

import torch

from tuilab import Lab

SOURCE_SLOPE = 0.000409
SOURCE_INTERCEPT = 3.4504


def features_of(x):  # (n,) -> (n, 3)
    return torch.stack([x * x, x, torch.ones_like(x)], 1)


def curve(x):
    return 5 * x * x + 3


class Fit:
    """The three weights, and the samples of one seed."""

    def __init__(self, seed, span, device):
        self.span = span
        self.device = device
        self.random = torch.Generator().manual_seed(seed)  # of the CPU: the same on every device
        start = torch.randn(3, generator=self.random)
        self.w = start.to(device).requires_grad_()

    def samples(self):  # (100,)
        x = self.span * (2 * torch.rand(100, generator=self.random) - 1)
        return x.to(self.device)

    def step(self, optimizer):
        """Make one step, and return the loss before it."""
        x = self.samples()
        loss = (features_of(x) @ self.w - curve(x)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()


def fit_by_adam(lab, seed, seeds, steps, span, beta2, device):
    """Return the weights, and by what Adam divides the gradient of the constant."""
    lab.stage(f"seed {seed}")
    fit = Fit(seed, span, device)
    optimizer = torch.optim.Adam([fit.w], lr=0.1, betas=(0.9, beta2))
    for step in range(steps):
        loss = fit.step(optimizer)
        curvature, slope, intercept = fit.w.detach().clone()
        lab.log(
            step,
            arm=f"seed {seed}",
            intercept=intercept,
            loss=loss,
            slope=slope,
            curvature=curvature,
        )
        lab.progress(seed * steps + step + 1, seeds * steps)
    mean_square = optimizer.state[fit.w]["exp_avg_sq"][2] / (1 - beta2**steps)
    return fit.w.tolist(), mean_square.sqrt().item()


def fit_by_descent(seed, span, device):
    """Return the weights after 100 steps of gradient descent with the rate of the source."""
    fit = Fit(seed, span, device)
    optimizer = torch.optim.SGD([fit.w], lr=0.1)
    for _ in range(100):
        fit.step(optimizer)
    return fit.w.detach()


def run(
    lab: Lab,
    steps: int = 1000,  # steps of Adam, 10..20000
    seeds: int = 5,  # random starts, each an arm, 2..12
    span: float = 10.0,  # x runs from -span to span, 0.1..100
    beta2: float = 0.999,  # how long Adam remembers: 1 / (1 - beta2) steps, 0.5..0.9999
) -> None:
    device = lab.device()
    lab.axes("intercept", x="step of Adam", y="w2, the intercept")
    lab.axes("slope", x="step of Adam", y="w1, the slope")
    lab.axes("curvature", x="step of Adam", y="w0, the curvature")
    lab.axes("loss", x="step of Adam", log="y")

    curvature_errors, slopes, intercepts, divisors = [], [], [], []
    for seed in range(seeds):
        weights, divisor = fit_by_adam(lab, seed, seeds, steps, span, beta2, device)
        curvature, slope, intercept = weights
        curvature_errors.append(abs(curvature - 5))
        slopes.append(slope)
        intercepts.append(intercept)
        divisors.append(divisor)
    lab.claim("curvature", 100 * max(curvature_errors) / 5, at_most=1, unit="%")
    lab.claim("slope", max(map(abs, slopes)), at_most=0.01)
    lab.claim("source-slope", SOURCE_SLOPE, between=(min(slopes), max(slopes)))
    spread = max(intercepts) - min(intercepts)
    lab.claim("intercept-spread", spread, at_least=1, answers=True)
    lab.claim("source-intercept", SOURCE_INTERCEPT, between=(min(intercepts), max(intercepts)))
    lab.claim("memory", divisors, at_least=10)

    lab.stage("gradient descent")
    finite_weights = 0
    for seed in range(seeds):
        finite_weights += fit_by_descent(seed, span, device).isfinite().sum().item()
    lab.claim("descent", finite_weights, equals=0)

    lab.stage("without steps")
    x = torch.linspace(-span, span, 1001, dtype=torch.float64)
    features = features_of(x)  # (1001, 3)
    steepness = torch.linalg.eigvalsh(features.T @ features)  # of the loss, ascending
    lab.claim("steepness", steepness[-1] / steepness[0], at_least=4000)
    solution = torch.linalg.lstsq(features, curve(x)[:, None]).solution
    lab.claim("least-squares", solution.flatten(), equals=[5, 0, 3], tolerance=1e-9)

    texts = lab.warns(lambda: torch.tensor(torch.randn(3, 1), requires_grad=True))
    kinds = [text.partition(":")[0] for text in texts]
    lab.claim("warning", kinds, equals=["UserWarning"])
