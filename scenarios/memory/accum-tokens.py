"""Divide the loss by the real tokens of all micro-batches, not by their number.

Gradient accumulation should give the gradient of the whole batch. The usual recipe divides the loss
of each micro-batch by the number of micro-batches. This is right only if every loss is a mean over
the same number of terms. The loss of a language model is a mean over the real tokens. Padding and
prompts have the label -100, and `cross_entropy` leaves them out. So the number of terms differs
from micro-batch to micro-batch, even if all have the same shape.

The usual recipe computes a mean of means, and each micro-batch has the same weight in it. A token
of a short micro-batch then counts more than a token of a long micro-batch, and the net learns too
much from short texts. No error is raised, and the loss looks plausible. The trainers of Hugging
Face and others had this bug until October 2024. Weights by the number of rows do not help, because
rows differ in their tokens.

To get the right gradient, sum the losses of each micro-batch. Divide each sum by the number of real
tokens in all micro-batches of the step. You need this number before the first backward, so fetch
the labels of all micro-batches first. If a model returns only the mean, multiply the mean by the
micro-batch's share of all real tokens. If the model shifts the labels by one token, count the
labels after the shift.

Two more mistakes are common. The first is to take the mean of a micro-batch without a real token.
This mean is 0/0, so the loss is nan. The gradient from `cross_entropy` is still 0, but a masked
mean that you write yourself makes the gradient of the whole step nan. A sum of losses has no such
problem: the sum is 0. The second mistake is to count padding in the divisor. The gradient then has
the right direction, but it is too small. Adam's step hardly depends on the size of the gradient,
but clipping by norm does.

Ranks have the same problem as micro-batches, because DDP averages the gradients of the ranks. If
each rank divides by its own tokens, a token of a rank with short texts counts too much.

In practice: count `n = sum((y != -100).sum() for y in labels)` over the micro-batches of a step,
and call `(F.cross_entropy(logits, y, reduction="sum") / n).backward()` for each micro-batch. With
DDP, add up n over the ranks with `all_reduce`, and multiply each loss by the number of ranks.
## Predict
Four micro-batches have 64, 32, 8 and 4 real tokens, and a step averages their mean losses. How many
times as much does a token of the shortest micro-batch count as in the whole batch?
## Look for
- [means] for micro-batches of 64, 32, 8 and 4 real tokens, the mean of their mean losses has a
  gradient off by at least 100 %
- [tokens] sums of the losses, divided by the real tokens of all four micro-batches, give the
  gradient of the whole batch to 1e-5
- [rescaled] mean losses, each multiplied by its micro-batch's share of all real tokens, give the
  gradient of the whole batch to 1e-5
- [counts] if the mean losses are averaged, a token of the four micro-batches counts 27/64, 27/32,
  27/8 and 27/4 times as much as it should
- [equal] for four micro-batches of 64 real tokens each, the mean of their mean losses has the
  gradient of the whole batch to 1e-5
- [padded] if the sums of the losses are divided by all 256 tokens, padding included, the gradient
  is 108/256 of the right one
- [own-ranks] if two ranks each divide by their own number of real tokens, the mean of their
  gradients is off by at least 50 %
- [all-ranks] if two ranks divide by the real tokens of both ranks, and multiply by 2, the mean of
  their gradients is right to 1e-5
- [empty] a micro-batch without a real token has a mean loss of nan and a sum of 0
- [masked] without a real token, the mean of `cross_entropy` has a gradient of 0, and a gradient of
  nan comes from the masked mean `(losses * mask).sum() / mask.sum()`
- [trained] if a word is 75 of 108 tokens, but rarer in short texts, the sums learn its probability
  75/108, and the mean of means 0.5
## Try next
`--lengths equal`: all four micro-batches have 64 real tokens, so every token counts the same.
refutes: means, counts, padded, own-ranks, trained
`--divide all`: the sums are divided by all tokens, so padding shortens the gradient. The direction
is right, and the same probability is learned. refutes: tokens
## Source
- Hugging Face, "Fixing Gradient Accumulation", https://huggingface.co/blog/gradient_accumulation.
- Unsloth, "Bugs in LLM Training - Gradient Accumulation Fix", https://unsloth.ai/blog/gradient.
- "Fix Gradient Accumulation issue", https://github.com/huggingface/transformers/pull/34191. Ours:
  the distances, the micro-batch without a token, and the probabilities.
"""

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab

