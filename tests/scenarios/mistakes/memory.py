"""Mistakes in the lessons of memory."""

from tests.scenarios.mistakes.mistake import Mistake

MISTAKES = [
    Mistake(
        "saved-tensors",
        "total.backward(), total",
        "total.backward(retain_graph=True), total",
        "once",
    ),
    Mistake(
        "saved-tensors", "torch.relu_(layer(rows))", "torch.relu(layer(rows))", "relu-in-place"
    ),
    Mistake("saved-tensors", '"mean": torch.mean', '"mean": torch.cos', "nothing, input"),
    Mistake("saved-tensors", '"x-2": lambda x: x - 2', '"x-2": torch.rsqrt', "nothing, output"),
    Mistake(
        "saved-tensors",
        'chain(x, last)["p"], back',
        "list(chain(x, last).values()), back",
        "live, after",
    ),
    Mistake("no-grad", "torch.no_grad()(recorded)", "recorded", "forms"),
    Mistake("no-grad", "net.eval()(x)", "in_block(net.eval(), x)", "substitutes"),
    Mistake(
        "no-grad",
        "torch.clone, torch.Tensor.item",
        "torch.Tensor.detach, torch.Tensor.item",
        "losses",
    ),
    Mistake("no-grad", "        yield\n", "        pass\n    yield\n", "generator"),
    Mistake(
        "no-grad", "torch.inference_mode()(recorded)", "torch.no_grad()(recorded)", "inference"
    ),
    Mistake("no-grad", "made = nn.Parameter", "made = torch.Tensor", "parameter"),
    Mistake("no-grad", "[1], requires_grad", "[1.0], requires_grad", "integer"),
    Mistake("zero-grad", "owner.zero_grad()", "owner.zero_grad(set_to_none=False)", "default"),
    Mistake("zero-grad", "torch.manual_seed(1)", "torch.manual_seed(len(weights))", "same"),
    Mistake(
        "zero-grad", "gradient_as_bucket_view=is_view", "gradient_as_bucket_view=False", "buckets"
    ),
    Mistake("zero-grad", "weight_decay=0.1", "weight_decay=0.0", "zeros-move"),
    Mistake("grad-accum", "[1] * number)", "shares)", "forgotten"),
    Mistake("grad-accum", 'build_net("batch", device)', 'build_net("layer", device)', "batch-norm"),
    Mistake("grad-accum", "[1 / 2, 1 / 2]", "[1000 / ROWS, 24 / ROWS]", "uneven"),
    Mistake("grad-accum", "losses = (share", "losses = list(share", "peak"),
    Mistake("grad-accum", "[sum(losses)] if at_end else losses", "losses", "late"),
    Mistake("grad-accum", "[1] * 3", "[1, 1, 2]", "third"),
    Mistake("grad-accum", "output = net(x)", "output = net(x).detach()", "leaves"),
    Mistake("ckpt-mlp", "8 * 16 * 1024", "0", "alone, second-cell"),
    Mistake("ckpt-targets", '"with-linear": (1, 3)', '"with-linear": (2, 3)', "with-linear"),
    Mistake("ckpt-targets", '"block": (0, 3)', '"block": (1, 3)', "block, free"),
    Mistake("ckpt-targets", "layers[last:](y)", "layers[last:](y) * (1 + first)", "gradients"),
    Mistake(
        "selective-ckpt",
        '"products": [ADDMM]',
        '"products": [ADDMM, torch.ops.aten.gelu.default]',
        "products, cheap",
    ),
    Mistake(
        "selective-ckpt",
        "block, x, use_reentrant",
        "block, x.clone(), use_reentrant",
        "full, products, first, wrong-name",
    ),
    Mistake("selective-ckpt", "> args[2].shape[0]", ">= 0", "first"),
    Mistake("selective-ckpt", '"wrong name": [MM]', '"wrong name": [ADDMM]', "wrong-name"),
    Mistake(
        "selective-ckpt",
        "        return net(x)\n",
        "        return net(2 * x)\n",
        "plain, gradients",
    ),
    Mistake("selective-ckpt", "counted.saved_bytes)", "counted.live_bytes)", "hooks"),
    Mistake("sdpa-backends", ".softmax(-1) @ v", ".softmax(-1).exp() @ v", "written, math, same"),
    Mistake("sdpa-backends", "dropout_p=0.1)\n", "dropout_p=0.0)\n", "asked"),
    Mistake("sdpa-backends", "(attention, q[0], k[0], v[0])", "(attention, q, k, v)", "fallback"),
    Mistake("sdpa-backends", "need_weights=weights", "need_weights=False", "module"),
    Mistake("prealloc", '"rising": rising,', '"rising": rising[::-1],', "rising, segments"),
    Mistake("prealloc", "[first, *lengths]", "[2 * first, *lengths]", "longest, random, peak"),
    Mistake(
        "expandable-segments",
        '"segments": (False, growing)',
        '"segments": (False, growing[::-1])',
        "segments, order",
    ),
    Mistake(
        "expandable-segments",
        'shrinking": (not fixed, growing[::-1]',
        'shrinking": (not fixed, [256]',
        "peak",
    ),
    Mistake("leaky-loss", "y).item() for", "y) for", "detached"),
    Mistake("leaky-loss", "with torch.no_grad():", "with torch.enable_grad():", "no-grad"),
    Mistake("leaky-loss", "total + (loss.detach()", "total + (loss.detach() / 2", "same-value"),
    Mistake(
        "detach-hidden",
        '"detached", pieces, True, retain_graph=False',
        '"detached", pieces, cut, retain_graph=True',
        "constant",
    ),
    Mistake(
        "detach-hidden",
        "train_plainly, pieces, True",
        "train_plainly, pieces, False",
        "trains",
    ),
    Mistake(
        "detach-hidden", "hidden = hidden.detach()", "hidden = hidden.detach() / 2", "same-values"
    ),
    Mistake("accum-tokens", "y) * share", "y) / len(labels)", "rescaled"),
    Mistake(
        "accum-tokens",
        "accumulate(net, words, next_words, mean_of_means)",
        "accumulate(net, words, labels, mean_of_means)",
        "equal",
    ),
    Mistake("accum-tokens", "full((TOKENS,), IGNORED", "full((TOKENS,), 1", "empty, masked"),
    Mistake("accum-tokens", "y.clamp(min=0)", "y", "masked"),
    Mistake("accum-tokens", "* RANKS / tokens", "/ tokens", "all-ranks"),
    Mistake("linear-xent", "[plain.live_bytes //", "[plain.peak_bytes //", "logits"),
    Mistake(
        "linear-xent",
        "without_peak = count_step(lab, head.without_options)",
        "without_peak = count_step(lab, head.with_options)",
        "no-options",
    ),
    Mistake("linear-xent", "self.y, options=chunk", "self.y.flip(0), options=chunk", "same"),
    Mistake("linear-xent", "lab.warns(head.with_options_smoothed)", "[]", "smoothing"),
    Mistake("linear-xent", "for size in (4, 256)", "for size in (256, 4)", "bf16-loss"),
    Mistake("linear-xent", "return total / len(self.y)", "return total / 16", "by-hand"),
    Mistake(
        "linear-xent",
        "checkpoint(self.sum_of_chunk, hidden, y, use_reentrant=False)",
        "self.sum_of_chunk(hidden, y)",
        "by-hand-work, by-hand-peak",
    ),
    Mistake(
        "in-place",
        "build_net(blocks, act, inplace, x.device)",
        'build_net(blocks, "silu", inplace, x.device)',
        "forward, kept, step",
    ),
    Mistake("in-place", "inplace, x.device, norm=True)", "inplace, x.device)", "norm"),
    Mistake("in-place", '"silu", inplace, x', '"relu", inplace, x', "silu"),
    Mistake("in-place", "with torch.no_grad():", "with torch.enable_grad():", "no-grad"),
    Mistake("in-place", "lab.count(plain, x).peak_bytes\n    lab", "0\n    lab", "one-name"),
    Mistake("in-place", "gradients(written, x))", "gradients(written, 2 * x))", "gradients"),
    Mistake("lora-bytes", "rank, dropout=0.1)", "rank, dropout=0.0)", "dropout"),
    Mistake(
        "lora-bytes", "torch.zeros(WIDTH, rank)", "torch.ones(WIDTH, rank)", "start, first-step"
    ),
    Mistake("lora-bytes", "layer.a.grad.norm()", "layer.b.grad.norm()", "first-step"),
    Mistake("lora-bytes", "+= self.b @", "+= 2 * self.b @", "merged"),
    Mistake("kv-cache", "to(device, torch.bfloat16)", "to(device, torch.float64)", "dtype"),
    Mistake(
        "kv-cache",
        "count(next_logits, net, text, fill_cache(net, text))",
        "count(all_logits, net, text, Cache(net))",
        "work",
    ),
    Mistake(
        "kv-cache", "all_logits, net, prompt, C", "all_logits, net, prompt[:, 1:], C", "prompt"
    ),
    Mistake("kv-cache", "by_cat, keys, values", "by_cat, keys[..., 1:, :], values", "cat"),
    Mistake("kv-cache", "has_offset=False).to", "has_offset=True).to", "position"),
    Mistake("kv-cache", "q, k, v, is_causal=True", "q, k, v", "causal"),
]
