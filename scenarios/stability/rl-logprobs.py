"""In RL use float16 in generator and trainer, or correct for their difference.

Reinforcement learning of a language model uses two programs. A generator samples tokens, fast and
in 16 bits. A trainer computes the log probabilities of the same tokens again, for the ratio of the
new policy to the old policy. Before the first update both programs have the same weights, and every
ratio should be 1. But the ratios differ from 1, and the loss then corrects a change of policy that
did not happen.

The ratios differ because the two programs round at different places. The generator of this lesson
casts the weights to 16 bits. The trainer keeps the weights in float32 and runs under autocast, so
that norms and the residual stream are in float32 as well. The dtype bfloat16 has 7 bits for digits,
and float16 has 10. So bfloat16 rounds more coarsely. The differences of the tokens add up over a
sequence. They have random signs, so their sum grows about with the square root of the length. If
the loss clips the ratio of a whole sequence at 0.8 and 1.2, random samples can then lose their
gradient. A policy that is sure of its tokens has large logits. The same relative error of a logit
is then a larger difference.

The range of float16 has a limit: a number of 65520 or more becomes inf, and some large models have
activations of this size. Gradients in float16 also need a loss scale (lesson gradscaler). A head in
float32 helps little here, because the hidden states are already rounded.

The net of this lesson is a small transformer with random weights, and its head is multiplied by
`sharpness`. The chart shows the spread of the logarithm of the ratio of the first n tokens.

In practice: log the ratio of trainer to generator before the first update, and see how far it is
from 1. Use float16 in both programs if the activations fit its range. Otherwise let the trainer
compute the old log probabilities itself, so that its ratios are 1 before the first update. Then
weight the loss of each token by the ratio of trainer to generator, with a maximum such as 2.
## Predict
How many times larger is the mean difference between the log probabilities of trainer and generator
in bfloat16 than in float16?
## Look for
- [ratio] the mean difference of the log probabilities of trainer and generator is 5 to 12 times
  larger in bfloat16 than in float16
- [bf16] in bfloat16 the log probabilities of a token by trainer and generator differ by at least
  0.01 on average
- [clip-bf16] in bfloat16 at least 8 of 32 sequences have a ratio of trainer to generator below 0.8
  or above 1.2
- [clip-f16] in float16 0 of 32 sequences have a ratio of trainer to generator below 0.8 or above
  1.2
- [length] in bfloat16 the spread of the log ratio of a sequence is at least 5 times larger after
  128 tokens than after 1
- [head] in bfloat16 a head in float32 leaves at least half of the mean difference of the log
  probabilities
- [float32] in float32 no log probability differs by more than 0.0001 between one forward of the
  sequence and one forward for each token
- [recomputed] if the trainer computes the log probabilities twice, no bit differs
- [massive] if one feature of the hidden states is 70,000, no log probability in float16 is finite,
  and in bfloat16 all are
## Try next
`--sharpness 1`: the policy is nearly uniform, and few ratios are outside of 0.8 to 1.2.
refutes: bf16, clip-bf16
`--trainer cast`: the trainer has the code and the 16-bit weights of the generator, and every ratio
is 1. refutes: ratio, bf16, clip-bf16, length, head
## Source
- P. Qi and others, "Defeating the Training-Inference Mismatch via FP16",
  https://arxiv.org/abs/2510.26788: float16 in both programs.
- "log_prob and old_log_prob differ in on-policy setting when rollout and actor micro batch per gpu
  differ", https://github.com/verl-project/verl/issues/6280. Ours: the length, the head and the
  range.
"""

import copy
import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab

WIDTH = 128
HEADS = 4
WORDS = 512
SEQUENCES = 32
TOKENS = 128


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.project = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.LayerNorm(WIDTH),
            nn.Linear(WIDTH, 4 * WIDTH),
            nn.GELU(),
            nn.Linear(4 * WIDTH, WIDTH),
        )

    def forward(self, x):  # (sequences, tokens, width)
        heads = self.qkv(self.norm(x)).unflatten(-1, (3, HEADS, -1))
        q, k, v = heads.permute(2, 0, 3, 1, 4)  # (sequences, heads, tokens, width of a head) each
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(x)


class Policy(nn.Module):
    def __init__(self, sharpness):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.body = nn.Sequential(Block(), Block(), nn.LayerNorm(WIDTH))
        self.head = nn.Linear(WIDTH, WORDS)
        with torch.no_grad():
            self.head.weight *= sharpness

    def forward(self, words):  # (sequences, tokens), returns (sequences, tokens, words)
        hidden = self.body(self.embedding(words))
        return self.head(hidden.to(self.head.weight.dtype))


def token_log_probs(logits, chosen):  # (sequences, tokens, words), (sequences, tokens)
    log_probs = logits.float().log_softmax(-1)
    return log_probs.gather(-1, chosen[..., None])[..., 0]


def cast_policy(policy, dtype, is_head_float32=False):
    policy = copy.deepcopy(policy).to(dtype)
    if is_head_float32:
        policy.head.float()
    return policy