WORDS = 64
WIDTH = 32
TOKENS = 64  # of a micro-batch, with padding
IGNORED = -100  # the label that cross_entropy leaves out
STEPS = 100
RANKS = 2
LENGTHS = {"falling": [64, 32, 8, 4], "equal": [64, 64, 64, 64]}  # real tokens


def count_real(y):
    return (y != IGNORED).sum()


def mean_of_means(logits, y, labels):  # (64, words), (64,), (micro-batches, 64)
    return F.cross_entropy(logits, y) / len(labels)


def sum_over_real(logits, y, labels):
    return F.cross_entropy(logits, y, reduction="sum") / count_real(labels)


def sum_over_all(logits, y, labels):
    return F.cross_entropy(logits, y, reduction="sum") / labels.numel()


def rescaled_mean(logits, y, labels):
    share = count_real(y) / count_real(labels)
    return F.cross_entropy(logits, y) * share


def accumulate(net, words, labels, divided_loss):  # (micro-batches, 64) each
    """Return the gradient of the micro-batches of one step, as one vector."""
    net.zero_grad()
    for x, y in zip(words, labels, strict=True):
        divided_loss(net(x), y, labels).backward()
    return torch.cat([weight.grad.flatten() for weight in net.parameters()])


def mean_over_ranks(net, words, labels, divided_loss):
    """Return the mean of the gradients of the ranks, as DDP computes it."""
    gradients = []
    for x, y in zip(words.chunk(RANKS), labels.chunk(RANKS), strict=True):
        gradients.append(accumulate(net, x, y, divided_loss))
    return torch.stack(gradients).mean(0)


def gradient_of_batch(net, words, labels):
    """Return the gradient of all micro-batches at once."""
    loss = F.cross_entropy(net(words.flatten()), labels.flatten())
    gradients = torch.autograd.grad(loss, list(net.parameters()))
    return torch.cat([gradient.flatten() for gradient in gradients])


def distance(gradient, right):
    return ((gradient - right).norm() / right.norm()).item()


def build_net():
    embedding = nn.Embedding(WORDS, WIDTH)
    return nn.Sequential(embedding, nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WORDS))


class Frequencies(nn.Module):
    """Learns how often each of two words comes next, whatever the words before are."""

    def __init__(self):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(2))

    def forward(self, x):  # (64,), returns (64, 2)
        return self.logits.expand(len(x), 2)

    def probability_of_word(self):
        return self.logits.softmax(0)[1].item()


def add_padding(labels, lengths):
    """Return the labels with -100 behind the first tokens of each micro-batch."""
    padded = labels.clone()
    for row, length in zip(padded, lengths, strict=True):
        row[length:] = IGNORED
    return padded


def two_word_labels(lengths):
    """Return labels of 0 and 1; 1 is three of four words in long texts, else one of four."""
    labels = torch.zeros(4, TOKENS, dtype=torch.long)
    for row, length, share in zip(labels, lengths, [3 / 4, 3 / 4, 1 / 4, 1 / 4], strict=True):
        row[: int(length * share)] = 1
    return add_padding(labels, lengths)


def claim_gradients(lab, net, words, labels, summed):
    right = gradient_of_batch(net, words, labels)
    means = accumulate(net, words, labels, mean_of_means)
    lab.claim("means", distance(means, right), at_least=1)
    tokens = accumulate(net, words, labels, summed)
    lab.claim("tokens", distance(tokens, right), at_most=1e-5)
    rescaled = accumulate(net, words, labels, rescaled_mean)
    lab.claim("rescaled", distance(rescaled, right), at_most=1e-5)
    padded = accumulate(net, words, labels, sum_over_all)
    length = padded.norm() / right.norm()
    lab.claim("padded", length, equals=108 / 256, tolerance=1e-5)


