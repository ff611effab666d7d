"""To fit a large batch, accumulate the gradients of the largest parts that fit.

If a batch is too large for the memory, divide it into micro-batches. `backward()` adds to the
`.grad` of each parameter, and keeps no gradient for an output. So several backward passes without
`zero_grad()` add up their gradients, and each pass frees its graph before the next one begins. The
peak of the memory is the peak of one micro-batch. A loop that forgets `zero_grad()` adds up
gradients by mistake: its third step uses the sum of three gradients.

Three details decide whether the sum is the gradient of the whole batch. A loss that is a mean must
be divided by the number of micro-batches. If the sizes differ, each mean must be weighted by its
number of rows. BatchNorm uses the mean and variance of the rows in a batch. So with smaller batches
it computes another function, and weights do not help.

The text of the source runs several forwards and then one backward. This gives the same gradient,
but all graphs are alive at the end, so almost no memory is saved. The code of the source has one
mistake, at the end of an epoch: gradients of the last batches stay in `.grad` without a step.

The source warns that fixed costs double. Each micro-batch has the fixed costs of a batch: the calls
of all operators, and the latency of the copy to the GPU. On a GPU these costs are hidden if the
matrix products of a micro-batch take long. The optimizer runs once for each step, so its cost does
not grow.

In practice: use the largest micro-batch that fits, and divide the loss. Call `optimizer.step()` for
the shorter group at the end of an epoch as well. If the loss is a mean over tokens, divide the sum
by the tokens of the whole batch. With small micro-batches, use LayerNorm or GroupNorm.
## Predict
16 micro-batches run forward, and then one backward follows. What share of the peak memory of the
whole batch does this need, from 0 to 1? Do not count the data and the weights.
## Look for
- [equal] the gradient of 16 micro-batches, with each loss divided by 16, is that of the whole batch
  to 1e-6
- [forgotten] without division by n, n micro-batches give n times the gradient bit for bit, for n =
  1, 2, 4, 8 and 16
- [batch-norm] with BatchNorm the gradient of 16 micro-batches differs from that of the whole batch
  by 10 % or more
- [uneven] if mean losses of 1000 and 24 rows get equal weights, the gradient differs from that of
  the whole batch by 30 % or more
- [weighed] if the mean losses of 1000 and of 24 rows are weighted by their rows, the gradient is
  that of the whole batch to 1e-6
- [peak] without the data and the weights, 16 micro-batches have at most an eighth of the peak of
  the whole batch
- [late] with one backward after 16 forwards, the peak is at least three quarters of the peak of
  the whole batch
- [late-equal] with one backward after 16 forwards, the gradient is that of the whole batch to 1e-6
- [third] after three equal batches without zero_grad(), .grad is three times the gradient of a
  batch, bit for bit
- [leaves] a weight has no grad_fn, and reading its .grad gives no warning; an output has a grad_fn,
  and reading its .grad gives a warning
- [steps] if only full groups of micro-batches make a step, 10 make 2 steps, and .grad still holds
  the gradient of the last 2
- [operators] n micro-batches call n times as many operators as the whole batch, for n = 1, 2, 4, 8
  and 16
- [work] n micro-batches need as many floating-point operations as the whole batch, for n = 1, 2, 4,
  8 and 16
- [small-time] 16 micro-batches of 4 rows take at least 3 times as long as a batch of 64 rows
- [large-time] on a CPU 2 micro-batches of 512 rows take at most 1.3 times as long as a batch of
  1024 rows, with 256 features
- [gpu-large-time] on a GPU 2 micro-batches of 8192 rows take at most 1.3 times as long as a batch
  of 16384 rows, with 2048 features
- [gpu-copy-time] copying 16 micro-batches of 16 KiB to a GPU takes at least 1.5 times as long
  as copying the batch of 256 KiB
## Try next
`--norm batch`: every net has BatchNorm, and weights by rows do not help. refutes: equal, weighed,
late-equal
`--norm layer`: LayerNorm uses one row alone, so all claims hold as without a norm.
`--every 5`: each of 2 steps has 5 batches, and no batch is left without a step. refutes: steps
## Source
- "28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 10,
  https://www.toymoban.com/news/detail-808122.html: the loop, the late backward, and fixed costs
  that double.
- "Training tricks" (in Chinese, after https://github.com/owenliang/torch-thins), section "Gradient
  accumulation".
- Ours: the distances, the bytes, the counts, the bounds of the times, and the end of an epoch.
"""

from functools import partial
from typing import Literal

