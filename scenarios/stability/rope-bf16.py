"""Compute rotary positions in float32, and cast only their cosines and sines.

A rotary embedding (RoPE) turns each pair of numbers in a query or a key by an angle. The angle is
the position of the token times the frequency of the pair. In the score of a query and a key only
the difference of two angles is left. So the score depends on the distance of two tokens, and not
on their place. Models train in bfloat16, and it is tempting to compute the angles in it as well.

A number in bfloat16 has 8 significant bits. From 256 on not every whole number exists, and between
2048 and 4096 only each 16th does. Tokens that are rounded to the same number have the same angles,
and the model cannot see their order. Other neighbours are turned as if they were 16 apart. The
frequencies are rounded as well, by up to 0.2 %, and an angle of 4000 radians is then wrong by
several radians. A cosine is never larger than 1, so it can be cast at the end. The error of this
cast is at most 2^-9 and does not grow with the position.

The rounding is rarely in your own code. `model.bfloat16()` also casts a buffer of frequencies, and
a later `.float()` does not bring the lost bits back. With such frequencies and float32 positions
the scores still depend on the distance alone. But a model that was trained in float32 knows other
frequencies. `torch.autocast` casts both operands of `@` and leaves `torch.outer` in float32, so
the same formula is right or wrong depending on how it is written.

The queries and keys of this lesson are 128 ones, so the score of a token with itself is 128. The
charts show the score of two tokens with a fixed distance, place by place.

In practice: keep positions as integers, and frequencies in float32 and out of the reach of
`model.bfloat16()`. Multiply them under `torch.autocast("cuda", enabled=False)`. Take the cosine
and the sine in float32, and cast these two to the dtype of the queries.
## Predict
Rotary angles are computed in bfloat16 for 4096 positions. How many different rows of angles are
there?
## Look for
- [rows] in the table of angles of 4096 positions 769 rows are different in bfloat16, and 3073 in
  float16
- [neighbours] in bfloat16 the token at position 3000 and the next one have the score of a token
  with itself, 128
- [drift] in bfloat16 the score of two tokens 64 apart is between 48.96 and 78.52, depending on
  their place
- [float32] in float32 the score of neighbours is 124.19 at all places, to 0.01
- [cosine] with angles in bfloat16 the largest error of a cosine is 2.00
- [cast-after] with angles in float32, and cosine and sine cast to bfloat16, no cosine is off by
  more than 0.0025
- [buffer] after model.bfloat16() and .float() of the frequencies the angles of the last position,
  4095, are wrong by up to 5.01 radians
- [relative] with frequencies rounded to bfloat16 the score of tokens 2048 apart is 10.385 at all
  places, to 0.002, and with float32 frequencies 15.268
- [autocast] under autocast the product positions @ frequencies is in bfloat16, and torch.outer in
  float32
## Try next
`--cast after`: only cosines and sines are cast. All 4096 rows are different again, and the score of
neighbours is near 124.19. refutes: rows, neighbours, drift, cosine
`--positions 32768`: the table has only 1153 different rows in bfloat16, and angles in float32 also
lose digits. refutes: rows, drift, cast-after, buffer, relative
## Source
- H. Wang and others, "When Precision Meets Position: BFloat16 Breaks Down RoPE in Long-Context
  Training", https://arxiv.org/abs/2411.13476: scores that depend on the place.
- D. Han, "RoPE loses precision for Llama / Gemma",
  https://github.com/huggingface/transformers/pull/29285: angles under autocast. Ours: the numbers.
"""

from typing import Literal

import torch
from torch import nn

from tuilab import Lab

WIDTH = 128  # of a head
FAR = 64  # the distance of two tokens whose score drifts
EVERY = 13  # places from one point of the charts to the next; 16 would hit only equal neighbours


class Frequencies(nn.Module):
    def __init__(self, frequencies):
        super().__init__()
        self.register_buffer("frequencies", frequencies)


def make_frequencies(device):  # (pairs,), float64
    exponents = torch.arange(0, WIDTH, 2, dtype=torch.float64) / WIDTH
    return (10_000**-exponents).to(device)


def make_angles(positions, frequencies, dtype):  # (positions, pairs)
    return torch.outer(positions.to(dtype), frequencies.to(dtype))


