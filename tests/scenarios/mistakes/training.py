"""Mistakes in the lessons of training."""

from tests.scenarios.mistakes.mistake import Mistake

MISTAKES = [
    Mistake(
        "conv-bias",
        "weight.data.copy_(with_bias[0].weight)",
        "weight.data.copy_(with_bias[0].weight + 1)",
        "same, weights, absorbed",
    ),
    Mistake(
        "conv-bias",
        "(output * direction).sum()",
        "(output.detach() * direction + 0 * output).sum()",
        "weight-norm, relu, group-norm",
    ),
    Mistake("conv-bias", "std=3", "std=0", "one-update"),
    Mistake("conv-bias", "[nn.ReLU(), nn.BatchNorm2d(8)]", "[nn.BatchNorm2d(8)]", "relu"),
    Mistake("conv-bias", "nn.GroupNorm(4, 8)", "nn.GroupNorm(8, 8)", "group-norm"),
    Mistake("conv-bias", "bias=has_bias)", "bias=True)", "parameters"),
    Mistake(
        "conv-bias", "lab.raises(nn.BatchNorm2d)", "lab.raises(nn.BatchNorm2d, 8)", "no-features"
    ),
    Mistake(
        "conv-bias",
        "lab.raises(nn.BatchNorm2d(8), rows)",
        "lab.raises(nn.BatchNorm1d(8), rows)",
        "linear",
    ),
    Mistake("channels-last", "torch.randn(2, 1, 4, 4", "torch.randn(2, 2, 4, 4", "one-channel"),
    Mistake("channels-last", "torch.ones([2] * count,", "torch.ones([2] * 4,", "dimensions"),
    Mistake("channels-last", "lambda x: x + planes", "lambda x: planes + x", "kept"),
    Mistake("channels-last", "lambda x: planes + x", "lambda x: x + planes", "lost"),
    Mistake(
        "channels-last",
        "convolution.to(memory_format=LAST)(planes)",
        "convolution(planes)",
        "weights",
    ),
    Mistake(
        "grad-clip",
        "lr=rate",
        "lr=0",
        "explodes, too-large, rare, low-rate, hundred-times, sooner, alone",
    ),
    Mistake(
        "grad-clip",
        "(means - means.mean()) / means.std(correction=0)",
        "means",
        "untrained, sooner, alone",
    ),
    Mistake("grad-clip", "10, head_norm=100", "math.inf, head_norm=100", "graves, untrained"),
    Mistake(
        "grad-clip",
        '"low, clipped": (LOW_RATE, 1)',
        '"low, clipped": (LOW_RATE, math.inf)',
        "alone",
    ),
    Mistake(
        "grad-clip",
        '"high, clipped": (high, 1)',
        '"high, clipped": (high, math.inf)',
        "hundred-times, sooner",
    ),
    Mistake(
        "grad-clip",
        '"ten times": (10 * LOW_RATE, math.inf)',
        '"ten times": (10 * LOW_RATE, 1)',
        "ten-times",
    ),
    Mistake(
        "grad-clip",
        "partial(nn.utils.clip_grad_norm_, max_norm=10.0)",
        "partial(nn.utils.clip_grad_value_, clip_value=10.0)",
        "by-norm, direction, nan",
    ),
    Mistake(
        "grad-clip",
        "clip_grad_value_, clip_value=10.0",
        "clip_grad_norm_, max_norm=10.0",
        "by-value",
    ),
    Mistake(
        "grad-clip",
        "clip_grad_norm_(weight, 1.0)",
        "clip_grad_norm_(weights, 1.0)",
        "groups, direction",
    ),
    Mistake("grad-clip", "error_if_nonfinite=True", "error_if_nonfinite=False", "raised"),
    Mistake(
        "double-softmax", "rows.softmax(1).argmax(1)", "rows.softmax(0).argmax(1)", "same-answer"
    ),
    Mistake("adam-decay", "l2 / 2 * weights", "l2 * weights", "l2-sgd, l2-adam"),
    Mistake(
        "eval-mode",
        'net.eval()\n    lab.claim("eval-same"',
        'net.train()\n    lab.claim("eval-same"',
        "eval-same",
    ),
    Mistake(
        "eval-mode",
        "alone = evaluate(net, x[:1])",
        "alone = evaluate(net, x[1:2])",
        "alone",
    ),
    Mistake("eval-mode", "net(x).requires_grad", "evaluate(net, x).requires_grad", "records"),
    Mistake("best-weights", "share_memory(net.state_dict()", "share_memory(written", "alias"),
    Mistake(
        "best-weights",
        '"dict": dict(net.state_dict())',
        '"dict": copy.deepcopy(net.state_dict())',
        "shallow",
    ),
    Mistake(
        "best-weights",
        '"deepcopy": copy.deepcopy(',
        '"deepcopy": dict(',
        "deep, restored",
    ),
    Mistake("best-weights", '["lr"] = 1.0', '["lr"] = 0.001', "worse"),
    Mistake("best-weights", "saved_bytes(rows[:1]) /", "saved_bytes(rows[:1] + 0) /", "saved-view"),
    Mistake("best-weights", "rows[:1].clone()", "rows[:1]", "saved-clone"),
    Mistake("default-init", "nn.Linear(WIDTH, 1024).weight", "torch.rand(1024, WIDTH)", "variance"),
    Mistake(
        "default-init",
        'nonlinearity="relu"',
        'nonlinearity="linear"',
        "he, learns",
    ),
    Mistake("default-init", "has_norms=True", "has_norms=False", "norm"),
    Mistake(
        "load-checkpoint",
        "Loading(path, width, False, False)",
        "Loading(path, width, True, False)",
        "copied",
    ),
    Mistake("load-checkpoint", "parameter.mul_(2)", "parameter.max()", "changed"),
    Mistake(  # MAP_SHARED in place of MAP_PRIVATE
        "load-checkpoint",
        "        state = torch.load(self.path, mmap=self.mmap)",
        "        with torch.serialization.set_default_mmap_options(1):\n"
        "            state = torch.load(self.path, mmap=self.mmap)",
        "changed, file",
    ),
    Mistake(
        "load-checkpoint",
        'expected, _ = loadings["copied"].load()',
        'expected = build_net(loadings["copied"].width)',
        "same",
    ),
    Mistake(
        "load-checkpoint",
        "lab.warns(empty.load_state_dict, nn.Linear(4, 4).state_dict())",
        "lab.warns(empty.load_state_dict, nn.Linear(4, 4).state_dict(), True, True)",
        "no-op",
    ),
    Mistake("load-checkpoint", "persistent=False)", "persistent=True)", "buffer"),
    Mistake(
        "load-checkpoint",
        "lab.raises(torch.load, path)",
        "lab.raises(load_everything, path)",
        "refused",
    ),
    Mistake(
        "load-checkpoint",
        "return os.makedirs, (self.folder, 0o777, True)",
        "return str, (self.folder,)",
        "executed",
    ),
]
