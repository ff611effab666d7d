"""Pack sequences of unequal length into one row; a padded batch computes padding.

Sequences of text have different lengths, and a tensor is a rectangle. The usual collate function
pads each sequence to the longest one of its batch. Linear layers, norms and the loss then compute
every place of the rectangle. A mask hides the padding from the attention, but the layers still
compute the padding. One long sequence is enough to make most of the batch padding.

Packing puts the sequences one after another into one row, so that every place holds a real token.
With packing, three things have to change. The attention needs a block-diagonal mask, so that no
token sees another sequence. The positions restart at 0 with each sequence. The last token of a
sequence must not be trained to predict the first token of the next sequence. If you forget any
change, no error is raised.

A dense mask, with a value for each pair of places, saves no attention work. The attention still
computes the scores between different sequences and then hides them. For long rows use a kernel that
skips these scores. Examples are FlexAttention with a block mask, and `varlen_attn`, which takes the
borders of the sequences.

The gain depends on the lengths. If all sequences have the same length, there is no padding, and
packing gains nothing. If you cannot change the attention, put sequences of similar length into a
batch. The chart shows the share of real tokens in an epoch of 2048 drawn lengths. It compares
random batches, batches of similar length, and packed rows.

In practice: log the share of real tokens, `attention_mask.float().mean()`, before you decide. If it
is below 80 %, group the sequences by length, or pack them. After the change, compare the loss of
the same sequences, padded and packed.
## Predict
Sequences of 32, 32, 32, 32, 64, 64, 128 and 512 tokens are padded to one batch. How many percent of
its places hold a real token?
## Look for
- [share] eight sequences of 32, 32, 32, 32, 64, 64, 128 and 512 tokens fill 21.875 % of the places
  of their padded batch
- [flops] for eight sequences of 32 to 512 tokens, a feed-forward layer computes 4.57 times as many
  FLOPs padded as packed
- [same] with a block-diagonal mask and restarted positions, each real token has the same logits in
  the packed row and in the padded batch, to 1e-4
- [gradients] with a block-diagonal mask and restarted positions, the packed row has the loss and
  all gradients of the padded batch to 1e-4
- [leak] with a causal mask that has no blocks, the logits of 7 of 8 packed sequences change by 0.01
  or more
- [positions] with positions that do not restart, the logits of 7 of 8 packed sequences change by
  0.01 or more
- [borders] if the labels of 8 packed sequences are shifted after packing, 7 labels are the first
  token of another sequence
- [scores] with a dense mask, 512,000 of the 802,816 attention scores of a packed row of 896 tokens
  are between different sequences
- [random] for lengths from a log-normal distribution, random padded batches of 8 sequences are at
  most 50 % real tokens
- [grouped] padded batches of 8 sequences of similar length are at least 95 % real tokens
- [packed] rows of 512 places that are filled with whole sequences are at least 95 % real tokens
- [ffn-time] for eight sequences of 32 to 512 tokens, a feed-forward layer takes at least 2.5 times
  as long padded as packed
## Try next
`--lengths equal`: there is no padding, so the padded batch and the packed row take the same time.
refutes: share, flops, scores, random
`--mask causal`: the packed tokens see the sequences before their own. refutes: same, gradients
## Source
- "Improving Hugging Face Training Efficiency Through Packing with Flash Attention 2",
  https://huggingface.co/blog/packing-with-FA2: up to twice the throughput, depending on the data.
- A. Kundu and others, "Enhancing Training Efficiency Using Packing with Flash Attention",
  https://arxiv.org/abs/2407.09105: packed rows need a mask and positions of each sequence.
- Ours: the same outputs and gradients, the three mistakes, and the share of real tokens.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from tuilab import Lab

WORDS = 64
WIDTH = 64
HEADS = 4
BATCH = 8
ROW = 512  # places of a row, and the longest sequence
MIXED = (32, 32, 32, 32, 64, 64, 128, 512)
EQUAL = (128,) * 8
EPOCH = 2048  # sequences
IGNORED = -100  # a label that cross_entropy leaves out


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.project = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.LayerNorm(WIDTH), build_feed_forward(WIDTH))

    def forward(self, x, mask):  # (rows, tokens, width), (tokens, tokens)
        heads = self.qkv(self.norm(x)).unflatten(-1, (3, HEADS, -1))
        q, k, v = heads.permute(2, 0, 3, 1, 4)  # (rows, heads, tokens, width of a head) each
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.project(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(x)


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.positions = nn.Embedding(2 * ROW, WIDTH)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens, positions, mask):
        x = self.embedding(tokens) + self.positions(positions)  # (rows, tokens, width)
        for block in self.blocks:
            x = block(x, mask)
        return self.head(x)  # (rows, tokens, words)


def build_feed_forward(width):
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


def causal_mask(tokens, device):
    return torch.ones(tokens, tokens, dtype=torch.bool, device=device).tril()


def number_sequences(lengths, device):
    """Return, for each token of the packed row, the number of its sequence."""
    numbers = torch.arange(len(lengths), device=device)
    return numbers.repeat_interleave(torch.tensor(lengths, device=device))  # (tokens,)


def shift_labels(tokens):  # (tokens,)
    """Return the next token of each token; the last token has none."""
    return F.pad(tokens[1:], (0, 1), value=IGNORED)


class Texts:
    """The same sequences as a padded batch and as a packed row."""

    def __init__(self, lengths, device):
        self.lengths = lengths
        self.device = device
        self.sequences = []
        for length in lengths:
            self.sequences.append(torch.randint(WORDS, (length,)).to(device))
        self.labels = [shift_labels(sequence) for sequence in self.sequences]

    def run_padded(self, net):
        """Return logits, (8, longest, words), and labels, (8, longest), of the padded batch."""
        tokens = pad_sequence(self.sequences, batch_first=True)
        labels = pad_sequence(self.labels, batch_first=True, padding_value=IGNORED)
        positions = torch.arange(tokens.shape[1], device=self.device)
        mask = causal_mask(tokens.shape[1], self.device)  # padding comes last, so no token sees it
        return net(tokens, positions, mask), labels

    def run_packed(self, net, are_positions_restarted=True, is_mask_blocked=True):
        """Return logits, (1, tokens, words), and labels, (1, tokens), of the packed row."""
        tokens = torch.cat(self.sequences)[None]
        labels = torch.cat(self.labels)[None]
        positions = torch.arange(tokens.shape[1], device=self.device)
        if are_positions_restarted:
            ranges = [torch.arange(length, device=self.device) for length in self.lengths]
            positions = torch.cat(ranges)
        mask = causal_mask(tokens.shape[1], self.device)
        if is_mask_blocked:
            numbers = number_sequences(self.lengths, self.device)
            mask = mask & (numbers[:, None] == numbers)
        return net(tokens, positions, mask), labels

    def split_padded(self, logits):
        """Return the logits of the real tokens of each sequence, (tokens, words) each."""
        rows = zip(logits, self.lengths, strict=True)
        return [row[:length] for row, length in rows]

    def split_packed(self, logits):
        return logits[0].split(self.lengths)


def compare_sequences(first, second):
    """Return the largest difference of the logits of each sequence."""
    differences = []
    for a, b in zip(first, second, strict=True):
        differences.append((a - b).abs().max().item())
    return differences


def count_changed(first, second):
    return sum(difference >= 0.01 for difference in compare_sequences(first, second))


def compute_gradients(net, logits, labels):
    """Return the loss and the gradients of all parameters."""
    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
    return [loss, *torch.autograd.grad(loss, net.parameters())]


def claim_outputs(lab, net, texts, is_mask_blocked):
    lab.stage("the same logits and gradients")
    padded_logits, padded_labels = texts.run_padded(net)
    packed_logits, packed_labels = texts.run_packed(net, is_mask_blocked=is_mask_blocked)
    padded = texts.split_padded(padded_logits)
    packed = texts.split_packed(packed_logits)
    lab.claim("same", max(compare_sequences(padded, packed)), at_most=1e-4)
    padded_gradients = compute_gradients(net, padded_logits, padded_labels)
    packed_gradients = compute_gradients(net, packed_logits, packed_labels)
    differences = compare_sequences(padded_gradients, packed_gradients)
    lab.claim("gradients", max(differences), at_most=1e-4)

    lab.stage("three mistakes")
    leaking, _ = texts.run_packed(net, is_mask_blocked=False)
    changed = count_changed(padded, texts.split_packed(leaking))
    lab.claim("leak", changed, equals=BATCH - 1)
    running, _ = texts.run_packed(net, are_positions_restarted=False)
    changed = count_changed(padded, texts.split_packed(running))
    lab.claim("positions", changed, equals=BATCH - 1)
    late_labels = shift_labels(torch.cat(texts.sequences))  # (tokens,)
    wrong = (late_labels != packed_labels[0]).sum()
    lab.claim("borders", wrong, equals=BATCH - 1)


def claim_work(lab, feed_forward, padded, packed, numbers):
    lab.stage("work")
    places = {"padded batch": padded.shape[:2].numel(), "packed row": packed.shape[1]}
    lab.bars("places that are computed", places)
    share = 100 * places["packed row"] / places["padded batch"]
    lab.claim("share", share, equals=21.875, unit="%", answers=True)
    padded_flops = lab.count(feed_forward, padded).flops
    packed_flops = lab.count(feed_forward, packed).flops
    lab.claim("flops", padded_flops / packed_flops, equals=4.57, tolerance=0.01)
    are_different = numbers[:, None] != numbers  # (tokens, tokens)
    scores = [are_different.sum().item(), are_different.numel()]
    lab.claim("scores", scores, equals=[512_000, 802_816])


def draw_lengths(kind):
    if kind == "equal":
        return [EQUAL[0]] * EPOCH
    lengths = (4.3 + 0.8 * torch.randn(EPOCH)).exp()  # half of them are shorter than 74
    return lengths.clamp(8, ROW).long().tolist()


def pad_batches(lengths):
    """Return the real tokens and the places of each batch of 8."""
    batches = []
    for first in range(0, len(lengths), BATCH):
        batch = lengths[first : first + BATCH]
        batches.append((sum(batch), BATCH * max(batch)))
    return batches


def fill_rows(lengths):
    """Put each sequence, the longest first, into the first row where it fits."""
    rows = []  # the real tokens of each row
    for length in sorted(lengths, reverse=True):
        for number, tokens in enumerate(rows):
            if tokens + length <= ROW:
                rows[number] += length
                break
        else:
            rows.append(length)
    return [(tokens, ROW) for tokens in rows]


def claim_epoch(lab, lengths):
    lab.axes("real_percent", x="batch or row", y="real tokens")
    arms = {
        "random batches": pad_batches(lengths),
        "batches of similar length": pad_batches(sorted(lengths)),
        "packed rows": fill_rows(lengths),
    }
    shares = {}
    for arm, batches in arms.items():
        lab.stage(arm)
        for number, (tokens, places) in enumerate(batches):
            lab.log(number + 1, arm=arm, real_percent=100 * tokens / places)
        total_tokens = sum(tokens for tokens, _ in batches)
        total_places = sum(places for _, places in batches)
        shares[arm] = 100 * total_tokens / total_places
    lab.claim("random", shares["random batches"], at_most=50, unit="%")
    lab.claim("grouped", shares["batches of similar length"], at_least=95, unit="%")
    lab.claim("packed", shares["packed rows"], at_least=95, unit="%")


@torch.no_grad()
def apply(layer, x):
    return layer(x)


def run(
    lab: Lab,
    lengths: Literal["mixed", "equal"] = "mixed",  # 32 to 512 tokens, or 128 each
    mask: Literal["blocks", "causal"] = "blocks",  # of the packed row
    width: int = 0,  # of the layer in the race; 0 is 128 on a CPU and 2048 on a GPU, 0..8192
) -> None:
    device = lab.device()
    if width == 0:
        width = 128 if device.type == "cpu" else 2048
    batch_lengths = MIXED if lengths == "mixed" else EQUAL
    feed_forward = build_feed_forward(width).to(device)
    padded = torch.randn(BATCH, max(batch_lengths), width).to(device)
    packed = torch.randn(1, sum(batch_lengths), width).to(device)

    @lab.once
    def exact():
        claim_epoch(lab, draw_lengths(lengths))
        net = LanguageModel().to(device)
        texts = Texts(batch_lengths, device)
        with lab.precision("ieee"):
            claim_outputs(lab, net, texts, mask == "blocks")
        claim_work(lab, feed_forward, padded, packed, number_sequences(batch_lengths, device))

    lab.stage("timing")
    lab.claim_ratio("ffn-time", "padded/packed", at_least=2.5)
    lab.race(
        padded=lambda: apply(feed_forward, padded),
        packed=lambda: apply(feed_forward, packed),
        seconds=0.4,
    )