def claim_ranks(lab, net, words, labels):
    """Give each rank two micro-batches, and compare the mean of their gradients."""
    right = gradient_of_batch(net, words, labels)
    tokens = count_real(labels)  # of all ranks

    def sum_over_all_ranks(logits, y, own_labels):
        return F.cross_entropy(logits, y, reduction="sum") * RANKS / tokens

    own = mean_over_ranks(net, words, labels, sum_over_real)
    lab.claim("own-ranks", distance(own, right), at_least=0.5)
    shared = mean_over_ranks(net, words, labels, sum_over_all_ranks)
    lab.claim("all-ranks", distance(shared, right), at_most=1e-5)


def claim_empty(lab, device):
    """Measure a micro-batch of which all tokens are padding."""
    logits = torch.randn(TOKENS, WORDS, device=device, requires_grad=True)
    y = torch.full((TOKENS,), IGNORED, device=device)
    mean = F.cross_entropy(logits, y)
    total = F.cross_entropy(logits, y, reduction="sum")
    lab.claim("empty", [mean.item(), total.item()], equals=[math.nan, 0.0])

    mask = y != IGNORED
    losses = F.cross_entropy(logits, y.clamp(min=0), reduction="none")
    masked_mean = (losses * mask).sum() / mask.sum()
    norms = []
    for loss in (mean, masked_mean):
        (gradient,) = torch.autograd.grad(loss, logits)
        norms.append(gradient.norm().item())
    lab.claim("masked", norms, equals=[0.0, math.nan])


def claim_token_weights(lab, labels):
    """Compare the gradients of the logits: each is the weight of a token times the same vector."""
    logits = torch.randn(4, TOKENS, WORDS, device=labels.device, requires_grad=True)
    batch_loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
    (right,) = torch.autograd.grad(batch_loss, logits)
    for row, y in zip(logits, labels, strict=True):
        mean_of_means(row, y, labels).backward()
    weights = (logits.grad.norm(dim=(1, 2)) / right.norm(dim=(1, 2))).tolist()
    bars = {}
    for number, weight in enumerate(weights, 1):
        bars[f"micro-batch {number}"] = weight
    lab.bars("weight of a token in the mean of the means", bars)
    expected = [27 / 64, 27 / 32, 27 / 8, 27 / 4]
    lab.claim("counts", weights, equals=expected, tolerance=1e-4, answers=weights[-1])


def train(lab, arm, words, labels, divided_loss):
    """Return the probability of word 1 that a net learns."""
    net = Frequencies().to(labels.device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
    for step in lab.steps(STEPS, arm):
        lab.log(step, arm=arm, probability=net.probability_of_word())
        accumulate(net, words, labels, divided_loss)
        optimizer.step()
    return net.probability_of_word()


def run(
    lab: Lab,
    lengths: Literal["falling", "equal"] = "falling",  # real tokens: 64, 32, 8, 4 or 64 in each
    divide: Literal["real", "all"] = "real",  # tokens that the sums are divided by
) -> None:
    device = lab.device()
    summed = {"real": sum_over_real, "all": sum_over_all}[divide]
    net = build_net().to(device)
    words = torch.randint(WORDS, (4, TOKENS)).to(device)
    next_words = torch.randint(WORDS, (4, TOKENS)).to(device)
    labels = add_padding(next_words, LENGTHS[lengths])

    lab.axes("probability", x="step", y="learned probability of the word")
    two_words = two_word_labels(LENGTHS[lengths]).to(device)
    with_sums = train(lab, "sums over tokens", words, two_words, summed)
    with_means = train(lab, "mean of the means", words, two_words, mean_of_means)
    lab.claim("trained", [with_sums, with_means], equals=[75 / 108, 0.5], tolerance=0.001)

    lab.stage("gradients")
    claim_gradients(lab, net, words, labels, summed)
    claim_token_weights(lab, labels)
    claim_ranks(lab, net, words, labels)
    claim_empty(lab, device)
    right = gradient_of_batch(net, words, next_words)
    means = accumulate(net, words, next_words, mean_of_means)
    lab.claim("equal", distance(means, right), at_most=1e-5)