def run_autocast(policy, words, dtype, is_head_float32=False):
    """Return the logits of float32 weights under autocast."""
    with torch.autocast(words.device.type, dtype=dtype):
        if not is_head_float32:
            return policy(words)
        hidden = policy.body(policy.embedding(words))
    return policy.head(hidden.float())


class Programs:
    """A trainer and a generator that have the same policy and the same samples."""

    def __init__(self, policy, words, chosen, trainer):
        self.policy = policy
        self.words = words
        self.chosen = chosen
        self.trainer = trainer

    def generate(self, dtype, is_head_float32=False):
        policy = cast_policy(self.policy, dtype, is_head_float32)
        return token_log_probs(policy(self.words), self.chosen)

    def train(self, dtype, is_head_float32=False):
        if self.trainer == "cast":
            return self.generate(dtype, is_head_float32)
        logits = run_autocast(self.policy, self.words, dtype, is_head_float32)
        return token_log_probs(logits, self.chosen)

    def compare(self, dtype, is_head_float32=False):
        """Return trainer minus generator for each token, (sequences, tokens)."""
        trained = self.train(dtype, is_head_float32)
        return (trained - self.generate(dtype, is_head_float32)).double()


def count_clipped(differences):
    ratios = differences.sum(-1).exp()  # of the sequences
    return ((ratios < 0.8) | (ratios > 1.2)).sum().item()


def divide(a, b):
    return a / b if b > 0 else math.nan


def claim_ratios(lab, programs):
    lab.axes("spread", x="tokens", y="spread of the logarithm of the ratio")
    means = {}
    clipped = {}
    spreads = {}
    for dtype in lab.sweep([torch.bfloat16, torch.float16], "trainer and generator"):
        name = str(dtype).removeprefix("torch.")
        differences = programs.compare(dtype)
        log_ratios = differences.cumsum(-1)  # of the first n tokens of each sequence
        spreads[name] = log_ratios.square().mean(0).sqrt().tolist()
        for index, spread in enumerate(spreads[name]):
            lab.log(index + 1, arm=name, spread=spread)
        means[name] = differences.abs().mean().item()
        clipped[name] = count_clipped(differences)
    lab.bars("sequences with a ratio outside of 0.8 to 1.2, of 32", clipped)
    ratio = divide(means["bfloat16"], means["float16"])
    lab.claim("ratio", ratio, between=(5, 12), answers=True)
    lab.claim("bf16", means["bfloat16"], at_least=0.01)
    lab.claim("clip-bf16", clipped["bfloat16"], at_least=8)
    lab.claim("clip-f16", clipped["float16"], equals=0)
    growth = divide(spreads["bfloat16"][-1], spreads["bfloat16"][0])
    lab.claim("length", growth, at_least=5)
    with_head = programs.compare(torch.bfloat16, is_head_float32=True).abs().mean().item()
    lab.claim("head", divide(with_head, means["bfloat16"]), at_least=0.5)


def claim_controls(lab, programs):
    lab.stage("controls")
    words = programs.words[:1]
    chosen = programs.chosen[:1]
    at_once = token_log_probs(programs.policy(words), chosen)[0]
    by_token = []
    for length in range(1, TOKENS + 1):  # as a generator without a cache
        logits = programs.policy(words[:, :length])
        by_token.append(token_log_probs(logits, chosen[:, :length])[0, -1])
    lab.claim("float32", (at_once - torch.stack(by_token)).abs().max(), at_most=0.0001)

    old = programs.train(torch.bfloat16)
    new = programs.train(torch.bfloat16)
    lab.claim("recomputed", (new != old).sum(), equals=0)


def claim_range(lab, programs):
    massive = copy.deepcopy(programs.policy)
    massive.embedding.weight[:, 0] = 70_000
    shares = []
    for dtype in (torch.float16, torch.bfloat16):
        logits = cast_policy(massive, dtype)(programs.words)
        finite = token_log_probs(logits, programs.chosen).isfinite()
        shares.append(finite.double().mean().item())
    lab.claim("massive", shares, equals=[0, 1])


@torch.no_grad()
def run(
    lab: Lab,
    sharpness: float = 8.0,  # factor of the head: the larger, the surer the policy, 0.1..20
    trainer: Literal["autocast", "cast"] = "autocast",  # float32 weights, or those of the generator
) -> None:
    device = lab.device()
    policy = Policy(sharpness).to(device)
    words = torch.randint(WORDS, (SEQUENCES, TOKENS)).to(device)
    probabilities = policy(words).softmax(-1).flatten(0, 1)  # (sequences * tokens, words)
    chosen = torch.multinomial(probabilities, 1).view(SEQUENCES, TOKENS)
    programs = Programs(policy, words, chosen, trainer)
    claim_ratios(lab, programs)
    few = Programs(policy, words[:4], chosen[:4], trainer)
    claim_controls(lab, few)
    claim_range(lab, few)
