"""Pass options to F.linear_cross_entropy: without them it keeps all logits.

A language model ends in a linear layer with one output for each word. Its logits have tokens times
words numbers, and are often the largest tensor of the step. For 8192 tokens and 131,072 words they
take 4 GiB in float32. `cross_entropy` keeps their log probabilities for backward. The backward then
makes the gradient of the log probabilities and the gradient of the logits. So three such tensors
are alive at the peak, and a fourth if your code still holds the logits.

The loss of a token does not depend on the other tokens. So the logits can be made in chunks of
tokens. torch 2.13 has `F.linear_cross_entropy(hidden, weight, y, options=...)` for this. For each
chunk it computes the loss, and at once the gradients of the hidden states and the weight. Then it
drops the logits of the chunk. So the forward does the work of the backward, and holds both
gradients until the backward uses them. Tools that count saved tensors show 0 bytes, because
autograd did not save these gradients. You can call backward only once on such a loss, unless you
set the option `allow_retain_graph=True`.

If `options` is missing, the function is an ordinary linear layer and an ordinary loss. No warning
is shown. In torch 2.13 the function also ignores its options if you use `label_smoothing` or
probabilities as targets, but then it warns. With `torch.compile` this function runs uncompiled, and
torch sets `allow_retain_graph=True` with a warning.

Chunks do not shrink the gradient of the weight, and the backward of torch 2.13 needs room for two
tensors of its size. So in float32 the peak gets smaller by a factor of about 1.5 x tokens / width
of the hidden states. If the batch has fewer tokens than this width, little or nothing is gained.

Very small chunks have two more costs. In bfloat16, torch 2.13 adds up the losses of the chunks in
bfloat16, so a sum of many chunks is too low. The gradients do not use this sum. And in float32 on a
CPU, each chunk reads and writes the whole gradient of the weight. `batch_chunk_size` sets the
tokens of a chunk.

An older torch has no such function, and its claims are then NOT TESTABLE HERE. A loop by hand works
in every version: `checkpoint` drops the logits of each chunk, and computes them again in the
backward. This costs one more matrix product for every three.

In practice: with torch 2.13, call `F.linear_cross_entropy(hidden.flatten(0, 1), head.weight,
y.flatten(), options=nn.LinearCrossEntropyOptions(batch_chunk_size=256))`. Compare its loss and its
peak with those of `F.cross_entropy` once. With an older torch, sum the losses of chunks, each in a
`checkpoint(..., use_reentrant=False)`.
## Predict
A batch has 512 tokens of width 64, and the head has 8192 words, in float32. How many times smaller
do chunks make the peak of forward and backward?
## Look for
- [logits] linear and cross_entropy keep one tensor of the size of the logits for backward, and need
  room for three at the peak
- [no-options] without options, linear_cross_entropy keeps as many bytes for backward as linear and
  cross_entropy, and has the same peak
- [options] after the forward of linear_cross_entropy with options, only the gradients of the hidden
  states and the weight are alive
- [hidden-cost] with options, the hooks for saved tensors see 0 bytes of linear_cross_entropy
- [peak] for 512 tokens of width 64, linear_cross_entropy with options has a peak at least 8 times
  smaller than linear and cross_entropy
- [same] linear_cross_entropy with options has the loss and both gradients of linear and
  cross_entropy to 1e-5
- [smoothing] with label_smoothing, linear_cross_entropy ignores its options with a UserWarning, and
  has the peak of linear and cross_entropy
- [second] a second backward of linear_cross_entropy with options raises a RuntimeError; with
  allow_retain_graph it gives the same gradient
- [bf16-loss] in bfloat16, chunks of 4 tokens give a loss off by at least 2 %, chunks of 256 tokens
  by at most 0.5 %
- [by-hand] a loop of 16 checkpoints gives the loss and the gradients of linear and cross_entropy to
  1e-5
- [by-hand-peak] a loop of 16 checkpoints has a peak at least 5 times smaller than linear and
  cross_entropy
- [by-hand-work] a loop of 16 checkpoints takes 4/3 of the floating-point operations of linear and
  cross_entropy
- [chunk-time] on a CPU in float32, linear_cross_entropy takes at least 1.2 times as long with the
  chunks that torch chooses as with chunks of 256 tokens
- [time] on a CPU in float32, linear_cross_entropy with chunks of 256 tokens takes at most 1.5 times
  as long as linear and cross_entropy
## Try next
`--tokens 64`: the batch has as many tokens as the width of the hidden states. Now the gradient of
the weight is as large as the logits, so chunks save little. refutes: peak, by-hand-peak
`--no-chunked`: the options are left out, so the peak does not get smaller. refutes: options,
hidden-cost, peak, second
## Source
- PyTorch documentation, `torch.nn.functional.linear_cross_entropy`,
  https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.linear_cross_entropy.html.
- "Fused Linear and Cross-Entropy Loss", https://github.com/pytorch/pytorch/issues/124480.
- E. Wijmans and others, "Cut Your Losses in Large-Vocabulary Language Models",
  https://arxiv.org/abs/2411.09009: how much memory logits take. Ours: the bytes and the times.
"""

