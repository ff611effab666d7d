"""Mistakes in the lessons of observing."""

from tests.scenarios.mistakes.mistake import Mistake

MISTAKES = [
    Mistake(
        "profiler", "counted = lab.count(step, net, x)", "counted = lab.count(net, x)", "counts"
    ),
    Mistake("profiler", "row.self_cpu_time_total for row", "row.cpu_time_total for row", "self"),
    Mistake(
        "profiler",
        'names.index("aten::conv2d")',
        'names.index("aten::native_batch_norm")',
        "nested",
    ),
    Mistake("profiler", "(group_by_input_shape=True)", "()", "shapes"),
    Mistake("profiler", "python.runcall(step, net, x)", "python.runcall(net, x)", "cprofile"),
    Mistake("profiler", '("device", "cuda")]', '("cuda", "device")]', "renamed"),
    Mistake("profiler", '"step": partial(step, net)', '"step": net', "backward"),
    Mistake("profiler", '{"forward": net,', '{"forward": partial(step, net),', "forward"),
    Mistake(
        "profiler",
        '    with record_function("backward"):\n        return',
        "        return",
        "label",
    ),
    Mistake("debug-apis", "within(stacks, plain)[0]", "plain()[0]", "traces"),
    Mistake("debug-apis", "(zero.sqrt() * 0, zero.sqrt())", "(zero * 0, zero.sqrt())", "nan-only"),
    Mistake("debug-apis", '"gradcheck": False,', '"gradcheck": True,', "gradcheck"),
    Mistake("debug-apis", '"fast_mode": True}', '"fast_mode": False}', "fast"),
    Mistake(
        "debug-apis",
        "torch.rand(64, device",
        "torch.rand(64, dtype=torch.float64, device",
        "float32",
    ),
    Mistake(
        "debug-apis", "within, profile, plain)}", "within, detect_anomaly, plain)}", "profiler"
    ),
    Mistake("lightning", "(loss / every).backward()", "loss.backward()", "rest, same"),
    Mistake("lightning", "batches[:8], every=4)", "batches[:7], every=4)", "rest"),
    Mistake("lightning", " or number == len(batches)", "", "rest, same"),
    Mistake("lightning", '{"clip": 0.1}', "{}", "clip, same"),
    Mistake("lightning", '"dtype": torch.bfloat16', '"dtype": torch.float16', "mixed, same"),
]
