"""Mistakes in the lessons of amp."""

from tests.scenarios.mistakes.mistake import Mistake

MISTAKES = [
    Mistake("autocast-rules", "lambda a, b: a @ b", "lambda a, b: a * b", "matmul"),
    Mistake("autocast-rules", "a + b.float()", "a + b.to(torch.bfloat16)", "add"),
    Mistake("autocast-rules", "a.mean()", "a.float().mean()", "mean"),
    Mistake("autocast-rules", "a.prod()", "a.sum()", "widened"),
    Mistake("autocast-rules", "a.exp()", "a.float().exp()", "cpu-list"),
    Mistake(
        "autocast-rules",
        "return F.conv2d(a[None, None], b[None, None])",
        "return (a * b).sum()",
        "convolution",
    ),
    Mistake(
        "autocast-rules",
        'losses["inside"] = F.mse_loss',
        'losses["inside"] = squared_error',
        "inside",
    ),
    Mistake(
        "autocast-rules",
        "torch.autocast(other, torch.bfloat16)",
        "torch.autocast(a.device.type, torch.bfloat16)",
        "other-device",
    ),
    Mistake(
        "autocast-rules",
        "with torch.autocast(a.device.type):",
        "with torch.autocast(a.device.type, torch.float16):",
        "default-dtype",
    ),
    Mistake("autocast-rules", "lab.warns(old_name)[0]", '"none"', "deprecated"),
    Mistake(
        "layer-precision",
        "return net[-1](x.to(net[-1].weight.dtype))",
        "return net[-1].float()(x.float())",
        "worst, keep-last, autocast, bytes",
    ),
    Mistake("layer-precision", "found**2 for", "2 * found**2 for", "squares"),
    Mistake("layer-precision", "error(every[:-1])", "error(every)", "keep-last"),
    Mistake(
        "layer-precision", 'lab.claim("classes", (y', 'lab.claim("classes", (y.roll(1)', "classes"
    ),
    Mistake(
        "layer-precision",
        "net = cut(device, every, half)",
        "net = cut(device, every[:-1], half)",
        "bytes, autocast",
    ),
    Mistake("layer-precision", "raises(net[0], x)", "raises(net[0], x.to(half))", "refused"),
    Mistake(
        "layer-precision",
        "torch.cat([weight.flatten()",
        "torch.cat([1e-6 * weight.flatten()",
        "fits",
    ),
    Mistake("layer-precision", "torch.tensor([0.5, 2])", "torch.tensor([5, 2])", "default"),
    Mistake("grad-underflow", "loss, 2.0**power", "loss, 1", "rescued, restored"),
    Mistake(
        "grad-underflow",
        '"bfloat16": torch.bfloat16}',
        '"bfloat16": torch.float16}',
        "bfloat16, no-overflow",
    ),
    Mistake("grad-underflow", "dtype, 1, 2.0**24", "dtype, 1, 1", "overflow"),
    Mistake("grad-underflow", "enabled=is_scaled", "enabled=False", "learns"),
    Mistake("grad-underflow", "(torch.float16, 1e-4, 1)", "(torch.bfloat16, 1e-4, 1)", "epsilon"),
    Mistake("grad-underflow", "(torch.float16, 1e-6, 1)", "(torch.bfloat16, 1e-6, 1)", "subnormal"),
    Mistake(
        "grad-underflow",
        'trained["float32"][1].half()',
        '(1e-6 * trained["float32"][1]).half()',
        "weights",
    ),
    Mistake("gradscaler", "is_changed for change", "not is_changed for change", "skipped"),
    Mistake("gradscaler", "returned = trial", "returned = not trial", "none"),
    Mistake("gradscaler", "torch.bfloat16, growth", "torch.float16, growth", "bfloat16"),
    Mistake(
        "gradscaler",
        "Trial(device).scaler.get",
        "Trial(device, growth_interval=1000).scaler.get",
        "defaults",
    ),
    Mistake(
        "gradscaler", "(Trial.clip, Trial.unscale)", "(Trial.unscale, Trial.clip)", "clip-early"
    ),
    Mistake(
        "gradscaler", "(Trial.unscale, Trial.clip)", "(Trial.clip, Trial.unscale)", "clip-late"
    ),
    Mistake(
        "gradscaler", "trial.net.weight.grad.dtype", "trial.net.weight.grad.half().dtype", "float32"
    ),
    Mistake("gradscaler", "closure=lambda: 0", "", "refused"),
    Mistake("gradscaler", "enabled=False).scaler", "enabled=True).scaler", "disabled"),
    Mistake(
        "linear-amp",
        'if arm == "cast" else torch.float32',
        'if arm != "float32" else torch.float32',
        "peak, casts, same-loss, weights",
    ),
    Mistake(
        "linear-amp",
        "self.net(x.to(self.net.weight.dtype))",
        "self.net(x.to(self.net.weight.dtype)).relu() * (1.003 if self.arm == 'autocast' else 1)",
        "kept, cancelled, same-loss",
    ),
    Mistake("linear-amp", "(rounded - exact)", "(rounded - exact.roll(1, 0))", "rounded"),
    Mistake(
        "checkerboard",
        "with torch.autocast(x.device.type, dtype):",
        "with torch.autocast(x.device.type, dtype, enabled=False):",
        "saved-bytes",
    ),
    Mistake("checkerboard", "scaler.step(optimizer)", "scaler.step", "both-learn, same-loss"),
    Mistake("checkerboard", "        @torch.jit.script_method\n", "", "script"),
    Mistake("amp-vgg", "nn.MaxPool2d(2), x)", "nn.AvgPool2d(2), x)", "indices"),
    Mistake("amp-vgg", 'if arm == "cast" else', 'if arm != "float32" else', "weights"),
    Mistake(
        "amp-vgg",
        "self.optimizer.step()",
        "self.dtype is torch.bfloat16 or self.optimizer.step()",
        "learn, same",
    ),
    Mistake("matmul-dtypes", '"float16": torch.float16', '"float16": torch.bfloat16', "eight"),
    Mistake(
        "matmul-dtypes",
        "product = a.to(dtype) @ b.to(dtype)",
        "product = sum(a.to(dtype)[:, i : i + 1] @ b.to(dtype)[i : i + 1] for i in range(n))",
        "bfloat16, rounded, flat",
    ),
    Mistake("dims-of-8", "torch.empty(1024, width", "torch.empty(1024, 2 * width", "aligned"),
    Mistake(
        "dims-of-8",
        "-rows % multiple))",
        "-rows % multiple), value=1.0)",
        "zeros, untrained",
    ),
    Mistake("dims-of-8", "0.0, -torch.inf", "0.0, -1.0", "masked"),
    Mistake("dims-of-8", "lr=0.01", "lr=0.00001", "learned"),
    Mistake("dims-of-8", "torch.cat([x, x])", "torch.cat([x, x, x])", "batch"),
]