import torch
from torch import nn

from tuilab import Lab

ROWS = 1024
WIDTH = 64
OUTPUTS = 8
NUMBERS = [1, 2, 4, 8, 16]  # of micro-batches
GPU_ROWS = 16384  # with this width, enough work for a GPU
GPU_WIDTH = 2048
NORMS = {"none": nn.Identity, "layer": nn.LayerNorm, "batch": nn.BatchNorm1d}


def build_net(norm, width, device):
    torch.manual_seed(0)
    layers = []
    for _ in range(2):
        layers += [nn.Linear(width, width), NORMS[norm](width), nn.GELU()]
    return nn.Sequential(*layers, nn.Linear(width, OUTPUTS)).to(device)


def make_batch(rows, width, device):
    x = torch.randn(rows, width, device=device)
    y = torch.randn(rows, OUTPUTS, device=device)
    return x, y


def divide(batch, number):
    """Return the micro-batches of a batch, and the share of each in the mean loss."""
    x, y = batch
    micro_batches = list(zip(x.chunk(number), y.chunk(number), strict=True))
    return micro_batches, number * [1 / number]


def weighed_loss(net, batch, share):
    x, y = batch
    return share * (net(x) - y).square().mean()


def accumulate(net, batches, shares):
    for batch, share in zip(batches, shares, strict=True):
        weighed_loss(net, batch, share).backward()  # frees the graph before the next forward


def backward_at_end(net, batches, shares):  # as in the text of the source
    total = 0.0
    for batch, share in zip(batches, shares, strict=True):
        total += weighed_loss(net, batch, share)
    total.backward()


def zero_and_accumulate(net, batches, shares):
    net.zero_grad()
    accumulate(net, batches, shares)


def gradient(net, batches, shares, add_up=accumulate):  # (all parameters,)
    net.zero_grad()
    add_up(net, batches, shares)
    return torch.cat([weight.grad.flatten() for weight in net.parameters()])


def distance(vector, expected):
    return ((vector - expected).norm() / expected.norm()).item()


