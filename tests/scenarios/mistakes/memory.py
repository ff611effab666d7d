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
    Mistake("ckpt-mlp", "BATCH = 1024", "BATCH = 512", "alone, second-cell, excess, saved-bytes"),
    Mistake(
        "ckpt-mlp", "elif self.wrap ==", "elif self.wrap !=", "second-cell, excess, saved-bytes"
    ),
    Mistake(
        "ckpt-segments",
        "total.backward()",
        "net(x).sum().backward()",
        "activations, one-segment, valley",
    ),
    Mistake("ckpt-segments", "if segments == 0:", "if segments < 2:", "activations"),
    Mistake("ckpt-segments", "norm, nn.ReLU()", "norm.eval(), nn.ReLU()", "batch-norm"),
    Mistake("ckpt-targets", '"with-linear": (1, 3)', '"with-linear": (2, 3)', "with-linear"),
    Mistake("ckpt-targets", '"block": (0, 3)', '"block": (1, 3)', "block, free"),
    Mistake("ckpt-targets", "layers[end:](y)", "layers[end:](y) * (1 + first)", "gradients"),
    Mistake("ckpt-targets", '"sigmoid", "tanh"):', '"sigmoid", "gelu"):', "saves-output"),
    Mistake("ckpt-targets", "for end in (0, 1, 2)", "for end in (0, 2, 1)", "upsampling"),
    Mistake("ckpt-targets", "nn.AvgPool2d(2)", "nn.AvgPool2d(2), nn.GELU()", "downsampling"),
    Mistake("ckpt-targets", 'if choice == "square"', 'if choice == "squared"', "difference"),
    Mistake("ckpt-targets", "layers, x, 0, 3, back", "layers, x, 1, 3, back", "few-inputs"),
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
    Mistake("selective-ckpt", "> weight.shape[0]", ">= 0", "first, batch-first"),
    Mistake("selective-ckpt", '"wrong name": [MM]', '"wrong name": [ADDMM]', "wrong-name"),
    Mistake(
        "selective-ckpt",
        "        return net(x)\n",
        "        return net(2 * x)\n",
        "plain, gradients",
    ),
    Mistake(
        "selective-ckpt",
        "seen[choice] = counted.saved_bytes",
        "seen[choice] = counted.live_bytes",
        "hooks",
    ),
    Mistake(
        "selective-ckpt",
        "batch = find_largest_batch(lab, net, choice,",
        'batch = find_largest_batch(lab, net, "plain",',
        "batch, batch-first, use",
    ),
    Mistake("sdpa-backends", ".softmax(-1) @ v", ".softmax(-1).exp() @ v", "written, math, same"),
    Mistake("sdpa-backends", "dropout_p=0.1)\n", "dropout_p=0.0)\n", "asked"),
    Mistake("sdpa-backends", "(attention, q[0], k[0], v[0])", "(attention, q, k, v)", "fallback"),
    Mistake("sdpa-backends", "need_weights=weights", "need_weights=False", "module"),
    Mistake(
        "prealloc",
        '"rising": (False, rising)',
        '"rising": (False, falling)',
        "rising, segments, order, expandable-saves",
    ),
    Mistake("prealloc", '"falling": (False, falling)', '"falling": (False, [64])', "peak"),
    Mistake(
        "prealloc",
        "following.is_free and not following.is_first",
        "following.is_free",
        "rising, random, order, expandable-saves",
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
]
