"""Mistakes in the lessons of basics."""

from tests.scenarios.mistakes.mistake import Mistake

MISTAKES = [
    Mistake(
        "curve-fit",
        "return 5 * x * x + 3",
        "return 5.5 * x * x + x + 3",
        "curvature, slope, source-slope, least-squares",
    ),
    Mistake(
        "curve-fit", "torch.tensor(torch.randn(3, 1), req", "torch.randn((3, 1), req", "warning"
    ),
    Mistake("tensor-basics", "_write(torch.from_numpy)", "_write(torch.tensor)", "shared"),
    Mistake("tensor-basics", "(torch.from_numpy, array)", "(torch.tensor, array)", "bytes"),
    Mistake("tensor-basics", '{"torch": torch}', '{"torch": torch, "np": np}', "no-import"),
    Mistake("tensor-basics", "tensor.numpy()\n", "tensor.clone().numpy()\n", "back"),
    Mistake("tensor-basics", "torch.zeros(3, 32, 32)", "torch.zeros(1, 3, 32, 32)", "ranks"),
    Mistake("tensor-basics", "torch.randn(5, 4, device", "torch.randn(5, 5, device", "product"),
    Mistake("tensor-basics", "torch.add, x, y", "torch.add, x, x", "sum"),
    Mistake("tensor-basics", "requires_grad=True)\n", "requires_grad=False)\n", "gradient"),
    Mistake("tensor-basics", "torch.tensor(0.5)", "torch.tensor(np.float64(0.5))", "default"),
    Mistake(
        "autograd-chain",
        "torch.equal(gradients, -2 * curve)",
        "torch.equal(gradients, 2 * curve)",
        "everywhere",
    ),
    Mistake("autograd-chain", "return -(x * x)", "return -(x * x) * 1", "nodes, one-pass"),
    Mistake("module-registry", "nn.Linear(64, 32)", "nn.Linear(63, 32)", "sequential"),
    Mistake(
        "module-registry",
        "self.first(x).tanh()",
        "self.first(x).detach().tanh()",
        "gradients, moved",
    ),
    Mistake(
        "module-registry",
        "count_hook_runs(net, net.forward, x)",
        "count_hook_runs(net, net, x)",
        "hooks",
    ),
    Mistake(
        "linear-fit", "torch.eye(2).to(hessian) -", "torch.eye(2).to(hessian) - 2 *", "foretold"
    ),
    Mistake("linear-fit", "nn.init.zeros_(weight)", "nn.init.normal_(weight)", "layer"),
    Mistake("same-code", "first, x, weight) ==", "first, meta_x, meta_weight) ==", "cpu"),
    Mistake(
        "same-code", "device=x.device)\n    return", "device=x.device) * 2\n    return", "values"
    ),
    Mistake(
        "same-code", "asked(meta_x, meta_weight)\n", "asked(meta_x, meta_weight).half()\n", "same"
    ),
    Mistake(
        "same-code",
        "random_inputs(batch, device), b",
        "random_inputs(batch + (device == 'meta'), device), b",
        "flops",
    ),
    Mistake(
        "same-code",
        "scores.softmax(-1) @ x",
        "scores.softmax(-1) @ (x + 0 if x.is_meta else x)",
        "operators",
    ),
    Mistake("same-code", "[on_meta.data_ptr()", "[on_cpu.data_ptr()", "no-memory"),
    Mistake("same-code", "on_meta.sum().item", "on_cpu.sum().item", "value"),
    Mistake("same-code", "on_meta[on_meta > 0]", "on_cpu[on_cpu > 0]", "mask"),
]