def run_epoch(net, batches, every):
    """Run the loop of the source. Return how many steps it makes."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    steps = 0
    optimizer.zero_grad()
    for i, batch in enumerate(batches):
        accumulate(net, [batch], [1 / every])
        if (i + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
    return steps


def claim_gradients(lab, net, batch, device):
    x_label = "micro-batches"
    y_label = "distance from the gradient of the whole batch, relative"
    lab.axes("distance", x=x_label, y=y_label, log="xy")
    with_batch_norm = build_net("batch", WIDTH, device)
    expected = gradient(net, [batch], [1])
    expected_with_batch_norm = gradient(with_batch_norm, [batch], [1])

    are_multiples = []
    for number in lab.sweep(NUMBERS, "gradients of micro-batches"):
        batches, shares = divide(batch, number)
        divided = gradient(net, batches, shares)
        summed = gradient(net, batches, number * [1])
        late = gradient(net, batches, shares, backward_at_end)
        normalised = gradient(with_batch_norm, batches, shares)
        are_multiples.append(torch.equal(summed, number * divided))
        distances = {
            "divided": distance(divided, expected),
            "not divided": distance(summed, expected),
            "one backward": distance(late, expected),
            "BatchNorm": distance(normalised, expected_with_batch_norm),
        }
        for arm, value in distances.items():
            lab.log(number, arm=arm, distance=max(value, 1e-8))  # 0 has no logarithm
    lab.claim("equal", distances["divided"], at_most=1e-6)
    lab.claim("late-equal", distances["one backward"], at_most=1e-6)
    lab.claim("forgotten", are_multiples, equals=[True] * 5)
    lab.claim("batch-norm", distances["BatchNorm"], at_least=0.1)


def claim_costs(lab, net, batch):
    lab.axes("peak_bytes", x="micro-batches", y="peak", log="x")
    operators = []
    flops = []
    peaks = {"divided": [], "one backward": []}
    for number in lab.sweep(NUMBERS, "costs of micro-batches"):
        batches, shares = divide(batch, number)
        net.zero_grad()
        counted = lab.count(accumulate, net, batches, shares)
        net.zero_grad()
        late = lab.count(backward_at_end, net, batches, shares)
        operators.append(counted.operators)
        flops.append(counted.flops)
        peaks["divided"].append(counted.peak_bytes)
        peaks["one backward"].append(late.peak_bytes)
        for arm in peaks:
            lab.log(number, arm=arm, peak_bytes=peaks[arm][-1])
    whole_peak = peaks["divided"][0]
    lab.claim("peak", peaks["divided"][-1] / whole_peak, at_most=1 / 8)
    lab.claim("late", peaks["one backward"][-1] / whole_peak, at_least=3 / 4, answers=True)
    bars = dict(zip(map(str, NUMBERS), operators, strict=True))
    lab.bars("operators, by micro-batches", bars)
    lab.claim("operators", operators, equals=[number * operators[0] for number in NUMBERS])
    lab.claim("work", flops, equals=5 * [flops[0]])


def claim_uneven_batches(lab, net, batch):
    lab.stage("uneven batches")
    x, y = batch
    expected = gradient(net, [batch], [1])
    batches = [(x[:1000], y[:1000]), (x[1000:], y[1000:])]
    same_shares = gradient(net, batches, [1 / 2, 1 / 2])
    shares_by_rows = gradient(net, batches, [1000 / ROWS, 24 / ROWS])
    lab.claim("uneven", distance(same_shares, expected), at_least=0.3)
    lab.claim("weighed", distance(shares_by_rows, expected), at_most=1e-6)


def claim_loops(lab, net, batch, every):
    lab.stage("loops")
    expected = gradient(net, [batch], [1])
    three_times = gradient(net, [batch, batch, batch], [1, 1, 1])
    lab.claim("third", torch.equal(three_times, 3 * expected))

    weight = net[0].weight
    output = net(batch[0])
    warnings = []
    for tensor in (weight, output):
        warnings.append(len(lab.warns(getattr, tensor, "grad")))
    is_leaf = [weight.grad_fn is None, output.grad_fn is None]
    lab.claim("leaves", [*is_leaf, *warnings], equals=[True, False, 0, 1])

    batches, _ = divide(batch, 16)
    batches = batches[:10]
    steps = run_epoch(net, batches, every)
    left_over = weight.grad
    gradient(net, batches[8:], [1 / every, 1 / every])
    is_left_over = left_over is not None and torch.equal(left_over, weight.grad)
    lab.claim("steps", [steps, is_left_over], equals=[2, True])


def race_batches(lab, device):
    lab.stage("timing micro-batches")
    is_cpu = device.type == "cpu"
    needs_cpu = "" if is_cpu else "--device cpu"
    needs_gpu = "a CUDA device" if is_cpu else ""
    rows, width = 1024, 256
    if not is_cpu:
        rows, width = GPU_ROWS, GPU_WIDTH
    small_net = build_net("none", WIDTH, device)
    large_net = build_net("none", width, device)
    small_batch = make_batch(64, WIDTH, device)
    large_batch = make_batch(rows, width, device)

    def accumulating(net, batch, number):
        batches, shares = divide(batch, number)
        return partial(zero_and_accumulate, net, batches, shares)

    lab.claim_ratio("small-time", "small16/small1", at_least=3)
    lab.claim_ratio("large-time", "large2/large1", at_most=1.3, lacks=needs_cpu)
    lab.claim_ratio("gpu-large-time", "large2/large1", at_most=1.3, lacks=needs_gpu)
    lab.race(
        small1=accumulating(small_net, small_batch, 1),
        small16=accumulating(small_net, small_batch, 16),
        large1=accumulating(large_net, large_batch, 1),
        large2=accumulating(large_net, large_batch, 2),
        seconds=0.5,
    )


def race_copies(lab, device):
    lab.stage("timing copies")
    needs_gpu = "a CUDA device" if device.type == "cpu" else ""
    x = torch.randn(ROWS, WIDTH)  # 256 KiB on the CPU
    parts = x.chunk(16)

    def copy_parts():
        return [part.to(device) for part in parts]

    lab.claim_ratio("gpu-copy-time", "parts/whole", at_least=1.5, lacks=needs_gpu)
    lab.race(whole=lambda: x.to(device), parts=copy_parts, seconds=0.2, lacks=needs_gpu)


def run(
    lab: Lab,
    norm: Literal["none", "layer", "batch"] = "none",  # after the first Linears
    every: int = 4,  # batches for a step in the loop of the source, 1..10
) -> None:
    device = lab.device()

    @lab.once
    def exact():
        net = build_net(norm, WIDTH, device)
        batch = make_batch(ROWS, WIDTH, device)
        claim_gradients(lab, net, batch, device)
        claim_costs(lab, net, batch)
        claim_uneven_batches(lab, net, batch)
        claim_loops(lab, net, batch, every)

    race_batches(lab, device)
    race_copies(lab, device)
