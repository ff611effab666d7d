"""Pad batches to one size where bits must match; else compare with a tolerance.

A seed, a temperature of 0 and deterministic algorithms do not fix the answer of a model. The same
row gives other numbers in a batch of another size. Three users see this. A server fills its batches
with the requests of other users. A test compares one sample with a batch. A trainer repeats in
large batches the forward that a generator ran in small batches. All three see differences that look
like a bug.

A matrix product adds up many numbers, and the rounding of a sum depends on the order. The library
chooses the kernel by the shapes. A vector, a few rows and many rows can have a kernel each, and a
GPU may split the sums if there are few rows. Every kernel is right and repeats its bits, but each
kernel adds in another order. `torch.use_deterministic_algorithms(True)` makes repeated calls with
one shape agree. It does not make two shapes agree.

The difference is in the last digits, and most nets keep it there. But if a net feeds its outputs
back, the difference can grow until `argmax` picks another token. The net of this lesson is designed
for that: its step is tanh(2 W h) with random weights. It shows the worst case and not the usual
case.

The table compares batches of several sizes with the batch of 64, and counts the numbers of a row
that differ. The size from which all numbers agree depends on the library and the processor, so no
claim names this size. The chart shows the difference step by step. A difference below 1e-8 is drawn
at 1e-8.

In practice: compare with `torch.testing.assert_close` and an `atol` that fits the size of your
sums, not with `torch.equal`. If bits must match, pad every batch to one fixed size, or use kernels
that are written to be batch-invariant.
## Predict
A net feeds its 512 outputs back 150 times. The outputs are between -1 and 1. A row runs alone and
in a batch of 64. How large is the largest difference between the outputs of the row at the end?
## Look for
- [differs] at least 100 of 512 outputs of F.linear differ between a row alone and the same row in
  a batch of 64
- [small] for 4096 inputs, the outputs of a row alone and in a batch of 64 differ by at most 1e-5 of
  the largest output
- [close] torch.testing.assert_close with its defaults raises an error for the outputs of a row
  alone and in a batch of 64
- [deterministic] with use_deterministic_algorithms, at least 100 of 512 outputs still differ
  between a row alone and a batch of 64
- [repeat] in 20 calls with the same batch of 64 rows no output of the first row differs
- [others] no output of a row differs if the other 63 rows of its batch are replaced
- [padded] no output of a row differs between a batch of 64 and the row padded with 63 rows of zeros
- [whole] if inputs and weights are whole numbers from -8 to 8, no output differs between a row
  alone and a batch of 64
- [chaos] after 150 steps of a net that feeds its outputs back, a row alone and in a batch of 64
  differ by 1 or more
- [token] if a net feeds its outputs back, argmax differs between a row alone and a batch of 64 in
  at least 30 of 150 steps
- [padded-steps] a row padded with 63 rows of zeros has the bits of the row in a batch of 64 in all
  150 steps
## Try next
`--pad`: the row alone is padded to 64 rows. All bits agree.
refutes: differs, close, deterministic, chaos, token
`--dtype float64`: the first difference is 1e-15 instead of 1e-6. The difference grows as well, but
needs twice as many steps. refutes: close, chaos, token
## Source
- PyTorch documentation, "Numerical accuracy", section "Batched computations or slice computations",
  https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html: the same bits are not
  promised.
- "matmul output depends on batch_size", https://github.com/pytorch/pytorch/issues/45422.
- https://github.com/thinking-machines-lab/batch_invariant_ops: kernels that are batch-invariant.
  Ours: the remedies and the net that feeds back.
"""

from typing import Literal

import torch
import torch.nn.functional as F

from tuilab import Lab

ROWS = 64
INPUTS = 4096  # of one product, so many numbers are added up
OUTPUTS = 512
STEPS = 150


def pad_to_batch(row):  # (1, n) to (64, n)
    padding = row.new_zeros(ROWS - 1, row.shape[1])
    return torch.cat([row, padding])


def count_differing(ours, theirs):
    return (ours != theirs).sum().item()