def make_rotation(positions, frequencies, dtype, cast):
    """Return cosines and sines, (positions, pairs) each, with angles or only results in dtype."""
    angle_dtype = dtype if cast == "before" else torch.float32
    angles = make_angles(positions, frequencies, angle_dtype).float()
    cos = angles.cos()
    sin = angles.sin()
    if cast == "after":
        cos = cos.to(dtype)
        sin = sin.to(dtype)
    return cos.double(), sin.double()


def rotate(x, cos, sin):  # (width,), two of (positions, pairs)
    first, second = x.chunk(2)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def score_pairs(rotation, distance):
    """Return the score of each token with the token so many places later."""
    cos, sin = rotation
    ones = torch.ones(WIDTH, device=cos.device, dtype=cos.dtype)
    rotated = rotate(ones, cos, sin)  # (positions, width)
    return (rotated[:-distance] * rotated[distance:]).sum(-1)


def count_rows(rotation):
    table = torch.cat(rotation, -1)
    return len(table.unique(dim=0))


def log_scores(lab, rotations):
    lab.axes("score", x="position", y="score of a token and the next")
    lab.axes("score_of_64", x="position", y=f"score of two tokens {FAR} apart")
    for name in lab.sweep(rotations, "scores by position"):
        near_scores = score_pairs(rotations[name], 1).tolist()
        far_scores = score_pairs(rotations[name], FAR).tolist()
        for place in range(0, min(4096, len(far_scores)), EVERY):
            lab.log(place, arm=name, score=near_scores[place], score_of_64=far_scores[place])


def claim_tables(lab, rotations, exact_cos):
    near = rotations["bfloat16"]
    rows = [count_rows(near), count_rows(rotations["float16"])]
    lab.claim("rows", rows, equals=[769, 3073], answers=rows[0])
    neighbours = score_pairs(near, 1)[3000]
    lab.claim("neighbours", neighbours, equals=128, tolerance=1e-4)
    drifting = score_pairs(near, FAR)
    lab.claim("drift", [drifting.min(), drifting.max()], equals=[48.96, 78.52], tolerance=0.01)
    steady = score_pairs(rotations["float32"], 1)
    lab.claim("float32", [steady.min(), steady.max()], equals=[124.19, 124.19], tolerance=0.01)
    cosine_error = (near[0] - exact_cos).abs().max()
    lab.claim("cosine", cosine_error, equals=2, tolerance=0.005)
    cast_error = (rotations["bfloat16, cast after"][0] - exact_cos).abs().max()
    lab.claim("cast-after", cast_error, at_most=0.0025)


def claim_buffer(lab, positions, frequencies):
    lab.stage("a buffer of frequencies")
    module = Frequencies(frequencies.float())
    buffer = module.bfloat16().frequencies.float()
    error = positions[-1] * (buffer.double() - frequencies).abs().max()
    lab.claim("buffer", error, equals=5.01, tolerance=0.005)
    scores = []
    for these in (buffer, frequencies):
        rotation = make_rotation(positions, these, torch.float32, "before")
        distant = score_pairs(rotation, 2048)
        scores.extend([distant.min(), distant.max()])
    lab.claim("relative", scores, equals=[10.385, 10.385, 15.268, 15.268], tolerance=0.002)


def claim_autocast(lab, positions, frequencies):
    column = positions.float()[:, None]  # (positions, 1)
    row = frequencies.float()[None]  # (1, pairs)
    with torch.autocast(positions.device.type, dtype=torch.bfloat16):
        dtypes = [column @ row, torch.outer(column[:, 0], row[0])]
    names = [str(product.dtype) for product in dtypes]
    lab.claim("autocast", names, equals=["torch.bfloat16", "torch.float32"])


def run(
    lab: Lab,
    cast: Literal["before", "after"] = "before",  # the product and the cosine
    positions: int = 4096,  # in the table, 4096..32768
) -> None:
    device = lab.device()
    places = torch.arange(positions, device=device)
    frequencies = make_frequencies(device)
    rotations = {
        "float32": make_rotation(places, frequencies, torch.float32, "before"),
        "bfloat16": make_rotation(places, frequencies, torch.bfloat16, cast),
        "float16": make_rotation(places, frequencies, torch.float16, cast),
        "bfloat16, cast after": make_rotation(places, frequencies, torch.bfloat16, "after"),
    }
    log_scores(lab, rotations)
    exact_cos = make_angles(places, frequencies, torch.float64).cos()
    claim_tables(lab, rotations, exact_cos)
    claim_buffer(lab, places, frequencies)
    claim_autocast(lab, places, frequencies)