import warnings

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from tuilab import Lab

WIDTH = 64
WORDS = 8192
HAS_FUNCTION = hasattr(nn, "LinearCrossEntropyOptions")
OF_FUNCTION = ["no-options", "options", "hidden-cost", "peak"]
OF_FUNCTION += ["same", "smoothing", "second", "bf16-loss"]
LACKS = "" if HAS_FUNCTION else "F.linear_cross_entropy with options, as in torch 2.13"


class Head:
    """The hidden states, the weight of the head, and the labels; each method returns the loss."""

    def __init__(self, tokens, device, words=WORDS):
        self.hidden = torch.randn(tokens, WIDTH, device=device, requires_grad=True)
        weight = torch.randn(words, WIDTH, device=device) / WIDTH**0.5
        self.weight = weight.requires_grad_()
        self.y = torch.randint(words, (tokens,), device=device)

    def plain(self):
        logits = F.linear(self.hidden, self.weight)  # (tokens, words)
        return F.cross_entropy(logits, self.y)

    def plain_smoothed(self):
        logits = F.linear(self.hidden, self.weight)
        return F.cross_entropy(logits, self.y, label_smoothing=0.1)

    def without_options(self):
        return F.linear_cross_entropy(self.hidden, self.weight, self.y)

    def with_options(self, **options):
        chunking = nn.LinearCrossEntropyOptions(**options)
        return F.linear_cross_entropy(self.hidden, self.weight, self.y, options=chunking)

    def with_options_smoothed(self):
        chunking = nn.LinearCrossEntropyOptions()
        return F.linear_cross_entropy(
            self.hidden, self.weight, self.y, label_smoothing=0.1, options=chunking
        )

    def by_hand(self):
        """Return the loss from 16 chunks, without the function of torch 2.13."""
        total = 0.0
        for hidden, y in zip(self.hidden.chunk(16), self.y.chunk(16), strict=True):
            total = total + checkpoint(self.sum_of_chunk, hidden, y, use_reentrant=False)
        return total / len(self.y)

    def sum_of_chunk(self, hidden, y):
        logits = F.linear(hidden, self.weight)  # (tokens / 16, words)
        return F.cross_entropy(logits, y, reduction="sum")

    def gradients(self, loss):
        return torch.autograd.grad(loss, [self.hidden, self.weight])


def distance(tensor, right):
    return ((tensor - right).norm() / right.norm()).item()


def is_same(head, form):
    """Return True if the loss and both gradients are those of the plain loss to 1e-5."""
    right = head.plain()
    loss = form()
    distances = [distance(loss, right)]
    for gradient, expected in zip(head.gradients(loss), head.gradients(right), strict=True):
        distances.append(distance(gradient, expected))
    return max(distances) <= 1e-5


def count_step(lab, form):
    """Return what a forward costs, and the peak of forward and backward in bytes."""
    counted = lab.count(form, backward=True)
    return counted, max(counted.peak_bytes, counted.backward.peak_bytes)


