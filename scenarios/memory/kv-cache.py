"""Generate with a KV cache, and size it before you choose the batch and the length.

A language model generates one token after the other. Without a cache, the net computes the whole
text again for each new token. But the keys and values of earlier tokens do not change, because
attention is causal: a token sees only itself and earlier tokens. So a cache can keep the keys and
values. With a cache, only the new token goes through the layers, and its query reads all keys and
values. Token n then takes n times fewer operations. Training needs no cache, because it computes
all positions at once.

The price is memory. Each token of each sequence takes 2 x layers x key-value heads x head width x
bytes of a number. The factor 2 is for keys and values. Llama 3 8B has 32 layers and 8 key-value
heads of width 128, so a token takes 128 KiB in 16 bits. For 16 sequences of 8192 tokens this is 16
GiB, about as much as the weights. The cache gets smaller with fewer key-value heads than query
heads (GQA), with a smaller dtype, and with shorter texts.

`torch.cat` is the simplest way to append a token, but it copies the whole cache for each token. A
buffer for the longest text is allocated once, and each token is written into it. CUDA graphs also
need such a buffer, because its shape and address stay the same. torch.compile needs it to avoid new
graphs for new lengths.

If you write the cache yourself, two mistakes raise no error. The position of a new token must be
counted from the length of the cache, not from 0. And scaled_dot_product_attention with
`is_causal=True` lets query i see the keys 0 to i. With a cache, the single query of the new token
has the number 0, so it sees only the first key. Leave out `is_causal` here: this query may see all
keys, so it needs no mask.

In practice: keep `use_cache=True`, the default of `generate` in Hugging Face Transformers.
Calculate the bytes of the cache before you choose the number of sequences and their length. If you
write the cache yourself, compare the logits with a cache to the logits of a forward over the whole
text.
## Predict
A net has 4 layers with 8 query heads and 8 key-value heads of width 16, and a cache in float32. How
many bytes does the cache take for each token of a sequence?
## Look for
- [bytes] a float32 cache for 4 layers with 8 key-value heads of width 16 takes 4096 bytes for each
  token of a sequence
- [gqa] with 2 key-value heads instead of 8, a KV cache is 4 times smaller
- [dtype] in bfloat16 a KV cache is half as large as in float32
- [same] for each of 128 tokens, the logits with a KV cache are the logits of a forward over the
  whole text to 1e-4
- [text] greedy generation gives the same 64 tokens with a KV cache and without
- [work] without a KV cache, the 128th token takes 128 times as many floating-point operations as
  with a cache
- [prompt] a forward over a prompt of 64 tokens takes as many operations with a KV cache as without
- [cat] to append the 128th token, torch.cat allocates the whole KV cache again, and a buffer
  allocates 0 bytes
- [position] if each new token gets position 0, the logits of the 128th token differ by at least
  0.01 from those of the whole text
- [causal] with is_causal=True, scaled_dot_product_attention of 1 query and 128 keys returns the
  first value: the query sees only the first key
- [time] on a CPU, the 256th token takes at least 3 times as long without a KV cache as with a cache
## Try next
`--kv-heads 2`: four query heads share a key-value head. refutes: bytes, gqa
`--no-offset`: the position of each new token is 0, so the logits and the text are wrong, without an
error. refutes: same, text
## Source
- R. Pope and others, "Efficiently Scaling Transformer Inference",
  https://arxiv.org/abs/2211.05102: the memory of the cache.
- J. Ainslie and others, "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head
  Checkpoints", https://arxiv.org/abs/2305.13245.
- Hugging Face, "Caching", https://huggingface.co/docs/transformers/cache_explanation. Ours: the
  counts and the mistakes.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab

LAYERS = 4
HEADS = 8
HEAD_WIDTH = 16
WIDTH = HEADS * HEAD_WIDTH
WORDS = 256
PROMPT = 64  # tokens
TOKENS = 128  # of the prompt and the generated text
LONGEST = 256


class Cache:
    """A buffer for the keys and values of all layers."""

    def __init__(self, net, sequences=1, tokens=LONGEST):
        shape = (LAYERS, sequences, net.kv_heads, tokens, HEAD_WIDTH)
        weight = net.embedding.weight  # for its device and dtype
        self.keys = torch.zeros(shape, device=weight.device, dtype=weight.dtype)
        self.values = torch.zeros_like(self.keys)
        self.length = 0  # tokens that are filled

    def append(self, layer, k, v):  # (sequences, kv heads, new tokens, head width)
        """Write the keys and values of new tokens, and return those of all tokens."""
        end = self.length + k.shape[2]
        self.keys[layer, :, :, self.length : end] = k
        self.values[layer, :, :, self.length : end] = v
        return self.keys[layer, :, :, :end], self.values[layer, :, :, :end]


def attend(q, k, v):  # (sequences, heads, new tokens, head width), kv heads and all tokens in k, v
    sharing = q.shape[1] // k.shape[1]  # query heads for each key-value head
    k = k.repeat_interleave(sharing, dim=1)
    v = v.repeat_interleave(sharing, dim=1)
    scores = q @ k.transpose(-1, -2) / HEAD_WIDTH**0.5  # (sequences, heads, new tokens, tokens)
    new, tokens = scores.shape[-2:]
    is_past = torch.ones(new, tokens, dtype=torch.bool, device=q.device).tril(tokens - new)
    return scores.masked_fill(~is_past, -torch.inf).softmax(-1) @ v


def split_heads(x):  # (sequences, tokens, features)
    return x.unflatten(-1, (-1, HEAD_WIDTH)).transpose(1, 2)


class Block(nn.Module):
    def __init__(self, kv_heads):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.q = nn.Linear(WIDTH, WIDTH)
        self.k = nn.Linear(WIDTH, kv_heads * HEAD_WIDTH)
        self.v = nn.Linear(WIDTH, kv_heads * HEAD_WIDTH)
        self.project = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x, cache, layer):  # (sequences, new tokens, width)
        normed = self.norm(x)
        q = split_heads(self.q(normed))
        k = split_heads(self.k(normed))
        v = split_heads(self.v(normed))
        if cache is not None:
            k, v = cache.append(layer, k, v)
        mixed = attend(q, k, v).transpose(1, 2).flatten(2)
        x = x + self.project(mixed)
        return x + self.mlp(x)


class LanguageModel(nn.Module):
    def __init__(self, kv_heads, has_offset=True):
        super().__init__()
        torch.manual_seed(0)
        self.kv_heads = kv_heads
        self.has_offset = has_offset
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.positions = nn.Embedding(LONGEST, WIDTH)
        self.blocks = nn.ModuleList(Block(kv_heads) for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, words, cache=None):  # (sequences, new tokens), returns (.., words)
        past = cache.length if cache is not None else 0
        start = past if self.has_offset else 0
        positions = torch.arange(start, start + words.shape[1], device=words.device)
        x = self.embedding(words) + self.positions(positions)
        for layer, block in enumerate(self.blocks):
            x = block(x, cache, layer)
        if cache is not None:
            cache.length = past + words.shape[1]
        return self.head(x)


@torch.no_grad()
def logits_by_token(net, words):
    """Return the logits of all tokens, (tokens, words), each computed with a cache."""
    cache = Cache(net)
    logits = []
    for number in range(words.shape[1]):
        logits.append(net(words[:, number : number + 1], cache)[0, 0])
    return torch.stack(logits)


@torch.no_grad()
def generate(net, prompt, has_cache):
    """Return the text after 64 greedy tokens."""
    cache = Cache(net) if has_cache else None
    words = prompt
    new = prompt
    for _ in range(TOKENS - PROMPT):
        unseen = new if has_cache else words
        new = net(unseen, cache)[:, -1:].argmax(-1)
        words = torch.cat([words, new], dim=1)
    return words


@torch.no_grad()
def next_logits(net, words, cache):
    """Return the logits of the last token, with all earlier tokens in the cache."""
    cache.length = words.shape[1] - 1
    return net(words[:, -1:], cache)


@torch.no_grad()
def all_logits(net, words, cache=None):
    return net(words, cache)


def fill_cache(net, words):
    cache = Cache(net)
    all_logits(net, words, cache)
    return cache


def bytes_of_token(net):
    """Return the bytes of the cache for one token of one sequence."""
    cache = Cache(net, sequences=2, tokens=LONGEST)
    return (cache.keys.nbytes + cache.values.nbytes) / (2 * LONGEST)


def append_by_cat(keys, values, new_keys, new_values):
    return torch.cat([keys, new_keys], dim=3), torch.cat([values, new_values], dim=3)


def append_to_buffer(cache, new_keys, new_values):
    for layer in range(LAYERS):
        cache.append(layer, new_keys[layer], new_values[layer])


def claim_bytes(lab, net, device):
    size = bytes_of_token(net)
    with_gqa = bytes_of_token(LanguageModel(kv_heads=2).to(device))
    in_bfloat16 = bytes_of_token(LanguageModel(net.kv_heads).to(device, torch.bfloat16))
    bars = {f"{net.kv_heads} heads": size, "2 heads": with_gqa, "bfloat16": in_bfloat16}
    lab.bars("cache for a token", bars, unit="B")
    lab.claim("bytes", size, equals=4096, unit="B", answers=True)
    lab.claim("gqa", size / with_gqa, equals=4)
    lab.claim("dtype", size / in_bfloat16, equals=2)


def claim_logits(lab, net, words, device):
    right = all_logits(net, words)[0]  # (tokens, words)
    difference = (logits_by_token(net, words) - right).abs().max()
    lab.claim("same", difference, at_most=1e-4)
    prompt = words[:, :PROMPT]
    with_cache = generate(net, prompt, has_cache=True)
    without = generate(net, prompt, has_cache=False)
    lab.claim("text", torch.equal(with_cache, without))

    wrong = LanguageModel(net.kv_heads, has_offset=False).to(device)
    difference = (logits_by_token(wrong, words)[-1] - right[-1]).abs().max()
    lab.claim("position", difference, at_least=0.01)


def claim_work(lab, net, words):
    lab.axes("flops", x="token", y="floating-point operations", log="y")
    for tokens in lab.sweep([16, 32, 64, TOKENS], "tokens"):
        text = words[:, :tokens]
        without = lab.count(all_logits, net, text).flops
        with_cache = lab.count(next_logits, net, text, fill_cache(net, text)).flops
        lab.log(tokens, arm="without a cache", flops=without)
        lab.log(tokens, arm="with a cache", flops=with_cache)
    lab.claim("work", without / with_cache, equals=TOKENS)

    prompt = words[:, :PROMPT]
    without = lab.count(all_logits, net, prompt).flops
    with_cache = lab.count(all_logits, net, prompt, Cache(net)).flops
    lab.claim("prompt", with_cache / without, equals=1)


def claim_append(lab, net, words):
    """Count the bytes that the 128th token allocates."""
    cache = fill_cache(net, words[:, :-1])
    past = cache.length
    keys = cache.keys[:, :, :, :past].clone()
    values = cache.values[:, :, :, :past].clone()
    new_keys = torch.zeros_like(keys[:, :, :, :1])
    new_values = torch.zeros_like(new_keys)
    cat_bytes = lab.count(append_by_cat, keys, values, new_keys, new_values).born_bytes
    buffer_bytes = lab.count(append_to_buffer, cache, new_keys, new_values).born_bytes
    whole = TOKENS * bytes_of_token(net)
    lab.claim("cat", [cat_bytes / whole, buffer_bytes], equals=[1, 0])


def claim_causal(lab, device):
    q = torch.randn(1, HEADS, 1, HEAD_WIDTH, device=device)
    k = torch.randn(1, HEADS, TOKENS, HEAD_WIDTH, device=device)
    v = torch.randn(1, HEADS, TOKENS, HEAD_WIDTH, device=device)
    output = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    lab.claim("causal", (output - v[:, :, :1]).abs().max(), at_most=1e-6)


def run(
    lab: Lab,
    kv_heads: Literal["8", "4", "2", "1"] = "8",  # key-value heads for 8 query heads
    offset: bool = True,  # count positions from the length of the cache
) -> None:
    device = lab.device()
    net = LanguageModel(int(kv_heads), offset).to(device)
    words = torch.randint(WORDS, (1, LONGEST)).to(device)

    @lab.once
    def exact():
        text = words[:, :TOKENS]
        claim_work(lab, net, text)
        lab.stage("bytes")
        claim_bytes(lab, net, device)
        claim_append(lab, net, text)
        lab.stage("logits")
        claim_logits(lab, net, text, device)
        claim_causal(lab, device)

    lab.stage("timing")
    lacks = "" if device.type == "cpu" else "--device cpu"
    lab.claim_ratio("time", "without/with_cache", at_least=3, lacks=lacks)
    cache = fill_cache(net, words)
    lab.race(
        without=lambda: all_logits(net, words),
        with_cache=lambda: next_logits(net, words, cache),
        seconds=0.3,
        lacks=lacks,
    )
