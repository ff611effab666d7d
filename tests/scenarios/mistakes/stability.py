"""Mistakes in the lessons of stability."""

from tests.scenarios.mistakes.mistake import Mistake

LARGEST = "logits - logits.max(-1, keepdim=True).values"

MISTAKES = [
    Mistake(
        "determinism-cost",
        "first = train_from_seed(device)",
        "first = Training(device).train() * 1.001",
        "same-bits, repeat, cpu-same",
    ),
    Mistake(
        "determinism-cost",
        "call_deterministic, False, gradients))",
        "call_deterministic, True, gradients))",
        "no-fill",
    ),
    Mistake(
        "determinism-cost",
        "        for _ in range(2):\n            torch.manual_seed(0)",
        "        torch.manual_seed(0)\n        for _ in range(2):",
        "seed",
    ),
    Mistake("determinism-cost", "in (max_unpool, put)", "in (index_add, put)", "warns"),
    Mistake(
        "determinism-cost",
        "torch.ones(1, device=device))",
        "torch.ones(1, device=device), accumulate=True)",
        "raises, warns",
    ),
    Mistake(
        "dtype-ranges",
        '"float16": torch.float16',
        '"float16": torch.bfloat16',
        "bits, smallest, counting, patterns",
    ),
    Mistake("dtype-ranges", "pattern(x) + 1", "pattern(x) + 2", "eps"),
    Mistake("dtype-ranges", "pattern(inf) - 1", "pattern(inf) - 2", "largest"),
    Mistake("dtype-ranges", "number(1 << mantissa", "number(1 | mantissa", "normal"),
    Mistake("xyy", "x * y / y  #", "x * (y / y)  #", "product, last-decade"),
    Mistake("xyy", '"float16": torch.float16', '"float16": torch.bfloat16', "f16, digits, eps"),
    Mistake("xyy", "[1e-50, 1e39]", "[1e-30, 1e30]", "source"),
    Mistake("xyy", "torch.tensor(1e-8,", "torch.tensor(1e-6,", "eps"),
    Mistake("softmax", LARGEST, "logits", "agrees, stable"),
    Mistake("softmax", "return exps / exps.sum()", "return stable(logits)", "whole-batch"),
    Mistake("softmax", "return exps * exps.sum()", "return exps / exps.sum()", "slash"),
    Mistake(
        "softmax",
        "far_apart - far_apart.max()",
        "far_apart - far_apart.max(-1, keepdim=True).values",
        "far-row",
    ),
    Mistake(
        "softmax",
        "exps = logits.exp()",
        "exps = (logits / 2).exp()",
        "limit-f32, limit-bf16, limit-f16",
    ),
    Mistake("softmax", "pair = torch.tensor([1000.0", "pair = torch.tensor([80.0", "naive, stable"),
    Mistake("xent", LARGEST, "logits", "stable-500, stable-gradient, cross-entropy"),
    Mistake(
        "xent",
        "logits.softmax(-1).log()",
        "logits.log_softmax(-1)",
        "naive-inf, naive-gradient, hard-labels, loss-limit, gradient-limit",
    ),
    Mistake("where-nan", "(x > 0, function(x), 0.0)", "(x > 0, function(x), 1.0)", "value"),
    Mistake("where-nan", "torch.where(x > 0, x, 1.0)", "x.clamp(min=0)", "inside"),
    Mistake("where-nan", ".masked_fill(x <= 0, 0.0)", "", "too-late"),
    Mistake("where-nan", "x[x > 0].sqrt()", "x.sqrt()[x > 0]", "selected"),
    Mistake(
        "where-nan", "return x.square().sum().sqrt()", "return torch.linalg.vector_norm(x)", "norm"
    ),
    Mistake("accumulate-lowp", "half_terms.sum()", "half_terms.sum(dtype=torch.float32)", "sum"),
    Mistake(
        "accumulate-lowp",
        "torch.zeros((), device=device)  #",
        "torch.zeros((), dtype=torch.float16)  #",
        "wide",
    ),
    Mistake(
        "accumulate-lowp",
        "a.new_zeros(len(a), b.shape[1])",
        "torch.zeros(len(a), b.shape[1])",
        "ones, error",
    ),
    Mistake(
        "accumulate-lowp",
        "total + a[:, i : i + 1] * b[i : i + 1]",
        "total.addmm(a[:, i : i + 1], b[i : i + 1])",
        "cancel",
    ),
    Mistake("accumulate-lowp", "many.sum()", "many.sum(dtype=torch.float32)", "mean"),
    Mistake(
        "accumulate-lowp", "SWITCHES.allow_fp16_acc", "not SWITCHES.allow_fp16_acc", "switches"
    ),
    Mistake(
        "bf16-vs-fp16",
        "master_weight = torch.ones((), device=device)",
        "master_weight = torch.ones((), dtype=torch.bfloat16)",
        "master",
    ),
    Mistake("bf16-vs-fp16", "+ noise", "+ 2**15", "random"),
    Mistake("bf16-vs-fp16", "(nearest - 0.0001)", "(nearest - 0.01)", "nearest"),
    Mistake("bf16-vs-fp16", "edges.half()", "edges.float()", "overflow"),
    Mistake("bf16-vs-fp16", ".square().tolist()", ".abs().tolist()", "squares"),
    Mistake(
        "bf16-vs-fp16", "torch.full_like(weight, 0.0001)", "torch.full_like(weight, 0.1)", "adam"
    ),
    Mistake("tf32", "[1e38, 1e-38]", "[1e39, 1e-38]", "range"),
    Mistake("tf32", '"float32": a @ b', '"float32": a.half() @ b.half()', "float32"),
    Mistake("tf32", "(a_high @ b_low + a_low @ b_high)", "a_high @ b_low", "split"),
    Mistake("tf32", "allowed = [CONVOLUTIONS.fp32", "allowed = [PRODUCTS.fp32", "default"),
    Mistake(
        "tf32", 'PRODUCTS.fp32_precision = "ieee"', 'PRODUCTS.fp32_precision = "tf32"', "inherits"
    ),
    Mistake("tf32", "return PRODUCTS.allow_tf32", "return PRODUCTS.fp32_precision", "mixed"),
    Mistake("tf32", "PRODUCTS.allow_tf32 = value", "PRODUCTS.allow_tf32 = True", "together"),
    Mistake(
        "tf32",
        "squared_distances(points, near, 23)",
        "squared_distances(points, near, bits)",
        "distance-f32",
    ),
    Mistake("fp8", "E4M3 = torch.float8_e4m3fn", "E4M3 = torch.float8_e4m3fnuz", "e4m3"),
    Mistake(
        "fp8",
        "E5M2 = torch.float8_e5m2",
        "E5M2 = torch.float8_e5m2fnuz",
        "e5m2, too-large, unscaled",
    ),
    Mistake("fp8", "torch.tensor([17.0, 9.0,", "torch.tensor([18.0, 10.0,", "counting"),
    Mistake("fp8", "1e-6 * torch.randn", "0.01 * torch.randn", "unscaled"),
    Mistake(
        "fp8",
        "torch.finfo(dtype).max / x",
        "0.01 / x",
        "scaled, backward, per-row, wide, few-bits, promoted",
    ),
    Mistake("fp8", "return x8 @ x8.t() /", "return 1.00001 * x8 @ x8.t() /", "mixed"),
    Mistake("fp8", "torch.sum, ones)", "torch.clone, ones)", "no-sum"),
    Mistake("fp8", "1 / b_scale", "b_scale", "wide, mixed"),
    Mistake("fp8", "promote_after=PROMOTED", "promote_after=1024", "promoted"),
    Mistake(
        "rope-bf16",
        '"float32": make_rotation(places, frequencies, torch.float32, "before")',
        '"float32": make_rotation(places, frequencies, torch.float16, "before")',
        "float32",
    ),
    Mistake("rope-bf16", "torch.outer(column[:, 0], row[0])", "(column @ row).T", "autocast"),
    Mistake(
        "bf16-decay",
        "loss = F.cross_entropy(",
        "loss = 0 * F.cross_entropy(",
        "gradients, fused-run",
    ),
    Mistake("bf16-decay", "torch.float32, lr, decay)", "torch.float32, lr, 0.0)", "f32-run"),
    Mistake(
        "bf16-decay",
        "torch.equal(numbers * (1 - product)",
        "torch.equal(numbers * (1 - product / 2)",
        "limit",
    ),
    Mistake(
        "bf16-decay", "(numbers * (1 - product) ==", "(numbers * (1 - product / 2) ==", "every"
    ),
    Mistake("bf16-decay", "torch.ones((), dtype=torch.bfloat16,", "torch.ones((),", "average"),
    Mistake(
        "batch-invariance", "alone = F.linear(shape_row(x[:1])", "alone = F.linear(x[1:2]", "small"
    ),
    Mistake(
        "batch-invariance",
        "repeated += count_differing(F.linear(x,",
        "repeated += count_differing(F.linear(x[:1],",
        "repeat",
    ),
    Mistake("batch-invariance", "torch.cat([x[:1], torch.randn_like(x[1:])])", "x[:1]", "others"),
    Mistake(
        "batch-invariance",
        "count_differing(F.linear(pad_to_batch(x[:1]),",
        "count_differing(F.linear(x[:1],",
        "padded",
    ),
    Mistake("batch-invariance", "torch.randint(-8, 9, x.shape)", "torch.randn(x.shape)", "whole"),
    Mistake(
        "batch-invariance",
        "padded = pad_to_batch(states[:1])",
        "padded = states[:1]",
        "padded-steps",
    ),
    Mistake("rl-logprobs", "(ratios > 1.2)", "(ratios > 1.0)", "clip-f16"),
    Mistake(
        "rl-logprobs",
        "programs.policy(words[:, :length])",
        "run_autocast(programs.policy, words[:, :length], torch.bfloat16)",
        "float32",
    ),
    Mistake("rl-logprobs", "new = programs.train(", "new = programs.generate(", "recomputed"),
    Mistake("rl-logprobs", "= 70_000", "= 7_000", "massive"),
]