def log_peaks(lab, tokens, device, chunked):
    lab.axes("peak_bytes", x="tokens", y="peak of forward and backward")
    for size in lab.sweep([tokens // 8, tokens // 4, tokens // 2, tokens], "numbers of tokens"):
        head = Head(size, device)
        arms = {"linear and cross_entropy": head.plain, "by hand": head.by_hand}
        if HAS_FUNCTION:
            arms["linear_cross_entropy"] = head.without_options
        if HAS_FUNCTION and chunked:
            arms["with options"] = head.with_options
        for arm, form in arms.items():
            _, peak = count_step(lab, form)
            lab.log(size, arm=arm, peak_bytes=peak)


def claim_by_hand(lab, head):
    plain, plain_peak = count_step(lab, head.plain)
    logits_bytes = len(head.y) * WORDS * 4
    tensors = [plain.live_bytes // logits_bytes, plain_peak // logits_bytes]
    lab.claim("logits", tensors, equals=[1, 3])
    by_hand, by_hand_peak = count_step(lab, head.by_hand)
    lab.claim("by-hand", is_same(head, head.by_hand))
    lab.claim("by-hand-peak", plain_peak / by_hand_peak, at_least=5)
    plain_work = plain.flops + plain.backward.flops
    by_hand_work = by_hand.flops + by_hand.backward.flops
    lab.claim("by-hand-work", by_hand_work / plain_work, equals=4 / 3, tolerance=1e-9)


def claim_function(lab, head, chunked):
    """Claim what linear_cross_entropy keeps; torch 2.13 has it."""
    plain, plain_peak = count_step(lab, head.plain)
    without, without_peak = count_step(lab, head.without_options)
    has_same_bytes = without.saved_bytes == plain.saved_bytes
    has_same_peak = without_peak == plain_peak
    lab.claim("no-options", [has_same_bytes, has_same_peak], equals=[True, True])

    form = head.with_options if chunked else head.without_options
    counted, peak = count_step(lab, form)
    gradient_bytes = head.hidden.nbytes + head.weight.nbytes
    rounding = 2048  # the loss is alive as well, and sizes are rounded up
    live_bytes = counted.live_bytes
    lab.claim("options", live_bytes, equals=gradient_bytes, tolerance=rounding, unit="B")
    lab.claim("hidden-cost", counted.saved_bytes, equals=0, unit="B")
    lab.claim("peak", plain_peak / peak, at_least=8, answers=True)
    lab.claim("same", is_same(head, form))


def claim_limits(lab, head, chunked):
    kinds = {text.partition(":")[0] for text in lab.warns(head.with_options_smoothed)}
    _, plain_peak = count_step(lab, head.plain_smoothed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # counted above
        _, peak = count_step(lab, head.with_options_smoothed)
    lab.claim("smoothing", ["UserWarning" in kinds, peak == plain_peak], equals=[True, True])

    loss = head.with_options() if chunked else head.without_options()
    torch.autograd.grad(loss, head.weight, retain_graph=True)
    error = lab.raises(torch.autograd.grad, loss, head.weight)
    kept = head.with_options(allow_retain_graph=True)
    (first,) = torch.autograd.grad(kept, head.weight, retain_graph=True)
    (second,) = torch.autograd.grad(kept, head.weight)
    is_repeated = torch.equal(first, second)
    lab.claim("second", [error.partition(":")[0], is_repeated], equals=["RuntimeError", True])


@torch.no_grad()
def claim_bfloat16(lab, device):
    head = Head(512, device)
    right = head.plain()
    head.hidden = head.hidden.bfloat16()
    head.weight = head.weight.bfloat16()
    errors = []
    for size in (4, 256):
        loss = head.with_options(batch_chunk_size=size)
        errors.append(distance(loss.float(), right))
    lab.claim("bf16-loss", [errors[0] >= 0.02, errors[1] <= 0.005], equals=[True, True])


def race(lab, device):
    head = Head(512, device, words=4096)  # smaller, as a race calls each arm many times
    lacks = LACKS
    if device.type != "cpu":
        lacks = "--device cpu"
    lab.claim_ratio("chunk-time", "chosen/rows_256", at_least=1.2, lacks=lacks)
    lab.claim_ratio("time", "rows_256/plain", at_most=1.5, lacks=lacks)
    lab.race(
        plain=lambda: head.gradients(head.plain()),
        chosen=lambda: head.gradients(head.with_options()),
        rows_256=lambda: head.gradients(head.with_options(batch_chunk_size=256)),
        seconds=0.3,
        lacks=lacks,
    )


def run(
    lab: Lab,
    tokens: int = 512,  # in the batch, 64..8192
    chunked: bool = True,  # pass options
) -> None:
    device = lab.device()
    head = Head(tokens, device)

    @lab.once
    def exact():
        log_peaks(lab, tokens, device, chunked)
        lab.stage("counting")
        claim_by_hand(lab, head)
        if HAS_FUNCTION:
            claim_function(lab, head, chunked)
            claim_limits(lab, head, chunked)
            claim_bfloat16(lab, device)
            return
        for key in OF_FUNCTION:
            lab.claim(key, lacks=LACKS)

    lab.stage("timing")
    race(lab, device)