def show_batch_sizes(lab, x, weight):
    operators = {
        "linear": lambda x: F.linear(x, weight),
        "sum": lambda x: x.sum(-1, keepdim=True),
        "softmax": lambda x: x.softmax(-1),
        "layer_norm": lambda x: F.layer_norm(x, x.shape[1:]),
    }
    rows = []
    for size in (1, 2, 3, 4, 8, 16, 32):
        differing = []
        for operator in operators.values():
            differing.append(count_differing(operator(x[:size])[0], operator(x)[0]))
        rows.append((size, *differing))
    lab.table("numbers of a row that differ from a batch of 64", rows, head=("rows", *operators))


def claim_product(lab, x, weight, shape_row):
    """Compare the first row of a product in a batch with the same row alone."""
    lab.stage("one product")
    in_batch = F.linear(x, weight)[0]  # (outputs,)
    alone = F.linear(shape_row(x[:1]), weight)[0]
    lab.claim("differs", count_differing(alone, in_batch), at_least=100)
    largest = (alone - in_batch).abs().max() / in_batch.abs().max()
    lab.claim("small", largest, at_most=1e-5)
    error = lab.raises(torch.testing.assert_close, alone, in_batch)
    lab.claim("close", error.partition(":")[0], equals="AssertionError")

    torch.use_deterministic_algorithms(True, warn_only=True)
    differing = count_differing(F.linear(shape_row(x[:1]), weight)[0], F.linear(x, weight)[0])
    torch.use_deterministic_algorithms(False)
    lab.claim("deterministic", differing, at_least=100)


def claim_same_bits(lab, x, weight):
    in_batch = F.linear(x, weight)[0]
    repeated = 0
    for _ in range(20):
        repeated += count_differing(F.linear(x, weight)[0], in_batch)
    lab.claim("repeat", repeated, equals=0)
    others = torch.cat([x[:1], torch.randn_like(x[1:])])
    lab.claim("others", count_differing(F.linear(others, weight)[0], in_batch), equals=0)
    lab.claim(
        "padded", count_differing(F.linear(pad_to_batch(x[:1]), weight)[0], in_batch), equals=0
    )

    whole_x = torch.randint(-8, 9, x.shape).to(x)
    whole_weight = torch.randint(-8, 9, weight.shape).to(x)
    alone = F.linear(whole_x[:1], whole_weight)[0]
    in_batch = F.linear(whole_x, whole_weight)[0]
    lab.claim("whole", count_differing(alone, in_batch), equals=0)


def feed_back(lab, states, weight, shape_row):
    """Run the first row in the batch, alone and padded.

    Return the last difference of the row alone, how often its largest number is at another place,
    and how many numbers of the padded row differed in all steps.
    """
    lab.axes("difference", x="step", y="largest difference from the batch of 64", log="y")
    alone = shape_row(states[:1])
    padded = pad_to_batch(states[:1])
    difference = 0.0
    other_tokens = 0
    padded_differing = 0
    for step in lab.steps(STEPS, "feeding back"):
        states = F.linear(states, weight).tanh()
        alone = F.linear(alone, weight).tanh()
        padded = F.linear(padded, weight).tanh()
        difference = (alone[0] - states[0]).abs().max().item()
        padded_difference = (padded[0] - states[0]).abs().max().item()
        lab.log(step, arm="alone", difference=max(difference, 1e-8))
        lab.log(step, arm="padded", difference=max(padded_difference, 1e-8))
        if alone[0].argmax() != states[0].argmax():
            other_tokens += 1
        padded_differing += count_differing(padded[0], states[0])
    return difference, other_tokens, padded_differing


def keep(row):
    return row


def run(
    lab: Lab,
    pad: bool = False,  # pad the row alone to 64 rows
    dtype: Literal["float32", "float64"] = "float32",  # of all numbers
) -> None:
    device = lab.device()
    shape_row = pad_to_batch if pad else keep
    x = torch.randn(ROWS, INPUTS).to(device, getattr(torch, dtype))
    weight = torch.randn(OUTPUTS, INPUTS).to(x)
    square = (2 * torch.randn(OUTPUTS, OUTPUTS) / OUTPUTS**0.5).to(x)
    difference, other_tokens, padded_differing = feed_back(lab, x[:, :OUTPUTS], square, shape_row)
    show_batch_sizes(lab, x, weight)
    claim_product(lab, x, weight, shape_row)
    claim_same_bits(lab, x, weight)
    lab.claim("chaos", difference, at_least=1, answers=True)
    lab.claim("token", other_tokens, at_least=30)
    lab.claim("padded-steps", padded_differing, equals=0)
